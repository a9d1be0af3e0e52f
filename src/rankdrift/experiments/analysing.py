"""The log of an experiment: was it drawn as planned, and what does it say of the propensities?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadLog, MissingColumns, NoUsablePairs, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief
from rankdrift.core.types import Bools, Floats
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, many, percent, share, verb
from rankdrift.experiments.assigning import deepest
from rankdrift.experiments.designs import allocation
from rankdrift.experiments.experiment import Experiment
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import RESULT, ROWS_SHOWN, Planner, Step
from rankdrift.methods.experiments import combine, swaps
from rankdrift.methods.tallies import collect, says_yes, with_randomised
from rankdrift.propensities.propensities import Propensities

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

ORIGINAL, RANDOMISED = "original_rank", "randomised"
"""The columns that a search service logs, unless told otherwise."""
MOST_WRONG = 0.01  # of the rows of an experiment; with more the order was not drawn as it says
UNLIKELY = 0.001  # a chance; with checks as planned they object once in a thousand experiments
_FEWEST = 5.0  # expected in a cell, for the test of counts to be taken at its word


@dataclass(frozen=True)
class Balance:
    """What one look at the randomisation found: its question, the verdict, words and numbers."""

    name: str
    question: str
    verdict: Verdict
    words: str
    p_value: float | None = None


@dataclass(frozen=True, eq=False)
class Analysis:
    """What an experiment found.

    Parameters
    ----------
    experiment
        As it was planned.
    curve
        The propensities that it tells by itself.
    checks
        Whether it was drawn as planned.
    combined
        With the drift of all other rows, each by how sure it is; None if none was given.
    shown, clicks
        (R, R): results of rank o + 1 before, shown at rank s + 1, at [o, s]; and clicked.
    """

    experiment: Experiment
    curve: Propensities
    checks: tuple[Balance, ...]
    combined: Propensities | None
    shown: Floats
    clicks: Floats

    @property
    def verdict(self) -> Verdict:
        """The worst of the checks."""
        found = {check.verdict for check in self.checks}
        return next(v for v in (Verdict.SERIOUS, Verdict.CANNOT_TELL, Verdict.GOOD) if v in found)

    def __repr__(self) -> str:
        rows = many(int(self.shown.sum()), "result")
        return brief(
            self, self.experiment.name, f"{rows} shown", f"drawn as planned: {self.verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "experiment": self.experiment.to_dict(),
            "randomisation": {
                "verdict": str(self.verdict),
                "checks": [{**asdict(c), "verdict": str(c.verdict)} for c in self.checks],
            },
            "table": self.curve.table(),
            "combined": None if self.combined is None else self.combined.table(),
            "shown": self.shown.astype(int).tolist(),
            "clicks": self.clicks.astype(int).tolist(),
        }

    def plot(self) -> Figure:
        """Draw the curve, and the one combined with the drift."""
        from rankdrift.charts.curves import curves_chart
        from rankdrift.charts.style import Figure

        both = {"experiment": self.curve}
        if self.combined is not None:
            both["combined"] = self.combined
        return Figure(curves_chart(both))


@names_checked
def analyse(
    log: Log,
    experiment: Experiment,
    *,
    original: str = ORIGINAL,
    randomised: str = RANDOMISED,
    propensities: Propensities | None = None,
    reference: int | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Propensities from the log of an experiment, and whether it was drawn as planned.

    Parameters
    ----------
    log
        From `read_log`, with the id of the search (`search=`), or of the user (`user=`) if the
        experiment is by user.
    experiment
        As it was planned: `Experiment.load`.
    original
        The column with the rank that each result had before it was moved.
    randomised
        The column that says which results took part.
    propensities
        From the drift of all other rows, to be combined with the experiment by how sure each is.
    reference
        The rank whose propensity is 1; by default that of `propensities`, or else the first rank
        that the design moves.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Returns
    -------
    Analysis
        The curve, and the checks.

    Raises
    ------
    MissingColumns
        If a column is not there.
    BadLog
        If results took part, or were moved, in another way than planned.
    NoUsablePairs
        If nothing took part, or nothing was clicked.
    """
    unit = unit_column(log, experiment)
    found = _collect(log, experiment, original, randomised, unit, progress)
    _refuse_moved_otherwise(found, experiment)
    size = deepest(experiment.design)
    shown, clicks, units = (found.table(name, size) for name in ("n", "c", "units"))
    checks = (
        _as_assigned(found),
        _share_check(found, experiment),
        _places_check(units, experiment, size),
    )
    reference = _reference(experiment, propensities, reference)
    curve = swaps(
        log,
        original=original,
        randomised=randomised,
        cluster=unit if experiment.unit == "user" else None,
        reference=reference,
        progress=progress,
    )
    both = None if propensities is None else combine(propensities, curve)
    return Analysis(experiment, curve, checks, both, shown, clicks)


