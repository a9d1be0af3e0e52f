"""From pairs to the table of counts, in the form that `counts_table` reads."""

from rankdrift.plan import Planner, Step
from rankdrift.plan.pairs import same_pair
from rankdrift.plan.rows import FATES

_USABLE = "c > 0 AND lowest < highest"


def steps(p: Planner) -> list[Step]:
    parts = [_pairs(p), _comparisons(p), _by_rank(p), *_funnel(p), *_notes(p), *_days(p)]
    return [Step("result", "\nUNION ALL\n".join(parts), keep=True)]


def row(p: Planner, kind: str, **given: str) -> str:
    """SELECT list of the result's columns, typed NULLs where nothing is given."""
    types = {
        **dict.fromkeys(p.segments, ""),
        "bucket": "INTEGER", "drift": "INTEGER", "shown": "", "single": "BOOLEAN",
        "rank": "INTEGER", "other": "INTEGER", "n": "BIGINT", "clicks": "BIGINT", "pairs": "BIGINT",
    }  # fmt: skip
    labels = {
        g: p.dialect.quote(f"segment_{name}")
        for g, name in zip(p.segments, p.roles.segment, strict=True)
    }
    columns = [f"'{kind}' AS kind"]
    for name, type_ in types.items():
        sql = given.get(name, "NULL")
        cast = f"CAST({sql} AS {type_})" if type_ else p.dialect.text.format(sql)
        columns.append(f"{cast} AS {labels.get(name, name)}")
    return "SELECT " + ", ".join(columns)


def _group_by(p: Planner, *more: str, prefix: str = "") -> str:
    return " GROUP BY " + ", ".join([*(prefix + g for g in p.segments), *more])


def _segments(p: Planner, prefix: str = "") -> dict[str, str]:
    return {g: prefix + g for g in p.segments}


def _pairs(p: Planner) -> str:
    return (
        row(p, "pair", **_segments(p), bucket="bucket", drift="drift", shown="shown", n="count(*)")
        + f"\nFROM pairs WHERE m <= {p.max_shown} AND {_USABLE}"
        + _group_by(p, "bucket", "drift", "shown")
    )


def _comparisons(p: Planner) -> str:
    """Much-shown pairs: "a clicked over b" weighs c_a n_b / (m - 1), in units of 2^-32."""
    double = p.dialect.double
    # Doubles of whole numbers, one division, one rounding: the same on every engine, and whole
    # numbers add up to the same in any order.
    weight = (
        f"floor(CAST(a.c * b.n AS {double}) * CAST(4294967296 AS {double})"
        f" / CAST(a.m - 1 AS {double}) + CAST(0.5 AS {double}))"
    )
    single = "a.pair_clicks = 1"
    selected = row(
        p, "comparison", **_segments(p, "a."), bucket="a.bucket", single=single,
        rank="a.rank", other="b.rank", n=f"sum(CAST({weight} AS BIGINT))",
    )  # fmt: skip
    return (
        f"{selected}\nFROM cells AS a JOIN cells AS b"
        f" ON {same_pair(p, 'a', 'b')} AND a.rank <> b.rank WHERE a.c > 0"
        + _group_by(p, "a.bucket", single, "a.rank", "b.rank", prefix="a.")
    )


def _by_rank(p: Planner) -> str:
    """Impressions and clicked impressions."""
    segments = "".join(f"{g}, " for g in p.segments)
    shown = f"SELECT {segments}fate AS rank, n, 0 AS clicks FROM tally WHERE fate > 0"
    clicked = f"SELECT {segments}rank, 0 AS n, click AS clicks FROM candidates WHERE click > 0"
    selected = row(p, "rank", **_segments(p), rank="rank", n="sum(n)", clicks="sum(clicks)")
    return f"{selected}\nFROM ({shown} UNION ALL {clicked}) AS by_rank{_group_by(p, 'rank')}"


def _funnel(p: Planner) -> list[str]:
    """Every row and click of the input, by what became of it."""

    candidates = (
        "(SELECT count(*) AS n, coalesce(sum(click), 0) AS clicks FROM candidates) AS candidates"
    )
    moved = (
        "(SELECT count(*) AS pairs, coalesce(sum(n), 0) AS n, coalesce(sum(c), 0) AS clicks"
        " FROM moved) AS moved"
    )

    def pairs_where(condition: str) -> str:
        return (
            "(SELECT count(*) AS pairs, coalesce(sum(m), 0) AS n, coalesce(sum(c), 0) AS clicks"
            f" FROM pairs WHERE {condition}) AS some_pairs"
        )

    def line(name: str, n: str, clicks: str, pairs: str, *tables: str) -> str:
        listed = " CROSS JOIN ".join(tables)
        return row(p, "funnel", shown=f"'{name}'", n=n, clicks=clicks, pairs=pairs) + (
            f"\nFROM {listed}"
        )

    good = (
        "(SELECT coalesce(sum(n), 0) AS n, coalesce(sum(clicks), 0) AS clicks"
        " FROM tally WHERE fate > 0) AS good"
    )
    clicked = "(SELECT count(*) AS pairs FROM clicked) AS clicked"
    whole_input = "(SELECT n, clicks FROM tally UNION ALL SELECT n, clicks FROM outside) AS log"
    reasons = " ".join(f"WHEN {fate} THEN '{_reason(name)}'" for name, fate in FATES.items())
    dropped = (
        f"(SELECT CASE fate {reasons} END AS reason, n, clicks FROM tally WHERE fate < 0"
        " UNION ALL SELECT reason, n, clicks FROM outside) AS dropped GROUP BY reason"
    )
    lines = [
        line("input", "coalesce(sum(n), 0)", "coalesce(sum(clicks), 0)", "NULL", whole_input),
        row(p, "funnel", shown="reason", n="sum(n)", clicks="sum(clicks)") + f"\nFROM {dropped}",
        line("repeat_click", "0", "good.clicks - candidates.clicks", "NULL", good, candidates),
        line("never_clicked", "good.n - candidates.n + some_pairs.n", "0", "NULL",
             good, candidates, pairs_where("c = 0")),
        line("one_rank", "candidates.n - moved.n + some_pairs.n",
             "candidates.clicks - moved.clicks + some_pairs.clicks",
             "clicked.pairs - moved.pairs + some_pairs.pairs",
             candidates, moved, clicked, pairs_where("c > 0 AND lowest = highest")),
        line("used", "some_pairs.n", "some_pairs.clicks", "some_pairs.pairs",
             pairs_where(_USABLE)),
    ]  # fmt: skip
    if p.has_search:
        # Every appearance is in one pair or another.
        lines.append(
            line("doc_twice", "moved.n - some_pairs.n", "moved.clicks - some_pairs.clicks", "NULL",
                 moved, pairs_where("TRUE"))
        )  # fmt: skip
    return lines


def _reason(fate: str) -> str:
    return "low_rank" if fate == "rank_zero" else fate


def _notes(p: Planner) -> list[str]:
    def note(name: str, n: str, where: str) -> str:
        selected = row(p, "note", shown=f"'{name}'", n=f"coalesce(sum({n}), 0)")
        return f"{selected}\nFROM tally WHERE {where}"

    notes = [
        note("null_click", "unknown", "fate > 0"),
        note("rank_zero", "n", f"fate = {FATES['rank_zero']}"),
    ]
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
    return [row(p, "day", shown=day, n="count(*)") + f"\nFROM candidates GROUP BY {day}"]
