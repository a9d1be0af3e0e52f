"""From rows shown to pairs: the few that moved between ranks and got a click."""

from rankdrift import reading
from rankdrift.plan import Planner, Step

# Appearances an hour or more apart: another visit rather than the same one.
LONG_GAP = 3600
# What happened to a pair at a rank, in one number: n appearances, c of them clicked.
CELL = "({rank} * 32 + {n}) * 32 + {c}"


def steps(p: Planner) -> list[Step]:
    more = ("search, " if p.has_search else "") + ("seconds, " if p.roles.time else "")
    return [
        Step("tally", _tally(p), keep=True),
        Step("clicked", "SELECT DISTINCT h FROM rows_shown WHERE click > 0 AND ok", keep=True),
        Step(
            "candidates",
            f"SELECT h, {more}{', '.join(p.keys)}, rank,"
            " CASE WHEN click > 0 THEN 1 ELSE 0 END AS click\n"
            "FROM rows_shown WHERE ok AND h IN (SELECT h FROM clicked)",
            keep=True,
        ),
        Step("moved", _moved(p), keep=True),
        Step("appearances", _appearances(p)),
        Step("cells", _cells(p), keep=True),
        Step("pairs", _pairs(p), keep=True),
    ]


def _tally(p: Planner) -> str:
    """Rows and clicks by segment and fate; `unknown` clicks and `partly` given queries.

    Every row goes through here, so what the column is known to be is left out of the sums.
    """
    groups = ", ".join([*p.segments, "fate"])
    column = p.columns.get(p.roles.click or "")
    if column and column.kind != "int":
        column = None
    plain = column is not None and column.low is not None and column.low >= 0
    clicks = "click" if plain else "CASE WHEN click > 0 THEN click ELSE 0 END"
    unknown = "0" if column and column.full else "count(*) - count(click)"
    missing = " OR ".join(f"{q} IS NULL" for q in p.queries)
    partly = f"sum(CASE WHEN {missing} THEN 1 ELSE 0 END)" if len(p.queries) > 1 else "0"
    return (
        f"SELECT {groups}, count(*) AS n, coalesce(sum({clicks}), 0) AS clicks,\n"
        f"  {unknown} AS unknown, {partly} AS partly\nFROM rows_shown GROUP BY {groups}"
    )


def _moved(p: Planner) -> str:
    """Hashes seen at two ranks, with their rows n and clicks c; `repeated` tells those that may
    have been shown twice in one search."""
    repeated = "count(search) > count(DISTINCT search)" if p.has_search else "FALSE"
    return (
        f"SELECT h, count(*) AS n, sum(click) AS c, {repeated} AS repeated\n"
        "FROM candidates GROUP BY h HAVING min(rank) < max(rank)"
    )


def _appearances(p: Planner) -> str:
    """One row per time a pair was shown, doc twice in one search left out.

    Both rows are left out, whichever was clicked: to choose by the click would bias.
    """
    if not p.has_search:
        return "SELECT * FROM candidates WHERE h IN (SELECT h FROM moved)"
    keys = ", ".join(p.keys)
    time = ", seconds" if p.roles.time else ""
    first_time = ", min(seconds) AS seconds" if p.roles.time else ""
    of = "FROM candidates WHERE h IN (SELECT h FROM moved WHERE {})"
    return (
        f"SELECT h, {keys}, rank, click{time} {of.format('NOT repeated')}\nUNION ALL\n"
        f"SELECT h, {keys}, rank, click{time} {of.format('repeated')} AND search IS NULL\n"
        f"UNION ALL\nSELECT h, {keys}, min(rank) AS rank, min(click) AS click{first_time}\n"
        f"{of.format('repeated')} AND search IS NOT NULL\n"
        f"GROUP BY h, search, {keys} HAVING count(*) = 1"
    )


def _cells(p: Planner) -> str:
    """Appearances n and clicks c of each pair by rank, and what times they were at."""
    keys = ", ".join(p.keys)
    times = (
        ",\n  count(seconds) AS timed, sum(seconds) AS seconds,"
        " min(seconds) AS first, max(seconds) AS last"
    )
    return (
        f"SELECT h, {keys}, rank, count(*) AS n, sum(click) AS c"
        f"{times if p.roles.time else ''}\nFROM appearances GROUP BY h, {keys}, rank"
    )


def _pairs(p: Planner) -> str:
    keys = ", ".join(p.keys)
    shown = p.dialect.collect.format(CELL.format(rank="CAST(rank AS BIGINT)", n="n", c="c"))
    return (
        f"SELECT h, {keys}, {bucket_sql(p)} AS bucket,\n  sum(n) AS m, sum(c) AS c,\n"
        "  min(rank) AS lowest, max(rank) AS highest,\n"
        f"  CASE WHEN sum(n) <= {p.max_shown} THEN {shown} END AS shown,\n"
        f"  {_drift(p)} AS drift\n"
        f"FROM cells GROUP BY h, {keys}"
    )


def _drift(p: Planner) -> str:
    """Which way a pair moved over its appearances, and over how long: see `counts_arrays.DRIFTS`.

    Up or down is the sign of the covariance of rank and time, in whole numbers. Unknown (0) where
    times are, where the pair did not move on the whole, and for much-shown pairs.
    """
    if not p.roles.time:
        return "0"
    trend = "sum(n) * sum(rank * seconds) - sum(rank * n) * sum(seconds)"
    long = f"CASE WHEN max(last) - min(first) >= {LONG_GAP} THEN 1 ELSE 0 END"
    return (
        f"CASE WHEN sum(n) > {p.max_shown} OR sum(timed) < sum(n) THEN 0"
        f" WHEN {trend} < 0 THEN 1 + {long} WHEN {trend} > 0 THEN 3 + {long} ELSE 0 END"
    )


def bucket_sql(p: Planner) -> str:
    """The low bits of md5 over the query's columns: the same on every engine."""
    d = p.dialect
    texts = [
        f"coalesce({reading.as_text(q, p.columns[column].kind, d)}, '~')"
        for q, column in zip(p.queries, p.roles.query, strict=True)
    ]
    joined = ", '|', ".join(texts)
    text = texts[0] if len(texts) == 1 else f"concat({joined})"
    digest = d.md5.format(text)
    first, second, third = (
        d.find.format("'0123456789abcdef'", f"substr({digest}, {i}, 1)") for i in (1, 2, 3)
    )
    return f"mod(256 * ({first} - 1) + 16 * ({second} - 1) + {third} - 1, {p.buckets})"


def same_pair(p: Planner, a: str, b: str) -> str:
    """Join condition: the hash to find it, the exact key to decide. NULLs are equal."""
    equal = (f"{a}.{key} IS NOT DISTINCT FROM {b}.{key}" for key in p.keys)
    return f"{a}.h = {b}.h AND " + " AND ".join(equal)
