"""Log + Propensities -> what is known of every pair: its clicks, and how much it was looked at.

A pair is a query and a doc, whatever the day, the segment or the price. One GROUP BY inside the
engine adds up, over all the ranks at which a pair was shown, its clicks, its exposure E = Σ p, the
squares Σ p² and how far errors of the curve move E. Pairs without a click and with next to no
exposure are not brought home one by one: they are counted by how much they were looked at, which is
all that the prior needs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.dialects import Dialect
from rankdrift.core.errors import BadLog, BadOption, NotIdentified
from rankdrift.core.frames import objects
from rankdrift.core.types import Bools, Floats, Ints, Segment
from rankdrift.core.words import many, named_ranks
from rankdrift.counts.funnel import INPUT, USED, Funnel, Used, waterfall
from rankdrift.log.columns import resolve
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
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
from rankdrift.propensities.propensities import Propensities

MIN_EXPOSURE = 1.0
"""Pairs without a click are listed from this exposure on; the others only shape the prior."""
EXPOSURES = "exposures"  # the step that has the curve: what a row at a rank adds to its pair
SUMS = "sums"  # the step that has every pair
SHARED = "shared"  # the same, and how often it was shown compared with other docs of its query
# How far errors of the curve move a pair's exposure is kept along so many directions at most, and
# no more than explain this share of the variance.
MOST_DIRECTIONS, EXPLAINED = 3, 0.99
UNIT = 2**32
"""What a row adds to its pair is a whole number of 1/UNIT, as a double: up to 2**53, that is two
million looks at the reference rank, such add up to the same in any order."""
_SHARE_UNIT = 2**30  # the same of shares
_PER_OCTAVE = 8  # bins of exposure of pairs that are not listed
_BITS = 62  # days that fit one whole number


@dataclass(frozen=True, eq=False)
class Statistics:
    """What a log says of N pairs, in order of query and doc, and of all others.

    Parameters
    ----------
    queries
        (Q, columns) text, None where missing: the different queries.
    docs
        (D,) text: the different docs.
    query, doc
        (N,) places in `queries` and `docs`.
    clicks, appearances
        (N,): rows clicked, and rows; weighted, if old days count less.
    exposure, squares
        (N,): Σ p and Σ p² over the ranks at which the pair was shown.
    errors
        (N, K): how far the log of exposure goes, along each direction of the curve's error.
    other_error
        (N,): the variance of the log of exposure that is along none of them.
    share
        (N,), up to 1: appearances over those of the doc of its query that was shown most.
    days
        (N,): on how many days it was shown; 0 where the log does not tell days.
    features
        (N, F): means over appearances; missing values are NaN.
    feature_names
        (F,).
    rest
        Pairs that are not listed: arrays `pairs`, `exposure`, `squares`, `appearances` and `share`
        (B,), a bin each, of their sums.
    pooled_error
        (K,): `errors` of all rows together.
    funnel
        What became of the log's rows.
    remarks
        What is odd.
    """

    queries: NDArray[Any]
    docs: NDArray[Any]
    query: Ints
    doc: Ints
    clicks: Floats
    appearances: Floats
    exposure: Floats
    squares: Floats
    errors: Floats
    other_error: Floats
    share: Floats
    days: Ints
    features: Floats
    rest: Mapping[str, Floats]
    pooled_error: Floats
    funnel: Funnel
    feature_names: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.query)

    def take(self, keep: Bools) -> Statistics:
        """Some of the pairs; the others join the rest, as bins of one."""
        queries, query = np.unique(self.query[keep], return_inverse=True)
        docs, doc = np.unique(self.doc[keep], return_inverse=True)
        out = ~keep
        more = {
            "pairs": np.ones(int(out.sum())),
            "exposure": self.exposure[out],
            "squares": self.squares[out],
            "appearances": self.appearances[out],
            "share": self.share[out],
        }
        by_pair = "clicks appearances exposure squares errors other_error share days".split()
        return replace(
            self,
            queries=self.queries[queries],
            docs=self.docs[docs],
            query=query.astype(np.int64),
            doc=doc.astype(np.int64),
            features=self.features[keep],
            rest={name: np.concatenate([self.rest[name], values]) for name, values in more.items()},
            **{name: getattr(self, name)[keep] for name in by_pair},
        )

    @property
    def click_rate(self) -> float:
        """Clicks over exposure of all pairs: the mean relevance by exposure."""
        return float(self.clicks.sum() / (self.exposure.sum() + self.rest["exposure"].sum()))


@dataclass(frozen=True)
class Recency:
    """Which days count, and how much; raises BadOption for what it cannot do.

    Parameters
    ----------
    last
        Only so many days, up to the last of the log.
    half_life
        In days: a day so much older than the last one counts half.
    """

    last: int | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        if self.last is not None and not (isinstance(self.last, int) and self.last >= 1):
            raise BadOption(f"last is a number of days and must be 1 or more, not {self.last!r}.")
        if self.half_life is not None and not 0 < self.half_life < np.inf:
            raise BadOption(
                f"half_life is a number of days and must be above 0, not {self.half_life!r}."
            )

    @property
    def asked(self) -> bool:
        """Whether days matter at all."""
        return self.last is not None or self.half_life is not None


@dataclass(frozen=True)
class _Curves:
    """What a row adds to its pair, by segment and rank: a table of numbers, one a sum."""

    segments: tuple[Segment, ...]
    rows: tuple[tuple[int, int, Floats], ...]  # (place of the segment, rank, numbers by `names`)
    directions: int
    other: bool  # whether anything worth counting is along none of the directions

    @property
    def adds(self) -> dict[tuple[Segment, int], Floats]:
        """What a row adds, by segment and rank."""
        return {(self.segments[s], rank): numbers for s, rank, numbers in self.rows}

    @property
    def names(self) -> list[str]:
        """Of the numbers, inside a plan."""
        along = [f"d{k + 1}" for k in range(self.directions)]
        return ["p", "p2", *along, *(["v"] if self.other else [])]


def read_statistics(
    log: Log,
    propensities: Propensities,
    *,
    recency: Recency = Recency(),  # frozen
    min_exposure: float = MIN_EXPOSURE,
    pool: bool = False,
    features: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Statistics:
    """Add up what the log says of every pair, inside its engine.

    Parameters
    ----------
    log
        From `read_log`.
    propensities
        How much a row at each rank was looked at; where they differ by segment, so does that.
    recency
        Which days count, and how much.
    min_exposure
        Pairs without a click and with less exposure are not listed.
    pool
        One curve for all, though the propensities have segments.
    features
        Name -> SQL of a number on the source, to be averaged over a pair's appearances.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Raises
    ------
    NotIdentified
        If a segment of the log has no curve, or no row is at a rank that has a propensity.
    """
    if not 0 <= min_exposure < np.inf:
        raise BadOption(f"min_exposure must be 0 or more, not {min_exposure!r}.")
    probe(log)
    by_segment = bool(propensities.segment_columns) and not pool
    segment = tuple(propensities.segment_columns) if by_segment else ()
    for name in segment:
        resolve(name, log.engine.columns, "the segments of the propensities; pool them with --pool")
    roles = replace(log.roles, same=(), segment=segment, time=None)
    if recency.asked and not roles.day:
        raise BadOption(
            "Which days are old can only be told by the day: name its column with --day, or leave "
            "out --last and --half-life."
        )
    planner = log.planner(roles=roles, rules=replace(log.rules, window=1))
    curves = _curves(propensities, by_segment)
    tally = _tally(log, planner, curves, recency)
    plan = _plan(planner, curves, tally, recency, min_exposure, features or {})
    connection = log.engine.run(plan, progress)
    try:
        found = _fetch(connection, planner, curves, list(features or {}))
    finally:
        connection.execute(f"DROP TABLE IF EXISTS {RESULT_TABLE}")
    return replace(
        found,
        funnel=replace(
            tally.funnel,
            used=replace(tally.funnel.used, pairs=len(found) + int(found.rest["pairs"].sum())),
        ),
        pooled_error=tally.pooled_error,
        remarks=tally.remarks,
    )


# -- what a row adds -------------------------------------------------------------------------------


def _curves(p: Propensities, by_segment: bool) -> _Curves:
    """Along the directions in which the curve's error is largest, and what is left of it.

    Curves of segments have errors of their own, of which nobody knows how they go together: there
    the whole of it is left, which takes them to go together fully.
    """
    curves = dict(p.segments) if by_segment else {(): p}
    directions = np.zeros((len(p.ranks), 0)) if by_segment else _directions(p)
    variance = _variance(p)
    other = by_segment or bool(
        (variance - (directions**2).sum(axis=1)).sum() > (1 - EXPLAINED) * variance.sum()
    )
    rows = []
    for s, curve in enumerate(curves.values()):
        along = np.zeros((len(curve.ranks), 0)) if by_segment else directions
        left = np.maximum(_variance(curve) - (along**2).sum(axis=1), 0.0)[:, None]
        v = curve.values[:, None]
        table = np.concatenate([v, v**2, v * along, *([v * left] if other else [])], axis=1)
        rows += [(s, int(rank), table[i]) for i, rank in enumerate(curve.ranks)]
    return _Curves(tuple(curves), tuple(rows), directions.shape[1], other)


def _variance(curve: Propensities) -> Floats:
    return np.asarray(np.nan_to_num(curve.deviations**2).sum(axis=1))


def _directions(p: Propensities) -> Floats:
    """(R, K): the largest directions of the error of log p."""
    left, size, _ = np.linalg.svd(np.nan_to_num(p.deviations), full_matrices=False)
    share = np.cumsum(size**2) / max(float((size**2).sum()), 1e-300)
    enough = int(np.searchsorted(share, EXPLAINED)) + 1 if size.any() else 0
    kept = min(enough, MOST_DIRECTIONS, len(size))
    return np.asarray(left[:, :kept] * size[:kept])


# -- a first look: rows by rank, segment and day ---------------------------------------------------


@dataclass(frozen=True)
class _Tally:
    """first, last: days as numbers, None where the log has none."""

    funnel: Funnel
    first: int | None
    last: int | None
    pooled_error: Floats
    remarks: tuple[str, ...] = field(default=())


def _tally(log: Log, planner: Planner, curves: _Curves, recency: Recency) -> _Tally:
    """Every row by what becomes of it, which also tells which days there are."""
    steps = row_steps.steps(planner)
    day = planner.dialect.day_number.format("day") if planner.roles.day else "NULL"
    by = ["fate", *planner.segments, day]
    sql = (
        f"SELECT {', '.join(by)}, count(*), sum(CASE WHEN click > 0 THEN click ELSE 0 END),"
        " sum(CASE WHEN click > 0 THEN 1 ELSE 0 END), count(*) - count(click)"
        f" FROM {ROWS_SHOWN} GROUP BY {', '.join(b for b in by if b != 'NULL')}"
    )
    found = log.engine.query(Plan((*steps[:-1], Step(ANSWER, sql))).as_query())
    found.sort(key=str)  # sums of doubles depend on their order
    outside = log.engine.query(
        Plan((*steps, Step(ANSWER, f"SELECT reason, n, clicks FROM {OUTSIDE}"))).as_query()
    )
    shown = [row for row in found if row[0] > 0]
    days = [int(row[-5]) for row in shown if row[-5] is not None]
    first, last = (min(days), max(days)) if days else (None, None)
    from_day = None if recency.last is None or last is None else last - recency.last + 1
    totals = {reason: np.array([n, clicks or 0, 0]) for reason, n, clicks in outside}
    names = {code: name for name, code in row_steps.DROP_CODES.items()}
    adds, unknown, missing = curves.adds, 0, set[int]()
    pooled = np.zeros(len(curves.names))
    for fate, *segment, day_number, rows, clicks, clicked, no_click in found:
        key = (tuple(segment), int(fate))
        old = from_day is not None and day_number is not None and day_number < from_day
        reason = names.get(fate) or ("other_day" if old else "good" if key in adds else None)
        if reason is None:
            missing.add(int(fate))
            reason = "no_propensity"
        numbers = np.array([rows, clicks or 0, 0])
        totals[reason] = totals.get(reason, 0) + numbers
        if reason == "good":
            totals["used"] = totals.get("used", 0) + np.array([rows, clicked, 0])
            unknown += no_click
            pooled += rows * adds[key]
    _refuse_segments({tuple(row[1:-5]) for row in shown}, curves)
    totals["candidates"] = totals.get("used", np.zeros(3, int))
    lines = waterfall({name: (int(n[0]), int(n[1]), 0) for name, n in totals.items()})
    total, used = lines.pop(INPUT), lines.pop(USED)
    refuse_rank_zero(log, int(totals.get("rank_zero", [0])[0]), total.rows)
    if not used.rows:
        raise BadLog(
            f"None of the {total.rows:,} rows can be used: "
            + (", ".join(f"{d.rows:,} {name}" for name, d in lines.items() if d.rows) or "none is")
            + ". Check the columns, and that the propensities are of this log's ranks."
        )
    if not used.clicks:
        raise BadLog(
            f"None of the {used.rows:,} results shown was clicked, so nothing tells docs apart. "
            "Check the column of clicks (--click)."
        )
    lost = lines.get("no_propensity")
    remarks: tuple[str, ...] = ()
    if lost and lost.rows:
        remarks = (
            f"{many(lost.rows, 'row')} with {many(lost.clicks, 'click')} at "
            f"{named_ranks(missing)} have no propensity and are left out, clicks and all. Estimate "
            "deeper (--extrapolate-to) to have them in.",
        )
    return _Tally(
        Funnel(
            total.rows, total.clicks, lines, Used(used.rows, used.clicks), {"null_click": unknown}
        ),
        first if from_day is None or first is None else max(first, from_day),
        last,
        pooled[2 : 2 + curves.directions] / pooled[0],
        remarks,
    )


def _refuse_segments(seen: set[Segment], curves: _Curves) -> None:
    unknown = sorted(seen - set(curves.segments), key=str)
    if unknown:
        first = "/".join(map(str, unknown[0]))
        known = ", ".join("/".join(map(str, s)) for s in curves.segments) or "none"
        raise NotIdentified(
            f"There are no propensities for {many(len(unknown), 'segment')} of the log, such as "
            f"{first!r}; there are for: {known}. Estimate with them too, leave their rows out "
            "(--where), or use one curve for all with --pool."
        )


# -- the plan --------------------------------------------------------------------------------------


def _plan(
    p: Planner,
    curves: _Curves,
    tally: _Tally,
    recency: Recency,
    min_exposure: float,
    features: Mapping[str, str],
) -> Plan:
    d = p.dialect
    at = {f"f{i + 1}": sql for i, sql in enumerate(features.values())}
    keys = [*p.queries, "doc"]
    double = f"CAST({{}} AS {d.double})"
    day = d.day_number.format("day")
    weight = "1"
    if recency.half_life is not None:
        rate = _double(float(np.log(2) / recency.half_life))
        weight = f"exp({double.format(f'{day} - {tally.last}')} * {rate})"
    clicked = "CASE WHEN click > 0 THEN 1 ELSE 0 END"
    if weight == "1":
        plain = {"n": f"count(*) * {UNIT}", "c": f"sum({clicked}) * {UNIT}"}
        sums = {name: f"sum(e.{name})" for name in curves.names}
    else:
        units = f"floor({weight} * {UNIT} + {_double(0.5)})"
        plain = {
            "n": f"sum({double.format(units)})",
            "c": f"sum({clicked} * {double.format(units)})",
        }
        sums = {
            name: f"sum({double.format(f'floor(e.{name} * {weight} + {_double(0.5)})')})"
            for name in curves.names
        }
    sums |= {name: f"avg({double.format(name)})" for name in at}
    sums |= {f"b{i + 1}": sql for i, sql in enumerate(_day_bits(day, tally) if p.roles.day else ())}
    same = ["r.rank = e.e_rank"]
    same += [
        f"coalesce('=' || r.{g}, '') = e.e_{g}"
        for g in p.segments  # NULL is a segment too
    ]
    keep = f" AND {day} >= {tally.first}" if recency.last is not None else ""
    listed = ", ".join(f"r.{key}" for key in keys)
    added = ", ".join(f"{sql} AS {name}" for name, sql in (plain | sums).items())
    grouped = (
        f"SELECT {listed}, {added}\nFROM {ROWS_SHOWN} AS r\n"
        f"JOIN {EXPOSURES} AS e ON {' AND '.join(same)}\nWHERE r.ok{keep}\nGROUP BY {listed}"
    )
    queries = ", ".join(p.queries)
    of_query = " AND ".join(f"s.{q} IS NOT DISTINCT FROM m.{q}" for q in p.queries)
    shared = (
        f"SELECT s.*, CAST(floor({double.format('s.n')} / {double.format('m.most')}"
        f" * {_SHARE_UNIT} + {_double(0.5)}) AS BIGINT) AS share FROM {SUMS} AS s JOIN"
        f" (SELECT {queries}, max(n) AS most FROM {SUMS} GROUP BY {queries}) AS m ON {of_query}"
    )
    return Plan(
        (
            *row_steps.steps(p.but(carry=at))[:-1],
            Step(EXPOSURES, _exposures(curves, p.segments, d), settled=True),
            Step(SUMS, grouped, keep=True),
            Step(SHARED, shared, keep=True),
            Step(RESULT, _result(p, [*plain, *sums, "share"], min_exposure)),
        )
    )


def _double(value: float) -> str:
    """A literal that means exactly this double; without exponent it would be a decimal."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _exposures(curves: _Curves, segments: Sequence[str], d: Dialect) -> str:
    rows = []
    for s, rank, numbers in curves.rows:
        values_of = (d.literal("" if v is None else f"={v}") for v in curves.segments[s])
        p, squares, *others = (round(number * UNIT) for number in numbers.tolist())
        cells = [str(rank), *values_of, *map(str, (max(p, 1), max(squares, 1), *others))]
        rows.append(f"({', '.join(cells)})")
    names = ["e_rank", *(f"e_{g}" for g in segments), *curves.names]
    cast = [f"CAST({name} AS {d.double}) AS {name}" for name in curves.names]
    return (
        f"SELECT {', '.join([*names[: -len(cast)], *cast])}\n"
        f"FROM (VALUES {', '.join(rows)}) AS rd_curve ({', '.join(names)})"
    )


