"""From the source, in whichever layout, to one row per result shown with what it says."""

from rankdrift.log.sql import values as reading
from rankdrift.log.sql.plan import Plan, Planner, Step

# A row's fate is its rank (from 1), or one of these: the reason it is dropped. One small
# integer, because grouping by it is what counting every row costs.
FATES = {
    "where": -1, "duplicate": -2, "bad_rank": -3, "no_rank": -4, "rank_zero": -5,
    "low_rank": -6, "deep_rank": -7, "no_doc": -8, "no_query": -9, "no_day": -10,
    "no_same": -11, "bad_click": -12, "doc_twice": -13,
}  # fmt: skip

# Columns that are added to those of the source, by layout.
OUR_NAMES = {
    "long": ("rd_filename", "rd_day"),
    "list": ("rd_filename", "rd_day", "rd_doc", "rd_place"),
    "events": ("rd_filename", "rd_day", "rd_doc", "rd_first", "rd_search", "rd_clicks"),
}


def steps(p: Planner) -> list[Step]:
    layouts = {"long": _long_steps, "list": _list_steps, "events": _event_steps}
    return [
        *layouts[p.roles.layout](p),
        Step("read_rows", _read_rows(p)),
        Step("rows_shown", _rows_shown(p)),
        Step("outside", _outside(p), keep=True, adds=True),
    ]


def rows_query(p: Planner, select: str) -> str:
    """A statement that may select from `rows_shown`: every row, read, before any counting."""
    return Plan((*steps(p)[:-1], Step("answer", select))).as_query()


# -- layouts: shown_source has one row per result shown --------------------------------------------


def _long_steps(p: Planner) -> list[Step]:
    return [Step("shown_source", f"SELECT * FROM {p.source}{_on_day(p)}")]


def _list_steps(p: Planner) -> list[Step]:
    exploded = p.dialect.explode.format(source="searches", list=_list(p, p.roles.shown))
    return [
        Step("searches", f"SELECT * FROM {p.source}{_on_day(p)}"),
        Step("shown_source", f"SELECT * FROM {exploded}"),
    ]


def _event_steps(p: Planner) -> list[Step]:
    """Clicks join the first result shown with their search and doc; the rest are strays.

    A click just after midnight belongs to the result shown before it, so the day that counts
    is the day of what was shown.
    """
    search, doc, rank = _event_columns(p)
    # Engines differ in whether NULLs come first.
    order = f"CASE WHEN {rank} IS NULL THEN 1 ELSE 0 END, {rank}"
    first = f"row_number() OVER (PARTITION BY {search}, {doc} ORDER BY {order})"
    shown, clicks = _is_event(p, p.rules.shown_events), _is_event(p, p.rules.click_events)
    return [
        Step("shown_events", f"SELECT *, {first} AS rd_first FROM {p.source} WHERE {shown}"),
        Step(
            "click_events",
            f"SELECT {search} AS rd_search, {doc} AS rd_doc, count(*) AS rd_clicks\n"
            f"FROM {p.source} WHERE {clicks} GROUP BY {search}, {doc}",
        ),
        Step(
            "shown_source",
            "SELECT shown_events.*, rd_clicks FROM shown_events LEFT JOIN click_events\n"
            f"ON rd_first = 1 AND rd_search = {search} AND rd_doc = {doc}{_on_day(p)}",
        ),
    ]


def _outside(p: Planner) -> str:
    """Rows and clicks of the input that are not results shown: (reason, n, clicks)."""
    if p.roles.layout == "list":
        strays = p.dialect.strays.format(_list(p, p.roles.clicked), _list(p, p.roles.shown))
        return (
            "SELECT 'stray_click' AS reason, 0 AS n,"
            f" coalesce(sum({strays}), 0) AS clicks FROM searches"
        )
    if p.roles.layout == "events":
        search, doc, _ = _event_columns(p)
        shown, clicks = _is_event(p, p.rules.shown_events), _is_event(p, p.rules.click_events)
        strays = (
            f"(SELECT * FROM {p.source}{_on_day(p, clicks)}) AS rd_clicks LEFT JOIN"
            f" (SELECT DISTINCT {search} AS rd_search, {doc} AS rd_doc FROM shown_events)"
            f" AS rd_shown ON rd_search = {search} AND rd_doc = {doc} WHERE rd_doc IS NULL"
        )
        other = f"{p.source}{_on_day(p, f'NOT ({shown}) AND NOT ({clicks})')}"
        return (
            f"SELECT 'other_event' AS reason, count(*) AS n, 0 AS clicks FROM {other}\nUNION ALL\n"
            "SELECT 'click_event' AS reason, count(*) AS n, 0 AS clicks"
            f" FROM {p.source}{_on_day(p, clicks)}\nUNION ALL\n"
            f"SELECT 'stray_click' AS reason, 0 AS n, count(*) AS clicks FROM {strays}"
        )
    return "SELECT 'stray_click' AS reason, 0 AS n, 0 AS clicks"


