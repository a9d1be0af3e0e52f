"""The whole story in one place; a reader may start here.

log --harvest--> counts --estimate--> propensities --train--> ranker --evaluate--> comparison

`run_pipeline` goes through all of it. `make_report` lays any of its results out as a page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankdrift.core.errors import NoUsablePairs, RankdriftError
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.diagnosing import Diagnosis, diagnose
from rankdrift.estimation import estimate
from rankdrift.estimation.periods import estimate_by_period
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import Log
from rankdrift.monitoring.drifting import REFERENCE, drift
from rankdrift.propensities.drift import Drift
from rankdrift.propensities.periods import Period, Steadiness, steadiness
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.comparison import Comparison
from rankdrift.ranking.evaluation import evaluate
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.ranker import Ranker
from rankdrift.ranking.training import train
from rankdrift.report.page.headline import typical_rank
from rankdrift.report.page.report import Page, render_report
from rankdrift.report.results import Findings, Results, gather


@dataclass(frozen=True)
class PipelineResult:
    """What every step found; `biased` is the ranker that takes all clicks for the same."""

    counts: Counts
    propensities: Propensities
    checks: Diagnosis
    biased: Ranker
    fair: Ranker
    comparison: Comparison

    def __repr__(self) -> str:
        return brief(self, repr(self.propensities), f"{self.checks.verdict}", f"{self.comparison}")


def run_pipeline(
    log: Log,
    later: Log,
    *,
    features: str | Sequence[str] = ("f_*",),
    curve: str = "auto",
    clip: float | None = None,
    trees: int = 100,
) -> PipelineResult:
    """Go from a log to a ranker that does not learn the old ranking back, judged on a later log.

    Parameters
    ----------
    log
        What is learned from: clicks for the curve, features for the rankers.
    later
        What the rankers are judged on.
    features
        Columns to learn from, names or patterns.
    curve
        The shape of the propensities, as `estimate` takes it.
    clip
        The largest weight of a click; None: chosen, as `train` does.
    trees
        Of each ranker.
    """
    counts = harvest(log)
    propensities = estimate(counts, curve=curve, by=log.roles.segment)
    checks = diagnose(counts, curve=curve)
    rows = read_matrix(log, features=features, searches="clicked")
    biased = train(rows, trees=trees, name="biased")
    fair = train(rows, trees=trees, propensities=propensities, clip=clip, name="fair")
    comparison = evaluate([biased, fair], later, baseline="biased")
    return PipelineResult(counts, propensities, checks, biased, fair, comparison)


# The names until 0.1.0.
Story = PipelineResult
tell = run_pipeline


@names_checked
def make_report(results: Any, *, title: str | None = None, queries: bool = True) -> Page:
    """Make one page on any mix of results, for people who have not seen them before.

    Counts are diagnosed and, if there are no propensities, estimated from. Counts of several days
    that are given apart, such as a folder of them, also tell whether the curve stays the same.

    Parameters
    ----------
    results
        Counts, propensities, comparisons of methods and of rankers, a diagnosis, the truth of a
        simulation; each as it is or as the file it was saved in; a list of them, or a mapping that
        names them.
    title
        What to call the page.
    queries
        False leaves out what users typed and what rows were about, that is, every value of the
        log: segments are numbered, and neither a row condition is shown nor a reason that may
        quote a row. Names of files and columns stay.

    Returns
    -------
    Page
        Its `save` writes it, its `html` is the text.
    """
    given = gather(results)
    curves, estimated = _curves(given)
    diagnosis, undiagnosed = _diagnosis(given)
    changed = _drift(given)
    periods, steady = _over_time(given, curves)
    found = Findings(
        given,
        curves,
        diagnosis,
        estimated,
        undiagnosed,
        periods,
        None if changed and changed.tested else steady,  # one test of one question
        changed,
    )
    return render_report(found, title=title, queries=queries)


def _curves(given: Results) -> tuple[Mapping[str, Propensities], str]:
    """Those given, or one estimated from the counts; then what was done, in words."""
    if given.curves or not given.counts:
        return given.curves, ""
    try:
        curve = estimate(given.counts, by=list(given.counts.segment_columns) or None)
    except RankdriftError as error:
        return {}, f"These counts bear no estimate: {error}"
    return {"estimate": curve}, "No propensities were given: these are estimated from the counts."


def _over_time(
    given: Results, curves: Mapping[str, Propensities]
) -> tuple[tuple[Period, ...], Steadiness | None]:
    """The curve of each period of counts given apart, and whether a typical rank stays the same."""
    main = next(iter(curves.values()), None)
    if main is None or not given.parts:
        return (), None
    periods = estimate_by_period(given.parts, reference=main.reference)
    rank = typical_rank(main.ranks.tolist(), main.reference)
    return periods, steadiness(periods, rank)


def _drift(given: Results) -> Drift | None:
    """Whether the newest days of counts given apart differ from those before, if there are days
    enough for a reference."""
    days = {day for part in given.parts for day in part.days}
    try:
        return drift(given.parts) if len(days) > REFERENCE < len(given.parts) else None
    except NoUsablePairs:
        return None


def _diagnosis(given: Results) -> tuple[Mapping[str, Any] | None, str]:
    """That given, or that of the counts; and why there is none."""
    if given.diagnosis or not given.counts:
        return given.diagnosis, ""
    try:
        return gather(diagnose(given.counts)).diagnosis, ""
    except RankdriftError as error:
        return None, str(error)
