"""Other ways to learn propensities, to compare with: each in a module of its own.

They are imported when first used. `rankdrift.compare` runs them side by side on one log; what it
knows of each is in `estimators`.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "adjacent_chain": "intervention_harvesting",
    "all_pairs": "intervention_harvesting",
    "clicked_pairs": "tallies",
    "combine": "experiments",
    "ctr": "click_rates",
    "dual_learning": "dual",
    "em": "em_pairs",
    "experiment": "experiments",
    "pivot_one": "intervention_harvesting",
    "ratio": "two_ranks",
    "ratios": "two_ranks",
    "regression_em": "em_features",
    "split_click_rates": "click_rates",
    "swaps": "experiments",
    "tally": "tallies",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rankdrift.methods.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rankdrift.methods' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
