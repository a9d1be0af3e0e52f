"""Keeping propensities up to date: the night job, and whether they drift."""
