"""Days as people type them."""

from __future__ import annotations

from datetime import date

from rankdrift.core.errors import BadOption


def iso_day(name: str, given: str) -> str:
    """The day that an option of this name was given, as files of days are called.

    Raises
    ------
    BadOption
        It is none.
    """
    try:
        return date.fromisoformat(given).isoformat()
    except (TypeError, ValueError):
        raise BadOption(f"{name} is {given!r}. Write a day as 2024-01-31.") from None
