"""Propensities: a curve with its errors; every estimator returns exactly this."""

from rankdrift.propensities.propensities import Interval, Propensities

__all__ = ["Interval", "Propensities"]
