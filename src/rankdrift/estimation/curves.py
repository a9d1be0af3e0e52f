"""Curves: log p as a linear function of few parameters, theta = B·phi.

A curve is text such as "direct", "loglog", "loglog(1, 2, 5, 10)", "loglog + batch(40)" or
"grid(4)", and for given ranks a basis matrix B of shape (R, K). Its columns are independent and
span the constant, which no data can tell (only ratios of p are identified).

A part of a curve is one `PartKind`, registered in `PARTS` at the end of this file or of any other:
how it is written, the numbers it takes, its basis, whether it goes on beyond the data. What lists
the curves (the error for an unknown one, the help of `rankdrift estimate --curve`) reads PARTS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.registry import Registry
from rankdrift.core.types import Floats, Ranks
from rankdrift.core.words import many

PAPER_KNOTS = (1, 2, 4, 8, 20, 50, 100, 200, 300, 500)
BATCH_KNOTS = 5  # over the places of a batch, if it has so many

Numbers = tuple[int, ...]
"""What stands between the brackets of a part: knots, a batch and its places, columns of a grid."""


def no_numbers(name: str, numbers: Numbers) -> None:
    """Refuse any number: a check for a `PartKind` that takes none."""
    if numbers:
        raise BadOption(f"{name} takes no numbers.")


def one_number(name: str, numbers: Numbers) -> None:
    """Refuse all but one number of 2 or more."""
    if len(numbers) != 1 or numbers[0] < 2:
        raise BadOption(f"{name} takes one number of 2 or more, as in {name}(40).")


def batch_and_places(name: str, numbers: Numbers) -> None:
    """Refuse all but the results of a batch, and perhaps places in it that ascend."""
    size, *places = numbers or (0,)
    if size < 2 or places != sorted(set(places)) or not all(1 <= place <= size for place in places):
        raise BadOption(
            f"{name} takes how many results a batch has, 2 or more, as in {name}(40), and perhaps "
            f"the places in it where the curve bends, in ascending order, as in {name}(40, 25)."
        )


def knots_or_none(name: str, numbers: Numbers) -> None:
    """Refuse all but no number, or two ranks or more that ascend."""
    if numbers and (len(numbers) < 2 or list(numbers) != sorted(set(numbers)) or numbers[0] < 1):
        raise BadOption(f"Knots must be two or more ranks in ascending order, not {numbers}.")


def as_given(numbers: Numbers, ranks: Ranks) -> Numbers:
    """Numbers that mean the same whatever the ranks."""
    return numbers


@dataclass(frozen=True)
class PartKind:
    """All there is to know of one kind of part of a curve; `PARTS.register` makes it known.

    Parameters
    ----------
    name
        How it begins, in lower-case letters.
    use
        When to take it, in a few words.
    forms
        How it is written, for messages, such as "grid(COLUMNS)".
    examples
        The same with numbers, for the help of the command line.
    basis
        (ranks (R,), numbers) -> (R, K), its columns of B. A part that stands alone spans the
        constant. None if the data choose the curve first.
    check
        (name, numbers), which raises BadOption for numbers that it does not take.
    settle
        (numbers, ranks) -> the numbers that it has for these ranks, such as knots inside them.
    beyond
        (deeper ranks (N,), numbers) -> (N, K), B at ranks deeper than the data; None if the
        curve cannot be drawn on.
    added_to
        The part that it is added to; None if it stands alone.
    may_be_dependent
        Whether some ranks are too few for its columns to be independent.
    """

    name: str
    use: str
    forms: tuple[str, ...]
    examples: tuple[str, ...]
    basis: Callable[[Ranks, Numbers], Floats] | None
    check: Callable[[str, Numbers], None] = no_numbers
    settle: Callable[[Numbers, Ranks], Numbers] = as_given
    beyond: Callable[[Ranks, Numbers], Floats] | None = None
    added_to: str | None = None
    may_be_dependent: bool = False


PARTS: Registry[PartKind] = Registry("curve")
"""The kinds of parts that curves are made of, in the order in which they are listed."""


@dataclass(frozen=True)
class Part:
    """One summand of log p: a kind by its name, with its numbers."""

    name: str
    numbers: Numbers = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.numbers))})" if self.numbers else self.name

    @property
    def kind(self) -> PartKind:
        """What PARTS says of it."""
        return PARTS.get(self.name)


@dataclass(frozen=True)
class Curve:
    """The shape that log p may take: one part, or several added up."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))

    @property
    def is_direct(self) -> bool:
        """Whether each rank has a parameter of its own."""
        return self.parts == (Part("direct"),)

    @property
    def is_auto(self) -> bool:
        """Whether the data are to choose the curve."""
        return self.parts == (Part("auto"),)

    def at(self, ranks: Ranks) -> Curve:
        """This curve with its numbers settled for these ranks: knots inside them, and at both
        ends."""
        return Curve(
            tuple(Part(part.name, part.kind.settle(part.numbers, ranks)) for part in self.parts)
        )

    def basis(self, ranks: Ranks) -> Floats:
        """B (R, K)."""
        columns = [_basis(part, ranks) for part in self.at(ranks).parts]
        basis = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        wider = basis.shape[1] > columns[0].shape[1]
        if (wider or self.parts[0].kind.may_be_dependent) and (
            np.linalg.matrix_rank(basis) < basis.shape[1]
        ):
            raise BadOption(
                f"The curve {str(self)!r} has more freedom than {many(len(ranks), 'rank')} "
                f"({ranks[0]} to {ranks[-1]}) can tell apart. Use fewer knots, a shorter period, "
                "or more ranks."
            )
        return basis

    def beyond(self, deeper: Ranks) -> Floats:
        """B (N, K) at ranks deeper than those that the curve was settled for by `at`."""
        columns = []
        for part in self.parts:
            if part.kind.beyond is None:
                able = (kind.name for kind in PARTS if kind.beyond and not kind.added_to)
                raise BadOption(
                    f"Only a {' or '.join(able)} curve can be drawn on beyond its data "
                    f"(extrapolate_to); {str(self)!r} says nothing of ranks that were not seen."
                )
            columns.append(part.kind.beyond(deeper, part.numbers))
        return np.concatenate(columns, axis=1)


