"""Log -> Searches to learn from, and searches held out.

The engine hands out every row as whole numbers: which search, which query and doc, and at which
rank, clicked or not. Queries and docs that are no whole numbers themselves it numbers. Where a log
has more searches than are wanted, it draws queries and hands out only theirs, so that what comes
home stays bounded however large the log is.

A search is a list by its rows' ranks. Ranks that are not in the log leave gaps: models take the
rows there are one after the other, and their ranks as they are. Of several rows at one rank, one is
kept, a clicked one if there is one. A doc at two ranks of a search is left out at both, clicked or
not, as in a harvest. Clicks on one row count once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.arranging import Made, arrange
from rankdrift.clickmodels.numbering import MARK_BITS
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.core.types import Bools, Ints
from rankdrift.core.words import many
from rankdrift.counts.funnel import INPUT, REASONS, USED, Dropped, Funnel, Used, waterfall
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import (
    ANSWER,
    OUTSIDE,
    RESULT,
    ROWS_SHOWN,
    Plan,
    Planner,
    Step,
)

Split = Literal["search", "time"]
"""What is held out: searches drawn at random, or those of the last days."""
MOST_SEARCHES = 1_000_000
"""How many searches are read at most, about; more tell little more about which model is right."""
HELD_OUT = 0.2
"""The share of searches that is held out."""
QUERIES, DOCS = "numbered_queries", "numbered_docs"  # the steps that have them by their numbers
_LONG = 20  # results: of searches longer than this on average fewer are read at a time
_PARTS = 4096  # that queries are dealt into, some of which are drawn
_DEEPEST = 65_535
_SMALL, _WIDE = 2**31, 2**44


@dataclass(frozen=True, eq=False)
class Read:
    """What a log says, in two parts.

    Parameters
    ----------
    train, test
        Searches to learn from, and those held out; pairs have the same numbers in both.
    funnel
        What became of the log's rows.
    remarks
        What to keep in mind.
    """

    train: Searches
    test: Searches
    funnel: Funnel
    remarks: tuple[str, ...]


def read_searches(
    log: Log,
    *,
    split: Split = "search",
    held_out: float = HELD_OUT,
    searches: int | None = MOST_SEARCHES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Read:
    """Read the searches of a log.

    Parameters
    ----------
    log
        From `read_log`; it must tell searches apart.
    split
        "search": searches are held out at random. "time": those of the last days are.
    held_out
        The share of searches that is held out; by time, at least that.
    searches
        How many to read at most, about: queries are drawn, with all their searches. Of searches
        with more than 20 results on average fewer are read, as many results. None: all.
    seed
        Of the draw of searches that are held out.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Raises
    ------
    BadLog
        If the log does not tell searches apart, or too little of it can be used.
    """
    _check(log, split, held_out, searches)
    remarks = list(probe(log))
    day = log.roles.day if split == "time" else None
    planner = _planner(log, day)
    tally = _tally(log, planner)
    parts = _PARTS if searches is None else tally.parts(searches)
    if parts < _PARTS:
        remarks.append(
            f"Of about {many(tally.searches, 'search', 'searches')} those of "
            f"{parts / _PARTS:.1%} of the queries are read, drawn at random. Read more with "
            "--searches, or all of them with --searches 0."
        )
    made = _run(log, planner, range(parts), split == "time", progress)
    if made is None:
        raise BadLog("No query was drawn. Read more searches, with --searches.")
    held = _held_out(made, held_out, seed)
    (train, test), _ = made.searches(~held, held)
    if not train.click.any() or not test.click.any():
        raise BadLog(
            f"{many(int(train.click.sum()), 'click')} to learn from and "
            f"{int(test.click.sum()):,} held out are too few to tell models apart. Read more of "
            "the log, or hold out another share (--held-out)."
        )
    return Read(train, test, _funnel(tally, [_Used(made, train, test)]), tuple(remarks))


@dataclass(frozen=True, eq=False)
class Part:
    """The searches of some queries, and what their pairs are called.

    Parameters
    ----------
    searches
        All of them.
    names
        (P,) each: the columns of the query as text, and the doc.
    """

    searches: Searches
    names: Mapping[str, NDArray[Any]]


@dataclass(eq=False)
class Parts:
    """A log's searches, the queries dealt into parts, so that memory stays bounded: iterate.

    Parameters
    ----------
    log
        From `read_log`; it must tell searches apart.
    searches
        About how many to hold at once.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.
    """

    log: Log
    searches: int = MOST_SEARCHES
    progress: Progress | None = None
    funnel: Funnel = field(default_factory=Funnel, init=False)
    """What became of the log's rows, once all parts were read."""

    def __iter__(self) -> Iterator[Part]:
        _check(self.log, "search", HELD_OUT, self.searches)
        probe(self.log)
        planner = _planner(self.log, None)
        tally = _tally(self.log, planner)
        size = tally.parts(self.searches)
        used = []
        for start in range(0, _PARTS, size):
            parts = range(start, min(start + size, _PARTS))
            made = _run(self.log, planner, parts, False, self.progress)
            if made is None:
                continue
            [searches], docs = made.searches(np.ones(len(made.s), bool))
            used.append(_Used(made, searches))
            queries = made.queries[searches.query_of_pair]
            names = _names(self.log, planner, parts, queries, docs, self.progress)
            del made
            yield Part(searches, names)
        self.funnel = _funnel(tally, used)


