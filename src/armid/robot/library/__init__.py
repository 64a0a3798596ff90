"""Descriptions of the library's robots, as data files."""
