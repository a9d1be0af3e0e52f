"""From rows shown to pairs: the few that moved between ranks and got a click."""

from collections.abc import Iterable, Mapping

from rankdrift.counts.tables import QUERY_BUCKETS
from rankdrift.harvesting import extras, ranks
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import (
    APPEARANCES,
    CANDIDATES,
    CELLS,
    KNOWN,
    LISTED,
    PAIRS,
    ROWS_SHOWN,
    SEEN,
    TALLY,
    TWICE,
    USED,
    Planner,
    Step,
)

# Appearances an hour or more apart: another visit rather than the same one.
LONG_GAP = 3600
# Numbers of pairs that are looked at together: bits of an unsigned BIGINT.
WORD = 64
# What happened to a pair at a rank, in one number: n appearances, c of them clicked.
CELL = "({rank} * 32 + {n}) * 32 + {c}"


def steps(p: Planner, buckets: int, max_shown: int, in_parts: bool = False) -> list[Step]:
    """From `rows_shown` to the pairs that are used, and all that the funnel needs to know.

    Parameters
    ----------
    p
        Says what a pair is.
    buckets
        Groups that queries are split into.
    max_shown
        Pairs with more appearances are not listed.
    in_parts
        Whether days are read one by one, to be counted together.
    """
    # What is usual at a rank, all the log must tell.
    rated = extras.several_days(p, in_parts) and not in_parts
    return [
        Step(TALLY, _tally(p), keep=True, adds=True),
        ranks.step(p),
        *appearances(p, "click > 0 AND ok", more=extras.fields(p)),
        *extras.searches(p),
        Step(SEEN, _seen(), adds=True),
        Step(
            CELLS,
            cells(p, extras.sums(p), extras.appearances(p)),
            keep=True,
            adds=True,
            second_held=True,
        ),
        Step(PAIRS, _pairs(p, max_shown, rated), keep=True, adds=True),
        Step(USED, _used(p, buckets, rated), keep=True, adds=True),
        Step(LISTED, _listed(p, max_shown), whole=True),
    ]


def _tally(p: Planner) -> str:
    """Rows, clicks and rows `clicked` by segment and what becomes of rows; `unknown` clicks and
    `partly` given queries.

    Every row goes through here, so what the column is known to be is left out of the sums.
    """
    groups = ", ".join([*p.segments, "fate"])
    column = p.columns.get(p.roles.click or "")
    if column and column.kind != "int":
        column = None
    plain = column is not None and column.low is not None and column.low >= 0
    clicks = "click" if plain else "CASE WHEN click > 0 THEN click ELSE 0 END"
    at_most_one = plain and column is not None and column.high is not None and column.high <= 1
    clicked = clicks if at_most_one else "CASE WHEN click > 0 THEN 1 ELSE 0 END"
    unknown = "0" if column and column.full else "count(*) - count(click)"
    missing = " OR ".join(f"{q} IS NULL" for q in p.queries)
    partly = f"sum(CASE WHEN {missing} THEN 1 ELSE 0 END)" if len(p.queries) > 1 else "0"
    return (
        f"SELECT {groups}, count(*) AS n, coalesce(sum({clicks}), 0) AS clicks,\n"
        f"  coalesce(sum({clicked}), 0) AS clicked, {unknown} AS unknown, {partly} AS partly\n"
        f"FROM {ROWS_SHOWN} GROUP BY {groups}"
    )


def appearances(
    p: Planner, which: str, also: str = "TRUE", more: Mapping[str, str] | None = None
) -> list[Step]:
    """Steps to `appearances`, one row per time that a pair was shown. A doc twice in one search is
    left out.

    Parameters
    ----------
    p
        Whether it numbers pairs decides which are wanted.
    which
        If so, only those with a row for which this holds.
    also
        Of their rows, only those for which this holds too.
    more
        What else to keep of numbered pairs' rows: name -> SQL on a row `r`.
    """
    if p.numbered:
        found = [
            Step(KNOWN, _known(p, which), keep=True, once=not p.dialect.distributed, adds=True),
            Step(CANDIDATES, _candidates(p, also, more or {}), keep=True),
        ]
    else:
        select = f"SELECT {_fields(p, '', '')}\nFROM {ROWS_SHOWN} WHERE ok AND {also}"
        found = [Step(CANDIDATES, select)]
    if not p.has_search:
        return [*found, Step(APPEARANCES, f"SELECT * FROM {CANDIDATES}")]
    # Both rows are left out, whichever was clicked: to choose by the click would bias.
    pair, suspect = ", ".join(p.pair), "search IS NOT NULL"
    if p.numbered and not p.dialect.distributed:
        suspect = f"search IN ({_with_repeats()})"
    twice = (
        f"SELECT {pair}, search FROM {CANDIDATES} WHERE {suspect}\n"
        f"GROUP BY {pair}, search HAVING count(*) > 1"
    )
    once = (
        f"SELECT * FROM {CANDIDATES} WHERE NOT EXISTS (SELECT 1 FROM {TWICE} WHERE"
        f" {same_pair(p, TWICE, CANDIDATES)} AND {TWICE}.search = {CANDIDATES}.search)"
    )
    return [*found, Step(TWICE, twice, keep=True), Step(APPEARANCES, once)]


