"""From the source, in whichever layout, to one row per result shown with what it says."""

from rankdrift.log.columns import TEXT_KINDS, TIME_KINDS, ColumnKind
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import (
    ANSWER,
    OUTSIDE,
    READ_ROWS,
    ROWS_SHOWN,
    SHOWN_SOURCE,
    SPLIT_COLUMNS,
    Plan,
    Planner,
    Step,
)

DROP_CODES = {
    "where": -1, "duplicate": -2, "bad_rank": -3, "no_rank": -4, "rank_zero": -5,
    "low_rank": -6, "deep_rank": -7, "no_doc": -8, "no_query": -9, "no_day": -10,
    "no_same": -11, "bad_click": -12, "doc_twice": -13, "randomised": -14,
}  # fmt: skip
"""The reasons for which rows are dropped, as numbers.

What becomes of a row, its `fate` in SQL, is its rank (from 1) or one of these. One small integer,
because grouping by it is what counting every row costs.
"""


def steps(p: Planner) -> list[Step]:
    """From the source to `rows_shown`, and `outside`, the last."""
    return [
        *p.layout.steps(p),
        Step(READ_ROWS, _read_rows(p)),
        Step(ROWS_SHOWN, _rows_shown(p)),
        Step(OUTSIDE, p.layout.outside(p), keep=True, adds=True),
    ]


def rows_query(p: Planner, select: str) -> str:
    """A statement that may select from `rows_shown`: every row, read, before any counting."""
    return Plan((*steps(p)[:-1], Step(ANSWER, select))).as_query()


# -- read_rows: every value in its own type --------------------------------------------------------


def _read_rows(p: Planner) -> str:
    d, roles = p.dialect, p.roles
    fields = {
        name: values.key(*p.column(column), d)
        for name, column in zip(p.queries, roles.query, strict=True)
    }
    for name, column in zip(p.same, roles.same, strict=True):
        sql, kind = p.column(column)
        by_place = p.layout.by_place(kind)
        fields[name] = d.element.format(sql, "rd_place") if by_place else values.key(sql, kind, d)
    for name, column in zip(p.segments, roles.segment, strict=True):
        sql, kind = p.column(column)
        fields[name] = values.as_text(values.key(sql, kind, d), kind, d)
    fields |= p.carry
    if roles.day:
        fields["day"] = p.day_sql()
    if roles.search:
        fields["search"] = p.search_sql()
    if roles.time:
        fields["seconds"] = values.seconds(
            p.columns[roles.time], p.column(roles.time)[0], p.rules, d
        )
    fields["rank"], fields["bad_rank"] = _rank(p)
    fields["doc"], _ = p.layout.doc(p)
    fields["click"], fields["bad_click"] = p.layout.click(p)
    twice = p.layout.doc_twice(p)
    if twice:
        fields["twice"] = twice
    if p.rules.where:
        # The condition ends on a line of its own: it may close with a comment.
        fields["excluded"] = (
            f"CASE WHEN coalesce(({p.rules.where}\n), FALSE) THEN FALSE ELSE TRUE END"
        )
    if p.rules.randomised_apart:
        fields["drawn"] = values.says_yes(*p.column(roles.randomised or ""), d)
    listed = ",\n  ".join(f"{sql} AS {name}" for name, sql in fields.items())
    return f"SELECT\n  {listed}\nFROM {SHOWN_SOURCE}"


def _rank(p: Planner) -> tuple[str, str]:
    """The rank as displayed, from 1 at the very top, whatever the log counts from."""
    rank, bad = p.layout.rank(p)
    if p.rules.first_rank != 1 and not p.layout.rank_is_place:
        rank = f"{_bounded(rank)} + {1 - p.rules.first_rank}"
    if p.roles.page:
        page, bad_page = values.rank(*p.column(p.roles.page), p.dialect)
        pages = f"({_bounded(page)} - {p.rules.first_page})"
        rank = f"{_bounded(rank)} + {pages} * {p.rules.page_size}"
        bad = f"({bad}) OR ({bad_page})"
    return rank, bad


def _bounded(number: str) -> str:
    """No further than sums and products of it fit 64 bits; ranks and pages are small."""
    most = 10**12
    return f"CAST(CASE WHEN {number} > {most} THEN {most} ELSE {number} END AS BIGINT)"


# -- rows_shown: what becomes of every row ---------------------------------------------------------


