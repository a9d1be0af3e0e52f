"""Curves: log p as a linear function of few parameters, theta = B·phi.

A curve is text such as "direct", "loglog", "loglog(1, 2, 5, 10)", "loglog + periodic(40)" or
"grid(4)", and for given ranks a basis matrix B of shape (R, K). Its columns are independent and
span the constant, which no data can tell (only ratios of p are identified).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.types import Floats, Ranks

PAPER_KNOTS = (1, 2, 4, 8, 20, 50, 100, 200, 300, 500)


@dataclass(frozen=True)
class Part:
    """One summand of log p. `numbers` are knots, the period, or the columns of the grid."""

    name: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.numbers))})" if self.numbers else self.name


@dataclass(frozen=True)
class Curve:
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))

    @property
    def is_direct(self) -> bool:
        return self.parts == (Part("direct"),)

    @property
    def is_auto(self) -> bool:
        return self.parts == (Part("auto"),)

    def at(self, ranks: Ranks) -> "Curve":
        """This curve with its knots fixed for these ranks: inside them, and at both ends."""
        first, last = int(ranks[0]), int(ranks[-1])
        return Curve(
            tuple(
                Part(p.name, _within(p.numbers or PAPER_KNOTS, first, last))
                if p.name == "loglog"
                else p
                for p in self.parts
            )
        )

    def basis(self, ranks: Ranks) -> Floats:
        """B (R, K)."""
        columns = [_BASES[part.name](ranks, part.numbers) for part in self.at(ranks).parts]
        basis = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        periodic = basis.shape[1] > columns[0].shape[1] or self.parts[0].name == "grid"
        if periodic and np.linalg.matrix_rank(basis) < basis.shape[1]:
            raise BadOption(
                f"The curve {str(self)!r} has more freedom than {len(ranks)} ranks "
                f"({ranks[0]} to {ranks[-1]}) can tell apart. Use fewer knots, a shorter period, "
                "or more ranks."
            )
        return basis


def curve(text: "str | Curve") -> Curve:
    """The curve a text means."""
    if isinstance(text, Curve):
        return text
    parts = []
    for piece in text.split("+"):
        match = re.fullmatch(r"\s*([a-z]+)\s*(?:\(\s*([0-9a-z=,\s]*)\))?\s*", piece.lower())
        name = match[1] if match else piece.strip()
        if not match or name not in (*_BASES, "auto"):
            raise BadOption(
                f"No curve {piece.strip()!r}.{did_you_mean(name, (*_BASES, 'auto'))} There are "
                "direct, loglog, loglog(KNOTS), loglog + periodic(N), grid(COLUMNS) and auto."
            )
        numbers = [n.split("=")[-1].strip() for n in (match[2] or "").split(",") if n.strip()]
        if not all(n.isdigit() for n in numbers):
            raise BadOption(f"The numbers of the curve {piece.strip()!r} must be whole.")
        parts.append(Part(name, tuple(map(int, numbers))))
    _check(parts, text)
    return Curve(tuple(parts))


def _check(parts: Sequence[Part], text: str) -> None:
    names = [part.name for part in parts]
    if len(parts) > 1 and names != ["loglog", "periodic"]:
        raise BadOption(f"Cannot add up {text!r}. What goes together is loglog + periodic(N).")
    if names == ["periodic"]:
        raise BadOption("periodic(N) goes with loglog: write 'loglog + periodic(N)'.")
    for part in parts:
        if part.name in ("periodic", "grid") and (len(part.numbers) != 1 or part.numbers[0] < 2):
            raise BadOption(f"{part.name} takes one number of 2 or more, as in {part.name}(40).")
        if part.name in ("direct", "auto") and part.numbers:
            raise BadOption(f"{part.name} takes no numbers.")
        if part.name == "loglog" and part.numbers:
            knots = part.numbers
            if len(knots) < 2 or list(knots) != sorted(set(knots)) or knots[0] < 1:
                raise BadOption(f"Knots must be two or more ranks in ascending order, not {knots}.")


def _within(knots: Sequence[int], first: int, last: int) -> tuple[int, ...]:
    return tuple(sorted({first, last, *(k for k in knots if first < k < last)}))


def hats(at: Floats, knots: Floats) -> Floats:
    """Linear interpolation between knots: (R, K), rows sum to 1."""
    row, left = np.arange(len(at)), np.searchsorted(knots[1:-1], at, side="right")
    share = np.clip((at - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    out = np.zeros((len(at), len(knots)))
    out[row, left], out[row, left + 1] = 1 - share, share
    return out


def _direct(ranks: Ranks, _: tuple[int, ...]) -> Floats:
    """The identity, as a view of 2R - 1 numbers: it would be the largest array of a fit."""
    size = len(ranks)
    ones = np.zeros(2 * size - 1)
    ones[size - 1] = 1.0
    return np.lib.stride_tricks.sliding_window_view(ones, size)[::-1]


def _loglog(ranks: Ranks, knots: tuple[int, ...]) -> Floats:
    return hats(np.log(ranks), np.log(np.asarray(knots)))


def _periodic(ranks: Ranks, period: tuple[int, ...]) -> Floats:
    """One parameter for each place in a batch but the first."""
    places = np.eye(period[0])[(ranks - 1) % period[0]]
    seen = np.flatnonzero(places.any(axis=0))
    return places[:, seen[seen > 0]]


def _grid(ranks: Ranks, columns: tuple[int, ...]) -> Floats:
    """Row part, log-log in the row, and column part."""
    rows = (ranks - 1) // columns[0] + 1
    knots = _within(PAPER_KNOTS, int(rows[0]), int(rows[-1]))
    if len(knots) < 2:
        raise BadOption(f"grid({columns[0]}) needs at least two rows of results.")
    return np.concatenate([_loglog(rows, knots), _periodic(ranks, columns)], axis=1)


_BASES = {"direct": _direct, "loglog": _loglog, "periodic": _periodic, "grid": _grid}
