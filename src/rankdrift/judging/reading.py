"""Log, or appearances, + Propensities -> what is known of every pair.

A pair is a query and a doc, whatever the day, the segment or the price. One GROUP BY inside the
engine adds up, over all the ranks at which a pair was shown, its clicks, its exposure E = Σ p, the
squares Σ p² and how far errors of the curve move E. Pairs without a click and with next to no
exposure are not brought home one by one: they are counted by how much they were looked at, which is
all that the prior needs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadLog, BadOption, MissingColumns, NotIdentified
from rankdrift.core.types import Floats, Segment
from rankdrift.core.words import many, named_ranks
from rankdrift.counts.funnel import INPUT, USED, Funnel, Used, waterfall
from rankdrift.harvesting.appearances import Appearances, pairs_planner
from rankdrift.judging.exposures import Exposures, exposures_of
from rankdrift.judging.statistics import MIN_EXPOSURE, Recency, Statistics
from rankdrift.judging.summing import Shown, Span, fetch_sums, sums_plan
from rankdrift.log.columns import resolve
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql import rows as row_steps
from rankdrift.log.sql import values
from rankdrift.log.sql.plan import ANSWER, OUTSIDE, RESULT_TABLE, ROWS_SHOWN, Plan, Planner, Step
from rankdrift.propensities.propensities import Propensities


def read_statistics(
    log: Log | Appearances,
    propensities: Propensities,
    *,
    recency: Recency | None = None,
    min_exposure: float = MIN_EXPOSURE,
    pool: bool = False,
    features: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Statistics:
    """Add up what the log says of every pair, inside its engine.

    Parameters
    ----------
    log
        From `read_log`, or the appearances that were made of one.
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
    recency = recency or Recency()
    if not 0 <= min_exposure < np.inf:
        raise BadOption(f"min_exposure must be 0 or more, not {min_exposure!r}.")
    by_segment = bool(propensities.segment_columns) and not pool
    segment = tuple(propensities.segment_columns) if by_segment else ()
    if isinstance(log, Appearances):
        shown, rows = _open_appearances(log, segment)
    else:
        shown, rows = _open_log(log, segment, features or {})
    if recency.asked and not shown.day:
        raise BadOption(
            "Which days are old can only be told by the day: name its column with --day, or leave "
            "out --last and --half-life."
        )
    exposures = exposures_of(propensities, by_segment)
    tally = _tally(rows, exposures, recency)
    if isinstance(log, Log):
        refuse_rank_zero(log, rows.dropped.get("rank_zero", (0, 0))[0], tally.funnel.rows)
    _refuse_nothing(tally.funnel)
    plan = sums_plan(shown, exposures, tally.span, recency, min_exposure)
    connection = log.engine.run(plan, progress)
    try:
        found = fetch_sums(connection, shown, exposures)
    finally:
        connection.execute(f"DROP TABLE IF EXISTS {RESULT_TABLE}")
    pairs = len(found) + int(found.rest["pairs"].sum())
    return replace(
        found,
        funnel=replace(tally.funnel, used=replace(tally.funnel.used, pairs=pairs)),
        pooled_error=tally.pooled_error,
        remarks=tally.remarks,
    )


