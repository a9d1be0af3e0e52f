"""Many checks, one verdict.

What is wrong is told by the worst check, all of them together taken into account (Holm). That
nothing was found is not enough for *good*: each of the dangers below must have been looked at with
enough data to see a bias of 10%. What no check could see, nobody has seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.assumption import KINDS, MOVES


@dataclass(frozen=True)
class Danger:
    """A way in which a curve may be wrong though all looks well.

    Parameters
    ----------
    words
        What it is, as a sentence goes on after "whether".
    checks
        Names of checks, one of which must be good before the danger is out of the way.
    ways_out
        What to do to have it looked at, the cheapest first: what each of the checks needs, in
        their order, then what else would do.
    signs
        Names of checks that tell of the danger if they object, and of nothing if they do not.
    """

    words: str
    checks: tuple[str, ...]
    ways_out: tuple[str, ...]
    signs: tuple[str, ...] = ()

    def told(self, instead: Mapping[str, str]) -> str:
        """A sentence on what could not be told, and what to do to know.

        Parameters
        ----------
        instead
            What to do for checks that have what they need but not enough of it, by their names.
        """
        needed = zip_longest(self.checks, self.ways_out)
        short = {name: _clause(advice) for name, advice in instead.items()}
        ways = [(name not in short, short.get(name or "", way)) for name, way in needed]
        todo = "; or ".join(dict.fromkeys(way for _, way in sorted(ways, key=lambda way: way[0])))
        return f"Whether {self.words} cannot be told from this log. To know: {todo}."


def told_thin(words: str, advice: str) -> str:
    """A sentence on a curve that has too few clicks behind it.

    Parameters
    ----------
    words, advice
        What the check of support says.
    """
    few = words.split(";")[0]
    return f"The curve itself cannot be told from this log: {few}. To know: {_clause(advice)}."


def _clause(advice: str) -> str:
    """The first thing that advice says, as a sentence goes on."""
    first = advice.split(":")[0].split(". ")[0].removesuffix(".")
    return first[:1].lower() + first[1:]


RANDOMISE = "swap two results, or shuffle the top ones, in 1% of searches (rankdrift experiment)"
DANGERS = (
    Danger(
        "docs moved because their relevance changed",
        ("score", "rankers"),
        (
            "log the score that the ranker sorted by (--score)",
            "log which ranker answered, in an A/B test (--ranker)",
            RANDOMISE,
        ),
        signs=(MOVES, "users", "gaps"),
    ),
    Danger(
        "good and less good docs have the same curve",
        ("relevance", "outcome"),
        (
            "count several days in one harvest",
            "log what came after a click (--outcome)",
            RANDOMISE,
        ),
        signs=(KINDS,),
    ),
    Danger(
        "all queries have the same curve",
        ("queries",),
        ("count several days in one harvest", "split by kind of query (--segment)"),
    ),
)


def holm(p_values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Each p-value as it stands after all of them were looked at (Holm's step-down method, with
    weights)."""
    p, share = np.asarray(p_values, float), np.asarray(weights, float)
    order = np.argsort(p / share)
    left = np.cumsum(share[order][::-1])[::-1]
    stepped = np.maximum.accumulate(p[order] / share[order] * left)
    found = np.empty(len(p))
    found[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in found]


def overall(verdicts: Mapping[str, Verdict], worst: Mapping[str, Verdict]) -> Verdict:
    """One verdict for all checks.

    Parameters
    ----------
    verdicts
        Of each check by name.
    worst
        The worst that each may make of the whole; SERIOUS where it does not say.
    """
    counted = [v for name, v in verdicts.items() if worst.get(name) != Verdict.GOOD]
    for bad in (Verdict.SERIOUS, Verdict.CAUTION):
        if bad in counted:
            return bad
    if unseen(verdicts) or verdicts.get("support") == Verdict.CANNOT_TELL:
        return Verdict.CANNOT_TELL
    return Verdict.GOOD


def unseen(verdicts: Mapping[str, Verdict]) -> list[Danger]:
    """The dangers that no check has looked at closely enough to say anything of them."""
    objects = {name for name, v in verdicts.items() if v in (Verdict.CAUTION, Verdict.SERIOUS)}
    told = objects | {name for name, v in verdicts.items() if v == Verdict.GOOD}
    return [
        danger
        for danger in DANGERS
        if not told & {*danger.checks} and not objects & {*danger.signs}
    ]
