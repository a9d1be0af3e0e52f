"""What to do about a log that gives few pairs or none, and what is worth counting apart."""

from rankdrift.core.words import many, share
from rankdrift.counts.counts import Counts
from rankdrift.counts.funnel import REASONS
from rankdrift.diagnosis.ways import FEW
from rankdrift.log.columns import NESTED_KINDS, plain
from rankdrift.log.log import Log

FEW_QUERIES = 32
"""With fewer, differences between queries decide: intervals rest on them."""
SEGMENTS = (
    "platform", "device", "device_type", "device_category", "locale", "language", "lang", "market",
    "marketplace", "country", "country_code", "site", "store", "channel", "application", "app",
    "os", "browser", "surface", "view", "list", "sort", "sort_order", "index",
)  # fmt: skip
"""Names of columns by which users see other pages, so that curves may differ."""
_MOST_SEGMENTS = 12  # values; with more each has few clicks
_LEAST_SHARE = (
    0.01  # of rows, for the second most frequent: with less there is nothing to set apart
)
_MISREAD = ("bad_rank", "bad_click", "no_day", "no_query", "no_doc", "no_rank")
_LOOKED_AT = 10_000  # rows, for examples of what cannot be read
_SAMPLE = 50_000  # rows, to tell which values there are


def what_more(counts: Counts, queries: int | None) -> str:
    """What there should be more of."""
    if few_queries(counts, queries):
        return (
            f"log more queries: all clicks are of {many(queries or 0, 'query', 'queries')}, and "
            "more days of the same tell little"
        )
    return "add days"


def few_queries(counts: Counts, queries: int | None) -> bool:
    """Are there clicks enough, but of too few queries?"""
    return queries is not None and 0 < FEW * queries < min(counts.n_clicks, FEW * FEW_QUERIES)


def why_no_pairs(counts: Counts) -> str:
    """Why these counts have no pair, in words."""
    funnel = counts.funnel
    if funnel.clicks == 0:
        return f"There is not a single click in {many(funnel.rows, 'row')}."
    name, words, rows, clicks, _ = max(
        (line for line in funnel.lines() if line[0] not in ("input", "used")),
        key=lambda line: (line[3], line[2]),
    )
    ranks = counts.pool().by_rank.rank
    if len(ranks) == 1:
        return f"Every result was shown at rank {ranks[0]}, so there are no two ranks to compare."
    if name == "one_rank":
        return (
            "No pair appeared at two different ranks and got a click: what the filters leave, "
            f"{many(clicks, 'click')}, is on pairs that kept one rank."
        )
    return (
        f"No pair is left after the filters. Of {many(funnel.clicks, 'click')} in the log most "
        f"went here: {words} ({many(clicks, 'click')}, {many(rows, 'row')})."
    )


def how_to_get_pairs(log: Log, counts: Counts, queries: int | None = None) -> list[str]:
    """What would give a log more pairs.

    Parameters
    ----------
    log
        As it was read.
    counts
        Its harvest.
    queries
        How many different ones it has, if that is known.
    """
    dropped = {name: (rows, clicks) for name, _, rows, clicks, _ in counts.funnel.lines()}
    advice = []
    if len(counts.pool().by_rank.rank) == 1:
        return [
            "Check the column of ranks (--rank), and whether they start again on every page "
            "(--page)."
        ]
    lost = {name: dropped.get(name, (0, 0))[0] for name in _MISREAD}
    misread = any(rows * 2 > counts.funnel.rows for rows in lost.values())  # more would not help
    if counts.funnel.clicks and few_queries(counts, queries):
        advice.append(f"{what_more(counts, queries).capitalize()}.")
    elif counts.funnel.clicks and not misread:
        advice.append(
            f"Add days or traffic: a pair must be shown again at another rank{_within(log)}."
        )
    elif not misread:
        told = _examples(log, "bad_click") if lost["bad_click"] else ""
        words = f"Check the column of clicks (--click, --clicked or --click-events){told}."
        advice.append(_other_events(log) or words)
    if dropped.get("one_rank", (0, 0))[1] and (len(log.roles.query) > 1 or log.roles.same):
        advice.append(
            "Fewer --query or --same columns make more appearances the same pair, if "
            "relevance allows."
        )
    for name, fix in (
        ("deep_rank", "--max-rank"),
        ("where", "--where"),
        ("no_query", "--query"),
        ("no_doc", "--doc"),
        ("no_rank", "--rank"),
        ("no_day", "--day and --time-zone"),
        ("no_same", "--same"),
        ("bad_rank", "--rank"),
        ("bad_click", "--click"),
        ("doc_twice", "--search (and --dedupe)"),
        ("stray_click", "--clicked, --click-events or --search"),
    ):
        rows, clicks = dropped.get(name, (0, 0))
        if clicks * 2 > counts.funnel.clicks or rows * 2 > counts.funnel.rows:
            check = _origin(log, name) or f"check {fix}{_examples(log, name)}"
            advice.append(f"Most of the log is lost to '{REASONS[name]}': {check}.")
    return advice


