"""Plain values from files that people can edit: of the type and size they must have, or a
ValueError that names the field."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
# No figure of ours is larger, and sums and squares of such are finite.
LARGEST = 1e12


def parsed(text: str | bytes) -> Any:
    """What JSON says that comes from elsewhere."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def number(value: Any, field: str, least: float = -LARGEST, most: float = LARGEST) -> float:
    """A finite number between the two."""
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    if not fine or not abs(value) <= sys.float_info.max or not least <= value <= most:
        between = f" from {least:g} to {most:g}" if abs(least) < LARGEST or most < LARGEST else ""
        raise ValueError(f"{field} is {_short(value)}, not a number{between}")
    return float(value)


def whole(value: Any, field: str, least: int = 0, most: int = int(LARGEST)) -> int:
    """A whole number between the two."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{field} is {_short(value)}, not a whole number from {least:,}")
    return value


def text(value: Any, field: str) -> str:
    """Text that can be written."""
    if not isinstance(value, str) or not _encodes(value):
        raise ValueError(f"{field} is {_short(value)}, not text")
    return value


def items(value: Any, field: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{field} is {_short(value)}, not a list")
    return list(value)


def entries(value: Any, field: str) -> Mapping[str, Any]:
    """Names with values."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{field} is {_short(value)}, not names with values")
    return value


def entry(value: Mapping[str, Any], name: str, field: str = "") -> Any:
    """What goes by a name that must be there."""
    if name not in value:
        raise ValueError(f"{field}{name} is missing")
    return value[name]


def maybe(check: Callable[..., T], value: Any, field: str, *more: Any) -> T | None:
    """None, or what the check makes of it."""
    return None if value is None else check(value, field, *more)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value: Any) -> str:
    said = ascii(value)
    return said if len(said) <= 60 else said[:57] + "..."
