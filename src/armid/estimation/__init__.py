"""From a dataset to parameters."""