def _other_events(log: Log) -> str:
    """Of a log of events without a click, what else happened."""
    if not log.roles.event:
        return ""
    planner = log.planner()
    event = planner.dialect.text.format(planner.column(log.roles.event)[0])
    shown = log.format.shown_events if log.format else log.rules.shown_events
    found = log.engine.query(
        f"SELECT {event}, count(*) FROM {planner.source} WHERE {event} NOT IN"
        f" ({planner.dialect.literals(shown)})"
        f" GROUP BY {event} ORDER BY count(*) DESC, {event} LIMIT 5"
    )
    if not found:
        return "No event is a click: give the files that have the clicks along with these."
    listed = ", ".join(f"{name!r} ({rows:,})" for name, rows in found)
    return f"No event is a click, by its name. Of {listed}, name those that are: --click-events."


def _origin(log: Log, reason: str) -> str:
    """Of a known format, where that comes from which most rows lack."""
    role = {
        "no_query": "query", "no_day": "day", "no_doc": "doc", "no_rank": "rank",
        "stray_click": "search",
    }.get(reason, "")  # fmt: skip
    column = log.format and log.format.given_roles().get(role)
    if not log.format or not column or getattr(log.roles, role) not in (column, (column,)):
        return ""
    origin = log.format.origins[column]
    if reason == "stray_click":
        if log.layout.reads:  # no click names a search
            origin = log.format.origins[log.layout.reads[0]]
        return (
            f"clicks are joined to results by {origin}. If what was shown is in other files, give "
            "them along with these"
        )
    other = ' with --day, or "" for none' if role == "day" else f" with --{role}"
    return f"it comes from {origin}. Log that, or name another column{other}"


def _examples(log: Log, reason: str) -> str:
    """What the column holds that cannot be read, as it stands there."""
    role, plain = {
        "bad_rank": (log.roles.rank, "numbers, such as 1, can be read"),
        "bad_click": (log.roles.click, "0 and 1, or yes and no, can be read"),
        "no_day": (
            log.roles.day,
            'days written as 2024-12-31 can be read, and --day "" does without days',
        ),
    }.get(reason, (None, ""))
    if not role:
        return ""
    planner = log.planner()
    value = planner.dialect.text.format(planner.column(role)[0])
    found = log.engine.query(
        f"SELECT v FROM (SELECT {value} AS v FROM {planner.source} LIMIT {_LOOKED_AT}) AS rd_seen"
        f" WHERE v IS NOT NULL GROUP BY v ORDER BY count(*) DESC, v LIMIT 3"
    )
    words = ", ".join(repr(word[:20]) for (word,) in found)
    return f", where {role!r} has {words} ({plain})" if words else ""


def _within(log: Log) -> str:
    if not log.roles.day:
        return ""
    return " on one day" if log.rules.window == 1 else f" within {log.rules.window} days"


def worth_segmenting(log: Log) -> dict[str, str]:
    """Columns by which curves may differ, and that are not in use: name -> what they hold."""
    planner, found = log.planner(), {}
    for name, column in log.engine.columns.items():
        known = plain(column.path[-1]) in {plain(each) for each in SEGMENTS}
        if not known or column.kind in NESTED_KINDS or name in log.roles.used():
            continue
        value = planner.dialect.text.format(planner.column(name)[0])
        rows = log.engine.query(
            f"SELECT v, count(*) AS n FROM (SELECT {value} AS v FROM {planner.source}"
            f" LIMIT {_SAMPLE}) AS rd_seen WHERE v IS NOT NULL AND v <> ''"
            f" GROUP BY v ORDER BY n DESC, v LIMIT {_MOST_SEGMENTS + 1}"
        )
        total = sum(n for _, n in rows)
        if 2 <= len(rows) <= _MOST_SEGMENTS and rows[1][1] >= _LEAST_SHARE * total:
            words = [f"{value[:20]} {share(n, total)}" for value, n in rows[:3]]
            others = len(rows) - len(words)
            more = f" and {many(others, 'other')}" if others else ""
            found[name] = f"{', '.join(words)}{more}"
    return found
