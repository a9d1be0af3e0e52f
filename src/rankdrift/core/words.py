"""Numbers and names as people read them. Names come from logs, that is, from strangers."""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankdrift.core.types import Segment

_JOINERS = "\u200c\u200d"  # ordinary in Persian and Hindi words, though they have no shape
_FORMULA = re.compile(
    r"\A(?=[\t\r\n])"
    # Others take a semicolon or tab for the end of a cell, and quotes for what they are not.
    r"|(?:\A|[;\t\r\n])[\s\"']*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_LARGEST = 1_000_000  # a larger propensity or weight, or one as many times smaller, says no more
_LARGEST_RATE = 10
_SMALLEST_P = 0.0001  # a smaller p-value says no more than that
_PLAIN_WORD = re.compile(r"[\w@%+=:,./-]+")  # what no shell minds
_SHELL_MEANS = re.compile(r'["$`\\!]')  # what a shell looks at within double quotes
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def printable(text: str) -> str:
    """The text on one line, with what a terminal would obey, or hide, shown as an escape."""
    return "".join(c if _harmless(c) else ascii(c)[1:-1] for c in text)


def _harmless(c: str) -> bool:
    return c in _JOINERS or unicodedata.category(c) not in _HIDDEN


def cell(text: str) -> str:
    r"""A text as a cell of CSV that people open in spreadsheets: with a backslash before what would
    begin a formula there, also where semicolons or tabs are taken to end cells. Names come from
    logs, and a formula may send the sheet elsewhere.

    Examples
    --------
    >>> print(cell("=1+1"), cell("lamp;=1+1"), cell("lamp -20%"))
    \=1+1 lamp;\=1+1 lamp -20%
    """
    return _FORMULA.sub(lambda found: f"{found[0]}\\", text)


def percent(value: float | None) -> str:
    """Two digits of a rate: 49%, 4.9%, 0.049%."""
    if value is None or math.isnan(value):
        return ""
    if value <= 0:
        return "0%"
    if value > _LARGEST_RATE:
        return f"over {_LARGEST_RATE:,.0%}"
    if value < 1 / _LARGEST:
        return "under 0.0001%"
    digits = max(0, 1 - math.floor(math.log10(100 * value)))
    return f"{100 * value:.{digits}f}%"


def figure(value: float | None) -> str:
    """A propensity or a weight with about three digits, never as a power of ten."""
    if value is None or math.isnan(value):
        return ""
    if value > _LARGEST:
        return f"over {_LARGEST:,}"
    if value < 1 / _LARGEST:
        return f"under {1 / _LARGEST:f}"
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


def off_by(size: float, digits: int = 0) -> str:
    """By how much something is off; past a factor of two the number itself says nothing."""
    return f"{size:.{digits}%}" if size < 1 else "over 100%"


def chance_words(p_value: float) -> str:
    """A p-value without a power of ten."""
    if p_value < _SMALLEST_P:
        return f"p < {_SMALLEST_P}"
    return f"p = {p_value:.2g}"


def many(number: int, thing: str, things: str = "") -> str:
    """1 day, 2 days; 1 query, 2 queries where the plural is given."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def verb(number: int, of_one: str, of_more: str) -> str:
    """The form of a verb that goes with so many: 1 row has, 2 rows have."""
    return of_one if number == 1 else of_more


def segment_words(segment: Segment) -> str:
    """A segment for people: its values, (missing) for NULL."""
    return ", ".join("(missing)" if value is None else printable(value) for value in segment)


def rank_words(first: int, last: int) -> str:
    """One rank, or the range from the first to the last: 3, 3–5."""
    return str(first) if first == last else f"{first}–{last}"


def named_ranks(ranks: Iterable[int], most: int = 8) -> str:
    """Ranks for people, with the word: "rank 3", "ranks 1–40, 43"."""
    different = set(ranks)
    return f"{'rank' if len(different) == 1 else 'ranks'} {ranges(different, most)}"


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
        unnamed = sum(rank > runs[most - 1][-1] for rank in ordered)
        words = [*words[:most], f"and {unnamed} more"]
    return ", ".join(words)


def typed_word(word: str) -> str:
    """A word of a command as a person types it: in quotes only where a shell needs them, in double
    ones around single ones."""
    if _PLAIN_WORD.fullmatch(word):
        return word
    if "'" in word and not _SHELL_MEANS.search(word):
        return f'"{word}"'
    return shlex.quote(word)