def _on_day(p: Planner, also: str | None = None) -> str:
    """WHERE clause on the source for the day asked for."""
    conditions = [c for c in (p.prune, also) if c]
    if p.day is not None:
        conditions.append(f"{p.day_sql()} " + (f"= DATE '{p.day}'" if p.day else "IS NULL"))
    return f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""


def _list(p: Planner, name: str | None) -> str:
    assert name
    sql, kind = p.column(name)
    if kind == "list":
        return p.dialect.text_list.format(sql)
    text = reading.plain_text(sql, kind, p.dialect)
    from_json, split = p.dialect.json_list.format(text), p.dialect.split.format(text)
    return f"CASE WHEN {text} LIKE '[%' THEN coalesce({from_json}, {split}) ELSE {split} END"


def _event_columns(p: Planner) -> tuple[str, str, str]:
    assert p.roles.search and p.roles.doc and p.roles.rank
    rank, _ = reading.rank(*p.column(p.roles.rank), p.dialect)
    return p.column(p.roles.search)[0], p.column(p.roles.doc)[0], rank


def _is_event(p: Planner, names: tuple[str, ...]) -> str:
    assert p.roles.event
    text = reading.plain_text(*p.column(p.roles.event), p.dialect)
    return f"coalesce({text}, '') IN ({p.dialect.literals(names)})"


# -- read_rows: every value in its own type --------------------------------------------------------


def _read_rows(p: Planner) -> str:
    d, roles = p.dialect, p.roles
    fields = {
        name: reading.key(*p.column(column), d)
        for name, column in zip(p.queries, roles.query, strict=True)
    }
    for name, column in zip(p.same, roles.same, strict=True):
        sql, kind = p.column(column)
        by_place = kind == "list" and roles.layout == "list"
        fields[name] = d.element.format(sql, "rd_place") if by_place else reading.key(sql, kind, d)
    for name, column in zip(p.segments, roles.segment, strict=True):
        sql, kind = p.column(column)
        fields[name] = reading.as_text(reading.key(sql, kind, d), kind, d)
    fields |= p.carry
    if roles.day:
        fields["day"] = p.day_sql()
    if roles.search:
        fields["search"] = reading.key(*p.column(roles.search), d)
    if roles.time:
        fields["seconds"] = reading.seconds(p.columns[roles.time], p.column(roles.time)[0], d)
    fields["rank"], fields["bad_rank"] = _rank(p)
    fields["doc"] = (
        "rd_doc" if roles.layout == "list" else reading.key(*p.column(roles.doc or ""), d)
    )
    fields["click"], fields["bad_click"] = _click(p)
    if roles.layout == "list":
        fields["twice"] = d.count_in.format(_list(p, roles.shown), "rd_doc") + " > 1"
    if p.rules.where:
        # The condition ends on a line of its own: it may close with a comment.
        fields["excluded"] = (
            f"CASE WHEN coalesce(({p.rules.where}\n), FALSE) THEN FALSE ELSE TRUE END"
        )
    listed = ",\n  ".join(f"{sql} AS {name}" for name, sql in fields.items())
    return f"SELECT\n  {listed}\nFROM shown_source"


def _rank(p: Planner) -> tuple[str, str]:
    """The rank as displayed, from 1 at the very top, whatever the log counts from."""
    if p.roles.layout == "list":
        rank, bad = "rd_place", "FALSE"
    else:
        rank, bad = reading.rank(*p.column(p.roles.rank or ""), p.dialect)
        if p.rules.first_rank != 1:
            rank = f"CAST({rank} AS BIGINT) + {1 - p.rules.first_rank}"
    if p.roles.page:
        page, bad_page = reading.rank(*p.column(p.roles.page), p.dialect)
        pages = f"(CAST({page} AS BIGINT) - {p.rules.first_page})"
        rank = f"({rank}) + {pages} * {p.rules.page_size}"
        bad = f"({bad}) OR ({bad_page})"
    return rank, bad


