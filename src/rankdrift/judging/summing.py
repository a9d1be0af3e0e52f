"""Rows shown -> the sums of every pair, inside an engine, and what of them comes home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankdrift.core.dialects import Dialect
from rankdrift.core.frames import objects
from rankdrift.core.types import Floats
from rankdrift.counts.funnel import Funnel
from rankdrift.judging.exposures import UNIT, Exposures, double, exposures_sql
from rankdrift.judging.statistics import Recency, Statistics
from rankdrift.log.sql.plan import RESULT, RESULT_TABLE, ROWS_SHOWN, Plan, Step

EXPOSURES = "exposures"  # the step that has the curve: what a row at a rank adds to its pair
SUMS = "sums"  # the step that has every pair
MOST = "most"  # how often the doc of each query was shown that was shown most
SHARE_UNIT = 2**30  # shares are whole numbers of one over this
_PER_OCTAVE = 8  # bins of exposure of pairs that are not listed
_BITS = 62  # days that fit one whole number


@dataclass(frozen=True)
class Shown:
    """Results shown, as the plan reads them.

    Parameters
    ----------
    steps
        Those that make `rows_shown`: rank, the columns below, and `ok` where a row is good.
    queries, segments
        Names of columns there.
    texts
        Name -> SQL of the query's columns and of `doc` as text.
    dialect
        Of SQL.
    day
        SQL of a day's number, if days are told.
    times
        The column that says for how many appearances a row stands, of which `clicked` were clicked;
        by default a row is one, and `click` says so.
    features
        Columns of numbers to be averaged over appearances -> what they are called.
    """

    steps: tuple[Step, ...]
    queries: Sequence[str]
    segments: Sequence[str]
    texts: Mapping[str, str]
    dialect: Dialect
    day: str | None = None
    times: str | None = None
    features: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """The numbers of the first and the last day that count; None where days are not told."""

    first: int | None
    last: int | None


def sums_plan(
    shown: Shown, exposures: Exposures, span: Span, recency: Recency, min_exposure: float
) -> Plan:
    """One GROUP BY of all rows, and a row for every pair that matters.

    Parameters
    ----------
    shown
        What is added up.
    exposures
        What a row adds.
    span
        The days that count.
    recency
        How much they count.
    min_exposure
        Pairs without a click and with less exposure are counted in bins.
    """
    d, times = shown.dialect, shown.times
    cast = f"CAST({{}} AS {d.double})"
    each = f" * {cast.format(f'r.{times}')}" if times else ""
    clicked = "r.clicked" if times else "CASE WHEN click > 0 THEN 1 ELSE 0 END"
    if recency.half_life is None:
        n = f"sum(r.{times})" if times else "count(*)"
        c = "sum(r.clicked)" if times else "count(CASE WHEN click > 0 THEN 1 END)"
        sums = {"n": f"{n} * {UNIT}", "c": f"{c} * {UNIT}"}
        sums |= {name: f"sum(e.{name}{each})" for name in exposures.names}
    else:
        rate = double(float(np.log(2) / recency.half_life))
        weight = f"exp({cast.format(f'{shown.day} - {span.last}')} * {rate})"
        units = cast.format(f"floor({weight} * {UNIT} + {double(0.5)})")
        sums = {"n": f"sum({units}{each})", "c": f"sum({clicked} * {units})"}
        for name in exposures.names:
            worth = cast.format(f"floor(e.{name} * {weight} + {double(0.5)})")
            sums[name] = f"sum({worth}{each})"
    sums |= {name: f"avg({cast.format(name)})" for name in shown.features}
    bits = _day_bits(shown.day, span) if shown.day else []
    sums |= {f"b{i + 1}": sql for i, sql in enumerate(bits)}
    # What is so old that it counts nothing is no exposure to divide by.
    aged = f"\nHAVING {sums['p']} > 0" if recency.half_life is not None else ""
    same = ["r.rank = e.e_rank"]
    # NULL is a segment too.
    same += [f"coalesce('=' || r.{g}, '') = e.e_{g}" for g in shown.segments]
    keep = f" AND {shown.day} >= {span.first}" if recency.last is not None else ""
    listed = ", ".join(f"r.{key}" for key in (*shown.queries, "doc"))
    added = ", ".join(f"{sql} AS {name}" for name, sql in sums.items())
    grouped = (
        f"SELECT {listed}, {added}\nFROM {ROWS_SHOWN} AS r\n"
        f"JOIN {EXPOSURES} AS e ON {' AND '.join(same)}\nWHERE r.ok{keep}\nGROUP BY {listed}{aged}"
    )
    queries = ", ".join(shown.queries)
    most = f"SELECT {queries}, max(n) AS most FROM {SUMS} GROUP BY {queries}"
    return Plan(
        (
            *shown.steps,
            Step(EXPOSURES, exposures_sql(exposures, shown.segments, d), settled=True),
            Step(SUMS, grouped, keep=True),
            Step(MOST, most, keep=True),
            Step(RESULT, _result(shown, [*sums], min_exposure)),
        )
    )


def _day_bits(day: str, span: Span) -> list[str]:
    """SQL of whole numbers that have a bit for each day on which a pair was shown."""
    if span.first is None or span.last is None:
        return []
    starts = range(span.first, span.last + 1, _BITS)
    bit = "CAST(1 AS BIGINT) << CAST({} - {} AS INTEGER)"
    if len(starts) == 1:
        return [f"bit_or({bit.format(day, span.first)})"]
    return [
        f"bit_or(CASE WHEN {day} BETWEEN {start} AND {start + _BITS - 1}"
        f" THEN {bit.format(day, start)} ELSE 0 END)"
        for start in starts
    ]


def _result(shown: Shown, names: Sequence[str], min_exposure: float) -> str:
    """A row for every pair that matters, then a row for each bin of the others."""
    d = shown.dialect
    real = f"CAST({{}} AS {d.double})"
    share = (
        f"CAST(floor({real.format('s.n')} / {real.format('m.most')} * {SHARE_UNIT}"
        f" + {double(0.5)}) AS BIGINT)"
    )
    of_query = " AND ".join(f"s.{q} IS NOT DISTINCT FROM m.{q}" for q in shown.queries)
    matters = f"c > 0 OR p >= {round(min_exposure * UNIT)}"

    def shared(where: str) -> str:
        of = f"(SELECT * FROM {SUMS} WHERE {where})"
        return f"(SELECT s.*, {share} AS share FROM {of} AS s JOIN {MOST} AS m ON {of_query}) AS t"

    names = [*names, "share"]
    texts = ", ".join(f"{sql} AS {name}" for name, sql in shown.texts.items())
    listed = f"SELECT 1 AS pairs, {texts}, {', '.join(names)} FROM {shared(matters)}"
    if min_exposure == 0:
        return listed
    # Bins of exposure, of propensity at the ranks of the pair, and of its share.
    scale = double(float(_PER_OCTAVE / np.log(2)))
    ratio = f"{real.format('p2')} / {real.format('p')}"
    bins = [f"floor(ln({of}) * {scale})" for of in (real.format("p"), ratio)]
    bins.append(f"floor(ln({real.format('share')}) * 2)")
    whole = {name: f"sum({name})" for name in ("n", "p", "p2", "share", "t")}
    text = d.text.format("x").rpartition(" AS ")[2].removesuffix(")")
    empty = ", ".join(f"CAST(NULL AS {text}) AS {name}" for name in shown.texts)
    summed = ", ".join(f"{whole.get(name, 'NULL')} AS {name}" for name in names)
    rest = (
        f"SELECT count(*) AS pairs, {empty}, {summed} FROM {shared(f'NOT ({matters})')}"
        f" GROUP BY {', '.join(bins)}"
    )
    return f"{listed}\nUNION ALL\n{rest}"


def fetch_sums(connection: Any, shown: Shown, exposures: Exposures) -> Statistics:
    """What the plan found; its funnel and remarks are the caller's.

    Parameters
    ----------
    connection
        That has the plan's result.
    shown, exposures
        As for `sums_plan`.
    """
    feature_names = list(shown.features.values())
    queries = ", ".join(shown.queries)
    table = f"(FROM {RESULT_TABLE} WHERE doc IS NOT NULL)"
    names = connection.execute(f"SELECT * FROM {RESULT_TABLE} LIMIT 0").description
    there = [name for name, *_ in names]
    bits = [name for name in there if name[0] == "b" and name[1:].isdigit()]
    numbers = [
        "n",
        "c",
        "share",
        *exposures.names,
        *(f"f{i + 1}" for i in range(len(feature_names))),
    ]
    picked = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in numbers)
    shown_on = " + ".join(f"bit_count({name})" for name in bits) or "0"
    found = connection.execute(
        f"SELECT dense_rank() OVER (ORDER BY {queries}) - 1 AS query,"
        f" dense_rank() OVER (ORDER BY doc) - 1 AS doc, {picked},"
        f" CAST({shown_on} AS BIGINT) AS days FROM {table} AS t ORDER BY query, doc"
    ).fetchnumpy()
    of = {name: np.ma.filled(column.astype(float), np.nan) for name, column in found.items()}
    for name in ("n", "c", *exposures.names):
        of[name] /= UNIT
    texts = connection.execute(
        f"SELECT DISTINCT {queries} FROM {table} AS t ORDER BY {queries}"
    ).fetchall()
    docs = connection.execute(f"SELECT DISTINCT doc FROM {table} AS t ORDER BY doc").fetchall()
    trust = ", CAST(t AS DOUBLE) AS trust" if exposures.trust else ""
    rest = connection.execute(
        f"SELECT CAST(pairs AS DOUBLE) AS pairs, CAST(p AS DOUBLE) AS exposure,"
        f" CAST(p2 AS DOUBLE) AS squares, CAST(n AS DOUBLE) AS appearances,"
        f" CAST(share AS DOUBLE) AS share{trust}"
        f" FROM {RESULT_TABLE} WHERE doc IS NULL ORDER BY ALL"
    ).fetchnumpy()
    units = {"pairs": 1, "share": SHARE_UNIT}
    along = [of[f"d{k + 1}"] for k in range(exposures.directions)]
    exposure = of["p"]
    return Statistics(
        queries=objects(texts, len(shown.queries)),
        docs=objects(docs, 1)[:, 0],
        query=np.ma.getdata(found["query"]).astype(np.int64),
        doc=np.ma.getdata(found["doc"]).astype(np.int64),
        clicks=of["c"],
        appearances=of["n"],
        exposure=exposure,
        squares=of["p2"],
        errors=_columns(along, len(exposure)) / exposure[:, None],
        other_error=of["v"] / exposure if exposures.other else np.zeros(len(exposure)),
        share=of["share"] / SHARE_UNIT,
        days=np.ma.getdata(found["days"]).astype(np.int64),
        # Means of doubles, in whatever order, agree in 32 bits.
        features=_columns([of[name] for name in shown.features], len(exposure))
        .astype(np.float32)
        .astype(np.float64),
        rest={n: np.ma.getdata(column) / units.get(n, UNIT) for n, column in rest.items()},
        pooled_error=np.zeros(exposures.directions),
        funnel=Funnel(),
        trust=of["t"] if exposures.trust else None,
        feature_names=tuple(feature_names),
    )


def _columns(columns: Sequence[Floats], rows: int) -> Floats:
    """(rows, columns), though there be none."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
