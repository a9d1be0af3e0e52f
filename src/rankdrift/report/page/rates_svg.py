"""The picture of click rates against propensities: what the position takes, and relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rankdrift.core.words import percent, rank_words, segment_words
from rankdrift.counts.counts import Counts
from rankdrift.methods.click_rates import RateSplit, split_click_rates
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.summary import WIDEST
from rankdrift.propensities.table import most_clicked
from rankdrift.report.page.axis import Axis, Frame, largest_drawn, path_of, spaced
from rankdrift.report.page.curve_svg import APART, MIDDLE, SMALL
from rankdrift.report.page.series import LEVEL

MOST_PANELS = 4


def rate_pictures(
    curve: Propensities, counts: Counts, rank: int, queries: bool
) -> list[dict[str, Any]]:
    """Draw one picture, or one for each of the most clicked segments: the curve of a mixture of
    segments is not that of any.

    Parameters
    ----------
    curve
        With its segments.
    counts
        Of the same log.
    rank
        The rank whose numbers are told.
    queries
        Whether segments may be named.
    """
    parts: dict[str, tuple[Counts, Propensities]] = {"": (counts, curve)}
    if curve.by_segment and curve.segment_columns == counts.segment_columns:
        parts = {
            (segment_words(segment) if queries else f"segment {number}"): (
                counts.restrict(segments=[segment]),
                part,
            )
            for number, (segment, part) in enumerate(
                most_clicked(curve, MOST_PANELS).items(), start=1
            )
            if segment in counts.segments
        }
    splits = {name: split_click_rates(*both, level=LEVEL) for name, both in parts.items()}
    found: Mapping[str, RateSplit] = {name: split for name, split in splits.items() if split}
    frame = MIDDLE if len(found) == 1 else SMALL
    return [
        {"name": name, "words": rate_words(split, rank), **_picture(split, frame)}
        for name, split in found.items()
        if len(split.rate) > 1
    ]


def rate_words(split: RateSplit, rank: int) -> str:
    """Say what is drawn in numbers, for one rank, each with its interval."""
    here = split.at(rank)
    if here is None:
        return ""
    rate, position, relevance = here
    [place] = [i for i, last in enumerate(split.last) if split.first[i] <= rank <= last]
    ranks = rank_words(int(split.first[place]), int(split.last[place]))
    told = (
        f"At rank {ranks} a result is clicked {percent(rate)} as often as at rank "
        f"{split.reference}."
    )
    if position.high > WIDEST * position.low or not split.supported[place]:
        return (
            f"{told} How much of that is the position cannot be told from so few clicks: it alone "
            f"would leave {percent(position.low)} to {percent(position.high)}."
        )
    return (
        f"{told} Because of its position alone it would be {percent(position.value)} "
        f"({percent(position.low)} to {percent(position.high)}); the rest is relevance: what is "
        f"shown there is wanted {relevance.value:.2f} times as much "
        f"({relevance.low:.2f}–{relevance.high:.2f})."
    )


def _picture(split: RateSplit, frame: Frame) -> dict[str, Any]:
    rank, rate, position = (c.tolist() for c in (split.rank, split.rate, split.position))
    low, high = split.position_low.tolist(), split.position_high.tolist()
    top = largest_drawn([*rate, *position], [1.0]) * 1.02
    x = Axis(rank[0], max(rank[-1], rank[0] + 1), frame.left, frame.right, True)
    y = Axis(0.0, top, frame.bottom, frame.top, False)

    def between(over: Sequence[float], under: Sequence[float]) -> str:
        there = [(x(r), y(v)) for r, v in zip(rank, over, strict=True)]
        back = [(x(r), y(v)) for r, v in zip(rank, under, strict=True)]
        return path_of([*there, *reversed(back)]) + "Z"

    return {
        **asdict(frame),
        "x": spaced([(f"{t:,.0f}", round(x(t), 1)) for t in x.ticks() if t == int(t)], APART),
        "y": [(percent(t), round(y(t), 1)) for t in y.ticks()],
        "taken": between([1.0] * len(rank), position),
        "rest": between(position, rate),
        "left_over": between(rate, [0.0] * len(rank)),
        "band": between(high, low),
        "position": path_of([(x(r), y(v)) for r, v in zip(rank, position, strict=True)]),
        "rate": path_of([(x(r), y(v)) for r, v in zip(rank, rate, strict=True)]),
    }
