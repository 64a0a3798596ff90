"""Speed of armid against its peers, measured in the same run: ``make bench``."""