# -- a first look: rows by rank, segment and day ---------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """shown: (rank, segment…, day's number, rows, clicks, rows clicked); dropped: rows and clicks
    by reason; unknown: rows shown that do not say whether they were clicked."""

    shown: Sequence[tuple[Any, ...]]
    dropped: Mapping[str, tuple[int, int]]
    unknown: int


def _open_log(
    log: Log, segment: tuple[str, ...], features: Mapping[str, str]
) -> tuple[Shown, _Rows]:
    probe(log)
    for name in segment:
        resolve(name, log.engine.columns, "the segments of the propensities; pool them with --pool")
    planner = pairs_planner(log.planner())
    planner = planner.but(roles=replace(planner.roles, segment=segment))
    d, columns = planner.dialect, planner.columns
    carried = {f"f{i + 1}": name for i, name in enumerate(features)}
    carry = {column: features[name] for column, name in carried.items()}
    texts = {
        q: values.as_text(q, columns[c].kind, d)
        for q, c in zip(planner.queries, planner.roles.query, strict=True)
    }
    day = d.day_number.format("day") if planner.roles.day else None
    shown = Shown(
        steps=tuple(row_steps.steps(planner.but(carry=carry))[:-1]),
        queries=planner.queries,
        segments=planner.segments,
        texts=texts | {"doc": d.text.format("doc")},
        dialect=d,
        day=day,
        features=carried,
    )
    return shown, _look_at(log, planner, day)


def _look_at(log: Log, planner: Planner, day: str | None) -> _Rows:
    """Every row by what becomes of it, which also tells which days there are."""
    steps = row_steps.steps(planner)
    by = ["fate", *planner.segments, day or "NULL"]
    sql = (
        f"SELECT {', '.join(by)}, count(*), sum(CASE WHEN click > 0 THEN click ELSE 0 END),"
        " sum(CASE WHEN click > 0 THEN 1 ELSE 0 END), count(*) - count(click)"
        f" FROM {ROWS_SHOWN} GROUP BY {', '.join(b for b in by if b != 'NULL')}"
    )
    found = log.engine.query(Plan((*steps[:-1], Step(ANSWER, sql))).as_query())
    outside = log.engine.query(
        Plan((*steps, Step(ANSWER, f"SELECT reason, n, clicks FROM {OUTSIDE}"))).as_query()
    )
    names = {code: name for name, code in row_steps.DROP_CODES.items()}
    dropped = {reason: (int(n), int(clicks or 0)) for reason, n, clicks in outside}
    for fate, *_, rows, clicks, _clicked, _unknown in found:
        if fate in names:
            n, c = dropped.get(names[fate], (0, 0))
            dropped[names[fate]] = (n + int(rows), c + int(clicks or 0))
    good = [row for row in found if row[0] not in names]
    return _Rows([row[:-1] for row in good], dropped, sum(int(row[-1]) for row in good))


def _open_appearances(log: Appearances, segment: tuple[str, ...]) -> tuple[Shown, _Rows]:
    missing = [name for name in segment if name not in log.segment_columns]
    if missing:
        raise MissingColumns(
            f"The propensities differ by {missing[0]!r}, by which these appearances were not "
            f"counted apart. Count them with --segment {','.join(segment)}, or use one curve for "
            "all with --pool."
        )
    steps = log.steps(segment)
    queries = [f"q{i + 1}" for i in range(len(log.query_columns))]
    segments = [f"g{i + 1}" for i in range(len(segment))]
    days = any(meta["days"] for meta in log.metas)
    shown = Shown(
        steps=steps,
        queries=queries,
        segments=segments,
        texts={name: name for name in (*queries, "doc")},
        dialect=DUCKDB,
        day="day" if days else None,
        times="n",
    )
    by = ", ".join(["rank", *segments, "day"])
    sums = ", ".join(f"sum({name})" for name in ("n", "clicks", "clicked"))
    sql = f"SELECT {by}, {sums} FROM {ROWS_SHOWN} GROUP BY {by}"
    found = log.engine.query(Plan((*steps, Step(ANSWER, sql))).as_query())
    return shown, _Rows(found, log.totals, log.unknown)


@dataclass(frozen=True)
class _Tally:
    """What becomes of all rows, and the days that count."""

    funnel: Funnel
    span: Span
    pooled_error: Floats
    remarks: tuple[str, ...] = ()


def _tally(rows: _Rows, exposures: Exposures, recency: Recency) -> _Tally:
    shown = sorted(rows.shown, key=str)  # sums of doubles depend on their order
    days = [int(row[-4]) for row in shown if row[-4] is not None]
    first, last = (min(days), max(days)) if days else (None, None)
    from_day = None if recency.last is None or last is None else last - recency.last + 1
    totals = {name: np.array([*sums, 0]) for name, sums in rows.dropped.items()}
    adds, missing = exposures.adds, set[int]()
    pooled = np.zeros(len(exposures.names))
    for rank, *segment, day, n, clicks, clicked in shown:
        key = (tuple(segment), int(rank))
        old = from_day is not None and day is not None and day < from_day
        reason = "other_day" if old else "good" if key in adds else "no_propensity"
        if reason == "no_propensity":
            missing.add(int(rank))
        totals[reason] = totals.get(reason, 0) + np.array([int(n), int(clicks or 0), 0])
        if reason == "good":
            totals["used"] = totals.get("used", 0) + np.array([int(n), int(clicked), 0])
            pooled += int(n) * adds[key]
    _refuse_segments({tuple(row[1:-4]) for row in shown}, exposures)
    totals["candidates"] = totals.get("used", np.zeros(3, int))
    lines = waterfall({name: (int(n[0]), int(n[1]), 0) for name, n in totals.items()})
    total, used = lines.pop(INPUT), lines.pop(USED)
    lost = lines.get("no_propensity")
    remarks: tuple[str, ...] = ()
    if lost and lost.rows:
        remarks = (
            f"{many(lost.rows, 'row')} with {many(lost.clicks, 'click')} at "
            f"{named_ranks(missing)} have no propensity and are left out, clicks and all. Estimate "
            "deeper (--extrapolate-to) to have them in.",
        )
    of_used = Used(used.rows, used.clicks)
    return _Tally(
        Funnel(total.rows, total.clicks, lines, of_used, {"null_click": rows.unknown}),
        Span(first if from_day is None or first is None else max(first, from_day), last),
        pooled[2 : 2 + exposures.directions] / max(pooled[0], 1e-300),
        remarks,
    )


def _refuse_nothing(funnel: Funnel) -> None:
    if not funnel.used.rows:
        reasons = [f"{d.rows:,} {name}" for name, d in funnel.dropped.items() if d.rows]
        raise BadLog(
            f"None of the {funnel.rows:,} rows can be used: {', '.join(reasons) or 'none is'}. "
            "Check the columns, and that the propensities are of this log's ranks."
        )
    if not funnel.used.clicks:
        raise BadLog(
            f"None of the {funnel.used.rows:,} results shown was clicked, so nothing tells docs "
            "apart. Check the column of clicks (--click)."
        )


def _refuse_segments(seen: set[Segment], exposures: Exposures) -> None:
    unknown = sorted(seen - set(exposures.segments), key=str)
    if unknown:
        first = "/".join(map(str, unknown[0]))
        known = ", ".join("/".join(map(str, s)) for s in exposures.segments) or "none"
        raise NotIdentified(
            f"There are no propensities for {many(len(unknown), 'segment')} of the log, such as "
            f"{first!r}; there are for: {known}. Estimate with them too, leave their rows out "
            "(--where), or use one curve for all with --pool."
        )
