"""Digests of Parquet files whose rows stay in an engine: of their bytes, in a place that their
footer keeps for it. Files that others wrote, or wrote anew, have none and are read as they are."""

from __future__ import annotations

import hashlib
import os

from rankdrift.core.digests import CHANGED

_KEY = "rankdrift_stamp"
_EMPTY = b"0" * 32
_BETWEEN = 2  # bytes from a key to its value: what it is, and how long
_END = 8  # bytes after the footer: its length, and the mark of Parquet
_PIECE = 1 << 20
PLACE = f"KV_METADATA {{{_KEY}: '{_EMPTY.decode()}'}}"
"""The option of DuckDB's COPY that keeps the place."""


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
        return None
    with open(path, "rb") as file:
        file.seek(at)
        said = file.read(len(_EMPTY))
    found = _digest(path, at)
    if found == said:
        return None
    return CHANGED.format(found=found.decode(), said=said.decode(errors="replace")) + "."


def _place(path: str | os.PathLike[str]) -> int | None:
    """Where the digest is in a file; None if it has none, or is no Parquet."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END))
        end = file.read()
        start = size - _END - int.from_bytes(end[:4], "little")
        if not end.endswith(b"PAR1") or start < 0:
            return None
        file.seek(start)
        at = file.read().rfind(_KEY.encode())
    return None if at < 0 else start + at + len(_KEY) + _BETWEEN


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