def _with_repeats() -> str:
    """The searches that show some doc twice.

    A search shows docs of one query, whose pairs have numbers close together: one bit for each of
    64 tells whether a number came twice, and there are few rows a search, not one for each doc.
    """
    bits = f"bit_count(bit_or(CAST(1 AS UBIGINT) << (pair % {WORD})))"
    return (
        f"SELECT search FROM {CANDIDATES} WHERE search IS NOT NULL"
        f" GROUP BY search, pair // {WORD} HAVING count(*) > {bits}"
    )


def _known(p: Planner, which: str) -> str:
    """The keys of pairs, numbered: what follows compares numbers instead of texts.

    Where searches are told apart, pairs of a query have numbers close together; else numbers are
    given out without sorting. Machines that do not know of each other number the keys that share a
    hash.
    """
    hashed, keys = "h, " if p.dialect.distributed else "", ", ".join(p.keys)
    order = f"ORDER BY {p.hash_sql(p.queries)}" if p.has_search else ""
    if hashed:
        order = f"PARTITION BY h ORDER BY {keys}"
    number = f"row_number() OVER ({order})"
    if p.pairs_before:
        number += f" + {p.pairs_before}"
    if not hashed:  # half as wide, in every row of a known pair
        number = f"CAST({number} AS UINTEGER)"
    day = ""
    if p.roles.day and p.day is not None:
        day = f", CAST({p.dialect.literal(p.day or None)} AS DATE) AS day"
    return (
        f"SELECT {hashed}{keys}{day}, {number} AS pair\n"
        f"FROM (SELECT DISTINCT {hashed}{keys} FROM {ROWS_SHOWN} WHERE {which}) AS known_keys"
    )


def _candidates(p: Planner, also: str, more: Mapping[str, str]) -> str:
    """The rows of known pairs. NULLs are equal."""
    equal = [f"r.{key} IS NOT DISTINCT FROM {KNOWN}.{key}" for key in p.keys]
    found = ""
    if p.dialect.distributed:
        equal.insert(0, f"r.h = {KNOWN}.h")
        found = f" AND h IN (SELECT h FROM {KNOWN})"
    extra = "".join(f", {sql} AS {name}" for name, sql in more.items())
    return (
        f"SELECT {_fields(p, f'{KNOWN}.', 'r.')}{extra}\n"
        f"FROM (SELECT * FROM {ROWS_SHOWN} WHERE ok AND {also}{found}) AS r\n"
        f"JOIN {of_part(p, KNOWN)} ON {' AND '.join(equal)}"
    )


def of_part(p: Planner, table: str) -> str:
    """The FROM item for what was added to a table in this part of the log."""
    if not p.pairs_before:
        return table
    return f"(SELECT * FROM {table} WHERE pair > {p.pairs_before}) AS {table}"


def _seen() -> str:
    """How many rows of known pairs there are, a doc twice in one search included."""
    return f"SELECT count(*) AS n, coalesce(sum(click), 0) AS clicks FROM {CANDIDATES}"


def _fields(p: Planner, pair: str, row: str) -> str:
    """Of candidates, with the tables they come from."""
    more = [*(["search"] if p.has_search else []), *(["seconds"] if p.roles.time else []), "rank"]
    named = ", ".join([*(f"{pair}{c} AS {c}" for c in p.pair), *(f"{row}{c} AS {c}" for c in more)])
    return f"{named}, CASE WHEN {row}click > 0 THEN 1 ELSE 0 END AS click"


def cells(p: Planner, sums: Mapping[str, str] | None = None, source: str = APPEARANCES) -> str:
    """Appearances n and clicks c of each pair by rank, and what times they were at.

    Parameters
    ----------
    p
        Says what a pair is.
    sums
        What else to sum: name -> SQL.
    source
        The FROM item that has it.
    """
    pair = ", ".join(p.pair)
    times = (
        ",\n  count(seconds) AS timed, sum(seconds) AS seconds,"
        " min(seconds) AS first, max(seconds) AS last"
    )
    more = "".join(f",\n  {sql} AS {name}" for name, sql in (sums or {}).items())
    return (
        f"SELECT {pair}, rank, count(*) AS n, count(CASE WHEN click > 0 THEN 1 END) AS c"
        f"{times if p.roles.time else ''}{more}\nFROM {source} GROUP BY {pair}, rank"
    )


