"""From pairs to the table of counts, in the form that `rankdrift.counts.schema` describes."""

from rankdrift.counts.schema import (
    BY_RANK,
    MARK,
    NOTE,
    OF_PLAN,
    OVERFLOW,
    PAIR,
    RANK_PAIR,
    SEGMENT,
    SINGLE,
    SPLIT,
    TYPES,
)
from rankdrift.harvesting import splits, trusting
from rankdrift.harvesting.pairs import same_pair
from rankdrift.harvesting.singles import SINGLES
from rankdrift.log.sql.plan import (
    CELLS,
    KNOWN,
    LISTED,
    OUTSIDE,
    PAIRS,
    RESULT,
    SEEN,
    TALLY,
    USED,
    Planner,
    Step,
)
from rankdrift.log.sql.rows import DROP_CODES

DAY, META, TOTAL = OF_PLAN
"""Kinds of rows: the days, what the counts are of, and rows and clicks at each stage."""


def steps(
    p: Planner, max_shown: int, in_parts: bool, trust: bool = False, singles: bool = False
) -> list[Step]:
    """The one step that makes the table.

    Parameters
    ----------
    p
        Knows the segments.
    max_shown
        Pairs with more appearances are kept as weighted comparisons of two ranks.
    in_parts
        As for `splits.steps`.
    trust
        Whether the steps of `trusting` went before.
    singles
        Whether pairs shown at one rank are counted.
    """
    cells = [_pairs(p), _comparisons(p), _overflow(p, max_shown), _by_rank(p)]
    cells += [_split(p, each) for each in splits.rows(p, in_parts)]
    cells += [_split(p, trusting.rows(p))] if trust else []
    cells += [_singles(p)] if singles else []
    selects = [*cells, *_totals(p), *_notes(p), *_days(p)]
    return [Step(RESULT, "\nUNION ALL\n".join(selects), keep=True, whole=True)]


def row(p: Planner, kind: str, **given: str) -> str:
    """SELECT list of the table's columns, typed NULLs where nothing is given.

    Parameters
    ----------
    p
        Knows the segments.
    kind
        What a row of the table tells.
    given
        SQL of columns, by their names, those of segments as they are called inside a plan.
    """
    first, *others = TYPES
    labels = {
        g: p.dialect.quote(SEGMENT + name)
        for g, name in zip(p.segments, p.roles.segment, strict=True)
    }
    columns = [f"{p.dialect.literal(kind)} AS {first}"]
    for name in (*p.segments, *others):
        sql, type_ = given.get(name, "NULL"), TYPES.get(name, "VARCHAR")
        # Dialects have their own names for text.
        cast = p.dialect.text.format(sql) if type_ == "VARCHAR" else f"CAST({sql} AS {type_})"
        columns.append(f"{cast} AS {labels.get(name, name)}")
    return "SELECT " + ", ".join(columns)


def _group_by(p: Planner, *more: str, prefix: str = "") -> str:
    return " GROUP BY " + ", ".join([*(prefix + g for g in p.segments), *more])


def _segments(p: Planner, prefix: str = "") -> dict[str, str]:
    return {g: _marked(prefix + g) for g in p.segments}


def _marked(segment: str) -> str:
    """See `counts.schema.MARK`."""
    odd = f"{segment} = '' OR {segment} LIKE '{MARK}%'"
    return f"CASE WHEN {odd} THEN concat('{MARK}', {segment}) ELSE {segment} END"


def _pairs(p: Planner) -> str:
    return (
        row(
            p,
            PAIR.name,
            **_segments(p),
            bucket="bucket",
            drift="drift",
            shown="shown",
            n="count(*)",
        )
        + f"\nFROM {LISTED}"
        + _group_by(p, "bucket", "drift", "shown")
    )


def _comparisons(p: Planner) -> str:
    """Much-shown pairs: "a clicked over b" weighs c_a n_b / (m - 1), in 1/UNIT."""
    selected = row(
        p,
        RANK_PAIR.name,
        **_segments(p),
        bucket="bucket",
        single="single",
        rank="clicked_rank",
        other="other_rank",
        n="sum(every_weight)",
    )
    return f"{selected}\nFROM {splits.COMPARED} WHERE single IS NOT NULL" + _group_by(
        p, "bucket", "single", "clicked_rank", "other_rank"
    )


