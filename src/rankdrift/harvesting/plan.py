"""The harvest, stated once: named SQL steps from a log's rows to the table of counts.

Few pairs ever get a click. So number the keys of clicked rows, keep the rows of those keys, and
count by number from there on. Where rows are spread over machines, only those are sent about whose
key has a hash of a clicked one; the exact key decides, so that a collision cannot change a count.

    log/sql/rows.py       the source -> rows_shown: one row per result shown, and what becomes of it
    harvesting/pairs.py   rows_shown -> pairs: appearances of pairs that moved and were clicked
    harvesting/splits.py  pairs -> comparisons of two appearances, split by how they differ
    harvesting/trusting.py rows_shown -> comparisons of all pairs, on request
    harvesting/singles.py rows_shown -> pairs shown at one rank, if they are wanted
    harvesting/result.py  all of it -> result: the table of counts, funnel included
"""

from dataclasses import dataclass

from rankdrift.core.errors import BadOption
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN
from rankdrift.harvesting import extras, pairs, result, singles, splits, trusting
from rankdrift.harvesting.singles import Singles
from rankdrift.log.sql import rows
from rankdrift.log.sql.plan import Plan, Planner

_MOST_BUCKETS = 4096
_LEAST_SHOWN, _MOST_SHOWN = 2, 16


@dataclass(frozen=True)
class Sizes:
    """How far a harvest goes into detail; raises BadOption for what it cannot do.

    Parameters
    ----------
    buckets
        Groups that queries are split into by hash, a power of two, for errors that respect them.
    max_shown
        Pairs with more appearances enter as weighted comparisons of two ranks.
    trust
        Whether to count what an estimate with trust needs, too.
    singles
        What to count of pairs shown at one rank, if anything.
    """

    buckets: int = BUCKETS
    max_shown: int = MAX_SHOWN
    trust: bool = False
    singles: Singles | None = None

    def __post_init__(self) -> None:
        n = self.buckets
        if not 1 <= n <= _MOST_BUCKETS or n & (n - 1):
            raise BadOption(f"buckets must be a power of two from 1 to {_MOST_BUCKETS}, not {n}.")
        if not _LEAST_SHOWN <= self.max_shown <= _MOST_SHOWN:
            raise BadOption(
                f"max_shown must be from {_LEAST_SHOWN} to {_MOST_SHOWN}, not {self.max_shown}."
            )


def harvest_plan(planner: Planner, sizes: Sizes, in_parts: bool = False) -> Plan:
    """All the steps of the harvest of the log, or part of a log, that `planner` writes for.

    Parameters
    ----------
    planner
        Says what is read, and how.
    sizes
        How far to go into detail.
    in_parts
        Whether days are read one by one, to be counted together.
    """
    carry = extras.carried(planner) | singles.carried(planner, sizes.singles)
    p = planner.but(carry=carry)
    return Plan(
        (
            *rows.steps(p),
            *pairs.steps(p, sizes.buckets, sizes.max_shown, in_parts),
            *splits.steps(p, sizes.buckets, sizes.max_shown, in_parts),
            *(trusting.steps(p, sizes.buckets) if sizes.trust else ()),
            *singles.steps(p, sizes.singles),
            *result.steps(p, sizes.max_shown, in_parts, sizes.trust, sizes.singles is not None),
        )
    )
