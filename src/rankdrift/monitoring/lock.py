"""One run at a time in a folder. The lock is the kernel's: it goes with the process that has it,
however that ends, so there is never one to be removed by hand."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankdrift.core.errors import RankdriftError
from rankdrift.core.files import cannot_write, folder_for
from rankdrift.core.plain import parsed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # told apart wherever it is used

NAME = ".lock"
_AGAIN = 0.1  # seconds between two tries
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


class Busy(RankdriftError):
    """Another run has the folder."""


@contextmanager
def alone_in(
    folder: Path, who: dict[str, object], wait: float, waiting: Callable[[str], None]
) -> Iterator[None]:
    """Have the folder to oneself, or raise Busy after so many seconds.

    Parameters
    ----------
    folder
        That of all runs; it is made if it is not there.
    who
        What to tell others that come meanwhile.
    wait
        Seconds.
    waiting
        Called once with words, before it waits.
    """
    folder_for(folder)
    try:
        handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(folder / NAME, error) from error
    try:
        until, told = time.monotonic() + wait, False
        while not _taken(handle, folder):
            if time.monotonic() >= until:
                raise Busy(
                    f"Another run has the folder {folder}: {_holder(handle)}. This one "
                    + (f"waited {wait:g} s and left. " if wait else "left at once. ")
                    + "Let it finish, or wait longer with --wait."
                )
            if not told:
                holder = _holder(handle)
                waiting(f"Another run has the folder {folder}: {holder}. Waiting up to {wait:g} s.")
                told = True
            time.sleep(_AGAIN)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(who).encode(), 0) if hasattr(os, "pwrite") else None
        yield
    finally:
        os.close(handle)  # which lets go of the lock


def _taken(handle: int, folder: Path) -> bool:
    """Take the lock, if nobody has it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            os.lseek(handle, 1 << 20, os.SEEK_SET)  # beyond what is written, lest none can read it
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise RankdriftError(
            f"Cannot lock {folder / NAME}: {error.strerror}. Two runs at once could not be told "
            "apart there. Choose a folder on a disk that has locks with -o."
        ) from error
    return True


def _holder(handle: int) -> str:
    """Who has it, as far as it says so: it may just be about to."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        who = parsed(os.pread(handle, 4096, 0))
        return f"{who['run']}, process {who['pid']} on {who['host']}"
    return "it has only just begun"
