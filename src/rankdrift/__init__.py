"""rankdrift: how much a click at each rank is worth, from the search logs you already have.

The public names, in flow order: Log -> Counts -> Propensities. They are imported when first
used, so that ``import rankdrift`` costs next to nothing.
"""

from rankdrift.core.moved import keep_old_names
from rankdrift.core.version import __version__

keep_old_names()

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest

_HOME = {
    "read_log": "log.log",
    "Log": "log.log",
    "inspect": "harvesting.inspection",
    "Inspection": "harvesting.inspection",
    "harvest": "harvesting.counting",
    "harvest_by_day": "harvesting.by_day",
    "Counts": "counts.counts",
    "merge": "counts.counts",
    "Funnel": "counts.funnel",
    "estimate": "estimation.estimating",
    "Propensities": "propensities.propensities",
    "read_matrix": "ranking.matrix_reading",
    "Matrix": "ranking.matrix",
    "train": "ranking.training",
    "Ranker": "ranking.ranker",
    "evaluate": "ranking.evaluation",
    "Comparison": "ranking.comparison",
    "export_training": "ranking.exporting",
    "diagnose": "diagnosis.diagnosing",
    "compare": "methods.comparing",
    "make_report": "report.page.report",
    "warehouse_sql": "harvesting.warehouse",
    "import_counts": "harvesting.warehouse",
    "RankdriftError": "core.errors",
}
__all__ = [
    "Comparison",
    "Counts",
    "Funnel",
    "Inspection",
    "Log",
    "Matrix",
    "Propensities",
    "RankdriftError",
    "Ranker",
    "__version__",
    "compare",
    "diagnose",
    "estimate",
    "evaluate",
    "export_training",
    "harvest",
    "harvest_by_day",
    "import_counts",
    "inspect",
    "make_report",
    "merge",
    "read_log",
    "read_matrix",
    "train",
    "warehouse_sql",
]

if TYPE_CHECKING:
    from rankdrift.core.errors import RankdriftError
    from rankdrift.counts.counts import Counts, merge
    from rankdrift.counts.funnel import Funnel
    from rankdrift.diagnosis.diagnosing import diagnose
    from rankdrift.estimation import estimate
    from rankdrift.harvesting.by_day import harvest_by_day
    from rankdrift.harvesting.counting import harvest
    from rankdrift.harvesting.inspection import Inspection, inspect
    from rankdrift.harvesting.warehouse import import_counts, warehouse_sql
    from rankdrift.log.log import Log, read_log
    from rankdrift.methods.comparing import compare
    from rankdrift.propensities.propensities import Propensities
    from rankdrift.ranking.comparison import Comparison
    from rankdrift.ranking.evaluation import evaluate
    from rankdrift.ranking.exporting import export_training
    from rankdrift.ranking.matrix import Matrix
    from rankdrift.ranking.matrix_reading import read_matrix
    from rankdrift.ranking.ranker import Ranker
    from rankdrift.ranking.training import train
    from rankdrift.report.page.report import make_report


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"rankdrift.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rankdrift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
