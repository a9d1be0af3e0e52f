"""Log -> Counts: the one step that reads big data."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankdrift.core.database import shortages_told
from rankdrift.core.errors import BadLog, BadOption, Remark
from rankdrift.core.naming import names_checked
from rankdrift.core.version import __version__
from rankdrift.core.words import many
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN, Counts
from rankdrift.counts.funnel import Funnel, waterfall
from rankdrift.counts.reading import read_table, warn_unknown_overflow
from rankdrift.counts.schema import FUNNEL, NOTE, FunnelRow
from rankdrift.harvesting.plan import Sizes, harvest_plan
from rankdrift.harvesting.result import DAY, TOTAL
from rankdrift.harvesting.singles import OPTION, Singles, check
from rankdrift.log.engines.engine import Days, Engine, PartByPart, Progress
from rankdrift.log.log import Log, need_log
from rankdrift.log.probing import probe, refuse_rank_zero
from rankdrift.log.sql.plan import (
    ANSWER,
    CELLS,
    KNOWN,
    RESULT,
    RESULT_TABLE,
    SCHEMA,
    SHOWN_SOURCE,
    Plan,
    Planner,
    Step,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SO_FAR = "main.rd_together"
# Rows of a log, and of one of its days, that make reading it day by day worth while.
LARGE = 50_000_000
LARGE_DAY = 2_000_000
# Pairs, and ranks of pairs, that wait before they are counted.
MANY = 3_000_000


@names_checked
def harvest(
    log: Log,
    *,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    trust: bool = False,
    singles: bool = False,
    prior: str | None = None,
    prior_cuts: Sequence[float] = (),
    progress: Progress | None = None,
) -> Counts:
    """Count the pairs that appeared at two or more ranks and got a click.

    Parameters
    ----------
    log
        From `read_log`.
    buckets
        Groups that queries are split into by hash, a power of two from 1 to 4096, for errors that
        respect them.
    max_shown
        From 2 to 16. A pair with more appearances enters as weighted comparisons of two ranks.
    trust
        Count what `estimate(..., adjust="trust")` needs, too: all pairs that moved, clicked or not,
        by the clicks on other days. It goes through every row and takes several times as long.
    singles
        Count pairs that were shown at one rank only as well, clicked or not, which
        `estimate(..., method="bayes")` can learn from.
    prior, prior_cuts
        For that: a column of numbers that tells of relevance without looking at the clicks counted
        here, such as an old score or the query's click rate on days before, and the numbers,
        ascending, at which its groups begin.
    progress
        Called now and then with the name of the step and the fraction of it that is done.

    Returns
    -------
    Counts
        What `estimate` takes. Its `funnel` accounts for every row and click of the log.

    Raises
    ------
    BadOption
        `buckets` or `max_shown` are out of their range, `prior_cuts` do not ascend, or there are no
        days for `trust`.
    MissingColumns
        The log has no column `prior`.
    BadLog
        The log is empty, cannot be read, or would be misread.
    """
    need_log(log)
    sizes = replace(sizes_of(log, buckets, max_shown, singles, prior, prior_cuts), trust=trust)
    if trust and not log.roles.day:
        raise BadOption(
            "To count for trust the log must tell days: what a doc is worth is told by its clicks "
            "on other days. Name the column with --day."
        )
    log.narrow(prior)
    warn_of_oddities(log)
    counts = count(log, sizes, progress)
    if log.rules.randomised_apart and not counts.funnel.dropped["randomised"].rows:
        warnings.warn(
            f"No row was kept apart: the column {log.roles.randomised!r} never says yes (true, 1) "
            "of a row. Name another with --randomised.",
            Remark,
            stacklevel=2,
        )
    return counts


def sizes_of(
    log: Log,
    buckets: int,
    max_shown: int,
    singles: bool,
    prior: str | None,
    prior_cuts: Sequence[float],
) -> Sizes:
    """How far into detail a log is to be counted, by the options of `harvest`, checked."""
    wanted = None
    if singles or prior is not None or len(prior_cuts):
        wanted = Singles(prior, tuple(map(float, prior_cuts)))
        check(wanted, log.engine.columns)
    return Sizes(buckets, max_shown, singles=wanted)


def count(log: Log, sizes: Sizes, progress: Progress | None = None) -> Counts:
    """The harvest of a log that `probe` has seen."""
    planner, engine = log.planner(), log.engine
    if isinstance(engine, PartByPart) and not sizes.trust:
        days = _days_apart(log, planner)
        if days:
            return _count_by_day(log, engine, planner, sizes, days, progress)
    return count_planned(log, planner, sizes, engine.fingerprint(), progress)


def count_planned(
    log: Log, planner: Planner, sizes: Sizes, fingerprint: str | None, progress: Progress | None
) -> Counts:
    """The counts of what a planner reads.

    Parameters
    ----------
    log
        The whole log.
    planner
        Reads it, or a part of it.
    sizes
        How far to go into detail.
    fingerprint
        Of what the planner reads, if it has one.
    progress
        As for `harvest`.
    """
    connection = log.engine.run(harvest_plan(planner, sizes), progress)
    return _counts(log, planner, sizes, fingerprint, connection)


def warn_of_oddities(log: Log) -> None:
    """What is odd about the log, as Python's warnings to who called `harvest` or its like; what
    cannot be right is an error."""
    for remark in (*log.remarks, *probe(log)):
        warnings.warn(remark, Remark, stacklevel=4)


# -- a large log, day by day -----------------------------------------------------------------------


def days_of(log: Log, planner: Planner) -> Days:
    """The days of a log that has a column for them; or its windows of several days."""
    assert log.roles.day
    column = log.engine.columns[log.roles.day]
    return log.engine.days(planner.day_sql(), column, planner.rules.window)


def _days_apart(log: Log, planner: Planner) -> Days | None:
    """The days of a large log whose files keep days apart: what a pair needs is on one day, so
    day by day takes less memory and stays in the processor's caches."""
    if not log.roles.day or not log.layout.days_apart or (log.engine.rows() or 0) < LARGE:
        return None
    days = days_of(log, planner)
    rows = sum(day.rows for day in days.all)
    return days if 1 < len(days.all) <= rows / LARGE_DAY and days.apart else None