def _planner(log: Log, day: str | None) -> Planner:
    return log.planner(
        roles=replace(log.roles, same=(), segment=(), time=None, day=day),
        rules=replace(log.rules, window=1),
    )


def _run(
    log: Log, planner: Planner, parts: range, days: bool, progress: Progress | None
) -> Made | None:
    """The searches of the queries in these parts; None where there are none."""
    found = _fetched(log, _plan(planner, parts, days), progress)
    if not len(found["s"]):
        return None
    return arrange(found.pop("s"), found.pop("shown"), found.pop("q"), found.get("d"))


def _names(
    log: Log,
    planner: Planner,
    parts: range,
    queries: NDArray[np.integer],
    docs: Ints,
    progress: Progress | None,
) -> dict[str, NDArray[Any]]:
    """The texts of queries and docs of these parts, given by their numbers (P,)."""
    of = {QUERIES: queries, DOCS: docs + (_least(planner, DOCS) or 0)}
    texts = {
        QUERIES: {
            name: values.as_text(name, planner.columns[column].kind, planner.dialect)
            for name, column in zip(planner.queries, planner.roles.query, strict=True)
        },
        DOCS: {"doc": planner.dialect.text.format("doc")},
    }
    steps, _ = _numbered(planner, _chosen(planner, parts))
    found: dict[str, NDArray[Any]] = {}
    for which, each in texts.items():
        if _least(planner, which) is not None:
            found |= dict.fromkeys(each, _as_text(of[which]))
            continue
        own = next(step for step in steps if step.name == which)
        picked = ", ".join(f"{sql} AS {name}" for name, sql in each.items())
        result = Step(RESULT, f"SELECT rd_number, {picked} FROM {which}")
        plan = Plan((*row_steps.steps(planner)[:-1], own, result))
        columns = _fetched(log, plan, progress)
        order = np.argsort(columns.pop("rd_number"))[of[which]]
        found |= {name: column[order] for name, column in columns.items()}
    return found


def _as_text(values: NDArray[np.integer]) -> NDArray[Any]:
    return np.array([str(value) for value in values.tolist()], object)


def _fetched(log: Log, plan: Plan, progress: Progress | None) -> dict[str, NDArray[Any]]:
    found = log.engine.fetch(plan, progress)
    return {name: _without_mask(column) for name, column in found.items()}


def _without_mask(column: Any) -> NDArray[Any]:
    """None where a text is missing; numbers never are."""
    plain = np.ma.getdata(column)
    if column.dtype.kind == "O":
        plain[np.ma.getmaskarray(column)] = None
    return np.asarray(plain)


def _check(log: Log, split: Split, held_out: float, searches: int | None) -> None:
    if split not in get_args(Split):
        raise BadOption(f"split must be 'search' or 'time', not {split!r}.")
    if not 0.01 <= held_out <= 0.9:
        raise BadOption(f"held_out is a share, 0.01 to 0.9, not {held_out!r}.")
    if searches is not None and searches < 1:
        raise BadOption(f"searches must be 1 or more, or None for all of them, not {searches!r}.")
    if not log.roles.search:
        raise BadLog(
            "Click models look at whole searches: what was clicked above a result, and below it. "
            "This log does not tell searches apart. Name the column that does with --search; if "
            "there is none, log one, such as a number for each page of results sent."
        )
    if split == "time" and not log.roles.day:
        raise BadOption(
            "To hold out the last days, the log must tell days: name the column with --day, or "
            "hold out searches drawn at random (--split search)."
        )
    if log.roles.segment:
        raise BadOption(
            "Click models are fitted to all of the log that is read. To look at one segment, leave "
            "out --segment and read its rows alone, with --where."
        )
    if log.rules.max_rank > _DEEPEST:
        raise BadOption(f"Click models go down to rank {_DEEPEST:,}: use --max-rank {_DEEPEST}.")