def _overflow(p: Planner, max_shown: int) -> str:
    """Much-shown pairs by rank: n that have it as their first, pairs shown there, their clicks."""
    single = "p.c = 1"
    selected = row(
        p,
        OVERFLOW.name,
        **_segments(p, "p."),
        single=single,
        rank="a.rank",
        n="sum(CASE WHEN a.rank = p.lowest THEN 1 ELSE 0 END)",
        clicks="sum(a.c)",
        pairs="count(*)",
    )
    return (
        f"{selected}\nFROM {USED} AS p JOIN {CELLS} AS a ON {same_pair(p, 'p', 'a')}\n"
        f"WHERE p.m > {max_shown}" + _group_by(p, single, "a.rank", prefix="p.")
    )


def _split(p: Planner, of: splits.SplitRows) -> str:
    sums = {name: f"sum({column})" for name, column in of.sums.items()}
    keys = {"bucket": of.bucket, "drift": of.part, "rank": of.clicked, "other": of.other}
    return (
        row(p, SPLIT.name, **_segments(p), shown=of.split, **keys, **sums)
        + f"\nFROM {of.source}"
        + _group_by(p, *of.keys)
        + f" HAVING {sums[of.present]} <> 0"
    )


def _singles(p: Planner) -> str:
    """Pairs shown at one rank."""
    keys = {"bucket": "known", "rank": "rank", "other": "often", "drift": "clicked"}
    selected = row(p, SINGLE.name, **_segments(p), **keys, n="sum(n)")
    return f"{selected}\nFROM {SINGLES}" + _group_by(p, *keys.values())


def _by_rank(p: Planner) -> str:
    """Impressions and clicked impressions."""
    selected = row(p, BY_RANK.name, **_segments(p), rank="fate", n="n", clicks="clicked")
    return f"{selected}\nFROM {TALLY} WHERE fate > 0"


def _totals(p: Planner) -> list[str]:
    """Rows and clicks at each stage: `funnel.waterfall` makes the funnel of them."""

    def total(name: str, n: str, clicks: str, pairs: str, table: str) -> str:
        return row(p, TOTAL, shown=name, n=n, clicks=clicks, pairs=pairs) + f"\nFROM {table}"

    literal = p.dialect.literal
    reasons = " ".join(f"WHEN {code} THEN {literal(name)}" for name, code in DROP_CODES.items())
    stage = f"CASE fate {reasons} ELSE 'good' END"
    pair = "CASE WHEN c = 0 THEN 'unclicked' WHEN lowest = highest THEN 'unmoved' ELSE 'used' END"
    return [
        total(stage, "sum(n)", "sum(clicks)", "NULL", f"{TALLY} GROUP BY {stage}"),
        total("reason", "sum(n)", "sum(clicks)", "NULL", f"{OUTSIDE} GROUP BY reason"),
        total("'candidates'", "sum(n)", "sum(clicks)", "NULL", SEEN),
        total(pair, "sum(m)", "sum(c)", "count(*)", f"{PAIRS} GROUP BY {pair}"),
    ]


def _notes(p: Planner) -> list[str]:
    def note(name: str, n: str, where: str) -> str:
        selected = row(p, NOTE.name, shown=p.dialect.literal(name), n=f"coalesce(sum({n}), 0)")
        return f"{selected}\nFROM {TALLY} WHERE {where}"

    notes = [note("null_click", "unknown", "fate > 0")]
    if len(p.queries) > 1:
        notes.append(note("null_query_part", "partly", "fate > 0"))
    if p.segments:
        missing = " OR ".join(f"{g} IS NULL" for g in p.segments)
        notes.append(note("null_segment", "n", f"fate > 0 AND ({missing})"))
    return notes


def _days(p: Planner) -> list[str]:
    if not p.roles.day:
        return []
    day = p.dialect.text.format("day")
    return [row(p, DAY, shown=day, n="count(*)") + f"\nFROM {KNOWN} GROUP BY day"]