def _count_by_day(
    log: Log,
    engine: PartByPart,
    planner: Planner,
    sizes: Sizes,
    days: Days,
    progress: Progress | None,
) -> Counts:
    """Pairs are found one day at a time, which the processor's caches hold, and counted many days
    at a time, which memory holds."""
    rows, whole = sum(day.rows for day in days.all), harvest_plan(planner, sizes, in_parts=True)
    done, pairs, waiting, first, several = 0, 0, 0, True, False
    for day in days.all:
        if waiting > MANY:
            engine.run_whole(whole)
            _put_aside(engine, first=not several)
            pairs, first, several = 0, True, True
        if progress and hasattr(progress, "piece"):
            progress.piece(done / rows, (done + day.rows) / rows)
        source, prune = days.part(day)
        part = planner.but(source=source, prune=prune, day=day.day, pairs_before=pairs)
        engine.run_part(harvest_plan(part, sizes, in_parts=True), first, progress)
        first = False
        [(pairs, waiting)] = engine.query(
            f"SELECT pairs, pairs + cells FROM (SELECT count(*) AS pairs FROM {SCHEMA}.{KNOWN}),"
            f" (SELECT count(*) AS cells FROM {SCHEMA}.{CELLS})"
        )
        done += day.rows
    connection = engine.run_whole(whole)
    if several:
        _put_aside(engine, first=False)
        sums = ", ".join(f"CAST(sum({n}) AS BIGINT) AS {n}" for n in ("n", "clicks", "pairs"))
        added = f"SELECT * EXCLUDE (n, clicks, pairs), {sums} FROM {_SO_FAR} GROUP BY ALL"
        connection = engine.run(Plan((Step(RESULT, added),)))
    return _counts(log, planner, sizes, engine.fingerprint(), connection)


def _put_aside(engine: Engine, first: bool) -> None:
    """Add the result of some days to those of the days before."""
    add = f"CREATE OR REPLACE TABLE {_SO_FAR} AS" if first else f"INSERT INTO {_SO_FAR}"
    engine.query(f"{add} FROM {RESULT_TABLE}")


# -- from the result of a plan to counts -----------------------------------------------------------


def _counts(
    log: Log,
    planner: Planner,
    sizes: Sizes,
    fingerprint: str | None,
    connection: "DuckDBPyConnection",
) -> Counts:
    source = source_id(log, sizes, fingerprint, planner.day)
    counts = counts_of(
        connection,
        RESULT_TABLE,
        segment_columns=list(log.roles.segment),
        marked=True,
        buckets=sizes.buckets,
        max_rank=log.rules.max_rank,
        max_shown=sizes.max_shown,
        sources=[source] if source else [],
        options={
            **log.describe(),
            **({"trust": True} if sizes.trust else {}),
            **({OPTION: sizes.singles.described()} if sizes.singles else {}),
        },
    )
    _refuse_misread(counts.funnel, log)
    return counts


