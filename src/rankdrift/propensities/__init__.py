"""Propensities: a curve with its errors; every estimator returns exactly this."""

from rankdrift.propensities.intervals import Interval
from rankdrift.propensities.propensities import Propensities

__all__ = ["Interval", "Propensities"]
