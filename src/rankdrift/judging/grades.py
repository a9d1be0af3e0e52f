"""Grades 0 to 4 from relevances, and "not enough data" where the clicks do not tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.registry import Registry
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.core.words import figure, many
from rankdrift.judging.judgments import Judgments, chance_above

NOT_ENOUGH = -1
"""The grade of a pair whose clicks settle too little."""
HIGHEST = 4
ENOUGH = 0.25
"""A pair has a grade from this share of what was open that its own clicks settled."""


@dataclass(frozen=True)
class Scale:
    """A way to grade; `SCALES.register` makes it known.

    Parameters
    ----------
    name
        What `grade` calls it.
    use
        What its thresholds are, in a few words.
    value
        (judgments, reference) -> (N,), what is held against the thresholds.
    default
        Its thresholds, four ascending numbers; None: they must be given.
    cuts
        (values of graded pairs, thresholds) -> the thresholds on the values themselves, if they are
        not.
    """

    name: str
    use: str
    value: Callable[[Judgments, float | None], Floats]
    default: tuple[float, ...] | None
    cuts: Callable[[Floats, Floats], Floats] | None = None


SCALES: Registry[Scale] = Registry("scale")
"""The ways to grade."""


@dataclass(frozen=True, eq=False)
class Grades:
    """The grade of each pair (N,), 0 to 4 or NOT_ENOUGH; cuts (4,): what separates them; by: the
    scale."""

    grade: Ints
    cuts: Floats
    by: str

    @property
    def given(self) -> Bools:
        """(N,): which pairs have a grade."""
        return np.asarray(self.grade != NOT_ENOUGH)

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have each grade."""
        names = {NOT_ENOUGH: "not enough data"} | {g: str(g) for g in range(HIGHEST + 1)}
        return {name: int((self.grade == g).sum()) for g, name in names.items()}

    def __repr__(self) -> str:
        given = f"{many(int(self.given.sum()), 'pair')} graded by {self.by}"
        return brief(self, given, f"{(~self.given).sum():,} without enough data")

    def _repr_html_(self) -> str:
        return html_table(["grade", "pairs"], self.counts.items(), repr(self)[1:-1])


def grade(
    judgments: Judgments,
    *,
    by: str = "quantile",
    thresholds: Sequence[float] | None = None,
    reference: float | None = None,
    enough: float = ENOUGH,
) -> Grades:
    """Grade every pair 0 to 4.

    Parameters
    ----------
    judgments
        From `judge`.
    by
        One of SCALES: "quantile", by the share of graded pairs that are less relevant; "better", by
        the probability of being more relevant than a reference; "relevance", by the relevance.
    thresholds
        Four ascending numbers, the least of grades 1 to 4; "relevance" needs them.
    reference
        Of "better": a relevance. By default that of a pair never shown.
    enough
        The least share of what was open about a pair that its own clicks must have settled; with
        less it has no grade.
    """
    scale = SCALES.get(by)
    if not 0 <= enough <= 1:
        raise BadOption(f"enough is a share and must be from 0 to 1, not {enough!r}.")
    if reference is not None and by != "better":
        raise BadOption(f"reference is of the scale 'better'; this one is {by!r}.")
    if reference is not None and not 0 < reference < 1:
        raise BadOption(f"reference is a relevance, between 0 and 1, not {reference!r}.")
    wanted = np.asarray(scale.default if thresholds is None else thresholds, float)
    if thresholds is None and scale.default is None:
        raise BadOption(
            f"The scale {by!r} needs thresholds: four relevances, such as 0.01, 0.03, 0.1 and 0.3."
        )
    ordered = wanted.shape == (HIGHEST,) and (np.diff(wanted) > 0).all()
    if not ordered or not ((wanted > 0) & (wanted < 1)).all():
        raise BadOption(
            f"thresholds are {HIGHEST} ascending numbers between 0 and 1, the least of grades 1 to "
            f"{HIGHEST}, not {', '.join(f'{v:g}' for v in np.atleast_1d(wanted))}."
        )
    values = scale.value(judgments, reference)
    told = judgments.known >= enough
    cuts = scale.cuts(values[told], wanted) if scale.cuts else wanted
    graded = np.searchsorted(cuts, values, side="right")
    return Grades(np.where(told, graded, NOT_ENOUGH).astype(np.int64), cuts, by)


def _relevance(judgments: Judgments, reference: float | None) -> Floats:
    return judgments.relevance


def _better(judgments: Judgments, reference: float | None) -> Floats:
    against = judgments.prior["relevance"] if reference is None else reference
    away = judgments.logit - np.log(against / (1 - against))
    return np.asarray(chance_above(away, judgments.logit_sd))


def _quantiles(values: Floats, shares: Floats) -> Floats:
    return np.asarray(np.quantile(values, shares)) if len(values) else shares


SCALES.register(
    Scale(
        "quantile",
        "shares of the graded pairs",
        _relevance,
        (0.5, 0.75, 0.9, 0.97),
        _quantiles,
    )
)
SCALES.register(
    Scale("better", "probabilities to be better than a reference", _better, (0.1, 0.5, 0.9, 0.99))
)
SCALES.register(Scale("relevance", "relevances", _relevance, None))


def grade_words(grades: Grades) -> list[tuple[str, str, Any]]:
    """(grade, from which value on, pairs) for people."""
    starts = ["", *(f"from {figure(float(cut))}" for cut in grades.cuts)]
    rows = [(str(g), starts[g], grades.counts[str(g)]) for g in range(HIGHEST, -1, -1)]
    return [*rows, ("not enough data", "", grades.counts["not enough data"])]