def _click(p: Planner) -> tuple[str, str]:
    if p.roles.layout == "list":
        # Of a doc shown twice the first appearance has its clicks, so that each counts once.
        clicks = p.dialect.count_in.format(_list(p, p.roles.clicked), "rd_doc")
        first = p.dialect.first_in.format(_list(p, p.roles.shown), "rd_doc")
        return f"CASE WHEN rd_place > {first} THEN 0 ELSE {clicks} END", "FALSE"
    if p.roles.layout == "events":
        return "coalesce(rd_clicks, 0)", "FALSE"
    return reading.click(*p.column(p.roles.click or ""), p.dialect)


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
    if p.rules.dedupe:
        drops["duplicate"] = ("search IS NOT NULL AND copy > 1", "search IS NULL OR copy = 1")
    if _rank(p)[1] != "FALSE":
        drops["bad_rank"] = ("bad_rank", "NOT bad_rank")
    drops |= _rank_drops(p)
    if not _is_full(p, roles.doc):
        drops["no_doc"] = _blank("doc", "text" if roles.layout == "list" else _kind(p, roles.doc))
    query = [_blank(q, _kind(p, c)) for q, c in zip(p.queries, roles.query, strict=True)]
    if not any(_is_full(p, column) for column in roles.query):
        drops["no_query"] = (
            " AND ".join(f"({drop})" for drop, _ in query),
            query[0][1]
            if len(query) == 1
            else f"coalesce({' OR '.join(k for _, k in query)}, FALSE)",
        )
    if roles.day and not (_is_full(p, roles.day) and _kind(p, roles.day) in _DAYS):
        drops["no_day"] = ("day IS NULL", "day IS NOT NULL")
    same = [s for s, c in zip(p.same, roles.same, strict=True) if not _is_full(p, c)]
    if same:
        drops["no_same"] = (
            " OR ".join(f"{s} IS NULL" for s in same),
            " AND ".join(f"{s} IS NOT NULL" for s in same),
        )
    if _click(p)[1] != "FALSE" and not _at_least(p, roles.click, 0):
        drops["bad_click"] = ("bad_click", "NOT bad_click")
    if roles.layout == "list":
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


# Kinds whose day is there whenever the value is.
_DAYS = ("date", "timestamp", "instant")


def _is_full(p: Planner, name: str | None) -> bool:
    return name is not None and p.columns[name].full


def _at_least(p: Planner, name: str | None, least: int) -> bool:
    low = p.columns[name].low if name else None
    return low is not None and low >= least


def _kind(p: Planner, name: str | None) -> str:
    return p.columns[name].kind if name else ""


def _blank(name: str, kind: str) -> tuple[str, str]:
    if kind in ("text", "json", "other"):
        return f"{name} IS NULL OR trim({name}) = ''", f"trim({name}) <> ''"
    return f"{name} IS NULL", f"{name} IS NOT NULL"


def _rows_shown(p: Planner) -> str:
    drops, keys = _drops(p), ", ".join(p.keys)
    cases = "\n    ".join(f"WHEN {drop} THEN {FATES[name]}" for name, (drop, _) in drops.items())
    fate = f"CASE {cases}\n    ELSE rank END" if drops else "rank"
    ok = "\n    AND ".join(f"({keep})" for _, keep in drops.values()) or "TRUE"
    source = "read_rows"
    if p.rules.dedupe:
        excluded = "excluded, " if p.rules.where else ""
        time = ", coalesce(seconds, 0)" if p.roles.time else ""
        # Of the copies, one that was clicked is the one to keep.
        copy = (
            f"row_number() OVER (PARTITION BY {excluded}search, {keys}, rank"
            f" ORDER BY coalesce(click, 0) DESC, bad_click, bad_rank, click IS NULL{time})"
        )
        source = f"(SELECT *, {copy} AS copy FROM read_rows) AS copies"
    search = "search, " if p.roles.search else ""
    seconds = "seconds, " if p.roles.time else ""
    carried = "".join(f"{name}, " for name in p.carry)
    return (
        f"SELECT {search}{keys}, {seconds}rank, click, {carried}{p.hash_sql()} AS h,\n"
        f"  {fate} AS fate,\n"
        f"  {ok} AS ok\nFROM {source}"
    )
