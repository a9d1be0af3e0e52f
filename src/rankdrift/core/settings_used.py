"""The settings that a command was run with, for what it writes: their values, and where each was
from. Everything that is sealed (`core/digests.py`) has them; `settings_of` finds them again."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rankdrift.core.plain import parsed

KEY = "settings"
"""Under which a document keeps them."""
_USED: ContextVar[Mapping[str, Any] | None] = ContextVar("rankdrift_settings", default=None)
_IN_PAGE = '<meta name="rankdrift-settings" content="{}">'


@contextmanager
def using(settings: Mapping[str, Any]) -> Iterator[None]:
    """While a command runs, what it writes has these: name -> value, `from` and `place`. Those of
    which nothing was said, and nothing taken for granted, are left out."""
    said = {name: about for name, about in settings.items() if about["value"] is not None}
    before = _USED.set(said)
    try:
        yield
    finally:
        _USED.reset(before)


def with_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the settings that are used; as it is outside of a command, or if it has
    some of its own."""
    used = _USED.get()
    return {KEY: dict(used), **document} if used is not None else dict(document)


def in_page() -> str:
    """The same for a page of HTML, which no browser shows."""
    used = _USED.get()
    if used is None:
        return ""
    return _IN_PAGE.format(html.escape(json.dumps(dict(used), sort_keys=True)))


def settings_of(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The settings that a file was written with; None if it has none, or is no file of ours."""
    file = os.fspath(path)
    if file.endswith(".parquet"):
        return _of_parquet(file)
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except UnicodeDecodeError:
        return None
    found = re.search(_IN_PAGE.format('([^"]*)'), text)
    return _of_text(f'{{"{KEY}": {html.unescape(found[1])}}}' if found else text)


def _of_text(text: str) -> dict[str, Any] | None:
    try:
        document = parsed(text)
    except ValueError:
        return None
    found = document.get(KEY) if isinstance(document, dict) else None
    right = isinstance(found, dict) and all(
        isinstance(about, dict) and {"value", "from", "place"} <= about.keys()
        for about in found.values()
    )
    return found if right else None


def _of_parquet(file: str) -> dict[str, Any] | None:
    import glob

    import duckdb

    from rankdrift.core.database import connect

    with connect() as con:
        try:
            kept = con.execute(
                "SELECT decode(value) FROM parquet_kv_metadata($path) WHERE"
                " starts_with(decode(key), 'rankdrift')",
                {"path": glob.escape(file)},
            ).fetchall()
        except duckdb.Error:
            return None
    return next((found for (text,) in kept if (found := _of_text(text)) is not None), None)