def counts_of(connection: "DuckDBPyConnection", table: str, **meta: Any) -> Counts:
    """The counts in a plan's result.

    Parameters
    ----------
    connection
        What has it as a table.
    table
        The name of the table.
    meta
        What the counts are to say of themselves.
    """
    with shortages_told():
        return _counts_of(connection, table, meta)


def _counts_of(connection: "DuckDBPyConnection", table: str, meta: dict[str, Any]) -> Counts:
    found = connection.execute(
        "SELECT kind, shown, CAST(n AS BIGINT), CAST(clicks AS BIGINT), CAST(pairs AS BIGINT)"
        f" FROM {table} WHERE kind IN ('{DAY}', '{TOTAL}')"
    ).fetchall()
    meta |= {
        "version": __version__,
        "days": sorted(day for kind, day, *_ in found if kind == DAY),
    }
    totals = {
        name: (n or 0, clicks or 0, pairs or 0)
        for kind, name, n, clicks, pairs in found
        if kind == TOTAL
    }
    more: list[FunnelRow] = [
        (FUNNEL.name, name, line.rows, line.clicks, line.pairs)
        for name, line in waterfall(totals).items()
    ]
    more.append((NOTE.name, "rank_zero", totals.get("rank_zero", (0, 0, 0))[0], 0, None))
    counts = read_table(connection, table, meta, more)
    warn_unknown_overflow(counts)
    return counts


def source_id(log: Log, sizes: Sizes, fingerprint: str | None, day: str | None) -> str | None:
    """Tells one input, read in one way, from every other; None if its fingerprint is not known.

    Parameters
    ----------
    log
        Says how it is read.
    sizes
        How far into detail it is counted.
    fingerprint
        Of the part of the log that is counted.
    day
        The day of that part, or None for the whole log.
    """
    if fingerprint is None:
        return None
    identity = [fingerprint, day, log.describe(), sizes.buckets, sizes.max_shown, __version__]
    identity += ["trust"] if sizes.trust else []
    if sizes.singles:
        identity.append(sizes.singles.described())
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def _refuse_misread(funnel: Funnel, log: Log) -> None:
    """Stop where going on would give a wrong answer without a word. A day may well have no result
    shown, only clicks after midnight or searches that found nothing; the log may not."""
    outside = funnel.dropped["other_event"].rows + funnel.dropped["click_event"].rows
    if outside == funnel.rows:
        _refuse_nothing_shown(log)
    refuse_rank_zero(log, funnel.notes["rank_zero"], funnel.rows)


def _refuse_nothing_shown(log: Log) -> None:
    planner = log.planner()
    shown = Plan(
        (*log.layout.steps(planner), Step(ANSWER, f"SELECT 1 FROM {SHOWN_SOURCE} LIMIT 1"))
    )
    if log.engine.query(shown.as_query()):
        return
    [(rows,)] = log.engine.query(f"SELECT count(*) FROM {planner.source}")
    if not rows and not log.format:
        raise BadLog(
            "The log is empty: it has columns but not a single row. Check which files were named."
        )
    if not log.roles.event and log.roles.shown:
        raise BadLog(
            f"None of the {many(rows, 'row')} of the log shows a result: {log.roles.shown!r} is "
            "empty in all of them. Name the column of the docs shown with --shown."
        )
    assert log.roles.event  # a row per result shown shows one
    event = planner.dialect.text.format(planner.column(log.roles.event)[0])
    found = log.engine.query(
        f"SELECT {event}, count(*) FROM {planner.source} GROUP BY {event}"
        f" ORDER BY count(*) DESC LIMIT 10"
    )
    events = ", ".join(f"{name or 'without a name'!r} ({rows:,})" for name, rows in found)
    if log.format:
        others = {name for name, _ in found if name} - set(log.format.click_events)
        named = f"its events are {events}" if events else "it has no events"
        more = " If some of these events show a result, name them with --shown-events."
        raise BadLog(
            f"This log of {log.format.title} shows no result, so there is nothing to compare "
            f"clicks with: {named}. It needs {log.format.needs}. Give the files that have them "
            f"along with these: several are read as one.{more if others else ''}"
        )
    raise BadLog(
        f"No row of the log shows a result: {log.roles.event!r} is never "
        f"{' or '.join(map(repr, log.rules.shown_events))}. It is {events}. Name the events with "
        "--shown-events and --click-events."
    )
