"""Numbers and names as people read them. Names come from logs, that is, from strangers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankdrift.core.types import Segment

_JOINERS = "\u200c\u200d"  # ordinary in Persian and Hindi words, though they have no shape
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def printable(text: str) -> str:
    """The text on one line, with what a terminal would obey, or hide, shown as an escape."""
    return "".join(c if _harmless(c) else ascii(c)[1:-1] for c in text)


def _harmless(c: str) -> bool:
    return c in _JOINERS or unicodedata.category(c) not in _HIDDEN


def cell(text: str) -> str:
    """A text as a cell of a table that people open in spreadsheets: with a backslash before what
    would make a formula of it. Names come from logs, and a formula may send the sheet elsewhere."""
    return f"\\{text}" if text.startswith(_FORMULAS) else text


def percent(value: float | None) -> str:
    """Two digits of a rate: 49%, 4.9%, 0.049%."""
    if value is None:
        return ""
    if value <= 0:
        return "0%"
    digits = max(0, 1 - math.floor(math.log10(100 * value)))
    return f"{100 * value:.{min(digits, 9)}f}%"


def figure(value: float | None) -> str:
    """A propensity or a weight with about three digits, never as a power of ten."""
    if value is None:
        return ""
    steps = ((10, 1), (1.0005, 2), (0.1, 3), (0.001, 4))
    digits = next((digits for least, digits in steps if value >= least), 6)
    return f"{value:,.{digits}f}"


def share(part: int, whole: int) -> str:
    """A part of a whole; only nothing is 0% and only everything is 100%."""
    if not part or not whole:
        return "0%" if whole else ""
    if part == whole:
        return "100%"
    digits = f"{100 * part / whole:.1f}"
    return {"0.0": "<0.1%", "100.0": ">99.9%"}.get(digits, digits + "%")


def margin(error: float) -> str:
    """Half the width of an interval; past a factor of two the number itself says nothing."""
    return f"±{error:.0%}" if error < 1 else "over ±100%"


def many(number: int, thing: str, things: str = "") -> str:
    """1 day, 2 days; 1 query, 2 queries where the plural is given."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def segment_words(segment: Segment) -> str:
    """A segment for people: its values, (missing) for NULL."""
    return ", ".join("(missing)" if value is None else printable(value) for value in segment)


def rank_words(first: int, last: int) -> str:
    """One rank, or the range from the first to the last: 3, 3–5."""
    return str(first) if first == last else f"{first}–{last}"


def ranges(ranks: Iterable[int], most: int = 8) -> str:
    """Ranks for people: "1–40, 43, 50–60"."""
    ordered = sorted(set(ranks))
    runs: list[list[int]] = []
    for rank in ordered:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    words = [rank_words(run[0], run[-1]) for run in runs]
    if len(words) > most:
        words = [*words[:most], f"and {len(words) - most} more"]
    return ", ".join(words)