def _day_bits(day: str, tally: _Tally) -> list[str]:
    """SQL of whole numbers that have a bit for each day on which a pair was shown."""
    if tally.first is None or tally.last is None:
        return []
    starts = range(tally.first, tally.last + 1, _BITS)
    bit = "CAST(1 AS BIGINT) << CAST({} - {} AS INTEGER)"
    if len(starts) == 1:
        return [f"bit_or({bit.format(day, tally.first)})"]
    return [
        f"bit_or(CASE WHEN {day} BETWEEN {start} AND {start + _BITS - 1}"
        f" THEN {bit.format(day, start)} ELSE 0 END)"
        for start in starts
    ]


def _result(p: Planner, names: Sequence[str], min_exposure: float) -> str:
    """A row for every pair that matters, then a row for each bin of the others."""
    d, columns = p.dialect, p.columns
    keys = {
        q: values.as_text(q, columns[c].kind, d)
        for q, c in zip(p.queries, p.roles.query, strict=True)
    } | {"doc": d.text.format("doc")}
    texts = ", ".join(f"{sql} AS {name}" for name, sql in keys.items())
    matters = f"c > 0 OR p >= {round(min_exposure * UNIT)}"
    listed = f"SELECT 1 AS pairs, {texts}, {', '.join(names)} FROM {SHARED} WHERE {matters}"
    if min_exposure == 0:
        return listed
    # Bins of exposure, of propensity at the ranks of the pair, and of its share.
    scale = _double(float(_PER_OCTAVE / np.log(2)))
    real = {name: f"CAST({name} AS {d.double})" for name in ("p", "p2", "share")}
    ratio = f"{real['p2']} / {real['p']}"
    bins = [f"floor(ln({of}) * {scale})" for of in (real["p"], ratio)]
    bins.append(f"floor(ln({real['share']}) * 2)")
    whole = {name: f"sum({name})" for name in ("n", "p", "p2", "share")}
    empty = ", ".join(f"CAST(NULL AS {_text_type(d)}) AS {name}" for name in keys)
    summed = ", ".join(f"{whole.get(name, 'NULL')} AS {name}" for name in names)
    rest = (
        f"SELECT count(*) AS pairs, {empty}, {summed} FROM {SHARED} WHERE NOT ({matters})"
        f" GROUP BY {', '.join(bins)}"
    )
    return f"{listed}\nUNION ALL\n{rest}"


