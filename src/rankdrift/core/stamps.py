"""Digests of Parquet files whose rows stay in an engine: of their bytes, in a place that their
footer keeps for it, and which a second entry says to be there. Files that others wrote, or wrote
anew, have neither and are read as they are."""

from __future__ import annotations

import hashlib
import os

from rankdrift.core.artefacts import APPEARANCES_KEY
from rankdrift.core.digests import CHANGED, LOST

_KEY, _MARK = APPEARANCES_KEY, "rankdrift_sealed"
_EMPTY = b"0" * 32
_BETWEEN = 2  # bytes from a key to its value: what it is, and how long
_END = 8  # bytes after the footer: its length, and the mark of Parquet
_PIECE = 1 << 20
PLACE = f"KV_METADATA {{{_MARK}: 'yes', {_KEY}: '{_EMPTY.decode()}'}}"
"""The option of DuckDB's COPY that keeps the place, and says that there is one."""


def stamp(path: str | os.PathLike[str]) -> None:
    """Put the digest into a file that was written with `PLACE`."""
    at = _place(path)
    if at is None:
        raise ValueError(f"{path} keeps no place for a digest")
    found = _digest(path, at)
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(found)


def what_changed(path: str | os.PathLike[str]) -> str | None:
    """Words for a file that is not what was stamped; None for one that is, or never was."""
    at = _place(path)
    if at is None:
        return f"{LOST}." if _after(path, _MARK) is not None else None
    with open(path, "rb") as file:
        file.seek(at)
        said = file.read(len(_EMPTY))
    found = _digest(path, at)
    if found == said:
        return None
    return CHANGED.format(found=found.decode(), said=said.decode(errors="replace")) + "."


def _place(path: str | os.PathLike[str]) -> int | None:
    """Where the digest is in a file; None if it has none, or is no Parquet."""
    after = _after(path, _KEY)
    return None if after is None else after + _BETWEEN


def _after(path: str | os.PathLike[str], key: str) -> int | None:
    """Where a name in the footer of a file ends; None if it is not there, or this is no Parquet."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END))
        end = file.read()
        start = size - _END - int.from_bytes(end[:4], "little")
        if not end.endswith(b"PAR1") or start < 0:
            return None
        file.seek(start)
        at = file.read().rfind(key.encode())
    return None if at < 0 else start + at + len(key)


def _digest(path: str | os.PathLike[str], at: int) -> bytes:
    """Of the file as it was before it was stamped."""
    found, left = hashlib.sha256(), at
    with open(path, "rb") as file:
        while left and (piece := file.read(min(left, _PIECE))):
            found.update(piece)
            left -= len(piece)
        file.seek(at + len(_EMPTY))
        found.update(_EMPTY)
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()[: len(_EMPTY)].encode()