def _drops(p: Planner) -> dict[str, tuple[str, str]]:
    """Reason -> (the condition to drop a row, the condition to keep it), in order.

    A row goes by the first condition it meets; it is good when it meets all those to keep.
    The latter are plain, so that engines can push them down and skip by statistics.
    """
    roles = p.roles
    drops: dict[str, tuple[str, str]] = {}
    if p.rules.where:
        drops["where"] = ("excluded", "NOT excluded")
    if p.rules.randomised_apart:
        drops["randomised"] = ("drawn", "NOT drawn")
    if p.rules.dedupe:
        drops["duplicate"] = ("search IS NOT NULL AND copy > 1", "search IS NULL OR copy = 1")
    if _rank(p)[1] != "FALSE":
        drops["bad_rank"] = ("bad_rank", "NOT bad_rank")
    drops |= _rank_drops(p)
    if not _is_full(p, roles.doc):
        drops["no_doc"] = _blank(p, "doc", p.layout.doc(p)[1])
    query = [_blank(p, q, p.columns[c].kind) for q, c in zip(p.queries, roles.query, strict=True)]
    if not any(_is_full(p, column) for column in roles.query):
        drops["no_query"] = (
            " AND ".join(f"({drop})" for drop, _ in query),
            query[0][1]
            if len(query) == 1
            else f"coalesce({' OR '.join(k for _, k in query)}, FALSE)",
        )
    if roles.day and not (_is_full(p, roles.day) and p.columns[roles.day].kind in TIME_KINDS):
        drops["no_day"] = ("day IS NULL", "day IS NOT NULL")
    same = [s for s, c in zip(p.same, roles.same, strict=True) if not _is_full(p, c)]
    if same:
        drops["no_same"] = (
            " OR ".join(f"{s} IS NULL" for s in same),
            " AND ".join(f"{s} IS NOT NULL" for s in same),
        )
    if p.layout.click(p)[1] != "FALSE" and not _at_least(p, roles.click, 0):
        drops["bad_click"] = ("bad_click", "NOT bad_click")
    if p.layout.doc_twice(p):
        drops["doc_twice"] = ("twice", "NOT twice")
    return drops


def _rank_drops(p: Planner) -> dict[str, tuple[str, str]]:
    rules, column = p.rules, p.columns.get(p.roles.rank or "")
    known = column is not None and column.kind == "int" and not p.roles.page
    drops = {}
    if not (known and column and column.full):
        drops["no_rank"] = ("rank IS NULL", "rank IS NOT NULL")
    if not (known and _at_least(p, p.roles.rank, rules.first_rank)):
        if rules.first_rank == 1:
            drops["rank_zero"] = ("rank = 0", "rank <> 0")
        drops["low_rank"] = ("rank < 1", "rank >= 1")
    deepest = column.high if known and column else None
    if deepest is None or deepest - rules.first_rank + 1 > rules.max_rank:
        drops["deep_rank"] = (f"rank > {rules.max_rank}", f"rank <= {rules.max_rank}")
    return drops


def _is_full(p: Planner, name: str | None) -> bool:
    return name is not None and p.columns[name].full


def _at_least(p: Planner, name: str | None, least: int) -> bool:
    low = p.columns[name].low if name else None
    return low is not None and low >= least


def _blank(p: Planner, name: str, kind: ColumnKind) -> tuple[str, str]:
    """The conditions that a value is missing or blank, and that it is not."""
    if kind in TEXT_KINDS:
        trimmed = p.dialect.trim.format(name)
        return f"{name} IS NULL OR {trimmed} = ''", f"{trimmed} <> ''"
    return f"{name} IS NULL", f"{name} IS NOT NULL"


def _rows_shown(p: Planner) -> str:
    drops, keys = _drops(p), ", ".join(p.keys)
    cases = "\n    ".join(
        f"WHEN {drop} THEN {DROP_CODES[name]}" for name, (drop, _) in drops.items()
    )
    rank_or_code = f"CASE {cases}\n    ELSE rank END" if drops else "rank"
    ok = "\n    AND ".join(f"({keep})" for _, keep in drops.values()) or "TRUE"
    source = READ_ROWS
    if p.rules.dedupe:
        excluded = "excluded, " if p.rules.where else ""
        time = ", coalesce(seconds, 0)" if p.roles.time else ""
        # Of the copies, one that was clicked is the one to keep. They may differ in what splits are
        # made of; engines differ in whether NULLs come first.
        more = "".join(f", {name} IS NULL, {name}" for name in p.carry if name in SPLIT_COLUMNS)
        copy = (
            f"row_number() OVER (PARTITION BY {excluded}search, {keys}, rank"
            f" ORDER BY coalesce(click, 0) DESC, bad_click, bad_rank, click IS NULL{time}{more})"
        )
        source = f"(SELECT *, {copy} AS copy FROM {READ_ROWS}) AS copies"
    search = "search, " if p.roles.search else ""
    seconds = "seconds, " if p.roles.time else ""
    carried = "".join(f"{name}, " for name in p.carry)
    return (
        f"SELECT {search}{keys}, {seconds}rank, click, {carried}{p.hash_sql()} AS h,\n"
        f"  {rank_or_code} AS fate,\n"
        f"  {ok} AS ok\nFROM {source}"
    )