def _text_type(d: Dialect) -> str:
    return d.text.format("x").rpartition(" AS ")[2].removesuffix(")")


# -- home ------------------------------------------------------------------------------------------


def _fetch(connection: Any, p: Planner, curves: _Curves, feature_names: list[str]) -> Statistics:
    queries = ", ".join(p.queries)
    table = f"(FROM {RESULT_TABLE} WHERE doc IS NOT NULL)"
    names = connection.execute(f"SELECT * FROM {RESULT_TABLE} LIMIT 0").description
    there = [name for name, *_ in names]
    bits = [name for name in there if name[0] == "b" and name[1:].isdigit()]
    numbers = ["n", "c", "share", *curves.names, *(f"f{i + 1}" for i in range(len(feature_names)))]
    picked = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in numbers)
    shown_on = " + ".join(f"bit_count({name})" for name in bits) or "0"
    found = connection.execute(
        f"SELECT dense_rank() OVER (ORDER BY {queries}) - 1 AS query,"
        f" dense_rank() OVER (ORDER BY doc) - 1 AS doc, {picked},"
        f" CAST({shown_on} AS BIGINT) AS days FROM {table} AS t ORDER BY query, doc"
    ).fetchnumpy()
    of = {name: np.ma.filled(column.astype(float), np.nan) for name, column in found.items()}
    for name in ("n", "c", *curves.names):
        of[name] /= UNIT
    texts = connection.execute(
        f"SELECT DISTINCT {queries} FROM {table} AS t ORDER BY {queries}"
    ).fetchall()
    docs = connection.execute(f"SELECT DISTINCT doc FROM {table} AS t ORDER BY doc").fetchall()
    rest = connection.execute(
        f"SELECT CAST(pairs AS DOUBLE) AS pairs, CAST(p AS DOUBLE) AS exposure,"
        f" CAST(p2 AS DOUBLE) AS squares, CAST(n AS DOUBLE) AS appearances,"
        " CAST(share AS DOUBLE) AS share"
        f" FROM {RESULT_TABLE} WHERE doc IS NULL ORDER BY ALL"
    ).fetchnumpy()
    units = {"pairs": 1, "share": _SHARE_UNIT}
    along = [of[f"d{k + 1}"] for k in range(curves.directions)]
    exposure = of["p"]
    return Statistics(
        queries=objects(texts, len(p.queries)),
        docs=objects(docs, 1)[:, 0],
        query=np.ma.getdata(found["query"]).astype(np.int64),
        doc=np.ma.getdata(found["doc"]).astype(np.int64),
        clicks=of["c"],
        appearances=of["n"],
        exposure=exposure,
        squares=of["p2"],
        errors=_columns(along, len(exposure)) / exposure[:, None],
        other_error=of["v"] / exposure if curves.other else np.zeros(len(exposure)),
        share=of["share"] / _SHARE_UNIT,
        days=np.ma.getdata(found["days"]).astype(np.int64),
        # Means of doubles, in whatever order, agree in 32 bits.
        features=_columns([of[f"f{i + 1}"] for i in range(len(feature_names))], len(exposure))
        .astype(np.float32)
        .astype(np.float64),
        rest={n: np.ma.getdata(column) / units.get(n, UNIT) for n, column in rest.items()},
        pooled_error=np.zeros(curves.directions),
        funnel=Funnel(),
        feature_names=tuple(feature_names),
    )


def _columns(columns: Sequence[Floats], rows: int) -> Floats:
    """(rows, columns), though there be none."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
