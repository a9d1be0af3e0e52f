"""Log -> Counts: the one step that reads big data."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankdrift.core.errors import BadCounts, BadLog, BadOption, Remark
from rankdrift.core.files import remove_leftovers
from rankdrift.core.version import __version__
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN, Counts
from rankdrift.counts.file import read_metadata
from rankdrift.counts.funnel import Funnel, waterfall
from rankdrift.counts.reading import read_table
from rankdrift.counts.schema import FORMAT, FunnelRow
from rankdrift.harvesting.plan import harvest_plan
from rankdrift.log.engines.engine import Day, Days, Engine, PartByPart, Progress
from rankdrift.log.log import Log
from rankdrift.log.probe import probe
from rankdrift.log.sql.plan import Plan, Planner, Step

RESULT = "rd_plan.result"
_TOGETHER = "main.rd_together"
# Rows of a log, and of one of its days, that make reading it day by day worth while.
LARGE = 50_000_000
LARGE_DAY = 2_000_000
# Pairs, and ranks of pairs, that are held before they are counted.
MANY = 10_000_000


def harvest(
    log: Log,
    *,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    progress: Progress | None = None,
) -> Counts:
    """Count the pairs that appeared at two or more ranks and got a click.

    `buckets` (a power of two) splits queries by hash for errors that respect them. A pair with
    more than `max_shown` appearances enters as weighted comparisons of two ranks.
    """
    check_sizes(buckets, max_shown)
    _tell(log)
    return count(log, buckets=buckets, max_shown=max_shown, progress=progress)


def count(log: Log, *, buckets: int, max_shown: int, progress: Progress | None = None) -> Counts:
    """The harvest of a log that has been looked at."""
    planner, engine = log.planner(buckets=buckets, max_shown=max_shown), log.engine
    if isinstance(engine, PartByPart):
        days = _days_apart(log, planner)
        if days:
            return _run_days(log, engine, planner, days, progress)
    return _run(log, planner, engine.fingerprint(), progress)


def _days_of(log: Log, planner: Planner) -> Days:
    assert log.roles.day
    return log.engine.days(planner.day_sql(), log.engine.columns[log.roles.day])


def _days_apart(log: Log, planner: Planner) -> Days | None:
    """The days of a large log whose files keep days apart: what a pair needs is on one day, so
    day by day takes less memory and stays in the processor's caches."""
    if not log.roles.day or log.roles.layout != "long" or (log.engine.rows() or 0) < LARGE:
        return None
    days = _days_of(log, planner)
    rows = sum(day.rows for day in days.all)
    return days if 1 < len(days.all) <= rows / LARGE_DAY and days.apart else None


def _run_days(
    log: Log, engine: PartByPart, planner: Planner, days: Days, progress: Progress | None
) -> Counts:
    """Pairs are found one day at a time, which the processor's caches hold, and counted many days
    at a time, which memory holds."""
    rows, whole = sum(day.rows for day in days.all), harvest_plan(planner)
    done, pairs, waiting, first, together = 0, 0, 0, True, False
    for day in days.all:
        if waiting > MANY:
            engine.run_whole(whole)
            _put_together(engine, first=not together)
            pairs, first, together = 0, True, True
        if progress and hasattr(progress, "piece"):
            progress.piece(done / rows, (done + day.rows) / rows)
        source, prune = days.part(day)
        part = planner.but(source=source, prune=prune, day=day.day, pairs_before=pairs)
        engine.run_part(harvest_plan(part), first, progress)
        first = False
        [(pairs, waiting)] = engine.query(
            "SELECT pairs, pairs + cells FROM (SELECT count(*) AS pairs FROM rd_plan.known),"
            " (SELECT count(*) AS cells FROM rd_plan.cells)"
        )
        done += day.rows
    connection = engine.run_whole(whole)
    if together:
        _put_together(engine, first=False)
        sums = ", ".join(f"CAST(sum({n}) AS BIGINT) AS {n}" for n in ("n", "clicks", "pairs"))
        added = f"SELECT * EXCLUDE (n, clicks, pairs), {sums} FROM {_TOGETHER} GROUP BY ALL"
        connection = engine.run(Plan((Step("result", added),)))
    return _counts(log, planner, engine.fingerprint(), connection)


def _put_together(engine: Engine, first: bool) -> None:
    add = f"CREATE OR REPLACE TABLE {_TOGETHER} AS" if first else f"INSERT INTO {_TOGETHER}"
    engine.query(f"{add} FROM {RESULT}")


