"""rankdrift: how much a click at each rank is worth, from the search logs you already have.

The public names, in flow order: Log -> Counts -> Propensities. They are imported when first
used, so that ``import rankdrift`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "read_log": "log",
    "Log": "log",
    "inspect": "inspection",
    "Inspection": "inspection",
    "harvest": "harvesting",
    "harvest_by_day": "harvesting",
    "Counts": "counts",
    "merge": "counts",
    "Funnel": "funnel",
    "estimate": "estimation",
    "Propensities": "propensities",
    "read_matrix": "matrix_reading",
    "Matrix": "matrix",
    "train": "rank.training",
    "Ranker": "rank.ranker",
    "evaluate": "rank.evaluation",
    "Comparison": "rank.comparison",
    "export_training": "rank.exporting",
    "diagnose": "diagnosis",
    "compare": "comparing",
    "make_report": "report.report_page",
    "warehouse_sql": "warehouse",
    "import_counts": "warehouse",
    "RankdriftError": "errors",
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
    from rankdrift.comparing import compare
    from rankdrift.counts import Counts, merge
    from rankdrift.diagnosis import diagnose
    from rankdrift.errors import RankdriftError
    from rankdrift.estimation import estimate
    from rankdrift.funnel import Funnel
    from rankdrift.harvesting import harvest, harvest_by_day
    from rankdrift.inspection import Inspection, inspect
    from rankdrift.log import Log, read_log
    from rankdrift.matrix import Matrix
    from rankdrift.matrix_reading import read_matrix
    from rankdrift.propensities import Propensities
    from rankdrift.rank.comparison import Comparison
    from rankdrift.rank.evaluation import evaluate
    from rankdrift.rank.exporting import export_training
    from rankdrift.rank.ranker import Ranker
    from rankdrift.rank.training import train
    from rankdrift.report.report_page import make_report
    from rankdrift.warehouse import import_counts, warehouse_sql


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"rankdrift.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rankdrift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
