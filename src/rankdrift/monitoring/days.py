"""The days that a run is of: those of the log, counted if they are new or changed, and those that
were counted before and are in the log no more."""

from __future__ import annotations

import datetime
import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankdrift.core.errors import BadCounts, BadOption, RankdriftError, Remark
from rankdrift.counts.file import load_all, read_all_metadata, read_metadata
from rankdrift.harvesting.appearances import appearances_by_day, open_appearances
from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.log.engines.engine import Day, Progress
from rankdrift.log.log import Log
from rankdrift.monitoring.record import DayRecord, content_digest

COUNTS_FOLDER = "days"
APPEARANCES_FOLDER = "appearances"
UNDATED = "undated"
# Of two files of counts, what must be the same for them to be of the same log, read in one way.
_ALIKE = ("options", "buckets", "max_rank", "max_shown", "segment_columns")
Each = Callable[[Day, Path, bool], None]


@dataclass(frozen=True)
class DayFiles:
    """Files of days: what a run uses of them, and what tells them from all others. `known` are all
    that have usable pairs, in the order of time."""

    paths: tuple[Path, ...]
    digest: str
    counted: int
    unchanged: int
    kept: int
    left_out: int
    days: tuple[DayRecord, ...] = ()
    known: tuple[Path, ...] = ()


def count_days(
    log: Log,
    root: Path,
    sizes: Mapping[str, Any],
    last: int | None,
    since: str | None,
    progress: Progress | None = None,
    each: Each | None = None,
) -> DayFiles:
    """Count the days of a log that are new or changed.

    Parameters
    ----------
    log
        With a column for the day.
    root
        The folder of all runs.
    sizes
        As `harvest_by_day` takes them.
    last
        Use only so many days, up to the newest; all of the log are counted.
    since
        Use none before this day, ISO.
    progress, each
        As for `harvest_by_day`.
    """
    folder, states = root / COUNTS_FOLDER, dict[Path, str]()

    def note(day: Day, path: Path, skipped: bool) -> None:
        states[path] = "unchanged" if skipped else "counted"
        if each:
            each(day, path, skipped)

    there = harvest_by_day(log, folder, progress=progress, each=note, remember=True, **sizes)
    metas: dict[Path, Mapping[str, Any]] = dict(zip(there, read_all_metadata(there), strict=True))
    alike = [metas[there[0]].get(name) for name in _ALIKE]
    for path in _days_in(folder):
        if path not in metas:
            found = _metadata(path)
            same = [found.get(name) for name in _ALIKE] == alike
            metas[path], states[path] = found, "kept" if same else "left out"
    usable = [path for path in sorted(metas, key=_order) if states[path] != "left out"]
    used = _chosen(usable, last, since)
    counts = dict(zip(usable, load_all(usable), strict=True))
    days = []
    for path in sorted(metas, key=_order):
        here = counts.get(path)
        rows, pairs, clicks = (here.funnel.rows, here.n_pairs, here.n_clicks) if here else (0, 0, 0)
        days.append(
            DayRecord(
                _day(path), f"{COUNTS_FOLDER}/{path.name}", states[path], path in used,
                rows, pairs, clicks, content_digest(metas[path]),
            )
        )  # fmt: skip
    content = [[day.file, day.digest, day.used] for day in days if day.state != "left out"]
    files = _files(used, content, states.values(), tuple(days))
    moved = (path for path in usable if _day(path) and counts[path].days)
    return replace(files, known=tuple(moved))


def count_appearances(
    log: Log, root: Path, progress: Progress | None = None, each: Each | None = None
) -> DayFiles:
    """Count, of days that are new or changed, what judging needs.

    Parameters
    ----------
    log, root, progress, each
        As for `count_days`.
    """
    folder, states = root / APPEARANCES_FOLDER, dict[Path, str]()

    def note(day: Day, path: Path, skipped: bool) -> None:
        states[path] = "unchanged" if skipped else "counted"
        if each:
            each(day, path, skipped)

    there = appearances_by_day(log, folder, progress=progress, each=note)
    metas = {path: _meta_of_appearances(path) for path in there}
    alike = metas[there[0]].get("options")
    for path in _days_in(folder):
        if path not in metas:
            metas[path] = _meta_of_appearances(path)
            states[path] = "kept" if metas[path].get("options") == alike else "left out"
    used = [path for path in sorted(metas, key=_order) if states[path] != "left out"]
    content = [[path.name, metas[path].get("source") or path.stat().st_mtime_ns] for path in used]
    return _files(used, content, states.values())


def digest_of(plain: Any) -> str:
    """Of plain values."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]


def _files(
    used: Iterable[Path], content: Any, states: Iterable[str], days: tuple[DayRecord, ...] = ()
) -> DayFiles:
    found = list(states)
    return DayFiles(
        tuple(used),
        digest_of(content),
        counted=found.count("counted"),
        unchanged=found.count("unchanged"),
        kept=found.count("kept"),
        left_out=found.count("left out"),
        days=days,
    )


def _days_in(folder: Path) -> list[Path]:
    """Files that are named after a day: others are somebody's copies."""
    found = []
    for path in sorted(folder.glob("*.parquet")):
        try:
            if path.stem != UNDATED:
                datetime.date.fromisoformat(path.stem)
            found.append(path)
        except ValueError:
            said = f"{path} is named after no day, and is left alone. Keep copies elsewhere."
            warnings.warn(said, Remark, stacklevel=3)
    return found


def _metadata(path: Path) -> Mapping[str, Any]:
    try:
        return read_metadata(path)
    except BadCounts:  # not of ours, or damaged, and in the log no more
        return {}


def _meta_of_appearances(path: Path) -> Mapping[str, Any]:
    try:
        return open_appearances(str(path)).metas[0]
    except RankdriftError:
        return {}


def _day(path: Path) -> str | None:
    return None if path.stem == UNDATED else path.stem


def _order(path: Path) -> tuple[bool, str]:
    """Of time; rows without a day come last."""
    return path.stem == UNDATED, path.stem


def _chosen(paths: list[Path], last: int | None, since: str | None) -> list[Path]:
    """Those of so many days up to the newest, and of none before a day; rows without a day are of
    none of them."""
    dated = [path for path in paths if path.stem != UNDATED]
    if (last is None and since is None) or not dated:
        return paths
    newest = max(datetime.date.fromisoformat(path.stem) for path in dated)
    first = since or ""
    if last is not None:
        first = max(first, (newest - datetime.timedelta(days=last - 1)).isoformat())
    if first > newest.isoformat():
        raise BadOption(f"The newest day is {newest}, and --since asks for {since} on.")
    return [path for path in dated if path.stem >= first]
