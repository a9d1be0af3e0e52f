"""The first sentence of a page: what a click is worth, never without how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from rankdrift.core.words import figure
from rankdrift.propensities.summary import WIDEST
from rankdrift.report.page.series import Series

TYPICAL = 10  # the rank whose numbers come first
NOTHING = "What was found"


def typical_rank(ranks: Sequence[int], reference: int) -> int:
    """Rank 10 or, of these ranks, the nearest but the unit of all."""
    others = [rank for rank in ranks if rank != reference]
    return min(others or ranks, key=lambda rank: abs(rank - TYPICAL))


def headline(series: Sequence[Series], rank: int) -> str:
    """What a click at that rank is worth by the first curve, or that much was found."""
    return worth(series[0], rank) if series and is_told(series[0], rank) else NOTHING


def is_told(s: Series, rank: int) -> bool:
    """Whether the curve says what a click there is worth: its interval is known and narrow enough,
    and neither the rank nor the reference has thin data."""
    here, unit = s.at(rank), s.at(s.reference)
    if not here or not unit or rank == s.reference or not _has_interval(here):
        return False
    narrow = bool(here["high"] <= WIDEST * here["low"])
    return narrow and bool(here["supported"]) and bool(unit["supported"])


def worth(s: Series, rank: int) -> str:
    """What a click there is worth, as a sentence; report.js says the same of other ranks."""
    here = s.at(rank)
    if rank == s.reference:
        return f"Rank {rank} is the unit of all others."
    if not here or not _has_interval(here):
        return f"At rank {rank} no interval is known."
    between = f"{figure(1 / here['high'])}–{figure(1 / here['low'])}"
    unit = f"clicks at rank {s.reference}"
    if not is_told(s, rank):
        return f"What a click at rank {rank} is worth cannot be told: {between} {unit}."
    return f"A click at rank {rank} is worth {figure(1 / here['p'])} ({between}) {unit}."


def _has_interval(here: dict[str, float | None]) -> bool:
    return bool(here["low"]) and here["high"] is not None and here["high"] != here["low"]
