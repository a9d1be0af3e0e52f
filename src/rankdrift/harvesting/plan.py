"""The harvest, stated once: named SQL steps from a log's rows to the table of counts.

Few pairs ever get a click. So number the keys of clicked rows, keep the rows of those keys, and
count by number from there on. Where rows are spread over machines, only those are sent about whose
key has a hash of a clicked one; the exact key decides, so that a collision cannot change a count.

    log/sql/rows.py       the source -> rows_shown: one row per result shown, with its outcome
    harvesting/pairs.py   rows_shown -> pairs: appearances of pairs that moved and were clicked
    harvesting/result.py  pairs -> result: the table of counts, funnel included
"""

from rankdrift.harvesting import pairs, result
from rankdrift.log.sql import rows
from rankdrift.log.sql.plan import Plan, Planner


def harvest_plan(planner: Planner) -> Plan:
    """All the steps of the harvest that `planner` writes."""
    return Plan((*rows.steps(planner), *pairs.steps(planner), *result.steps(planner)))
