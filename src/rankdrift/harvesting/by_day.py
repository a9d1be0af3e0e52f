"""Log -> a file of counts a day: what has been counted need not be counted again."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankdrift.core.errors import BadCounts, BadLog, BadOption, CannotWrite
from rankdrift.core.files import remove_leftovers, write_text
from rankdrift.core.naming import names_checked
from rankdrift.core.plain import parsed
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN, Counts
from rankdrift.counts.file import read_metadata
from rankdrift.counts.schema import FORMAT_BEFORE_REQUESTS, FORMAT_BEFORE_SPLITS
from rankdrift.harvesting.counting import (
    count_planned,
    days_of,
    sizes_of,
    source_id,
    warn_of_oddities,
)
from rankdrift.log.engines.engine import Day, Progress
from rankdrift.log.formats.format import FILE_NAME
from rankdrift.log.log import Log, need_log
from rankdrift.log.sql.plan import Planner


@names_checked
def harvest_by_day(
    log: Log,
    directory: str | os.PathLike[str],
    *,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    singles: bool = False,
    prior: str | None = None,
    prior_cuts: Sequence[float] = (),
    progress: Progress | None = None,
    each: Callable[[Day, Path, bool], None] | None = None,
    remember: bool = False,
) -> list[Path]:
    """Count a log into one file a day; days whose input is unchanged are left as they are.

    Rows without a readable day get a file of their own (`undated.parquet`), so that all files
    merged tell of every row.

    Parameters
    ----------
    log
        From `read_log`; it needs a column for the day.
    directory
        Where the files go, and where those of days that are done are looked for.
    buckets, max_shown, singles, prior, prior_cuts, progress
        As for `harvest`.
    each
        Called with each day, its file and whether it was skipped.
    remember
        Keep a list of the files in `directory`, so that next time those with the same size and time
        of change are not opened: what is damaged without a trace of it is found when it is read.

    Returns
    -------
    list of Path
        The files in the order of days, those that were skipped included.

    Raises
    ------
    BadOption
        The log has no column for the day, or an option is out of its range.
    BadLog
        The log is empty, cannot be read, or would be misread.
    """
    need_log(log)
    sizes = sizes_of(log, buckets, max_shown, singles, prior, prior_cuts)
    if not log.roles.day:
        if log.format:
            raise BadOption(
                f"Logs of {log.format.title} have no days, so there is nothing to harvest by day. "
                "Leave out --by day: the whole log is counted as one."
            )
        raise BadOption("harvest by day needs a day column. Name it with --day.")
    log.narrow(prior, FILE_NAME)
    warn_of_oddities(log)

    def write(part: Planner, path: Path, day: Day) -> None:
        count_planned(log, part, sizes, day.fingerprint, progress).save(path)

    def source(day: Day) -> str | None:
        return source_id(log, sizes, day.fingerprint, day.day)

    return day_by_day(log, log.planner(), directory, write, source, _is_done, each, remember)


def day_by_day(
    log: Log,
    planner: Planner,
    directory: str | os.PathLike[str],
    write: Callable[[Planner, Path, Day], None],
    source: Callable[[Day], str | None],
    is_done: Callable[[Path, str], bool],
    each: Callable[[Day, Path, bool], None] | None = None,
    remember: bool = False,
) -> list[Path]:
    """Make one file a day, but for those that are there; the files in the order of days.

    Parameters
    ----------
    log, planner
        What is read, and what reads it.
    directory
        Where the files go, and where those of days that are done are looked for.
    write
        Writes a day's file by a planner for that day.
    source
        Tells the input of a day from every other, if that can be told.
    is_done
        Whether a file is there, and of this input.
    each
        Called with each day, its file and whether it was skipped.
    remember
        As for `harvest_by_day`.
    """
    folder = Path(directory)
    remove_leftovers(folder)
    written, known = [], KnownFiles(folder) if remember else None
    whole = log.engine.fingerprint()
    days = days_of(log, planner)
    # A click may come after midnight: it is looked for in the whole log.
    everywhere = log.crosses_days
    # Where ranks count from is told by all days together.
    lowest = None if everywhere else log.ordinals_from()
    for day in days.all:
        if everywhere:
            day = replace(day, fingerprint=whole)
        elif lowest is not None and day.fingerprint:
            day = replace(day, fingerprint=f"{day.fingerprint} {min(lowest, 1)}")
        path = folder / f"{day.day or 'undated'}.parquet"
        input_id = source(day)
        done = input_id is not None and (
            (known is not None and known.has(path, input_id)) or is_done(path, input_id)
        )
        if not done:
            rows, prune = (log.engine.source, None) if everywhere else days.part(day)
            write(planner.but(source=rows, prune=prune, day=day.day), path, day)
        if known:
            known.note(path, input_id)
        if each:
            each(day, path, done)
        written.append(path)
    if not written:
        raise BadLog(
            "The log is empty: it has columns but not a single row. Check which files were named."
        )
    if known:
        known.save()
    return written


class KnownFiles:
    """Files of a folder that are known to be whole and of an input, as long as they have the same
    size and time of change: what opening each of a year would find out again every night. It is
    kept in the folder, and may be deleted at any time."""

    NAME = ".known-days"

    def __init__(self, folder: Path) -> None:
        self.place = folder / self.NAME
        self.before: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            read = parsed(self.place.read_text("utf-8"))
            self.before = read if isinstance(read, dict) else {}
        self.now = dict(self.before)

    def has(self, path: Path, source: str) -> bool:
        """Is this file, as it is now, known to be of this input?"""
        return self.before.get(path.name) == _as_it_is(path, source) is not None

    def note(self, path: Path, source: str | None) -> None:
        """From now on it is."""
        found = _as_it_is(path, source)
        if found:
            self.now[path.name] = found

    def save(self) -> None:
        """For the next time; if that cannot be, files are opened again."""
        if self.now != self.before:
            with suppress(CannotWrite):
                write_text(self.place, json.dumps(self.now, sort_keys=True))


def _as_it_is(path: Path, source: str | None) -> list[str | int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return [source, found.st_size, found.st_mtime_ns] if source else None


def _is_done(path: Path, source: str) -> bool:
    """Is this a file that this version wrote for the same input, and unharmed?"""
    try:
        meta = read_metadata(path) if path.exists() else {}
        if not meta or meta["sources"] != [source]:
            return False
        # Without pairs there are no splits, and a file that has none says that it is older.
        pairs = Counts.load(path).n_pairs
        least = FORMAT_BEFORE_REQUESTS if pairs else FORMAT_BEFORE_SPLITS
        return bool(meta["format"] >= least)
    except BadCounts:
        return False