def _basis(part: Part, ranks: Ranks) -> Floats:
    if part.kind.basis is None:
        raise BadOption(f"The curve {part.name!r} is chosen from the data: estimate with it.")
    return part.kind.basis(ranks, part.numbers)


def curve(text: str | Curve) -> Curve:
    """The curve that a text means; BadOption, with all the curves there are, if it means none."""
    if isinstance(text, Curve):
        return text
    parts = []
    for piece in text.split("+"):
        match = re.fullmatch(r"\s*([a-z]+)\s*(?:\(\s*([0-9a-z=,\s]*)\))?\s*", piece.lower())
        name = match[1] if match else piece.strip()
        if not match or name not in PARTS:
            *forms, last = (form for kind in PARTS for form in kind.forms)
            raise BadOption(
                f"No curve {piece.strip()!r}.{did_you_mean(name, PARTS.names)} There are "
                f"{', '.join(forms)} and {last}."
            )
        numbers = [n.split("=")[-1].strip() for n in (match[2] or "").split(",") if n.strip()]
        if not all(n.isdigit() for n in numbers):
            raise BadOption(f"The numbers of the curve {piece.strip()!r} must be whole.")
        parts.append(Part(name, tuple(map(int, numbers))))
    _check(parts, text)
    return Curve(tuple(parts))


def examples() -> str:
    """How every curve may be written, for the help of a command."""
    *most, last = (example for kind in PARTS for example in kind.examples)
    return f"{', '.join(most)} or {last}."


def _check(parts: Sequence[Part], text: str) -> None:
    first, *others = parts
    names = [part.name for part in parts]
    fits = all(part.kind.added_to == first.name for part in others)
    if others and (not fits or len(set(names)) < len(names)):
        sums = " or ".join(form for kind in PARTS if kind.added_to for form in kind.forms)
        raise BadOption(f"Cannot add up {text!r}. What goes together is {sums}.")
    if first.kind.added_to:
        form = first.kind.forms[0]
        alone = form.rpartition("+")[2].strip()
        raise BadOption(f"{alone} goes with {first.kind.added_to}: write {form!r}.")
    for part in parts:
        part.kind.check(part.name, part.numbers)


# -- the kinds of parts ------------------------------------------------------------------------


