"""Folders of results: made aside and renamed when they are whole; `latest` leads to one of them,
and old ones are removed. Whatever is killed whenever, no name ever leads to half of something."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import RUN_KIND, RUN_RECORD
from rankdrift.core.digests import KEY as DIGEST
from rankdrift.core.digests import digest
from rankdrift.core.errors import CannotWrite
from rankdrift.core.files import cannot_write
from rankdrift.core.plain import parsed
from rankdrift.monitoring.record import ID, Outcome, Step, bytes_digest

LATEST = "latest"
UNFINISHED = ".unfinished"
_NEXT = ".latest-next"
_REMOVED = ".removed-"


@dataclass(frozen=True)
class Finished:
    """Results that are whole, as their record has them."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def outcome(self) -> Outcome:
        """How the run that made them ended."""
        return Outcome(self.record["outcome"])

    @property
    def steps(self) -> tuple[Step, ...]:
        """What that run did."""
        return tuple(map(Step.from_dict, self.record["steps"]))


def all_finished(root: Path) -> list[Finished]:
    """All results that can be read, the newest first."""
    return [found for found in map(read_finished, _folders(root)) if found]


def _folders(root: Path) -> list[Path]:
    """Every folder of results, the newest first."""
    records = [p for p in root.glob(f"*/{RUN_RECORD}") if ID.fullmatch(p.parent.name)]
    return [record.parent for record in sorted(records, key=_age, reverse=True)]


def _age(record: Path) -> tuple[str, int]:
    """When its run began, by the name, and which of two within a second was written last."""
    written = 0
    with suppress(OSError):  # pruned meanwhile
        written = record.stat().st_mtime_ns
    return record.parent.name.partition("Z")[0], written


def read_finished(folder: Path) -> Finished | None:
    """The results in a folder; None if they are none of ours, or their record is damaged."""
    plain = read_sealed(folder / RUN_RECORD)
    return Finished(folder, plain) if plain and plain.get("kind") == RUN_KIND else None


def read_sealed(path: Path) -> dict[str, Any] | None:
    """What a run wrote for the next one; None if it is not there, or was changed since."""
    with suppress(OSError, ValueError):
        plain = parsed(path.read_text("utf-8"))
        if isinstance(plain, dict) and plain.get(DIGEST) == digest(plain):
            return plain
    return None


def is_whole(found: Finished) -> bool:
    """Whether all its files are there, as they were written."""
    try:
        return all(
            bytes_digest(found.folder / file.file) == file.sha256
            for step in found.steps
            for file in step.files
        )
    except (OSError, KeyError, TypeError, ValueError):
        return False


def finish(staging: Path, folder: Path) -> None:
    """Give results that are whole their name."""
    for path in staging.iterdir():
        _sync(path)
    _sync(staging)
    try:
        staging.rename(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    _sync(folder.parent)


def latest_name(root: Path) -> str | None:
    """The folder that `latest` leads to, if there is one."""
    with suppress(OSError):
        name = os.readlink(root / LATEST)
        return name if (root / name).is_dir() and ID.fullmatch(name) else None
    return None


def switch_latest(root: Path, name: str) -> None:
    """Have `latest` lead there: whoever opens it gets the results before or these, never none."""
    aside, link = root / _NEXT, root / LATEST
    if link.exists() and not link.is_symlink():
        raise CannotWrite(
            f"{link} is not a link that a run made, and was left as it is. The results are in "
            f"{root / name}. Move {link} elsewhere, or choose another folder with -o."
        )
    try:
        aside.unlink(missing_ok=True)
        aside.symlink_to(name, target_is_directory=True)
        os.replace(aside, link)
    except OSError as error:
        raise cannot_write(link, error) from error
    _sync(root)


def prune(root: Path, keep: int, spared: Iterable[str | None]) -> list[str]:
    """Remove the oldest results, all but `keep` and those spared; their names.

    A folder is renamed before it is emptied, so that no name leads to half of its files; what a
    killed run left of that goes too.
    """
    for left in root.glob(f"{_REMOVED}*"):
        shutil.rmtree(left, ignore_errors=True)
    kept = {*spared}
    removed = []
    for old in _folders(root)[keep:]:
        if old.name not in kept:
            aside = old.with_name(_REMOVED + old.name)
            with suppress(OSError):  # another time, then
                old.rename(aside)
                removed.append(old.name)
                shutil.rmtree(aside, ignore_errors=True)
    return removed


def _sync(path: Path) -> None:
    with suppress(OSError):  # a system that cannot do this is no failure
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