# -- SQL -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tally:
    """totals: (rows, clicks, rows clicked) by reason, and of good rows; unknown: of those, how many
    do not say whether they were clicked; searches: about how many there are."""

    totals: dict[str, tuple[int, int, int]]
    unknown: int
    searches: int

    def parts(self, searches: int) -> int:
        """How many of all parts have about so many searches; fewer where these are long, for
        memory goes by results."""
        results = self.totals["good"][0]
        share = searches / max(self.searches, results / _LONG, 1)
        return min(max(round(_PARTS * share), 1), _PARTS)


def _tally(log: Log, p: Planner) -> _Tally:
    steps = row_steps.steps(p)
    lost = "CASE WHEN search IS NULL THEN 1 ELSE 0 END"
    sql = (
        f"SELECT fate, {lost}, count(*), sum(CASE WHEN click > 0 THEN click ELSE 0 END),"
        " sum(CASE WHEN click > 0 THEN 1 ELSE 0 END), count(*) - count(click)"
        f" FROM {ROWS_SHOWN} GROUP BY fate, {lost}"
    )
    found = log.engine.query(Plan((*steps[:-1], Step(ANSWER, sql))).as_query())
    outside = log.engine.query(
        Plan((*steps, Step(ANSWER, f"SELECT reason, n, clicks FROM {OUTSIDE}"))).as_query()
    )
    totals = {reason: (int(n), int(clicks or 0), 0) for reason, n, clicks in outside}
    names = {code: name for name, code in row_steps.DROP_CODES.items()}
    unknown = searches = 0
    for fate, no_search, rows, clicks, clicked, missing in found:
        reason = names.get(fate) or ("no_search" if no_search else "good")
        before = totals.get(reason, (0, 0, 0))
        new = (int(rows), int(clicks or 0), int(clicked or 0))
        totals[reason] = (before[0] + new[0], before[1] + new[1], before[2] + new[2])
        if reason == "good":
            unknown += int(missing)
            searches = max(searches, int(rows))
    total = sum(rows for rows, _, _ in totals.values())
    refuse_rank_zero(log, totals.get("rank_zero", (0, 0, 0))[0], total)
    rows, _, clicked = totals.get("good", (0, 0, 0))
    if not rows:
        why = ", ".join(f"{n:,} {REASONS[r]}" for r, (n, _, _) in totals.items() if n)
        raise BadLog(f"No row of the log can be used ({why or 'it is empty'}).")
    if not clicked:
        raise BadLog(
            f"None of the {rows:,} results shown was clicked, so there is nothing to explain. "
            "Check the column of clicks (--click)."
        )
    return _Tally(totals, unknown, searches)


def _chosen(p: Planner, parts: range) -> str:
    """The condition that a row can be used, and is of a query in these parts."""
    ok = "ok AND search IS NOT NULL"
    if len(parts) == _PARTS:
        return ok
    dealt = f"mod(mod({p.hash_sql(p.queries)}, {_PARTS}) + {_PARTS}, {_PARTS})"
    return f"{ok} AND {dealt} BETWEEN {parts.start} AND {parts.stop - 1}"


def _numbered(p: Planner, ok: str) -> tuple[list[Step], str]:
    """The steps that number queries and docs of these rows, where they are no whole numbers, and
    the joins of rows r with them."""
    steps, joins = [], ""
    for name, keys in ((QUERIES, p.queries), (DOCS, ("doc",))):
        if _least(p, name) is not None:
            continue
        nulls = len(keys) > 1
        order = ", ".join(f"{key} IS NULL, {key}" if nulls else key for key in keys)
        listed = ", ".join(keys)
        sql = (
            f"SELECT {listed}, row_number() OVER (ORDER BY {order}) - 1 AS rd_number\n"
            f"FROM (SELECT DISTINCT {listed} FROM {ROWS_SHOWN} WHERE {ok}) AS rd_{name}"
        )
        steps.append(Step(name, sql, keep=True))
        equal = "IS NOT DISTINCT FROM" if nulls else "="
        same = " AND ".join(f"r.{key} {equal} {name}.{key}" for key in keys)
        joins += f"\nJOIN {name} ON {same}"
    return steps, joins


