"""Propensities in the terminal."""

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankdrift.core.types import Floats
from rankdrift.core.words import segment_words
from rankdrift.diagnosis.agreement import percent_above
from rankdrift.diagnosis.checks.segments import segment_difference_words
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.summary import gap_words
from rankdrift.report.terminal.tables import FirstThatFits, empty_table, heading, line

SHOWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000)
ERRORS = {
    "buckets": "from how groups of queries differ",
    "bootstrap": "from a bootstrap over groups of queries",
    "model": "as if every click were independent",
    "pointwise": "as they were saved",
    "none": "which are not known",
    "posterior": "credible ones, from draws of the posterior",
}
"""What intervals rest on, in words."""
ALL_SHOWN = 20  # ranks of a curve that are all in the table
WIDTH, NARROWER = 16, 8  # of the bars, alone and with another column
SMALLEST, LARGEST = 0.001, 1000  # propensities that are told in digits


def curve_report(
    found: Propensities, level: float, simultaneous: bool, plain: Propensities | None = None
) -> Group:
    """Lay out a curve, those of its segments, and which ranks have no estimate.

    Parameters
    ----------
    found
        The curve.
    level, simultaneous
        Of the intervals, as in `Propensities.interval`.
    plain
        The curve before it was adjusted, to stand beside it.
    """
    whole = " of the whole curve at once" if simultaneous else ""
    blocks: list[RenderableType] = [
        heading(f"Propensities, relative to rank {found.reference}"),
        _table(found, level, simultaneous, plain),
        line(
            f"{_method(found)}; intervals{whole} at {100 * level:g}%, {ERRORS[found.errors]}", "dim"
        ),
    ]
    if plain:
        blocks += [line(text) for text in adjusted_words(found, plain)]
    blocks += [line(text) for text in trust_words(found, level)]
    curves = found.segments
    unadjusted = plain.segments if plain else {}
    for segment, curve in curves.items():
        blocks += [
            heading(f"{', '.join(found.segment_columns)}: {segment_words(segment)}"),
            _table(curve, level, simultaneous, unadjusted.get(segment)),
        ]
    if found.difference:
        pooled = " Curves above lean on the pool as far as that allows." if found.shrunk else ""
        blocks.append(line(f"{segment_difference_words(found)}{pooled}"))
        left_out = found.difference.left_out
        blocks += [line(f"No curve for {segment_words(s)}. {why}") for s, why in left_out.items()]
    blocks += [line(text) for text in gap_words(found)]
    return Group(*blocks)


def adjusted_words(found: Propensities, plain: Propensities) -> list[str]:
    """What an adjustment did to a curve and to those of its segments, a sentence each."""
    told = [f"Adjusted by {found.provenance['adjust']}: {_change(found, plain)}."]
    for segment, curve in found.by_segment.items():
        before = plain.by_segment.get(segment)
        if before is not None:
            told.append(f"{segment_words(segment)}, by its own clicks: {_change(curve, before)}.")
    return told


def trust_words(found: Propensities, level: float) -> list[str]:
    """What the second curve says at the top, and what a click is worth; nothing without it."""
    if found.trust is None:
        return []
    place = int(np.argmax(found.trust))
    rank, weight = int(found.ranks[place]), 1 / float(found.values[place])
    low, high = (float(bound[place]) for bound in found.trust_interval(level))
    deepest = int(found.ranks[-1])
    return [
        f"Trust: of every 1,000 results at rank {rank} {1000 * found.trust[place]:.0f} "
        f"({1000 * low:.0f} to {1000 * high:.0f}) are clicked for standing there, compared with "
        f"rank {deepest}. A click there says {weight * (1 - found.trust[place]):.2f} of relevance, "
        f"and none {-weight * found.trust[place]:.2f}."
    ]


def _change(found: Propensities, plain: Propensities) -> str:
    """How far the curve moved, the mean over ranks that have data, and where most."""
    known = np.flatnonzero(found.pairs > 0)
    moved = (found.log_p - plain.log_p)[known]
    mean, most = float(moved.mean()), int(np.abs(moved).argmax())
    rank = int(found.ranks[known[most]])
    return (
        f"on average over ranks propensities are {_percent(mean)} the plain ones, at rank {rank} "
        f"{_percent(float(moved[most]))}"
    )


def _percent(log: float) -> str:
    percent = percent_above(log)
    return f"{abs(percent):.0f}% {'below' if percent < 0 else 'above'}"


def _table(
    found: Propensities, level: float, simultaneous: bool, plain: Propensities | None = None
) -> RenderableType:
    """With bars, unless there is no room for them."""
    bounds = found.interval(level, simultaneous)
    wide = NARROWER if plain else WIDTH
    wide //= 1 if found.trust is None else 2
    tables = [_rows(found, bounds, plain, bars) for bars in (wide, 0, 0)]
    tables[-1].padding = (0, 1, 0, 0)
    return FirstThatFits(*tables)


def _rows(
    found: Propensities, bounds: tuple[Floats, Floats], plain: Propensities | None, bars: int
) -> Table:
    low, high = bounds
    top = max(float(found.values.max()), 1.0)
    names = ["propensity", "low", "high", *(["plain"] if plain else [])]
    names += ["trust"] if found.trust is not None else []
    names += [""] if bars else []
    rows = empty_table(["rank"], [*names, "pairs", "clicks", ""])
    for rank in shown_ranks(int(found.ranks[-1])):
        place = int(np.searchsorted(found.ranks, rank))
        if found.ranks[place] != rank:
            continue
        bar = "█" * max(1, round(bars * float(found.values[place]) / top))
        rows.add_row(
            str(rank),
            curve_figure(found.values[place]),
            curve_figure(low[place]),
            curve_figure(high[place]),
            *([_at(plain, rank)] if plain else []),
            *([f"{found.trust[place]:.3f}"] if found.trust is not None else []),
            *([Text(bar, style="cyan")] if bars else []),
            f"{found.pairs[place]:,}",
            f"{found.clicks[place]:,}",
            "" if found.supported[place] else "thin",
        )
    return rows


def curve_figure(value: float, digits: int = 3) -> str:
    """With as many digits as are of use; what is larger or smaller than any that is, so."""
    if value > LARGEST:
        return f">{LARGEST:,}"
    if value < SMALLEST / 2:
        return f"<{SMALLEST}"
    return f"{value:.{digits}f}"


def _method(found: Propensities) -> str:
    """The curve, and which clicks it was fitted to, in words."""
    curve, _, clicks = found.method.rpartition(", ")
    words = {"every": "all clicks", "single": "pairs with a single click"}
    return f"{curve}, {words[clicks]}" if clicks in words else found.method


def shown_ranks(last: int) -> list[int]:
    """The ranks of a table, down to the last: all of a few, else ever fewer."""
    if last <= ALL_SHOWN:
        return list(range(1, last + 1))
    return sorted({*(rank for rank in SHOWN if rank < last), last})


def _at(curve: Propensities, rank: int) -> str:
    """The propensity of a rank; nothing if the curve has none there."""
    place = int(np.searchsorted(curve.ranks, rank))
    known = place < len(curve.ranks) and curve.ranks[place] == rank
    return curve_figure(curve.values[place]) if known else ""
