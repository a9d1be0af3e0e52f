"""Made-up data whose true propensities are known, for demos, tests and benchmarks."""

from rankdrift.simulate.searches import Searches, inverse_log, searches

__all__ = ["Searches", "inverse_log", "searches"]
