"""Counts -> Propensities: curves, the likelihood and its maximum, and how sure one can be."""

from rankdrift.estimation.estimating import estimate

__all__ = ["estimate"]
