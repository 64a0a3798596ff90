"""Many arms of one type, many days: the same identification as a map and a sum, on Dask."""
