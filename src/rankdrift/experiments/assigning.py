"""Which searches take part in an experiment, and in what order their results are shown.

A pure function of an id and a salt. There is no state, and nothing is needed but Python itself, so
this file can be copied into a search service as it is. What chance decides is read off the digits
of MD5(what:salt:id) and compared as text: `assign.js` and the SQL of an `Experiment` decide the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import Any, NamedTuple, TypeVar

Doc = TypeVar("Doc")

HALF = "80000000"
"""Half of all digits are below this."""


class Arranged(NamedTuple):
    """What to show and what to log: docs in their order, each doc's rank before, and whether the
    search takes part (`randomised`)."""

    docs: Sequence[Any]
    original: tuple[int, ...]
    randomised: bool


def arrange(experiment: Mapping[str, Any], unit: str, docs: Sequence[Doc]) -> Arranged:
    """The docs in the order in which to show them.

    Parameters
    ----------
    experiment
        What is in the file of the experiment.
    unit
        The id of the search; of the user, if the experiment is by user.
    docs
        As the ranker has them, the best first: the whole list, not one page of it.
    """
    order = assign(experiment, unit, len(docs))
    if order is None:
        return Arranged(docs, tuple(range(1, len(docs) + 1)), False)
    return Arranged([docs[rank - 1] for rank in order], order, True)


def assign(experiment: Mapping[str, Any], unit: str, size: int) -> tuple[int, ...] | None:
    """The ranks before, in the order in which to show them; None for a search that takes no part.

    Lists that end before the deepest rank of the design take no part: their docs could not go where
    those of longer lists do, and then ranks would be compared by lists that differ.

    Parameters
    ----------
    experiment, unit
        As for `arrange`.
    size
        How many results there are.
    """
    salt, design = experiment["salt"], experiment["design"]
    if size < deepest(design) or not experiment["on"]:
        return None
    if not digits("in", salt, unit) < below(experiment["share"]):
        return None
    order = list(range(1, size + 1))
    if design["kind"] == "swaps":
        if digits("swap", salt, unit) < HALF:
            which, upto = digits("which", salt, unit), 0.0
            chosen = design["swaps"][-1]
            for pair, chance in zip(design["swaps"], design["chances"], strict=True):
                upto += chance
                if which < below(upto):
                    chosen = pair
                    break
            i, j = chosen
            order[i - 1], order[j - 1] = j, i
    elif design["kind"] == "fairpairs":
        first = design["first"] + (digits("first", salt, unit) < HALF)
        for rank in range(first, design["last"], 2):
            if digits(f"pair {rank}", salt, unit) < HALF:
                order[rank - 1], order[rank] = rank + 1, rank
    else:
        first, last = design["first"], design["last"]
        drawn = sorted((digits(f"rank {r}", salt, unit), r) for r in range(first, last + 1))
        order[first - 1 : last] = [rank for _, rank in drawn]
    return tuple(order)


def deepest(design: Mapping[str, Any]) -> int:
    """The last rank that a design touches."""
    if design["kind"] == "swaps":
        return max(int(rank) for swap in design["swaps"] for rank in swap)
    return int(design["last"])


def digits(what: str, salt: str, unit: str) -> str:
    """Eight hexadecimal digits, as good as drawn at random."""
    return md5(f"{what}:{salt}:{unit}".encode(), usedforsecurity=False).hexdigest()[:8]


def below(share: float) -> str:
    """Digits are below this with that probability."""
    return "g" if share >= 1 else f"{int(share * 2**32):08x}"
