"""Several estimates of one curve in the terminal."""

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from rankdrift.comparing import METHODS, CurveComparison
from rankdrift.disagreement import AGREE, DIFFER, UNSURE
from rankdrift.propensities import Propensities
from rankdrift.report.curve_text import SHOWN
from rankdrift.report.text import empty_table, heading, line

ROOMY = 4  # methods whose intervals fit beside them
COLOURS = {AGREE: "green", DIFFER: "bold red", UNSURE: "yellow"}


def comparison_report(found: CurveComparison) -> Group:
    first = next(iter(found.curves.values()))
    parts: list[RenderableType] = [
        heading(f"Propensities, relative to rank {first.reference}, by method"),
        _table(found),
        *(line(f"{name}: {METHODS[name][1]}", "dim") for name in found.curves if name in METHODS),
    ]
    if found.distances:
        parts += [heading("How far apart"), _distances(found), *_meanings(found)]
    if found.left_out:
        parts.append(heading("Left out"))
        parts += [line(f"{name}: {why}") for name, why in found.left_out.items()]
    return Group(*parts)


def _table(found: CurveComparison) -> RenderableType:
    """A row a rank; thin estimates in brackets, intervals where there is room for them."""
    rows = empty_table([], ["rank", *found.curves])
    deepest = max(int(curve.ranks[-1]) for curve in found.curves.values())
    roomy = len(found.curves) <= ROOMY
    for rank in sorted({*(r for r in SHOWN if r < deepest), deepest}):
        cells = [_cell(curve, rank, found.level, roomy) for curve in found.curves.values()]
        if any(cells):
            rows.add_row(str(rank), *cells)
    return rows


def _cell(curve: Propensities, rank: int, level: float, roomy: bool) -> str:
    place = int(np.searchsorted(curve.ranks, rank))
    if place == len(curve.ranks) or curve.ranks[place] != rank:
        return ""
    told = f"{curve.values[place]:.{3 if roomy else 2}f}"
    if roomy and rank != curve.reference and curve.errors != "none":
        low, high = (bound[place] for bound in curve.interval(level))
        told += f" {low:.2f}–{high:.2f}"
    return told if curve.supported[place] else f"[{told}]"


def _distances(found: CurveComparison) -> RenderableType:
    rows = empty_table(
        [], ["first", "above second", "by", f"{found.level:.0%} interval", "most", "at", "verdict"]
    )
    for d in found.distances:
        interval = "" if d.low is None else f"{d.low:+.0f}% to {d.high:+.0f}%"
        rows.add_row(
            d.first, d.second, f"{d.mean_percent:+.0f}%", interval, f"{d.max_percent:+.0f}%",
            str(d.max_rank), Text(d.verdict, style=COLOURS[d.verdict]),
        )  # fmt: skip
    return rows


def _meanings(found: CurveComparison) -> list[Text]:
    """Each meaning once, after all the methods it is said of."""
    said: dict[tuple[str, str], list[str]] = {}
    for d in found.distances:
        where = f" (ranks {d.differs_at})" if d.differs_at else ""
        said.setdefault((d.verdict, d.meaning), []).append(f"{d.first} and {d.second}{where}")
    return [
        Text.assemble(
            ("\n" + "; ".join(pairs), "bold"), (f" {verdict}\n", COLOURS[verdict]), (meaning, "")
        )
        for (verdict, meaning), pairs in said.items()
    ]
