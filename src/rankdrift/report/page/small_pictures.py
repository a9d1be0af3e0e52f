"""Lines in smaller pictures: each method beside the first, weights, the curve over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankdrift.core.words import chance_words, figure, many
from rankdrift.propensities.periods import Period, Steadiness
from rankdrift.propensities.propensities import Propensities
from rankdrift.report.page.axis import Frame
from rankdrift.report.page.curve_svg import MIDDLE, SMALL, axes, curve_picture
from rankdrift.report.page.series import LEVEL, Series, method_series
from rankdrift.report.results import Results

RANKS_OVER_TIME = (3, 10, 30)
MOST_DATES = 4  # written below a picture
DATED = Frame(640, 250, 54, 16, 574, 212)  # with room for half a date on the right
CHANCE = 0.01  # of a p-value; more, and a difference may be chance


def method_pictures(comparison: Mapping[str, Any], results: Results) -> list[dict[str, Any]]:
    """Draw each method with its band and the first method behind it, all on the same axes.

    Parameters
    ----------
    comparison
        As `MethodComparison.to_dict` has it, with `names`.
    results
        What else was given: the truth.
    """
    lines = [
        replace(s, shown=True, number=i) for i, s in enumerate(method_series(comparison, results))
    ]
    if len(lines) < 2:
        return []
    scales = axes(lines, True, False, SMALL)
    behind = replace(lines[0], low=[None] * len(lines[0].rank), high=[None] * len(lines[0].rank))
    found = []
    for line in lines:
        drawn = [line] if line is lines[0] else [replace(behind, truth=[]), line]
        picture = curve_picture(drawn, True, False, SMALL, scales)
        if len(drawn) > 1:
            picture["lines"][0]["css_classes"] = "behind"
        found.append({**picture, "name": line.name, "off": curve_off(line, picture)})
    return found


def curve_off(line: Series, picture: Mapping[str, Any]) -> str:
    """What the axis of a small picture does not reach, of the line that it is for."""
    return str(picture["off"]) if picture["lines"][-1]["off"] else ""


def weight_picture(series: Sequence[Series]) -> dict[str, Any]:
    """Draw what a click is worth at each rank, 1 / p, on logarithmic axes.

    Parameters
    ----------
    series
        The curves of the large picture.
    """
    return curve_picture([_turned(s) for s in series if any(s.p)], True, True, MIDDLE)


def _turned(s: Series) -> Series:
    """With 1 / p instead of p, at the ranks where p is not 0."""
    kept = [i for i, p in enumerate(s.p) if p]
    bounds = [
        (1 / s.high[i], 1 / s.low[i] if s.low[i] else math.inf) if s.high[i] else (None, None)
        for i in kept
    ]
    return replace(
        s,
        rank=[s.rank[i] for i in kept],
        p=[1 / s.p[i] for i in kept],
        low=[low for low, _ in bounds],
        high=[high for _, high in bounds],
        supported=[s.supported[i] for i in kept],
        truth=[1 / v if (v := s.truth[i]) else None for i in kept] if s.truth else [],
    )


def period_picture(
    periods: Sequence[Period], pool: Propensities, test: Steadiness | None
) -> dict[str, Any] | None:
    """Draw propensities of few ranks over time, with bands; dotted, those of all days.

    Parameters
    ----------
    periods
        In the order of time.
    pool
        The curve of all of them.
    test
        Whether one of the ranks stays the same.
    """
    known = [p for p in periods if p.curve is not None]
    wanted = [r for r in RANKS_OVER_TIME if r in pool.ranks and r != pool.reference]
    lines = [
        line
        for number, rank in enumerate(wanted)
        if (line := _over_time(periods, pool, rank, number + 1))
    ]
    if not lines or len(known) < 2:
        return None
    picture = curve_picture(lines, False, False, DATED)
    x, _ = axes(lines, False, False, DATED)
    step = -(-len(periods) // MOST_DATES)
    dates = [(p.first, round(x(i), 1)) for i, p in enumerate(periods, start=1)]
    return {
        **picture,
        "x": dates[::step],
        "legend": [(line.name, line.css_classes) for line in lines],
        "words": _over_time_words(periods, test),
        "missing": [f"{p.first}: {p.why}" for p in periods if p.curve is None],
    }


def _over_time(
    periods: Sequence[Period], pool: Propensities, rank: int, number: int
) -> Series | None:
    known = {
        place: period.curve
        for place, period in enumerate(periods, start=1)
        if period.curve is not None and rank in period.curve.ranks
    }
    if len(known) < 2:
        return None
    at = [curve.ratio(rank, pool.reference, LEVEL) for curve in known.values()]
    return Series(
        group="",
        name=f"rank {rank}",
        reference=0,
        rank=list(known),
        p=[one.value for one in at],
        low=[one.low for one in at],
        high=[one.high for one in at],
        supported=[bool(c.supported[c.ranks == rank][0]) for c in known.values()],
        truth=[float(pool.at(rank))] * len(at),
        shown=True,
        number=number,
    )


def _over_time_words(periods: Sequence[Period], test: Steadiness | None) -> str:
    longest = max(len({p.first, p.last}) for p in periods)
    kind = "days" if longest == 1 else "periods"
    if test is None:
        return f"{len(periods)} {kind}."
    at = sorted(
        (
            (p.curve.ratio(test.rank, p.curve.reference, LEVEL), p.first)
            for p in periods
            if p.curve is not None and test.rank in p.curve.ranks
        ),
        key=lambda found: found[0].value,
    )
    least, most = (
        f"{figure(i.value)} ({figure(i.low)}–{figure(i.high)}) on {day}"
        for i, day in (at[0], at[-1])
    )
    told = (
        f"Rank {test.rank} has {least} and {most}, the least and the most of "
        f"{many(test.periods, kind[:-1])}. "
    )
    if test.p_value >= CHANCE:
        return told + f"Chance alone explains such differences ({chance_words(test.p_value)})."
    return told + (
        f"That is more than chance explains ({chance_words(test.p_value)}): something changed, "
        "such as the page, the traffic or the ranker. Estimate from the days that are like those "
        "to come."
    )
