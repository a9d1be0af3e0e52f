"""An inspection as one HTML page that needs nothing else: no scripts, no fonts, no network."""

import math
from collections.abc import Sequence
from typing import Any

from rankdrift.core.verdicts import Fitness
from rankdrift.core.version import __version__
from rankdrift.core.words import margin, named_ranks, percent
from rankdrift.counts.counts import Counts
from rankdrift.counts.rank_blocks import rank_blocks, segment_sizes
from rankdrift.diagnosis.inspection import Inspection, at_best, column_roles
from rankdrift.report.page.blocks import funnel_lines, listed, made_now, pair_words
from rankdrift.report.page.frame import render

HEADLINES = {
    Fitness.GOOD: "This log will do.",
    Fitness.WEAK: "This log will do, just about.",
    Fitness.UNFIT: "This log will not do yet.",
}
# The chart, in units of its view box; the plot is what the axes enclose.
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 400, 210, 36, 10, 386, 182
BLOCKS = 60
MOST_SEGMENTS = 200


def inspection_page(inspection: Inspection, *, next_commands: Sequence[str] = ()) -> str:
    """Lay an inspection out as a page; `next_commands` end it, or without any, a general one."""
    counts = inspection.counts
    segments = segment_sizes(counts)
    used, others = column_roles(inspection)
    return render(
        "inspection.html.j2",
        found=inspection,
        headline=HEADLINES[Fitness(inspection.verdict)],
        sizes=_sizes(inspection),
        chart=_chart(counts),
        blocks=rank_blocks(counts, BLOCKS),
        strip=_strip(inspection),
        support=[
            (s, margin(at_best(s.compared)) if s.compared > 0 else "") for s in inspection.support
        ],
        funnel=funnel_lines(counts.funnel),
        pair=pair_words(counts),
        notes=counts.funnel.note_words(),
        segments=segments[:MOST_SEGMENTS],
        more_segments=len(segments) - MOST_SEGMENTS,
        columns=[*used, *((name, kind, "", "") for name, kind in others)],
        provenance=_provenance(counts),
        commands=list(next_commands) or ["rankdrift harvest LOG -o counts.parquet"],
    )


def _sizes(found: Inspection) -> list[tuple[str, str]]:
    about = ("searches", "queries", "docs")
    tiles = [
        (name, f"{'about ' if name in about else ''}{found.sizes[name]:,}")
        for name in ("rows", "clicks", *about, "days")
        if found.sizes.get(name) is not None
    ]
    return [*tiles, ("usable pairs", f"{found.counts.n_pairs:,}")]


def _chart(counts: Counts) -> dict[str, Any]:
    """Clicks per impression over the logarithm of the rank: bars, their 95% margins, axes."""
    blocks = [b for b in rank_blocks(counts, BLOCKS) if b.impressions]
    end = max((b.last + 1 for b in blocks), default=2)
    highest = max((b.ctr or 0.0 for b in blocks), default=0.0) or 1.0
    tops = [(b.ctr or 0.0) + b.margin for b in blocks]
    top = min(max([highest, *tops]), 1.5 * highest)

    def x(rank: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * math.log(rank) / math.log(end), 2)

    def y(rate: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * min(max(rate / top, 0), 1), 2)

    bars = [
        {
            "x": x(b.first),
            "width": round(max(x(b.last + 1) - x(b.first) - 0.6, 0.4), 2),
            "y": y(b.ctr or 0.0),
            "height": round(BOTTOM - y(b.ctr or 0.0), 2),
            "middle": round((x(b.first) + x(b.last + 1)) / 2, 2),
            "high": y((b.ctr or 0.0) + b.margin),
            "low": y((b.ctr or 0.0) - b.margin),
            "tooltip": f"{named_ranks(range(b.first, b.last + 1))}: {percent(b.ctr)} "
            f"({b.clicks:,} of {b.impressions:,})",
        }
        for b in blocks
    ]
    ticks = [m * 10**p for p in range(6) for m in (1, 2, 5) if m * 10**p < end]
    step = _round_step(top)
    lines = [(i * step, y(i * step)) for i in range(5) if i * step <= top]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "bottom": BOTTOM,
        "bars": bars,
        "ticks": [(t, round((x(t) + x(min(t + 1, end))) / 2, 2)) for t in ticks],
        "lines": [(percent(rate), at) for rate, at in lines],
    }


def _round_step(top: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides the axis into two to four parts."""
    power = 10.0 ** math.floor(math.log10(top))
    return next(m * power for m in (0.2, 0.5, 1.0, 2.0, 5.0) if top / (m * power) < 5)


def _strip(found: Inspection) -> list[tuple[float, float, str]]:
    """Ranks on the chart's axis as (left %, width %, class): connected, in another group, not."""
    linked = found.connection
    groups = [("main", linked.main), *(("other", block) for block in linked.blocks[1:])]
    where = {rank: name for name, block in groups for rank in block}
    where |= dict.fromkeys(linked.alone, "alone")
    if not where:
        return []
    whole = math.log(max(where) + 1)
    runs: list[list[Any]] = []
    for rank in sorted(where):
        if runs and runs[-1][1] == rank and runs[-1][2] == where[rank]:
            runs[-1][1] = rank + 1
        else:
            runs.append([rank, rank + 1, where[rank]])
    return [
        (
            round(100 * math.log(first) / whole, 3),
            round(100 * math.log(end / first) / whole, 3),
            name,
        )
        for first, end, name in runs
    ]


def _provenance(counts: Counts) -> list[tuple[str, str]]:
    values: dict[str, Any] = {
        "rankdrift": counts.version or __version__,
        "made": made_now(),
        "input": ", ".join(counts.sources) or "unknown",
        "buckets": counts.buckets,
        "max_rank": counts.max_rank,
        "max_shown": counts.max_shown,
        **counts.options,
    }
    return [(name, listed(value)) for name, value in values.items() if value not in (None, [], ())]