def _reference(experiment: Experiment, known: Propensities | None, asked: int | None) -> int:
    if asked is not None:
        return asked
    if known is not None:
        return known.reference
    design = experiment.design
    pairs = design["swaps"] if design["kind"] == "swaps" else [[design["first"]]]
    return min(int(rank) for pair in pairs for rank in pair)


def unit_column(log: Log, experiment: Experiment) -> str:
    """The column whose values decided what was shown; MissingColumns if there is none."""
    column = {"search": log.roles.search, "user": log.roles.user}[experiment.unit]
    if not isinstance(column, str) or not column:
        raise MissingColumns(
            f"The log has no column for the {experiment.unit}, whose id decided what was shown. "
            f"Name it: --{experiment.unit} COLUMN."
        )
    return column


# -- counting --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    """Rows of the log counted by what they say of themselves, (N,) each.

    flagged: they say that they took part. drawn: by their id they should, the list being long
    enough. placed: they stand where their id puts them. before, rank; n rows, c clicked, units.
    total, taking_part: units with a row at the deepest rank or below.
    """

    columns: Mapping[str, NDArray[Any]]
    total: int
    taking_part: int

    def rows(self, keep: Bools) -> int:
        """How many rows those are."""
        return int(self.columns["n"][keep].sum())

    def __getattr__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def table(self, value: str, size: int) -> Floats:
        """(R, R): by rank before and rank shown, of rows that took part."""
        found = np.zeros((size, size))
        keep = self.flagged & (self.before <= size) & (self.rank <= size)
        place = (self.before[keep] - 1, self.rank[keep] - 1)
        np.add.at(found, place, self.columns[value][keep])
        return found


def _collect(
    log: Log,
    experiment: Experiment,
    original: str,
    randomised: str,
    unit: str,
    progress: Progress | None,
) -> _Found:
    log = with_randomised(log)
    for name, what in ((original, "the rank before"), (randomised, "what took part")):
        if name not in log.engine.columns:
            raise MissingColumns(
                f"The log has no column {name!r} with {what}."
                f"{did_you_mean(name, log.engine.columns)} Name it with "
                f"--{'original' if name == original else 'randomised'}."
            )
    p = log.planner()
    before, _ = values.rank(*p.column(original), p.dialect)
    place = f"(CAST({before} AS BIGINT) + {1 - log.rules.first_rank})"
    ids = values.as_text(*p.column(unit), p.dialect)
    drawn, expected = experiment.expressions(p.dialect.name, ids, place)
    carry = {
        "rd_before": place,
        "rd_flagged": says_yes(log, randomised),
        "rd_unit": ids,
        "rd_drawn": drawn,
        "rd_expected": expected,
    }
    deep = deepest(experiment.design)

    def yes(condition: str) -> str:
        return f"CASE WHEN {condition} THEN 1 ELSE 0 END"

    def steps(p: Planner) -> list[Step]:
        keys = "flagged, drawn, placed, rd_before, rank"
        long = f"count(DISTINCT CASE WHEN rank >= {deep} THEN rd_unit END)"
        part = f"count(DISTINCT CASE WHEN rank >= {deep} AND rd_flagged THEN rd_unit END)"
        kept = f"FROM {ROWS_SHOWN} WHERE ok AND rd_before >= 1"
        return [
            *row_steps.steps(p)[:-1],
            Step(
                "took_part",
                f"SELECT {yes('rd_flagged')} AS flagged, {yes('rd_drawn')} AS drawn,"
                f" {yes('rd_expected = rank')} AS placed, rd_before, rank, rd_unit,"
                f" {yes('click > 0')} AS clicked {kept}",
            ),
            Step("long_enough", f"SELECT {long} AS total, {part} AS taking_part {kept}"),
            Step(
                RESULT,
                f"SELECT {keys}, count(*) AS n, sum(clicked) AS c,"
                " count(DISTINCT rd_unit) AS units, min(total) AS total,"
                " min(taking_part) AS taking_part\n"
                f"FROM took_part CROSS JOIN long_enough GROUP BY {keys}",
            ),
        ]

    found = collect(log, steps, carry=carry, progress=progress)
    flagged = found["flagged"].astype(bool)
    if not flagged.any():
        raise NoUsablePairs(
            f"No result took part: {randomised!r} never says yes (true, 1) of a row that can be "
            "used. Is the experiment on, and is this its log?"
        )
    columns = {
        "flagged": flagged,
        "drawn": found["drawn"].astype(bool),
        "placed": found["placed"].astype(bool),
        "before": found["rd_before"].astype(np.int64),
        **{name: found[name].astype(np.int64) for name in ("rank", "n", "c", "units")},
    }
    total, part = (int(found[name][0]) for name in ("total", "taking_part"))
    return _Found(columns, total, part)


# -- checks ----------------------------------------------------------------------------------------


def _wrong(found: _Found) -> dict[str, int]:
    """Rows that are not as their id says, by what is wrong with them."""
    flagged, moved = found.flagged, found.before != found.rank
    return {
        "took part though their id was not drawn": found.rows(flagged & ~found.drawn),
        "stand at another rank than their id says": found.rows(
            flagged & found.drawn & ~found.placed
        ),
        "were moved though they took no part": found.rows(~flagged & moved),
    }


def _refuse_moved_otherwise(found: _Found, experiment: Experiment) -> None:
    part = found.rows(found.flagged)
    wrong = {words: n for words, n in _wrong(found).items() if n}
    if sum(wrong.values()) <= MOST_WRONG * part:
        return
    said = "; ".join(f"{n:,} {words}" for words, n in wrong.items())
    raise BadLog(
        f"The log is not that of the experiment {experiment.name!r}: of {many(part, 'result')} "
        f"that took part, {said}. Check that the file of the experiment (salt, share, "
        f"design) is the one that ran, that the id is the one it was given "
        f"(--{experiment.unit}), and that the rank before is counted like the rank."
    )


def _as_assigned(found: _Found) -> Balance:
    question = "Was every result shown where its id says?"
    part = found.rows(found.flagged)
    wrong = sum(_wrong(found).values())
    if not wrong:
        return Balance("assignment", question, Verdict.GOOD, f"All {many(part, 'result')} were.")
    said = ", ".join(f"{n:,} {words}" for words, n in _wrong(found).items() if n)
    return Balance(
        "assignment",
        question,
        Verdict.SERIOUS,
        f"{share(wrong, part)} of {many(part, 'result')} {verb(wrong, 'was', 'were')} not: {said}.",
    )


def _share_check(found: _Found, experiment: Experiment) -> Balance:
    """Sample-ratio mismatch: of lists that are long enough as many take part as were to."""
    from scipy.special import bdtr, bdtrc

    question = "Did as many take part as planned?"
    things = {"search": "searches", "user": "users"}[experiment.unit]
    n, k, wanted = found.total, found.taking_part, experiment.share
    if not n:
        return Balance(
            "share",
            question,
            Verdict.CANNOT_TELL,
            f"No result at rank {deepest(experiment.design)} or below is in the log, so which "
            f"{things} had lists long enough is not known.",
        )
    tail = min(float(bdtr(k, n, wanted)), float(bdtrc(k - 1, n, wanted)) if k else 1.0)
    p_value = min(1.0, 2 * tail)
    words = (
        f"{percent(k / n)} of {n:,} {things} with lists long enough took part; "
        f"{percent(wanted)} were to ({chance_words(p_value)})."
    )
    return Balance("share", question, _verdict(p_value), words, p_value)


def _places_check(units: Floats, experiment: Experiment, size: int) -> Balance:
    """Pearson's test for each rank before; the smallest chance of all, times their number."""
    from scipy.special import chdtrc

    question = "Was each doc shown at each rank as often as planned?"
    planned = allocation(experiment.design, size)
    found: list[tuple[float, int]] = []
    for before in range(size):
        there = planned[before] > 0
        expected = units[before].sum() * planned[before][there]
        if there.sum() < 2 or expected.min() < _FEWEST:
            continue
        distance = float(((units[before][there] - expected) ** 2 / expected).sum())
        found.append((float(chdtrc(int(there.sum()) - 1, distance)), before + 1))
    if not found:
        return Balance(
            "places", question, Verdict.CANNOT_TELL, "Too few results took part to tell so far."
        )
    smallest, rank = min(found)
    p_value = min(1.0, smallest * len(found))
    words = (
        f"Docs of {many(len(found), 'rank')} were looked at; those of rank {rank} are the farthest "
        f"from the plan ({chance_words(p_value)})."
    )
    return Balance("places", question, _verdict(p_value), words, p_value)


def _verdict(p_value: float) -> Verdict:
    return Verdict.SERIOUS if p_value < UNLIKELY else Verdict.GOOD


def advice(checks: Sequence[Balance]) -> str:
    """What to do about an experiment that was not drawn as planned; empty if it was."""
    if all(check.verdict is not Verdict.SERIOUS for check in checks):
        return ""
    return (
        "Do not use the curve before the reason is found: results of searches that take part may "
        "be logged more or less often than others, be cached, or be reordered by something else."
    )
