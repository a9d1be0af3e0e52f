"""Designs: ways of reordering results at random that compare ranks with each other.

A design is plain values, so that a search service in any language can follow it: swaps of two
ranks, one drawn at random and carried out half of the time; FairPairs, neighbours swapped half of
the time; a shuffle of some ranks. How often docs of one rank are then shown at which is the
`allocation`, and all that a plan and a check of an experiment need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rankdrift.core.dialects import Dialect
from rankdrift.core.errors import BadOption
from rankdrift.core.plain import entries, entry, items, number, text, whole
from rankdrift.core.types import Floats
from rankdrift.core.words import many
from rankdrift.experiments.assigning import HALF, below, deepest

Design = Mapping[str, Any]
"""kind, and: swaps and chances; or first and last."""
DEEPEST = 500
MOST_SHUFFLED = 50  # ranks; SQL spells out each of them
Digits = Callable[[str], str]
"""SQL of the digits that decide something."""


def swap(*ranks: int) -> Design:
    """Swap two ranks, half of the time."""
    return swaps([ranks])


def swaps(pairs: Iterable[Sequence[int]], chances: Iterable[float] | None = None) -> Design:
    """Draw one of several swaps, and carry it out half of the time.

    Parameters
    ----------
    pairs
        Two ranks each.
    chances
        With which each is drawn, 1 in all; by default the same.
    """
    chosen = [sorted(int(rank) for rank in pair) for pair in pairs]
    share = [1 / len(chosen)] * len(chosen) if chances is None else [float(c) for c in chances]
    return checked({"kind": "swaps", "swaps": chosen, "chances": share})


def random_pair(first: int, last: int) -> Design:
    """Swap any two of these ranks, half of the time."""
    return swaps((i, j) for i in range(first, last) for j in range(i + 1, last + 1))


def fairpairs(first: int, last: int) -> Design:
    """Swap neighbours among these ranks, each two half of the time (Radlinski and Joachims, 2006):
    first with second, third with fourth …, or second with third …, by chance."""
    return checked({"kind": "fairpairs", "first": first, "last": last})


def shuffle(first: int, last: int) -> Design:
    """These ranks in an order drawn at random."""
    return checked({"kind": "shuffle", "first": first, "last": last})


def checked(design: Any) -> Design:
    """The design, if it is one that can be carried out; BadOption else."""
    try:
        given = entries(design, "design")
        kind = text(entry(given, "kind", "design."), "design.kind")
        if kind == "swaps":
            return _checked_swaps(given)
        if kind in ("fairpairs", "shuffle"):
            first = whole(entry(given, "first", "design."), "design.first", 1)
            last = whole(entry(given, "last", "design."), "design.last", 1)
            most = MOST_SHUFFLED if kind == "shuffle" else DEEPEST
            if not first < last <= first + most - 1:
                raise ValueError(
                    f"it goes from rank {first} to rank {last}, which must be 2 to {most} ranks"
                )
            return {"kind": kind, "first": first, "last": last}
        raise ValueError(f"its kind is {kind!r}; there are swaps, fairpairs and shuffle")
    except ValueError as error:
        raise BadOption(f"The design cannot be carried out: {error}.") from None


def _checked_swaps(given: Mapping[str, Any]) -> Design:
    pairs = items(entry(given, "swaps", "design."), "design.swaps")
    if not pairs:
        raise ValueError("it swaps nothing")
    found = []
    for pair in pairs:
        ranks = [whole(rank, "a rank of design.swaps", 1, DEEPEST) for rank in items(pair, "swap")]
        if len(ranks) != 2 or ranks[0] == ranks[1]:
            raise ValueError(f"a swap is of two different ranks, not {list(pair)}")
        found.append(ranks)
    chances = [
        number(chance, "a chance", 0, 1)
        for chance in items(entry(given, "chances", "design."), "design.chances")
    ]
    if len(chances) != len(found) or abs(sum(chances) - 1) > 1e-6:
        raise ValueError(
            f"{many(len(found), 'swap')} must have as many chances that are 1 in all, not "
            f"{len(chances)} that are {sum(chances):g}"
        )
    return {"kind": "swaps", "swaps": found, "chances": chances}


def touched(design: Design) -> list[int]:
    """The ranks whose docs may be moved, ascending."""
    if design["kind"] == "swaps":
        return sorted({rank for pair in design["swaps"] for rank in pair})
    return list(range(design["first"], design["last"] + 1))


def words(design: Design) -> str:
    """The design for people."""
    if design["kind"] == "swaps":
        pairs = [f"{i} and {j}" for i, j in design["swaps"]]
        if len(pairs) == 1:
            return f"swap ranks {pairs[0]}, half of the time"
        named = ", ".join(pairs[:6]) + (f" … ({len(pairs)} in all)" if len(pairs) > 6 else "")
        return f"draw one of the swaps {named}, and carry it out half of the time"
    ranks = f"ranks {design['first']} to {design['last']}"
    if design["kind"] == "fairpairs":
        return f"swap neighbours among {ranks}, each two half of the time"
    return f"put {ranks} in an order drawn at random"


def allocation(design: Design, size: int | None = None) -> Floats:
    """(R, R): with what probability a doc of rank o + 1 is shown at rank s + 1, at [o, s].

    Parameters
    ----------
    design
        How results are reordered.
    size
        R; by default down to the deepest rank that the design touches.
    """
    found = np.eye(deepest(design) if size is None else size)
    if design["kind"] == "swaps":
        for (i, j), chance in zip(design["swaps"], design["chances"], strict=True):
            moved = chance / 2
            for a, b in ((i - 1, j - 1), (j - 1, i - 1)):
                found[a, a] -= moved
                found[a, b] += moved
    elif design["kind"] == "fairpairs":
        for rank in range(design["first"], design["last"]):
            for a, b in ((rank - 1, rank), (rank, rank - 1)):
                found[a, a] -= 0.25
                found[a, b] += 0.25
    else:
        block = slice(design["first"] - 1, design["last"])
        found[block, block] = 1 / (design["last"] - design["first"] + 1)
    return found


def shown_sql(design: Design, rank: str, digits: Digits) -> str:
    """SQL of the rank at which a search that takes part shows the doc of rank `rank`.

    Parameters
    ----------
    design
        How results are reordered.
    rank
        SQL of the rank before.
    digits
        SQL of the digits that decide what is named.
    """
    if design["kind"] == "swaps":
        upto = np.cumsum(design["chances"])
        cases = [
            f"WHEN {digits(quoted('which'))} < '{below(float(top))}' THEN"
            f" CASE {rank} WHEN {i} THEN {j} WHEN {j} THEN {i} ELSE {rank} END"
            for (i, j), top in zip(design["swaps"], upto[:-1], strict=False)
        ]
        i, j = design["swaps"][-1]
        last = f"CASE {rank} WHEN {i} THEN {j} WHEN {j} THEN {i} ELSE {rank} END"
        which = f"CASE {' '.join(cases)} ELSE {last} END" if cases else last
        return f"CASE WHEN {digits(quoted('swap'))} < '{HALF}' THEN {which} ELSE {rank} END"
    first, last_rank = design["first"], design["last"]
    if design["kind"] == "fairpairs":
        start = pair_sql(design, rank, digits)
        drawn = digits(f"concat('pair ', {start})")
        return (
            f"CASE WHEN {start} IS NOT NULL AND {drawn} < '{HALF}'"
            f" THEN 2 * {start} + 1 - {rank} ELSE {rank} END"
        )
    own = digits(f"concat('rank ', {rank})")
    ahead = " + ".join(
        f"CASE WHEN {digits(quoted(f'rank {r}'))} < {own}"
        f" OR ({digits(quoted(f'rank {r}'))} = {own} AND {r} < {rank}) THEN 1 ELSE 0 END"
        for r in range(first, last_rank + 1)
    )
    return (
        f"CASE WHEN {rank} BETWEEN {first} AND {last_rank} THEN {first} + {ahead} ELSE {rank} END"
    )


def pair_sql(design: Design, rank: str, digits: Digits) -> str:
    """SQL, of fairpairs: the first rank of the two neighbours that a rank is one of, or NULL.

    Parameters
    ----------
    design, rank, digits
        As for `shown_sql`.
    """
    first, last = design["first"], design["last"]
    begin = f"({first} + CASE WHEN {digits(quoted('first'))} < '{HALF}' THEN 1 ELSE 0 END)"
    start = f"({rank} - mod({rank} - {begin}, 2))"
    return f"(CASE WHEN {rank} >= {begin} AND {start} < {last} THEN {start} END)"


def quoted(name: str) -> str:
    """A name of ours, which has no quote in it, as SQL."""
    return f"'{name}'"


def digits_sql(dialect: Dialect, salt: str, unit: str) -> Digits:
    """How SQL says the digits that decide something: as `assigning.digits` does.

    Parameters
    ----------
    dialect
        Of the SQL.
    salt
        Of the experiment.
    unit
        SQL of the id, as text.
    """

    def digits(what: str) -> str:
        text = f"concat({what}, {dialect.literal(f':{salt}:')}, {unit})"
        return f"substr({dialect.md5.format(text)}, 1, 8)"

    return digits
