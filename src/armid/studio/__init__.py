"""The procedure as a local page: one screen per step, on the folder of `armid run`."""
