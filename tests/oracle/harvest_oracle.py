"""The harvest in plain Python, one row at a time: slow, and easy to check by eye.

A log is a list of dicts, one for each result shown. Written from the definitions, not from the
SQL: what a pair is, which rows are dropped for which reason and in which order, and what is
counted of the pairs that remain.
"""

import datetime
import hashlib
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

YES, NO = {"true", "t", "yes", "y", "click", "clicked"}, {"false", "f", "no", "n"}
UNIT = 2**32


@dataclass
class Tally:
    """pairs: {(segment, bucket, codes): pairs}, codes 2*rank+click ascending.
    drifts: {(segment, bucket, drift, codes): pairs}, the same by the way they moved.
    comparisons: {(segment, bucket, clicked rank, other rank, single): weight in 1/2^32}.
    held: {(segment, rank, single): [pairs whose first rank it is, pairs shown there, clicks]}, of
    the pairs that are in comparisons.
    impressions, clicks: {(segment, rank): rows}.
    dropped: {reason: [rows, clicks]}; used: [rows, clicks, pairs]; notes: {name: rows}.
    clicked_pairs: [(queries, doc, same, segment, day), rows shown] of each pair with a click,
    without searches that show the doc twice; searches: {(day, search): docs clicked}.
    """

    rows: int = 0
    log_clicks: int = 0
    pairs: Counter = field(default_factory=Counter)
    drifts: Counter = field(default_factory=Counter)
    comparisons: Counter = field(default_factory=Counter)
    held: dict = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    impressions: Counter = field(default_factory=Counter)
    clicks: Counter = field(default_factory=Counter)
    dropped: dict = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    one_rank_pairs: int = 0
    used: list = field(default_factory=lambda: [0, 0, 0])
    notes: Counter = field(default_factory=Counter)
    days: set = field(default_factory=set)
    clicked_pairs: list = field(default_factory=list)
    searches: Counter = field(default_factory=Counter)
    window: int = 1

    def drop(self, reason, rows, clicks):
        if rows or clicks:
            self.dropped[reason][0] += rows
            self.dropped[reason][1] += clicks


# -- what a value means ----------------------------------------------------------------------------


def read_whole(value):
    """(the whole number or None, whether there is something that is none)."""
    if value is None:
        return None, False
    if isinstance(value, str):
        text = value.strip(" ")
        if not text:
            return None, False
        try:
            value = float(text)
        except ValueError:
            return None, True
        if not math.isfinite(value):
            return None, True
    if isinstance(value, float):
        if not math.isfinite(value):
            return None, False
        if value != math.floor(value) or abs(value) >= 1e15:
            return None, True
    return int(value), False


def read_click(value):
    """(how many clicks or None, whether it is there but unreadable)."""
    if isinstance(value, datetime.date):
        return 1, False
    if isinstance(value, str) and value.strip(" ").lower() in YES:
        return 1, False
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value.strip(" ")):
        return 1, False  # when it was
    if isinstance(value, str) and value.strip(" ").lower() in NO:
        return 0, False
    number, bad = read_whole(value)
    return (None, True) if number is not None and number < 0 else (number, bad)


def read_number(value):
    """A finite number, or None."""
    try:
        number = float(value.strip(" ") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def named(value):
    """Who or which it was, or None if it is blank."""
    return None if blank(value) else key(value)


def came(value, at_least=None):
    """Whether something came of a click."""
    if isinstance(value, bool | datetime.date | None):
        return bool(value)
    if at_least is None and isinstance(value, str):
        text = value.strip(" ").lower()
        if text in {"true", "t", "yes", "y"} or re.match(r"\d{4}-\d\d-\d\d", text):
            return True
    number = read_number(value)
    return number is not None and (number > 0 if at_least is None else number >= at_least)


def read_day(value, time_zone=None):
    """The ISO day of a date, timestamp, text, YYYYMMDD or epoch; None where there is none."""
    zone = ZoneInfo(time_zone or "UTC")
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, datetime.datetime):
        if value.tzinfo:
            return value.astimezone(zone).date().isoformat()
        if time_zone:
            value = value.replace(tzinfo=datetime.UTC).astimezone(zone)
        return value.date().isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    text = _time_text(value)
    try:
        if text.isdigit() and len(text) == 8:
            return datetime.date(int(text[:4]), int(text[4:6]), int(text[6:])).isoformat()
        if text.isdigit():
            if not 9 <= len(text) <= 19:
                return None
            scale = 1 if len(text) <= 11 else 1e3 if len(text) <= 14 else 1e6
            seconds = int(text) / (scale if len(text) <= 17 else 1e9)
            return datetime.datetime.fromtimestamp(seconds, zone).date().isoformat()
        if len(text) <= 10:
            return datetime.date.fromisoformat(text).isoformat()
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if not moment.tzinfo:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.astimezone(zone).date().isoformat()


