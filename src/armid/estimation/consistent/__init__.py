"""Physically consistent estimates: conditions on the parameters, semidefinite programming, priors."""
