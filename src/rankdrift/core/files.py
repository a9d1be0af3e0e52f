"""Files appear whole or not at all, and those of one result together: written under another name,
then renamed."""

from __future__ import annotations

import errno
import io
import os
import platform
import re
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rankdrift.core.addresses import is_place_elsewhere, without_secrets
from rankdrift.core.errors import CannotWrite

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # told apart wherever it is used

_PART = re.compile(r"\.rankdrift-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{8}\.part")
_OF_A_DEVICE = 1 << 20  # bytes
_ABANDONED = 24 * 3600.0  # seconds; no run writes one file for a day

_REMEDIES = {
    errno.ENOSPC: "Free some space or choose another place.",
    errno.EDQUOT: "Free some space or choose another place.",
    errno.EFBIG: "Raise the limit on the size of files or choose another place.",
    errno.EACCES: "Choose a place you may write to, or ask for the right to.",
    errno.EPERM: "Choose a place you may write to, or ask for the right to.",
    errno.EROFS: "Choose a place you may write to.",
    errno.EISDIR: "Give the name of a file, not of a directory.",
    errno.ENOTDIR: "A part of that path is a file, not a directory: choose another path.",
    errno.EEXIST: "A part of that path is a file, not a directory: choose another path.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; it takes the place of `path` when the block ends well.

    On any exception the file that was there before is still there, whole, and nothing else is.
    Inside `together` it takes the place when that block ends.
    """
    _refuse_address(path)
    target = Path(os.path.realpath(path))
    part, batch = _beside(target), _batch.get()
    waiting = False
    try:
        if target.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            raise CannotWrite(f"Cannot write {path}: it is a device or a pipe. Choose a file.")
        target.parent.mkdir(parents=True, exist_ok=True)
        _tidy(target.parent)
        yield part
        if target.exists():
            shutil.copymode(target, part)
        _sync(part)
        if batch is None:
            os.replace(part, target)
            _sync_directory(target.parent)
        else:
            batch.append(_Written(path, part, target))
            waiting = True
    except OSError as error:
        if error.filename is not None and not _ours(Path(os.fsdecode(error.filename)), part):
            raise  # about another file, such as one being read inside the block
        raise cannot_write(path, error) from error
    finally:
        if not waiting:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def folder_for(path: str | os.PathLike[str]) -> Path:
    """The folder to write files to, made where there is none."""
    _refuse_address(path)
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    return folder


def _refuse_address(path: str | os.PathLike[str]) -> None:
    name = os.fspath(path)
    if is_place_elsewhere(name):
        told = without_secrets(re.sub(":/+", "://", name, count=1))
        raise CannotWrite(
            f"Cannot write {told}: it is an address, and what is written stays on "
            "this machine. Name a place here, and copy the files there when they are done."
        )


@dataclass(frozen=True)
class _Written:
    """A file that waits to be renamed: as it was asked for, as it is called, as it will be."""

    path: str | os.PathLike[str]
    part: Path
    target: Path


_batch: ContextVar[list[_Written] | None] = ContextVar("batch", default=None)


@contextmanager
def together() -> Iterator[None]:
    """The files of one result: those written inside change when the block ends well, all of them,
    or none of them does."""
    if _batch.get() is not None:  # part of a larger result
        yield
        return
    written: list[_Written] = []
    token = _batch.set(written)
    try:
        yield
        with _alone_in(written[0].target.parent if written else None):
            _put_in_place(written)
    finally:
        _batch.reset(token)
        for each in written:
            with suppress(OSError):
                each.part.unlink(missing_ok=True)


def _put_in_place(written: list[_Written]) -> None:
    before: list[tuple[Path, Path | None]] = []  # each target, and what it was, under another name
    try:
        for each in written:
            kept = _beside(each.target) if each.target.exists() else None
            before.append((each.target, kept))
            try:
                if kept:
                    _keep(each.target, kept)
                os.replace(each.part, each.target)
            except OSError as error:
                raise cannot_write(each.path, error) from error
        for folder in {each.target.parent for each in written}:
            _sync_directory(folder)
    except BaseException:
        for target, kept in reversed(before):
            if kept is None:
                target.unlink(missing_ok=True)
            elif kept.exists():
                os.replace(kept, target)
        raise
    finally:
        for _, kept in before:
            if kept:
                with suppress(OSError):
                    kept.unlink(missing_ok=True)


@contextmanager
def _alone_in(folder: Path | None) -> Iterator[None]:
    """Wait for others that rename several files there, where the system can tell."""
    if fcntl is None or folder is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _keep(target: Path, kept: Path) -> None:
    try:
        os.link(target, kept)
    except OSError:  # a file system without links
        shutil.copy2(target, kept)


def _beside(target: Path) -> Path:
    part = target.parent / f".rankdrift-{_host()}-{os.getpid()}-{secrets.token_hex(4)}.part"
    _MINE.append(part)
    return part


_MINE: list[Path] = []


def remove_mine() -> None:
    """Remove what this process has begun to write, for one that ends without tidying up."""
    for part in _MINE:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def read_text(path: str | os.PathLike[str], most: int | None = None) -> str:
    """The text of a file; OSError if it has more than so many bytes, or is a device without an
    end."""
    with open(path, "rb") as file:
        if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
            most = _OF_A_DEVICE
        content = file.read() if most is None else file.read(most + 1)
    if most is not None and len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return io.StringIO(content.decode("utf-8"), newline=None).read()


def remove_leftovers(directory: str | os.PathLike[str]) -> list[Path]:
    """Remove what killed runs left in `directory`; files of runs still alive stay."""
    removed = []
    with suppress(OSError):
        for path in sorted(Path(directory).iterdir()):
            with suppress(OSError):
                if _abandoned(path):
                    path.unlink()
                    removed.append(path)
    return removed


@cache
def _tidy(directory: Path) -> None:
    """Once for each directory that this process writes to."""
    remove_leftovers(directory)


def cannot_write(path: str | os.PathLike[str], error: Exception) -> CannotWrite:
    """The error to raise when writing `path` failed with `error`."""
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number) if number else str(error).strip().rstrip(".")
    remedy = _REMEDIES.get(number or 0, "Check the disk and the path, or choose another place.")
    return CannotWrite(
        f"Cannot write {os.fspath(path)}: {reason}. What was there before is unchanged. {remedy}"
    )


def _ours(path: Path, part: Path) -> bool:
    return path == part or path == part.parent or path in part.parents


def _abandoned(path: Path) -> bool:
    match = _PART.fullmatch(path.name)
    if match is None or not path.is_file():
        return False
    if time.time() - path.stat().st_mtime > _ABANDONED:
        return True
    return match["host"] == _host() and not _is_alive(int(match["pid"]))


def _is_alive(pid: int) -> bool:
    """Whether a process of this number runs here; True where that cannot be asked."""
    if os.name == "nt":  # os.kill would end the process there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _host() -> str:
    """Where numbers of processes mean the same: a machine, and a container on it."""
    space = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(f'{platform.node()} {space}'.encode()):08x}"


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    # The new file is in place by now, so a system that cannot do this is no failure.
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
