"""What rows and ranks of pairs have to hold for splits, besides what counting pairs needs.

The columns score, ranker, user and outcome come along as they are, and are read only where a row
is of a clicked pair, which few are.
"""

from rankdrift.log.sql import values
from rankdrift.log.sql.plan import APPEARANCES, CANDIDATES, Planner, Step

SEARCHES = "clicked_searches"


def several_days(p: Planner, in_parts: bool) -> bool:
    """May what is counted together be of more days than one? Where days are read in parts, it may,
    though one is read at a time."""
    return bool(p.roles.day) and (in_parts or p.day is None)


def carried(p: Planner) -> dict[str, str]:
    """What rows carry along: name -> SQL on `shown_source`."""
    roles, found = p.roles, dict[str, str]()
    if roles.outcome:
        found["outcome"] = p.layout.outcome(p)[0]
    if roles.score:
        found["score"] = p.layout.score(p)[0]
    for name, column in (("ranker", roles.ranker), ("visitor", roles.user)):
        if column:
            found[name] = values.key(*p.column(column), p.dialect)
    return found


def fields(p: Planner) -> dict[str, str]:
    """The same of candidates, read: name -> SQL on a row `r` that has what `carried` says."""
    roles, d, found = p.roles, p.dialect, dict[str, str]()
    if roles.outcome:
        _, kind, at_least = p.layout.outcome(p)
        outcome = values.outcome("r.outcome", kind, at_least, d)
        found["outcome"] = f"CASE WHEN r.click > 0 THEN {outcome} ELSE 0 END"
    if roles.score:
        found["score"] = values.number("r.score", p.layout.score(p)[1], d)
    elif roles.time:  # all the same, so that times alone are compared
        found["score"] = f"CAST(0 AS {d.double})"
    for name, column in (("ranker", roles.ranker), ("visitor", roles.user)):
        if column:
            found[name] = values.mark(f"r.{name}", p.columns[column])
    if roles.search and not p.has_search:
        found["search"] = "r.search"
    if _by_day(p):
        found["day"] = "r.day"
    return found


def _by_day(p: Planner) -> bool:
    """Must the day tell searches apart, too? Their names may begin anew every day."""
    return bool(p.roles.search) and "day" in p.keys


def searches(p: Planner) -> list[Step]:
    """How many docs were clicked in each search that had a click; all clicked rows are
    candidates."""
    if not p.roles.search:
        return []
    names = ", ".join(["search", *(["day"] if _by_day(p) else [])])
    counted = (
        f"SELECT {names}, count(*) AS clicked FROM {CANDIDATES}\n"
        f"WHERE click > 0 AND search IS NOT NULL GROUP BY {names}"
    )
    return [Step(SEARCHES, counted, keep=True)]


def appearances(p: Planner) -> str:
    """The FROM item that `sums` are of."""
    if not p.roles.search:
        return APPEARANCES
    days = f" AND {SEARCHES}.day = {APPEARANCES}.day" if _by_day(p) else ""
    return f"{APPEARANCES} LEFT JOIN {SEARCHES} ON {SEARCHES}.search = {APPEARANCES}.search{days}"


def sums(p: Planner) -> dict[str, str]:
    """What is summed over the appearances of a pair at a rank: name -> SQL of the sum.

    joined_n, joined_c: appearances and clicks where another doc of the search was clicked.
    searched_n, searched_c: of known searches, and known_n, known_c of known users, unless all are.
    won: clicks with the outcome.
    """
    found = dict[str, str]()

    def count(name: str, where: str) -> None:
        found[f"{name}_n"] = f"count(CASE WHEN {where} THEN 1 END)"
        found[f"{name}_c"] = f"count(CASE WHEN {where} AND click > 0 THEN 1 END)"

    if p.roles.search:
        count("joined", "clicked > click")
        if not search_known(p):
            count("searched", f"{APPEARANCES}.search IS NOT NULL")
    if p.roles.outcome:
        found["won"] = "CAST(sum(outcome) AS BIGINT)"
    if p.roles.user and not user_known(p):
        count("known", "visitor IS NOT NULL")
    return found


def search_known(p: Planner) -> bool:
    """Has every row a search, as far as statistics say?"""
    return bool(p.roles.search) and p.columns[p.roles.search or ""].full


def user_known(p: Planner) -> bool:
    """Has every row a user, as far as statistics say?"""
    return bool(p.roles.user) and p.columns[p.roles.user or ""].full
