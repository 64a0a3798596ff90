"""Experiments: the drive protocol, the virtual robot, and the procedures of the papers."""
