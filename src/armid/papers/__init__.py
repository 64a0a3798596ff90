"""The papers' own equations and experiments."""