def _plan(p: Planner, parts: range, days: bool) -> Plan:
    """s, the search; q, the query, or its number; shown, the doc, or its number, with its rank and
    whether it was clicked; d, the day."""
    d = p.dialect
    ok = _chosen(p, parts)
    search = d.hash.format("r.search")
    if p.columns[p.roles.search or ""].kind == "int":
        search = f"CAST(r.search AS {_fitting(p, p.roles.search)})"
    query = f"CAST({QUERIES}.rd_number AS INTEGER)"
    doc = f"CAST({DOCS}.rd_number AS BIGINT)"
    if _least(p, QUERIES) is not None:
        query = f"CAST(r.{p.queries[0]} AS {_fitting(p, p.roles.query[0])})"
    least = _least(p, DOCS)
    if least is not None:
        doc = f"(CAST(r.doc AS BIGINT) - ({least}))"
    fields = [
        f"{search} AS s",
        f"{query} AS q",
        f"{doc} * {1 << MARK_BITS} + 2 * CAST(r.rank AS INTEGER)"
        " + CASE WHEN r.click > 0 THEN 1 ELSE 0 END AS shown",
        *([f"CAST({d.day_number.format('r.day')} AS INTEGER) AS d"] if days else []),
    ]
    steps, joins = _numbered(p, ok)
    result = f"SELECT {', '.join(fields)}\nFROM (SELECT * FROM {ROWS_SHOWN} WHERE {ok}) AS r{joins}"
    return Plan((*row_steps.steps(p)[:-1], *steps, Step(RESULT, result)))


def _fitting(p: Planner, name: str | None) -> str:
    """The type that holds all of a column of whole numbers, no wider than need be."""
    column = p.columns[name or ""]
    low, high = column.low, column.high
    small = low is not None and high is not None and -_SMALL < low <= high < _SMALL
    return "INTEGER" if small else "BIGINT"


def _least(p: Planner, which: str) -> int | None:
    """The least of queries, or docs, if they are whole numbers that are known to lie near enough to
    each other."""
    names = p.roles.query if which == QUERIES else (p.roles.doc or "",)
    c = p.columns.get(names[0])
    if len(names) > 1 or c is None or c.kind != "int" or c.low is None or c.high is None:
        return None
    return c.low if c.high - c.low < _WIDE else None


# -- what is held out, and what became of all rows -----------------------------------------------


def _held_out(made: Made, share: float, seed: int) -> Bools:
    if made.day is None:
        return _mixed(made.s, seed) < share
    days, counts = np.unique(made.day, return_counts=True)
    if len(days) < 2:
        raise BadLog(
            "The log has one day only, so none can be held out. Hold out searches drawn at random "
            "(--split search), or read more days."
        )
    later = np.cumsum(counts[::-1])[::-1] >= share * counts.sum()
    first = max(int(np.flatnonzero(later)[-1]), 1)
    return np.asarray(made.day >= days[first])


def _mixed(s: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each search, the same whenever it is read (splitmix64)."""
    x = s + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((x ^ (x >> np.uint64(31))) / 2.0**64)


class _Used:
    """Sums of what was made of some queries: rows, clicks and pairs used, and those left out."""

    def __init__(self, made: Made, *searches: Searches) -> None:
        known = np.zeros(searches[0].pairs, bool)
        for each in searches:
            known[each.pair] = True
        self.pairs = int(known.sum())
        self.rows = sum(each.rows for each in searches)
        self.clicks = sum(int(each.click.sum()) for each in searches)
        self.lost = made.lost


def _funnel(tally: _Tally, used: Sequence[_Used]) -> Funnel:
    rows, clicks, pairs = (
        sum(getattr(each, name) for each in used) for name in ("rows", "clicks", "pairs")
    )
    same_rank, twice = (
        Dropped(sum(e.lost[name].rows for e in used), sum(e.lost[name].clicks for e in used))
        for name in ("same_rank", "doc_twice")
    )
    good, _, clicked = tally.totals["good"]
    totals = dict(tally.totals)
    # Rows are used as they are: of clicks, one a row.
    totals["candidates"] = totals["used"] = (good, clicked, 0)
    lines = waterfall({name: (a, b, 0) for name, (a, b, _) in totals.items()})
    total = lines.pop(INPUT)
    lines.pop(USED)
    # Docs twice that a row tells by itself are counted already.
    told = lines.get("doc_twice", Dropped())
    rest = (same_rank.rows + twice.rows, same_rank.clicks + twice.clicks)
    lines["same_rank"] = same_rank
    lines["doc_twice"] = Dropped(told.rows + twice.rows, told.clicks + twice.clicks)
    lines["not_drawn"] = Dropped(good - rows - rest[0], clicked - clicks - rest[1])
    return Funnel(
        total.rows,
        total.clicks,
        lines,
        Used(rows, clicks, pairs),
        {"null_click": tally.unknown},
    )
