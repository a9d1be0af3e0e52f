"""Log -> Searches to learn from, and searches held out.

The engine numbers the pairs and hands out every row as whole numbers: which search, which pair, and
at which rank, clicked or not. Queries and docs that are whole numbers themselves are handed
out as they are, and numbered here. Where a log has more searches than are wanted, it draws queries
and hands out only theirs, so that what comes home stays bounded however large the log is.

A search is a list by its rows' ranks. Ranks that are not in the log leave gaps: models take the
rows there are one after the other, and their ranks as they are. Of several rows at one rank, one is
kept, a clicked one if there is one. A doc at two ranks of a search is left out at both, clicked or
not, as in a harvest. Clicks on one row count once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from rankdrift.clickmodels.lists import BLOCK_ROWS, lay_out
from rankdrift.clickmodels.numbering import number_pairs
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.core.types import Bools, Indices, Ints
from rankdrift.core.words import many
from rankdrift.counts.funnel import INPUT, REASONS, USED, Dropped, Funnel, Used, waterfall
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql.plan import (
    ANSWER,
    OUTSIDE,
    RESULT,
    RESULT_TABLE,
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
NUMBERED = "numbered"  # the step that has the pairs, with their numbers
_PARTS = 4096  # that queries are dealt into, some of which are drawn
_MARK = "CAST(CASE WHEN r.click > 0 THEN 1 ELSE 0 END + 2 * r.rank AS INTEGER) AS v"
_DEEPEST = 65_535
_SMALL, _HUGE = 2**31, 2**62
_SHORT = 32  # lists so long are looked through row by row for docs that are there twice


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
        How many to read at most, about: queries are drawn, with all their searches. None: all.
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
    planner = log.planner(
        roles=replace(log.roles, same=(), segment=(), time=None, day=day),
        rules=replace(log.rules, window=1),
    )
    tally = _tally(log, planner)
    parts = _PARTS
    if searches is not None and tally.searches > searches:
        parts = max(round(_PARTS * searches / tally.searches), 1)
        remarks.append(
            f"Of about {many(tally.searches, 'search', 'searches')} those of "
            f"{parts / _PARTS:.1%} of the queries are read, drawn at random. Read more with "
            "--searches, or all of them with --searches 0."
        )
    plan = _plan(planner, parts, split == "time")
    numbered = not _whole_numbers(planner)
    connection = log.engine.run(plan, progress)
    try:
        found = connection.execute(f"FROM {RESULT_TABLE}").fetchnumpy()
    finally:
        connection.execute(f"DROP TABLE IF EXISTS {RESULT_TABLE}")
    arrays = {name: np.ma.getdata(column) for name, column in found.items()}
    if not len(arrays["v"]):
        raise BadLog("No query was drawn. Read more searches, with --searches.")
    del found
    q, mark = arrays.pop("q"), arrays.pop("v").view(np.uint32)
    if numbered:
        pair = arrays.pop("pair").view(np.uint32)
        query_of_pair = np.zeros(int(pair.max()) + 1, np.uint32)
        query_of_pair[pair] = q
    else:
        pair, query_of_pair = number_pairs(q, arrays.pop("doc"))
    made = _arrange(arrays.pop("s"), _Shown(pair, mark), q, arrays.get("d"), query_of_pair)
    del arrays, q, pair, mark
    held = _held_out(made, held_out, seed)
    train, test = (made.searches(which) for which in (~held, held))
    if not train.click.any() or not test.click.any():
        raise BadLog(
            f"{many(int(train.click.sum()), 'click')} to learn from and "
            f"{int(test.click.sum()):,} held out are too few to tell models apart. Read more of "
            "the log, or hold out another share (--held-out)."
        )
    return Read(train, test, _funnel(tally, made.lost, train, test), tuple(remarks))


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


def _plan(p: Planner, parts: int, days: bool) -> Plan:
    """s, the search; v, twice the rank, and one more if it was clicked; q and doc, or the numbers
    of the query and of the pair; d, the day."""
    d = p.dialect
    ok = "ok AND search IS NOT NULL"
    if parts < _PARTS:
        hashed = p.hash_sql(p.queries)
        ok += f" AND mod(mod({hashed}, {_PARTS}) + {_PARTS}, {_PARTS}) < {parts}"
    kind = p.columns[p.roles.search or ""].kind
    search = d.hash.format("r.search")
    if kind == "int":
        search = f"CAST(r.search AS {_fitting(p, p.roles.search)})"
    day = [f"CAST({d.day_number.format('r.day')} AS INTEGER) AS d"] if days else []
    if _whole_numbers(p):
        fields = [
            f"{search} AS s",
            _MARK,
            f"CAST(r.{p.queries[0]} AS {_fitting(p, p.roles.query[0])}) AS q",
            f"CAST(r.doc AS {_fitting(p, p.roles.doc)}) AS doc",
            *day,
        ]
        bare = f"SELECT {', '.join(fields)}\nFROM {ROWS_SHOWN} AS r WHERE {ok}"
        return Plan((*row_steps.steps(p)[:-1], Step(RESULT, bare)))
    keys = [*p.queries, "doc"]
    order = ", ".join(f"{key} IS NULL, {key}" if len(p.queries) > 1 else key for key in p.queries)
    numbered = (
        f"SELECT {', '.join(keys)}, row_number() OVER (ORDER BY {order}, doc) - 1 AS pair,"
        f" dense_rank() OVER (ORDER BY {order}) - 1 AS query\n"
        f"FROM (SELECT DISTINCT {', '.join(keys)} FROM {ROWS_SHOWN} WHERE {ok}) AS rd_pairs"
    )
    equal = "=" if len(p.queries) == 1 else "IS NOT DISTINCT FROM"
    same = [f"r.{key} {equal if key != 'doc' else '='} n.{key}" for key in keys]
    fields = [
        f"{search} AS s",
        _MARK,
        "CAST(n.pair AS INTEGER) AS pair",
        "CAST(n.query AS INTEGER) AS q",
        *day,
    ]
    result = (
        f"SELECT {', '.join(fields)}\nFROM (SELECT * FROM {ROWS_SHOWN} WHERE {ok}) AS r\n"
        f"JOIN {NUMBERED} AS n ON {' AND '.join(same)}"
    )
    steps = row_steps.steps(p)[:-1]
    return Plan((*steps, Step(NUMBERED, numbered, keep=True), Step(RESULT, result)))


def _fitting(p: Planner, name: str | None) -> str:
    """The type that holds all of a column of whole numbers, no wider than need be."""
    column = p.columns[name or ""]
    low, high = column.low, column.high
    small = low is not None and high is not None and -_SMALL < low <= high < _SMALL
    return "INTEGER" if small else "BIGINT"


def _whole_numbers(p: Planner) -> bool:
    """Are queries and docs whole numbers that are known to fit 64 bits?"""
    names = [*p.roles.query, p.roles.doc or ""]
    columns = [p.columns.get(name) for name in names]
    return len(names) == 2 and all(
        c is not None
        and c.kind == "int"
        and c.low is not None
        and c.high is not None
        and -_HUGE < c.low <= c.high < _HUGE
        for c in columns
    )


# -- lists -----------------------------------------------------------------------------------------


class _Shown(NamedTuple):
    """T results: the pair of each, and twice its rank, one more if it was clicked."""

    pair: NDArray[np.uint32]
    mark: NDArray[np.uint32]

    def at(self, rows: Indices | Bools) -> _Shown:
        """Those of some rows."""
        return _Shown(self.pair[rows], self.mark[rows])


@dataclass(frozen=True, eq=False)
class _Made:
    """N searches: s, query and day (N,); where each begins in what was shown (T,), and its length
    (N,), from the top down; rows and clicks left out, by reason."""

    s: NDArray[np.uint64]
    query: Ints
    day: Ints | None
    first: Indices
    lengths: Ints
    shown: _Shown
    query_of_pair: NDArray[np.uint32]
    lost: Mapping[str, Dropped]

    def searches(self, which: Bools) -> Searches:
        """Some of them."""
        lists, _, rows = lay_out(self.lengths[which], self.query[which], self.first[which])
        pair, rank = np.empty(len(rows), np.uint32), np.empty(len(rows), np.uint16)
        click = np.empty(len(rows), bool)
        for block in lists.blocks:
            pair[block.rows], mark = self.shown.at(rows[block.rows])
            rank[block.rows] = mark >> 1
            click[block.rows] = mark & 1
        deepest = int(self.shown.mark.max()) >> 1
        return Searches(lists, pair, rank, click, self.query_of_pair, deepest)


def _arrange(
    s: NDArray[Any],
    shown: _Shown,
    q: NDArray[Any],
    d: NDArray[Any] | None,
    query_of_pair: NDArray[np.uint32],
) -> _Made:
    """Bring the rows of each search together, from its top down.

    Logs mostly have them so already. Then nothing is moved: a search is a run of rows.
    """
    new = np.ones(len(s), bool)
    np.logical_or(s[1:] != s[:-1], q[1:] != q[:-1], out=new[1:])
    start = np.flatnonzero(new)
    size = np.diff(np.append(start, len(s)))
    order = np.argsort(s[start])
    named = s[start[order]]
    if (named[1:] == named[:-1]).any():
        # Searches in several runs, or names that several queries share.
        order = np.lexsort((q[start], s[start]))
    start, size = start[order], size[order]
    same = (s[start[1:]] == s[start[:-1]]) & (q[start[1:]] == q[start[:-1]])
    begin = np.flatnonzero(np.append(True, ~same))
    of_first = start[begin]
    query = query_of_pair[shown.pair[of_first]].astype(np.int64)
    lengths = np.add.reduceat(size, begin).astype(np.int64)
    first = of_first
    if same.any():
        shown = shown.at(_rows_of(start, size))
        first = np.cumsum(lengths) - lengths
    shown, first, lengths, same_rank = _in_order(shown, first, lengths)
    shown, first, lengths, twice = _without_twice(shown, first, lengths)
    return _Made(
        s[of_first].astype(np.int64).view(np.uint64),
        query,
        None if d is None else d[of_first].astype(np.int64),
        first,
        lengths,
        shown,
        query_of_pair,
        {"same_rank": same_rank, "doc_twice": twice},
    )


def _rows_of(start: Indices, size: Indices) -> Indices:
    """Runs of rows one after the other, as rows."""
    end = np.cumsum(size)
    return np.asarray(np.arange(end[-1]) + np.repeat(start - (end - size), size))


_Rows = tuple[_Shown, Indices, Ints, Dropped]
"""What was shown, where searches begin in it, their lengths, and what was left out."""


def _in_order(shown: _Shown, first: Indices, lengths: Ints) -> _Rows:
    """Each search by its ranks, each of them once."""
    falls = [
        start + np.flatnonzero(part[1:] | 1 <= part[:-1] | 1)
        for start in range(0, len(shown.mark), BLOCK_ROWS)
        for part in [shown.mark[start : start + BLOCK_ROWS + 1]]
    ]
    begins = np.zeros(len(shown.mark), bool)
    begins[first] = True
    if begins[np.concatenate(falls) + 1].all():
        return shown, first, lengths, Dropped()
    shown = shown.at(_rows_of(first, lengths))
    of = np.repeat(np.arange(len(lengths)), lengths)
    shown = shown.at(np.lexsort((shown.pair, shown.mark, of)))
    # Of a rank that is there twice the last row stays: a clicked one, as clicks sort last.
    rank = shown.mark >> 1
    keep = np.append((rank[1:] != rank[:-1]) | (of[1:] != of[:-1]), True)
    return _kept(shown, of, keep, len(first))


def _without_twice(shown: _Shown, first: Indices, lengths: Ints) -> _Rows:
    """Each search without docs that it has at two ranks."""
    if int(lengths.max(initial=0)) <= _SHORT and not _any_twice(shown.pair, first, lengths):
        return shown, first, lengths, Dropped()
    begins = np.zeros(len(shown.pair), bool)
    begins[first] = True
    of = np.cumsum(begins, dtype=np.uint64)
    key = (of << np.uint64(32)) | shown.pair
    ordered = np.sort(key)
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return shown, first, lengths, Dropped()
    rows = _rows_of(first, lengths)
    keep = ~np.isin(key[rows], ordered[1:][same])
    return _kept(shown.at(rows), np.repeat(np.arange(len(first)), lengths), keep, len(first))


def _any_twice(pair: NDArray[np.uint32], first: Indices, lengths: Ints) -> bool:
    """Whether a search has a pair again some rows below."""
    starts = np.sort(first)
    for below in range(1, int(lengths.max(initial=0))):
        again = np.flatnonzero(pair[below:] == pair[:-below])
        of, later = (np.searchsorted(starts, rows, "right") for rows in (again, again + below))
        if (of == later).any():
            return True
    return False


def _kept(shown: _Shown, of: Indices, keep: Bools, searches: int) -> _Rows:
    out = shown.mark[~keep]
    lengths = np.bincount(of[keep], minlength=searches).astype(np.int64)
    lost = Dropped(len(out), int((out & 1).sum()))
    return shown.at(keep), np.cumsum(lengths) - lengths, lengths, lost


def _held_out(made: _Made, share: float, seed: int) -> Bools:
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


def _funnel(tally: _Tally, lost: Mapping[str, Dropped], train: Searches, test: Searches) -> Funnel:
    rows = train.rows + test.rows
    clicks = int(train.click.sum()) + int(test.click.sum())
    known = np.zeros(train.pairs, bool)
    known[train.pair] = known[test.pair] = True
    good, _, clicked = tally.totals["good"]
    totals = dict(tally.totals)
    # Rows are used as they are: of clicks, one a row.
    totals["candidates"] = totals["used"] = (good, clicked, 0)
    lines = waterfall({name: (a, b, 0) for name, (a, b, _) in totals.items()})
    total = lines.pop(INPUT)
    lines.pop(USED)
    # Docs twice that a row tells by itself are counted already.
    told = lines.get("doc_twice", Dropped())
    same_rank, twice = lost["same_rank"], lost["doc_twice"]
    rest = (same_rank.rows + twice.rows, same_rank.clicks + twice.clicks)
    lines["same_rank"] = same_rank
    lines["doc_twice"] = Dropped(told.rows + twice.rows, told.clicks + twice.clicks)
    lines["not_drawn"] = Dropped(good - rows - rest[0], clicked - clicks - rest[1])
    return Funnel(
        total.rows,
        total.clicks,
        lines,
        Used(rows, clicks, int(known.sum())),
        {"null_click": tally.unknown},
    )