def _pairs(p: Planner, max_shown: int, rated: bool) -> str:
    """How often each pair was shown and clicked, at what ranks, and which way it moved; `e`, if it
    is `rated`, the clicks that are usual at its ranks."""
    pair, source, usual = ", ".join(p.pair), of_part(p, CELLS), ""
    if rated:
        source += f" JOIN {ranks.RANKS} ON {ranks.RANKS}.rank = {CELLS}.rank"
        usual = ", CAST(sum(n * rate) AS BIGINT) AS e"
    return (
        f"SELECT {pair}, CAST(sum(n) AS BIGINT) AS m, CAST(sum(c) AS BIGINT) AS c{usual},\n"
        f"  min({CELLS}.rank) AS lowest, max({CELLS}.rank) AS highest,"
        f" {_drift(p, max_shown)} AS drift\nFROM {source} GROUP BY {pair}"
    )


def _used(p: Planner, buckets: int, rated: bool) -> str:
    """Pairs that moved and were clicked, with what their keys say."""
    names = [*p.pair, "m", "c", "lowest", "drift", *(["e"] if rated else [])]
    fields = [*p.segments, f"{bucket_sql(p, buckets)} AS bucket", named(PAIRS, names)]
    if p.roles.day:
        fields += [f"{bucket_sql(p, QUERY_BUCKETS)} AS query_bucket"]
        fields += [f"{_parity(p)} AS parity"]
    return (
        f"SELECT {', '.join(fields)}\n"
        f"FROM {of_part(p, PAIRS)} JOIN {of_part(p, KNOWN)} ON {same_pair(p, PAIRS, KNOWN)}\n"
        f"WHERE {PAIRS}.c > 0 AND {PAIRS}.lowest < {PAIRS}.highest"
    )


def _parity(p: Planner) -> str:
    """Which of two kinds of days: one and the next are of different kinds, but for some at the end
    of a month."""
    number = "CAST(extract(day FROM day) AS BIGINT)"
    if p.rules.window > 1:
        number = f"CAST({p.dialect.day_number.format('day')} / {p.rules.window} AS BIGINT)"
    return f"mod({number}, 2)"


def _listed(p: Planner, max_shown: int) -> str:
    """Those shown no more than `max_shown` times: their cells."""
    shown = p.dialect.collect.format(
        CELL.format(rank=f"CAST({CELLS}.rank AS BIGINT)", n=f"{CELLS}.n", c=f"{CELLS}.c")
    )
    columns = ", ".join([*p.segments, "bucket", "drift"])
    return (
        f"SELECT {columns}, {shown} AS shown\n"
        f"FROM {USED} JOIN {CELLS} ON {same_pair(p, USED, CELLS)} WHERE {USED}.m <= {max_shown}\n"
        f"GROUP BY {', '.join(f'{USED}.{c}' for c in p.pair)}, {columns}"
    )


def _drift(p: Planner, max_shown: int) -> str:
    """Which way a pair moved over its appearances, and over how long: see `counts.tables.DRIFTS`.

    Up or down is the sign of the covariance of rank and time, in whole numbers. Unknown (0) where
    times are, where the pair did not move on the whole, and for much-shown pairs.
    """
    if not p.roles.time:
        return "0"
    rank = f"{CELLS}.rank"
    trend = f"sum(n) * sum({rank} * seconds) - sum({rank} * n) * sum(seconds)"
    long = f"CASE WHEN max(last) - min(first) >= {LONG_GAP} THEN 1 ELSE 0 END"
    return (
        f"CASE WHEN sum(n) > {max_shown} OR sum(timed) < sum(n) THEN 0"
        f" WHEN {trend} < 0 THEN 1 + {long} WHEN {trend} > 0 THEN 3 + {long} ELSE 0 END"
    )


def bucket_sql(p: Planner, buckets: int) -> str:
    """The low bits of md5 over the query's columns: the same on every engine."""
    d = p.dialect
    texts = [
        f"coalesce({values.as_text(q, p.columns[column].kind, d)}, '~')"
        for q, column in zip(p.queries, p.roles.query, strict=True)
    ]
    joined = ", '|', ".join(texts)
    return bucket_of(p, texts[0] if len(texts) == 1 else f"concat({joined})", buckets)


def bucket_of(p: Planner, text: str, buckets: int) -> str:
    """The low bits of md5 over SQL of a text."""
    digest = p.dialect.md5.format(text)
    first, second, third = (
        p.dialect.find.format("'0123456789abcdef'", f"substr({digest}, {i}, 1)") for i in (1, 2, 3)
    )
    return f"mod(256 * ({first} - 1) + 16 * ({second} - 1) + {third} - 1, {buckets})"


def named(table: str, columns: Iterable[str]) -> str:
    """Columns of one of several tables, by their own names: where two tables have such a column,
    not every engine calls it so by itself."""
    return ", ".join(f"{table}.{column} AS {column}" for column in columns)


def same_pair(p: Planner, a: str, b: str) -> str:
    """Join condition."""
    equal = "=" if p.numbered else "IS NOT DISTINCT FROM"
    return " AND ".join(f"{a}.{column} {equal} {b}.{column}" for column in p.pair)