def harvest_by_day(
    log: Log,
    directory: str | os.PathLike[str],
    *,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    progress: Progress | None = None,
    each: Callable[[Day, Path, bool], None] | None = None,
) -> list[Path]:
    """One counts file a day in `directory`; days whose input is unchanged are left as they are.

    Rows without a readable day get a file of their own (`undated.parquet`), so that all files
    merged tell of every row. `each` is called with the day, its file and whether it was skipped.
    """
    check_sizes(buckets, max_shown)
    if not log.roles.day:
        raise BadOption("harvest by day needs a day column. Name it with --day.")
    _tell(log)
    folder = Path(directory)
    remove_leftovers(folder)
    planner = log.planner(buckets=buckets, max_shown=max_shown)
    written = []
    whole = log.engine.fingerprint()
    days = _days_of(log, planner)
    for day in days.all:
        # A click may come after midnight: events of a day are looked for in the whole log.
        everywhere = log.roles.layout == "events"
        if everywhere:
            day = replace(day, fingerprint=whole)
        path = folder / f"{day.day or 'undated'}.parquet"
        source = _source(planner, log, day.fingerprint, day.day)
        done = source is not None and _is_done(path, source)
        if not done:
            rows, prune = log.engine.source, None
            if not everywhere:
                rows, prune = days.part(day)
            part = planner.but(source=rows, prune=prune, day=day.day)
            _run(log, part, day.fingerprint, progress).save(path)
        if each:
            each(day, path, done)
        written.append(path)
    if not written:
        raise BadLog("The log is empty: it has columns but not a single row.")
    return written


def _tell(log: Log) -> None:
    """What is odd about the log, as Python's warnings; what cannot be right is an error."""
    for remark in (*log.remarks, *probe(log)):
        warnings.warn(remark, Remark, stacklevel=3)


def check_sizes(buckets: int, max_shown: int) -> None:
    if not 1 <= buckets <= 4096 or buckets & (buckets - 1):
        raise BadOption(f"buckets must be a power of two from 1 to 4096, not {buckets}.")
    if not 2 <= max_shown <= 16:
        raise BadOption(f"max_shown must be from 2 to 16, not {max_shown}.")


def _run(log: Log, planner: Planner, fingerprint: str | None, progress: Progress | None) -> Counts:
    return _counts(log, planner, fingerprint, log.engine.run(harvest_plan(planner), progress))


def _counts(log: Log, planner: Planner, fingerprint: str | None, connection: Any) -> Counts:
    source = _source(planner, log, fingerprint, planner.day)
    counts = counts_of(
        connection,
        RESULT,
        segment_columns=list(log.roles.segment),
        marked=True,
        buckets=planner.buckets,
        max_rank=log.rules.max_rank,
        max_shown=planner.max_shown,
        sources=[source] if source else [],
        options=log.describe(),
    )
    _refuse_misread(counts.funnel, log)
    return counts


def counts_of(connection: Any, table: str, **meta: Any) -> Counts:
    """The counts in a plan's result, which a DuckDB connection has as `table`."""
    found = connection.execute(
        "SELECT kind, shown, CAST(n AS BIGINT), CAST(clicks AS BIGINT), CAST(pairs AS BIGINT)"
        f" FROM {table} WHERE kind IN ('day', 'total')"
    ).fetchall()
    meta |= {
        "version": __version__,
        "days": sorted(day for kind, day, *_ in found if kind == "day"),
    }
    totals = {name: (n or 0, clicks or 0, pairs or 0)
              for kind, name, n, clicks, pairs in found if kind == "total"}  # fmt: skip
    told: list[FunnelRow] = [
        ("funnel", name, line.rows, line.clicks, line.pairs)
        for name, line in waterfall(totals).items()
    ]
    told.append(("note", "rank_zero", totals.get("rank_zero", (0, 0, 0))[0], 0, None))
    return read_table(connection, table, meta, told)


def _refuse_misread(funnel: Funnel, log: Log) -> None:
    """Stop where going on would give a wrong answer without a word."""
    if funnel.rows == 0:
        raise BadLog("The log is empty: it has columns but not a single row.")
    dropped = funnel.dropped
    if dropped["other_event"].rows + dropped["click_event"].rows == funnel.rows:
        _refuse_unnamed_events(log)
    zero = funnel.notes["rank_zero"]
    if zero:
        raise BadLog(
            f"{zero:,} of {funnel.rows:,} rows have rank 0. If ranks count from 0 here, say so "
            "with --first-rank 0; if those rows are mistakes, leave them out with "
            f'--where "{log.roles.rank} > 0".'
        )


def _refuse_unnamed_events(log: Log) -> None:
    planner = log.planner()
    event = planner.dialect.text.format(planner.column(log.roles.event or "")[0])
    found = log.engine.query(
        f"SELECT {event}, count(*) FROM {planner.source} GROUP BY {event}"
        f" ORDER BY count(*) DESC LIMIT 10"
    )
    told = ", ".join(f"{name!r} ({rows:,})" for name, rows in found)
    raise BadLog(
        f"No row of the log shows a result: {log.roles.event!r} is never "
        f"{' or '.join(map(repr, log.rules.shown_events))}. It is {told}. Name the events with "
        "--shown-events and --click-events."
    )


def _source(planner: Planner, log: Log, fingerprint: str | None, day: str | None) -> str | None:
    """Tells one input, read in one way, from every other."""
    if fingerprint is None:
        return None
    told = [fingerprint, day, log.describe(), planner.buckets, planner.max_shown, __version__]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _is_done(path: Path, source: str) -> bool:
    try:
        meta = read_metadata(path) if path.exists() else {}
    except BadCounts:
        return False
    return meta.get("format") == FORMAT and meta["sources"] == [source]