def _time_text(value):
    """Of a float the whole part."""
    if isinstance(value, float):
        value = math.floor(value) if math.isfinite(value) else ""
    return str(value).strip(" ")


def read_seconds(value):
    """Whole seconds since 1970 of a time, or None."""
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return math.floor(moment.timestamp())
    text = _time_text(value)
    if text.isdigit() and 9 <= len(text) <= 19:
        size = next(
            (size for most, size in ((11, 1), (14, 1e3), (17, 1e6)) if len(text) <= most), 1e9
        )
        return math.floor(float(text) / size)
    if value is None or len(text) <= 10:
        return None
    try:
        return read_seconds(datetime.datetime.fromisoformat(text))
    except ValueError:
        return None


def key(value):
    """A value to compare; not-a-number is no value."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def text_of(value):
    """A key as text: 12.0 is '12'."""
    value = key(value)
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value == math.floor(value):
        return str(int(value))
    return str(value)


def blank(value):
    value = key(value)
    return value is None or (isinstance(value, str) and not value.strip(" "))


def bucket_of(queries, buckets):
    text = "|".join("~" if (t := text_of(q)) is None else t for q in queries)
    return int(hashlib.md5(text.encode()).hexdigest()[:3], 16) % buckets


# -- the harvest -----------------------------------------------------------------------------------


def tally(
    rows,
    *,
    query=("query",),
    doc="doc",
    rank="rank",
    click="click",
    day=None,
    time=None,
    search=None,
    page=None,
    same=(),
    segment=(),
    where=None,
    max_rank=500,
    first_rank=1,
    page_size=None,
    first_page=1,
    time_zone=None,
    dedupe=False,
    buckets=64,
    max_shown=8,
    click_is_time=False,
    outside=(),
    score=None,
    ranker=None,
    user=None,
    outcome=None,
    outcome_at_least=None,
    window=None,
    randomised=None,
    randomised_apart=False,
):
    """Count a long log. `where` is a function of a row; `click_is_time` says that the click is
    the time of it, so that none means no click; `outside` has (reason, rows, clicks) of what is
    in the log but is no result shown."""
    found = Tally(window=int((window or "1d")[:-1]))
    for reason, n, clicks in outside:
        found.rows += n
        found.log_clicks += clicks
        found.drop(reason, n, clicks)
    query, same, segment = (_listed(names) for names in (query, same, segment))

    if time is None and any(isinstance(row[day], datetime.datetime) for row in rows if day):
        time = day  # a day that is read from a time tells the time as well

    read = []
    for row in rows:
        number, bad_rank = read_whole(row[rank])
        if number is not None:
            number += 1 - first_rank
        if page:
            page_number, bad_page = read_whole(row[page])
            bad_rank = bad_rank or bad_page
            if number is None or page_number is None:
                number = None
            else:
                number += (page_number - first_page) * page_size
        on = read_day(row[day], time_zone) if day else None
        clicks, bad_click = read_click(row[click])
        if clicks is None and click_is_time:
            clicks = 0
        read.append(
            {
                "excluded": where is not None and not where(row),
                "drawn": bool(randomised_apart and read_click(row[randomised])[0]),
                # Where days are taken together, their searches are still of one day each.
                "search": _search(key(row[search]), on if window else "") if search else None,
                "queries": tuple(key(row[name]) for name in query),
                "doc": key(row[doc]),
                "same": tuple(key(row[name]) for name in same),
                "segment": tuple(text_of(row[name]) for name in segment),
                "day": on and window_begins(on, found.window),
                "seconds": read_seconds(row[time]) if time else None,
                "rank": number,
                "bad_rank": bad_rank,
                "click": clicks,
                "bad_click": bad_click,
                # A row of a list log knows by itself that its doc was listed twice.
                "twice": row.get("rd_twice", False),
                "score": read_number(row[score]) if score else None,
                "ranker": named(row[ranker]) if ranker else None,
                "user": named(row[user]) if user else None,
                "outcome": bool(outcome and clicks and came(row[outcome], outcome_at_least)),
            }
        )
    if dedupe:
        _mark_copies(read)

    good = []
    for row in read:
        found.rows += 1
        found.log_clicks += row["click"] or 0
        reason = _reason(row, day, same, max_rank)
        if reason:
            found.drop(reason, 1, row["click"] or 0)
            if reason == "low_rank" and row["rank"] == 0 and first_rank == 1:
                found.notes["rank_zero"] += 1
            continue
        good.append(row)
        found.impressions[row["segment"], row["rank"]] += 1
        found.notes["null_click"] += row["click"] is None
        found.notes["null_query_part"] += len(query) > 1 and None in row["queries"]
        found.notes["null_segment"] += None in row["segment"]
        if row["click"]:
            found.clicks[row["segment"], row["rank"]] += 1
            found.drop("repeat_click", 0, row["click"] - 1)
            found.searches[row["day"], row["search"]] += 1
            if day:
                found.days.add(row["day"])

    by_pair = defaultdict(list)
    for row in good:
        by_pair[tuple(row[part] for part in ("queries", "doc", "same", "segment", "day"))].append(
            row
        )
    for pair, shown in by_pair.items():
        queries, _, _, of_segment, _ = pair
        if search and any(row["click"] for row in shown):
            shown = _once_a_search(shown, found)
        if any(row["click"] for row in shown):
            found.clicked_pairs.append((pair, shown))
        ranks = {row["rank"] for row in shown}
        clicked = [row["rank"] for row in shown if row["click"]]
        if not clicked:
            found.drop("never_clicked", len(shown), 0)
        elif len(ranks) == 1:
            found.drop("one_rank", len(shown), len(clicked))
            found.one_rank_pairs += 1
        else:
            found.used = [
                a + b for a, b in zip(found.used, (len(shown), len(clicked), 1), strict=True)
            ]
            _count(found, of_segment, bucket_of(queries, buckets), shown, max_shown)
    return found


def window_begins(day, days):
    """The first day of the window that a day is in: windows follow each other from Monday,
    1 January 1900, on."""
    at = datetime.date.fromisoformat(day)
    number = (at - datetime.date(1900, 1, 1)).days
    return (at - datetime.timedelta(days=number % days)).isoformat()


def _search(name, on):
    return None if name is None or on is None else (name, on)


def _listed(names):
    return (names,) if isinstance(names, str) else tuple(names or ())


def _mark_copies(rows):
    """Of rows with the same search, key and rank the clicked one is kept, or any other."""
    copies = defaultdict(list)
    for row in rows:
        if row["search"] is not None:
            parts = ("excluded", "search", "queries", "doc", "same", "segment", "day", "rank")
            copies[tuple(row[part] for part in parts)].append(row)
    for group in copies.values():
        group.sort(
            key=lambda row: (
                -(row["click"] or 0), row["bad_click"], row["bad_rank"], row["click"] is None,
                row["seconds"] or 0,
            )
        )  # fmt: skip
        for row in group[1:]:
            row["copy"] = True


def _reason(row, day, same, max_rank):
    """The first reason to drop a row."""
    if row["excluded"]:
        return "where"
    if row["drawn"]:
        return "randomised"
    if row.get("copy"):
        return "duplicate"
    if row["bad_rank"]:
        return "bad_rank"
    if row["rank"] is None:
        return "no_rank"
    if row["rank"] < 1:
        return "low_rank"
    if row["rank"] > max_rank:
        return "deep_rank"
    if blank(row["doc"]):
        return "no_doc"
    if all(map(blank, row["queries"])):
        return "no_query"
    if day and row["day"] is None:
        return "no_day"
    if same and None in row["same"]:
        return "no_same"
    if row["bad_click"]:
        return "bad_click"
    if row["twice"]:
        return "doc_twice"
    return None


def _once_a_search(shown, found):
    """Without the rows of searches that show the doc twice; only asked of clicked pairs, so only
    these are counted as dropped for it."""
    times = Counter(row["search"] for row in shown if row["search"] is not None)
    for row in shown:
        if times[row["search"]] > 1:
            found.drop("doc_twice", 1, 1 if row["click"] else 0)
    return [row for row in shown if times[row["search"]] <= 1]


def drift_of(shown):
    """Which way a pair moved: 0 unknown or neither, 1 and 2 up, 3 and 4 down, the even ones over
    an hour or more."""
    times = [row["seconds"] for row in shown]
    if None in times:
        return 0
    ranks = [row["rank"] for row in shown]
    middle = sum(times) / len(times), sum(ranks) / len(ranks)
    trend = round(
        sum((t - middle[0]) * (r - middle[1]) for t, r in zip(times, ranks, strict=True)), 3
    )
    if trend == 0:
        return 0
    return (1 if trend < 0 else 3) + (max(times) - min(times) >= 3600)


def _count(found, segment, bucket, shown, max_shown):
    appearances = [(row["rank"], bool(row["click"])) for row in shown]
    m = len(appearances)
    if m <= max_shown:
        codes = tuple(sorted(2 * rank + click for rank, click in appearances))
        found.pairs[segment, bucket, codes] += 1
        found.drifts[segment, bucket, drift_of(shown), codes] += 1
        return
    n = Counter(rank for rank, _ in appearances)
    c = Counter(rank for rank, click in appearances if click)
    single = sum(c.values()) == 1
    for a in c:
        for b in n:
            if a != b:
                weight = math.floor(float(c[a] * n[b]) * float(UNIT) / float(m - 1) + 0.5)
                found.comparisons[segment, bucket, a, b, single] += weight
    for rank in n:
        cell = found.held[segment, rank, single]
        cell[0] += rank == min(n)
        cell[1] += 1
        cell[2] += c[rank]


# -- other layouts, as long rows -------------------------------------------------------------------


def from_lists(rows, shown="shown", clicked="clicked", parallel=()):
    """Long rows of a list log, and what is outside them: clicks on docs that are not shown.

    Columns named in `parallel` are lists with a value for each doc shown.
    """
    long, strays = [], 0
    for row in rows:
        docs, clicks = row[shown] or [], row[clicked] or []
        strays += sum(doc is None or doc not in docs for doc in clicks)
        for place, doc in enumerate(docs):
            one = dict(row, doc=doc, rank=place + 1, click=_times(doc, clicks))
            if doc in docs[:place]:
                one["click"] = 0  # the first appearance has them
            one["rd_twice"] = doc is not None and docs.count(doc) > 1
            for name in parallel:
                values = row[name] or []
                one[name] = values[place] if place < len(values) else None
            long.append(one)
    return long, [("stray_click", 0, strays)]


def _times(doc, clicks):
    return 0 if doc is None else clicks.count(doc)


def from_events(rows, *, shown=("impression",), clicks=("click",), search="search", doc="doc",
                rank="rank", event="event"):  # fmt: skip
    """Long rows of an event log: a click joins the first result shown of its search and doc."""

    def kind(row):
        name = (row[event] or "").strip(" ")
        return "shown" if name in shown else "click" if name in clicks else "other"

    joined = Counter(
        (row[search], row[doc])
        for row in rows
        if kind(row) == "click" and row[search] is not None and row[doc] is not None
    )
    n_clicks = sum(kind(row) == "click" for row in rows)
    long, first = [], {}
    for row in rows:
        if kind(row) == "shown":
            long.append(dict(row, click=0))
            place = row[search], row[doc]
            best = first.get(place)
            if best is None or _before(read_whole(row[rank])[0], read_whole(best[rank])[0]):
                first[place] = long[-1]
    for place, row in first.items():
        row["click"] = joined.pop(place, 0)
    strays = n_clicks - sum(row["click"] for row in long)
    others = sum(kind(row) == "other" for row in rows)
    return long, [
        ("other_event", others, 0), ("click_event", n_clicks, 0), ("stray_click", 0, strays),
    ]  # fmt: skip


def _before(a, b):
    """Ranks in order, missing ones last."""
    return a is not None and (b is None or a < b)
