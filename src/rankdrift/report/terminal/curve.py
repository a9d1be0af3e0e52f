"""Propensities in the terminal."""

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from rankdrift.core.words import segment_words
from rankdrift.diagnosis.checks.segments import segment_difference_words
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.summary import gap_words
from rankdrift.report.terminal.tables import empty_table, heading, line

SHOWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000)
WIDTH = 16


def curve_report(found: Propensities, level: float, simultaneous: bool) -> Group:
    """Lay out a curve, those of its segments, and which ranks have no estimate.

    Parameters
    ----------
    found
        The curve.
    level, simultaneous
        Of the intervals, as in `Propensities.interval`.
    """
    whole = " of the whole curve at once" if simultaneous else ""
    blocks: list[RenderableType] = [
        heading(f"Propensities, relative to rank {found.reference}"),
        _table(found, level, simultaneous),
        line(f"{found.method}; intervals{whole} at {level:.0%} from {found.errors}", "dim"),
    ]
    curves = found.shrunk or found.by_segment
    for segment, curve in curves.items():
        blocks += [
            heading(f"{', '.join(found.segment_columns)}: {segment_words(segment)}"),
            _table(curve, level, simultaneous),
        ]
    if found.difference:
        pooled = "Curves above lean on the pool as far as that allows."
        blocks.append(line(f"{segment_difference_words(found)} {pooled}"))
        left_out = found.difference.left_out
        blocks += [line(f"{segment_words(s)}: {why}") for s, why in left_out.items()]
    blocks += [line(text) for text in gap_words(found)]
    return Group(*blocks)


def _table(found: Propensities, level: float, simultaneous: bool) -> RenderableType:
    low, high = found.interval(level, simultaneous)
    top = max(float(found.values.max()), 1.0)
    rows = empty_table(["rank"], ["propensity", "low", "high", "", "pairs", "clicks", ""])
    last = int(found.ranks[-1])
    for rank in sorted({*(r for r in SHOWN if r < last), last}):
        place = int(np.searchsorted(found.ranks, rank))
        if found.ranks[place] != rank:
            continue
        bar = "█" * max(1, round(WIDTH * float(found.values[place]) / top))
        rows.add_row(
            str(rank),
            f"{found.values[place]:.3f}",
            f"{low[place]:.3f}",
            f"{high[place]:.3f}",
            Text(bar, style="cyan"),
            f"{found.pairs[place]:,}",
            f"{found.clicks[place]:,}",
            "" if found.supported[place] else "thin",
        )
    return rows
