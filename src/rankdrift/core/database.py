"""A DuckDB database, quiet, and what it runs out of."""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from rankdrift.core.errors import RankdriftError
from rankdrift.core.files import cannot_write, replacing

_FULL = {
    os.strerror(number): number
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)
}
_NO_ROOM = "failed to offload data block"
"""What DuckDB says before a temporary disk is full: it leaves a tenth of it to others."""


def connect(
    path: str = ":memory:", *, watched: bool = False, **config: Any
) -> duckdb.DuckDBPyConnection:
    """Open a database, in memory or in a file, on which DuckDB draws no bar, and which fetches no
    extension from the network. One that was installed before is used.

    Parameters
    ----------
    path
        A DuckDB file.
    watched
        Whether `query_progress` is to tell how far a query is.
    config
        DuckDB's own settings.
    """
    database = duckdb.connect(path, config={"autoinstall_known_extensions": "false", **config})
    try:
        database.execute(f"SET enable_progress_bar = {'true' if watched else 'false'}")
        database.execute("SET enable_progress_bar_print = false")
    except duckdb.InvalidInputException:
        pass  # a notebook without widgets: there the setting is refused, and no bar is drawn
    return database


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[tuple[Path, duckdb.DuckDBPyConnection]]:
    """A path to write to, as `replacing` has it, and a database to write it by, on one thread."""
    with replacing(path) as part, connect(threads=1) as database:
        try:
            yield part, database
        except duckdb.Error as error:
            if interrupted(error):
                raise KeyboardInterrupt from error
            number = _number(error)
            reason = OSError(number, os.strerror(number)) if number else error
            raise cannot_write(path, reason) from error


def shortage(error: BaseException) -> str | None:
    """What DuckDB had too little of, memory or disk, and what to do; None for any other error."""
    if isinstance(error, duckdb.OutOfMemoryException) and _NO_ROOM not in str(error):
        return (
            f"Not enough memory or disk to go on: {first_line(error)} Allow more with --memory, "
            "use fewer --threads, or harvest --by day."
        )
    if not isinstance(error, duckdb.Error):
        return None
    number = _number(error) if "write" in str(error).lower() else None
    number = errno.ENOSPC if _NO_ROOM in str(error) else number
    if not number:
        return None
    return (
        f"Cannot write temporary files in {tempfile.gettempdir()}: {os.strerror(number)}. Free "
        "some space there, or name another folder in the environment variable TMPDIR."
    )


@contextmanager
def shortages_told() -> Iterator[None]:
    """What DuckDB runs out of inside the block, said as our own."""
    try:
        yield
    except duckdb.Error as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        short = shortage(error)
        if short is None:
            raise
        raise RankdriftError(short) from error


@contextmanager
def cut_messages_mended() -> Iterator[None]:
    """DuckDB may cut its message in the middle of a character, and then raises that it is no text:
    what it meant to raise."""
    try:
        yield
    except UnicodeDecodeError as error:
        if not re.match(rb"[A-Z][A-Za-z ]* Error: ", error.object):
            raise
        raise duckdb.InvalidInputException(error.object.decode(errors="replace")) from None


def interrupted(error: duckdb.Error) -> bool:
    """Is this what became of Ctrl-C?"""
    return isinstance(error, duckdb.InterruptException) or "KeyboardInterrupt" in str(error)


def _number(error: BaseException) -> int | None:
    """The system's own number of an error that DuckDB tells in words."""
    return next((number for words, number in _FULL.items() if words in str(error)), None)


def first_line(error: BaseException) -> str:
    """What DuckDB says, without its hints and its drawing of the statement."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and "CSV Error on Line" in lines[0]:
        lines[0] += "".join(f", {line}" for line in lines[1:] if line.startswith("Expected"))
    if lines and lines[0].startswith("Traceback"):  # of a file system in Python: what it says
        lines = [lines[-1].partition(": ")[2] or lines[-1]]
    line = lines[0] if lines else type(error).__name__
    line = re.sub(r"^[A-Z][A-Za-z ]* (Error|Exception): ", "", line)
    return line if line.endswith((".", "!")) else line + "."
