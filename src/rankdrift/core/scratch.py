"""Folders of temporary files: each goes with the process that made it, or with the next one."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # told apart wherever it is used

_PREFIX = "rankdrift-scratch-"
_LOCK, _NEW_LOCK = "lock", "lock-new"
_ABANDONED = 24 * 3600.0  # seconds; nothing is written for so long by a run that is alive
_BEGUN = 60.0  # seconds; nobody alive takes so long from making a folder to locking a file in it


class Scratch:
    """A folder for temporary files, removed with this object or at the end of the process, or, if
    that is killed, by the next `Scratch` of the same user.

    Whether a process is alive cannot be asked by its number: containers that share a folder number
    their own. So a file in the folder is locked, and the system drops the lock with the process.
    """

    def __init__(self) -> None:
        with undisturbed():
            remove_abandoned()
            self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
            self.path = Path(self._folder.name)
            self._lock: int | None = None
            _MINE.add(self)
        if fcntl is not None:
            # Locked before it has its name, so that nobody finds it unlocked.
            unnamed = self.path / _NEW_LOCK
            self._lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(unnamed, self.path / _LOCK)

    def remove(self) -> None:
        """Remove it now."""
        self._folder.cleanup()

    def __del__(self) -> None:
        if hasattr(self, "_folder"):
            self.remove()
        lock = getattr(self, "_lock", None)
        if lock is not None:
            self._lock = None
            with suppress(OSError):
                os.close(lock)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C waits until this is over: what is being made would not be known to anybody yet. Python
    itself tries out where temporary files go by making one."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_MINE: weakref.WeakSet[Scratch] = weakref.WeakSet()


def remove_mine() -> None:
    """Remove the folders of this process, for one that ends without tidying up."""
    for folder in list(_MINE):
        with suppress(OSError):
            folder.remove()


def remove_abandoned() -> list[Path]:
    """Remove the folders of runs that were killed; those of runs that may be alive stay."""
    removed = []
    with suppress(OSError):
        for folder in sorted(Path(tempfile.gettempdir()).glob(_PREFIX + "*")):
            with suppress(OSError):
                if _is_ours(folder) and _abandoned(folder):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder)
    return removed


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return mine and stat.S_ISDIR(found.st_mode)


def _abandoned(folder: Path) -> bool:
    lock = folder / _LOCK
    if fcntl is None or not lock.is_file():
        begun = fcntl is not None and {path.name for path in folder.iterdir()} <= {_NEW_LOCK}
        return _untouched(folder, _BEGUN if begun else _ABANDONED)
    handle = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return _untouched(folder, _ABANDONED)
    finally:
        os.close(handle)
    return True


def _untouched(folder: Path, seconds: float) -> bool:
    """Has nothing there been written for so long?"""
    times = [folder.stat().st_mtime]
    for inside, _, names in os.walk(folder):
        times += [os.stat(os.path.join(inside, name)).st_mtime for name in names]
    return time.time() - max(times) > seconds
