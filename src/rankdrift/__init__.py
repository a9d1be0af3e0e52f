"""rankdrift: how much a click at each rank is worth, from the search logs you already have.

The flow, and its public names:

1. `read_log` says where a `Log` is and which column is what; `inspect` gives an `Inspection`.
2. `harvest` (or `harvest_by_day`, or `warehouse_sql` and `import_counts`) turns it into `Counts`,
   which `merge` adds up; their `Funnel` says what became of every row.
3. `estimate` turns counts into `Propensities`; `diagnose` checks the assumptions, `compare` sets
   other methods beside them, `compare_models` other models of clicks.
4. `read_matrix` reads features as a `Matrix`; `train` turns it into a `Ranker` whose clicks are
   worth 1 / propensity, and `evaluate` judges rankers in a `Comparison`. `export_training` is for
   those who train elsewhere.
5. `judge` says how relevant each doc is to each query: `Judgments`, with intervals and grades;
   `appearances_by_day` keeps what it needs of a log.
6. `drift` says whether propensities changed of late, however often one looks: `Drift`.
7. `make_report` tells it all on one page.

Whatever goes wrong with a request or its data is a `RankdriftError`. Names are imported when first
used, so that ``import rankdrift`` costs next to nothing.
"""

import sys

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest

# In flow order: where each name is defined.
_HOME = {
    "read_log": "log.log",
    "Log": "log.log",
    "inspect": "diagnosis.inspection",
    "Inspection": "diagnosis.inspection",
    "harvest": "harvesting.counting",
    "harvest_by_day": "harvesting.by_day",
    "appearances_by_day": "harvesting.appearances",
    "warehouse_sql": "harvesting.warehouse",
    "import_counts": "harvesting.warehouse",
    "Counts": "counts.counts",
    "merge": "counts.counts",
    "Funnel": "counts.funnel",
    "estimate": "estimation.estimating",
    "Propensities": "propensities.propensities",
    "diagnose": "diagnosis.diagnosing",
    "compare": "methods.comparing",
    "compare_models": "clickmodels.comparing",
    "read_matrix": "ranking.matrix_reading",
    "Matrix": "ranking.matrix",
    "train": "ranking.training",
    "Ranker": "ranking.ranker",
    "evaluate": "ranking.evaluation",
    "Comparison": "ranking.comparison",
    "export_training": "ranking.exporting",
    "judge": "judging.judging",
    "Judgments": "judging.judgments",
    "drift": "monitoring.drifting",
    "Drift": "propensities.drift",
    "make_report": "pipeline",
    "RankdriftError": "core.errors",
    "__version__": "core.version",
}
__all__ = [
    "Comparison",
    "Counts",
    "Drift",
    "Funnel",
    "Inspection",
    "Judgments",
    "Log",
    "Matrix",
    "Propensities",
    "RankdriftError",
    "Ranker",
    "__version__",
    "appearances_by_day",
    "compare",
    "compare_models",
    "diagnose",
    "drift",
    "estimate",
    "evaluate",
    "export_training",
    "harvest",
    "harvest_by_day",
    "import_counts",
    "inspect",
    "judge",
    "make_report",
    "merge",
    "read_log",
    "read_matrix",
    "train",
    "warehouse_sql",
]

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from rankdrift.clickmodels.comparing import compare_models
    from rankdrift.core.errors import RankdriftError
    from rankdrift.core.version import __version__
    from rankdrift.counts.counts import Counts, merge
    from rankdrift.counts.funnel import Funnel
    from rankdrift.diagnosis.diagnosing import diagnose
    from rankdrift.diagnosis.inspection import Inspection, inspect
    from rankdrift.estimation import estimate
    from rankdrift.harvesting.appearances import appearances_by_day
    from rankdrift.harvesting.by_day import harvest_by_day
    from rankdrift.harvesting.counting import harvest
    from rankdrift.harvesting.warehouse import import_counts, warehouse_sql
    from rankdrift.judging.judging import judge
    from rankdrift.judging.judgments import Judgments
    from rankdrift.log.log import Log, read_log
    from rankdrift.methods.comparing import compare
    from rankdrift.monitoring.drifting import drift
    from rankdrift.pipeline import make_report
    from rankdrift.propensities.drift import Drift
    from rankdrift.propensities.propensities import Propensities
    from rankdrift.ranking.comparison import Comparison
    from rankdrift.ranking.evaluation import evaluate
    from rankdrift.ranking.exporting import export_training
    from rankdrift.ranking.matrix import Matrix
    from rankdrift.ranking.matrix_reading import read_matrix
    from rankdrift.ranking.ranker import Ranker
    from rankdrift.ranking.training import train


class _OldPlaces:
    """Finds modules where they were in the version before: `core.moved` is asked when all else
    has failed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        if not name.startswith("rankdrift."):
            return None
        from rankdrift.core.moved import find_moved

        return find_moved(name)


sys.meta_path.append(_OldPlaces)


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"rankdrift.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rankdrift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
