"""Estimates of arms that can exist: physical consistency by semidefinite programming, and priors."""
