"""Recorded motion: the log, its readers and writers."""
