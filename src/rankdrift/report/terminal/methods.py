"""Several estimates of one curve in the terminal."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankdrift.core.verdicts import Agreement
from rankdrift.methods.comparing import MethodComparison
from rankdrift.methods.estimators import METHODS
from rankdrift.methods.method import Method
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.summary import gap_words
from rankdrift.report.terminal.curve import curve_figure, shown_ranks
from rankdrift.report.terminal.tables import FirstThatFits, empty_table, heading, line

GAP = 3  # characters between two columns
COLOURS = {
    Agreement.AGREE: "green",
    Agreement.DIFFER: "bold red",
    Agreement.CANNOT_TELL: "yellow",
}


def methods_report(found: MethodComparison) -> Group:
    """The curves side by side, what each method is, how far apart they are and what that means."""
    first = next(iter(found.curves.values()))
    blocks: list[RenderableType] = [
        heading(f"Propensities, relative to rank {first.reference}, by method"),
        Curves(found),
        *(line(f"{m.name}: {m.label}", "dim") for m in _known(found)),
        *_gaps(found),
    ]
    if found.distances:
        blocks += [heading("How far apart"), _distances(found), *_meanings(found)]
    if found.left_out:
        blocks.append(heading("Left out"))
        blocks += [line(f"{name}: {why}") for name, why in found.left_out.items()]
    return Group(*blocks)


def _known(found: MethodComparison) -> list[Method]:
    """All but curves that only this user asked for."""
    return [METHODS.get(name) for name in found.curves if name in METHODS]


class Curves:
    """A row a rank, a column a method, in as many tables as the width asks for. Thin estimates are
    in brackets."""

    def __init__(self, found: MethodComparison) -> None:
        deepest = max(int(curve.ranks[-1]) for curve in found.curves.values())
        self.ranks = shown_ranks(deepest)
        self.columns = {
            name: [_cell(curve, rank, found.level) for rank in self.ranks]
            for name, curve in found.curves.items()
        }

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        for number, names in enumerate(self._side_by_side(options.max_width)):
            if number:
                yield Text()
            rows = empty_table([], ["rank", *names])
            for rank, *cells in zip(self.ranks, *(self.columns[n] for n in names), strict=True):
                if any(cells):
                    rows.add_row(str(rank), *cells)
            yield rows

    def _side_by_side(self, room: int) -> list[list[str]]:
        """The methods of each table."""
        groups: list[list[str]] = []
        left = 0
        for name, cells in self.columns.items():
            width = GAP + max(map(len, [name, *cells]))
            if not groups or width > left:
                groups.append([])
                left = room - len("rank")
            groups[-1].append(name)
            left -= width
        return groups


def _cell(curve: Propensities, rank: int, level: float) -> str:
    place = int(np.searchsorted(curve.ranks, rank))
    if place == len(curve.ranks) or curve.ranks[place] != rank:
        return ""
    text = curve_figure(curve.values[place])
    if rank != curve.reference and curve.errors != "none":
        low, high = (bound[place] for bound in curve.interval(level))
        text += f" {low:.2f}–{curve_figure(high, 2)}"
    return text if curve.supported[place] else f"[{text}]"


def _gaps(found: MethodComparison) -> list[Text]:
    """Of each method the ranks that it has no estimate for, though it or another looked there."""
    ranks = {rank for curve in found.curves.values() for rank in curve.ranks.tolist()}
    lines = []
    for name, curve in found.curves.items():
        others = sorted(ranks.difference(curve.ranks.tolist(), curve.gaps))
        gaps = {**curve.gaps, **dict.fromkeys(others, "it counts nothing that was shown there")}
        lines += [line(f"{name}: {words}") for words in gap_words(replace(curve, gaps=gaps))]
    return lines


def _distances(found: MethodComparison) -> RenderableType:
    """How far methods are apart; where there is little room, without what the words below tell."""
    return FirstThatFits(_apart(found, whole=True), _apart(found, whole=False))


def _apart(found: MethodComparison, whole: bool) -> Table:
    names = ["by", f"{100 * found.level:g}% interval", "most", "at"]
    rows = empty_table(["first", "above second"], [*names, "verdict"] if whole else names)
    rows.padding = (0, 1, 0, 0)  # names are long, and cut short they would say nothing
    for column, each in zip(rows.columns, ("first", "second"), strict=False):
        column.min_width = max(len(getattr(d, each)) for d in found.distances)
    for d in found.distances:
        known = d.low is not None and d.high is not None
        interval = f"{_off(d.low or 0)} to {_off(d.high or 0)}" if known else ""
        rows.add_row(
            d.first,
            d.second,
            _off(d.mean_percent),
            interval,
            _off(d.max_percent),
            str(d.max_rank),
            *([Text(d.verdict, style=COLOURS[d.verdict])] if whole else []),
        )
    return rows


def _off(percent: float) -> str:
    """By how much a curve is above another; past twofold a percentage says little."""
    if percent >= 100:
        return f"x{1 + percent / 100:.1f}"
    return "0%" if round(percent) == 0 else f"{percent:+.0f}%"


def _meanings(found: MethodComparison) -> list[Text]:
    """Each meaning once, after all the methods it is said of."""
    said: dict[tuple[Agreement, str], list[str]] = {}
    for d in found.distances:
        word = "rank" if d.differs_at.isdigit() else "ranks"
        where = f" ({word} {d.differs_at})" if d.differs_at else ""
        said.setdefault((d.verdict, d.meaning), []).append(f"{d.first} and {d.second}{where}")
    return [
        Text.assemble(
            ("\n" + "; ".join(pairs), "bold"), (f": {verdict}\n", COLOURS[verdict]), (meaning, "")
        )
        for (verdict, meaning), pairs in said.items()
    ]
