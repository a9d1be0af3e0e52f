"""The whole story in one place; a reader may start here.

log --harvest--> counts --estimate--> propensities --train--> ranker --evaluate--> comparison
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.diagnosing import Diagnosis, diagnose
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.comparison import Comparison
from rankdrift.ranking.evaluation import evaluate
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.ranker import Ranker
from rankdrift.ranking.training import train


@dataclass(frozen=True)
class Story:
    """What every step found; `biased` is the ranker that takes all clicks for the same."""

    counts: Counts
    propensities: Propensities
    checks: Diagnosis
    biased: Ranker
    fair: Ranker
    comparison: Comparison


def tell(
    log: Log,
    later: Log,
    *,
    features: str | Sequence[str] = ("f_*",),
    curve: str = "loglog",
    clip: float | None = None,
    trees: int = 100,
) -> Story:
    """From a log to a ranker that does not learn the old ranking back, judged on a later log."""
    counts = harvest(log)
    propensities = estimate(counts, curve=curve, by=log.roles.segment)
    checks = diagnose(counts, curve=curve)
    rows = read_matrix(log, features=features, searches="clicked")
    biased = train(rows, trees=trees, name="biased")
    fair = train(rows, trees=trees, propensities=propensities, clip=clip, name="fair")
    comparison = evaluate([biased, fair], later, baseline="biased")
    return Story(counts, propensities, checks, biased, fair, comparison)