def hats(at: Floats, knots: Floats) -> Floats:
    """Linear interpolation between knots: (R, K), rows sum to 1."""
    row, left = np.arange(len(at)), np.searchsorted(knots[1:-1], at, side="right")
    share = np.clip((at - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    out = np.zeros((len(at), len(knots)))
    out[row, left], out[row, left + 1] = 1 - share, share
    return out


def _within(knots: Sequence[int], first: int, last: int) -> Numbers:
    return tuple(sorted({first, last, *(k for k in knots if first < k < last)}))


def _direct(ranks: Ranks, _: Numbers) -> Floats:
    """The identity, as a view of 2R - 1 numbers: it would be the largest array of a fit."""
    size = len(ranks)
    ones = np.zeros(2 * size - 1)
    ones[size - 1] = 1.0
    return np.lib.stride_tricks.sliding_window_view(ones, size)[::-1]


def _loglog(ranks: Ranks, knots: Numbers) -> Floats:
    return hats(np.log(ranks), np.log(np.asarray(knots)))


def _knots_at(knots: Numbers, ranks: Ranks) -> Numbers:
    return _within(knots or PAPER_KNOTS, int(ranks[0]), int(ranks[-1]))


def _last_stretch(deeper: Ranks, knots: Numbers) -> Floats:
    """The line between the last two knots, drawn on."""
    share = np.log(deeper / knots[-2]) / np.log(knots[-1] / knots[-2])
    beyond = np.zeros((len(deeper), len(knots)))
    beyond[:, -2], beyond[:, -1] = 1 - share, share
    return beyond


def _periodic(ranks: Ranks, period: Numbers) -> Floats:
    """One parameter for each place in a batch but the first."""
    places = np.eye(period[0])[(ranks - 1) % period[0]]
    seen = np.flatnonzero(places.any(axis=0))
    return places[:, seen[seen > 0]]


def _periodic_on(deeper: Ranks, period: Numbers) -> Floats:
    """All places: a curve that was fitted has seen them."""
    return np.eye(period[0])[(deeper - 1) % period[0]][:, 1:]


def places_of(numbers: Numbers) -> Numbers:
    """The knots of a batch, places from 1 on: those given besides both ends, or a few spread
    evenly."""
    size, *given = numbers
    if given:
        return _within(given, 1, size)
    many = min(BATCH_KNOTS, size)
    return tuple(1 + int(step * (size - 1) / (many - 1) + 0.5) for step in range(many))


def _batch(ranks: Ranks, numbers: Numbers) -> Floats:
    """Hats over the place in a batch but the first, whose level the log-log part has."""
    place = (ranks - 1) % numbers[0] + 1
    return hats(place.astype(float), np.array(places_of(numbers), float))[:, 1:]


def _grid(ranks: Ranks, columns: Numbers) -> Floats:
    """Row part, log-log in the row, and column part."""
    rows = (ranks - 1) // columns[0] + 1
    knots = _within(PAPER_KNOTS, int(rows[0]), int(rows[-1]))
    if len(knots) < 2:
        raise BadOption(f"grid({columns[0]}) needs at least two rows of results.")
    return np.concatenate([_loglog(rows, knots), _periodic(ranks, columns)], axis=1)


PARTS.register(
    PartKind(
        "direct",
        use="each rank by itself, for much data",
        forms=("direct",),
        examples=("direct",),
        basis=_direct,
    )
)
PARTS.register(
    PartKind(
        "loglog",
        use="straight lines between knots, both axes logarithmic",
        forms=("loglog", "loglog(KNOTS)"),
        examples=("loglog", "'loglog(1,2,5,…)'"),
        basis=_loglog,
        check=knots_or_none,
        settle=_knots_at,
        beyond=_last_stretch,
    )
)
PARTS.register(
    PartKind(
        "batch",
        use="results load so many at a time, and interest changes over the places of a batch",
        forms=("loglog + batch(N)", "loglog + batch(N, PLACES)"),
        examples=("'loglog + batch(40)'",),
        basis=_batch,
        check=batch_and_places,
        beyond=_batch,
        added_to="loglog",
        may_be_dependent=True,
    )
)
PARTS.register(
    PartKind(
        "periodic",
        use="the same with much data: each place of a batch has a level of its own",
        forms=("loglog + periodic(N)",),
        examples=("'loglog + periodic(40)'",),
        basis=_periodic,
        check=one_number,
        beyond=_periodic_on,
        added_to="loglog",
        may_be_dependent=True,
    )
)
PARTS.register(
    PartKind(
        "grid",
        use="results are shown in rows of so many",
        forms=("grid(COLUMNS)",),
        examples=("'grid(4)'",),
        basis=_grid,
        check=one_number,
        may_be_dependent=True,
    )
)
PARTS.register(
    PartKind(
        "auto",
        use="knots, and a period if there is one, are chosen from the data",
        forms=("auto",),
        examples=("auto",),
        basis=None,
    )
)
