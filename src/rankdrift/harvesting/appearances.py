"""Log -> appearances: how often each doc was shown at each rank, by query and day, and clicked.

It is what judging needs of a log, whatever the propensities: a fraction of its size, a file a day,
or the result of one statement in a warehouse. The table has a row of kind 'shown' for each query,
doc, segment, day and rank; 'total' and 'note' are what became of all rows, and 'meta' says what the
table is of. Texts begin with '=', so that a missing one is told from an empty one in a CSV too.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rankdrift.core import stamps
from rankdrift.core.dialects import DUCKDB, Dialect
from rankdrift.core.errors import BadLog, BadOption, RankdriftError
from rankdrift.core.files import replacing
from rankdrift.core.naming import names_checked
from rankdrift.core.plain import parsed
from rankdrift.core.version import __version__
from rankdrift.core.words import many
from rankdrift.harvesting.by_day import day_by_day
from rankdrift.harvesting.counting import source_id, warn_of_oddities
from rankdrift.harvesting.plan import Sizes
from rankdrift.log.engines.engine import Day, Engine, Progress
from rankdrift.log.log import Log, describe, need_log
from rankdrift.log.sources import Files, find
from rankdrift.log.sql import rows, values
from rankdrift.log.sql.plan import OUTSIDE, RESULT, RESULT_TABLE, ROWS_SHOWN, Plan, Planner, Step

FORMAT = 1
SHOWN, TOTAL, NOTE, META = "shown", "total", "note", "meta"  # kinds of rows
GOOD = "good"  # the total of all rows of kind 'shown'
_COUNTED = "counted"  # the step that has every row, by what becomes of it
_NUMBERS = ("n", "clicked", "clicks")
_FIRST_DAY = datetime.date(1900, 1, 1)


# -- write -----------------------------------------------------------------------------------------


def appearances_plan(planner: Planner, source: str | None = None) -> Plan:
    """The steps from a log to the table of appearances.

    Parameters
    ----------
    planner
        Says what is read, and how.
    source
        What tells this input from every other, if it is known.
    """
    p = pairs_planner(planner)
    d = p.dialect
    texts = {
        q: values.as_text(q, p.columns[c].kind, d)
        for q, c in zip(p.queries, p.roles.query, strict=True)
    }
    texts |= {"doc": d.text.format("doc")} | {g: g for g in p.segments}
    fields = {name: f"CASE WHEN fate > 0 THEN '=' || {sql} END" for name, sql in texts.items()}
    fields |= {"day": f"CASE WHEN fate > 0 THEN {_day(p)} END", "fate": "fate"}
    read = ", ".join(f"{sql} AS {name}" for name, sql in fields.items())
    counted = (
        f"SELECT {', '.join(fields)}, count(*) AS n,"
        " sum(CASE WHEN click > 0 THEN 1 ELSE 0 END) AS clicked,"
        " sum(CASE WHEN click > 0 THEN click ELSE 0 END) AS clicks,"
        " count(*) - count(click) AS unknown"
        f" FROM (SELECT {read}, click FROM {ROWS_SHOWN}) AS rd_rows GROUP BY {', '.join(fields)}"
    )
    reasons = " ".join(
        f"WHEN {code} THEN {d.literal('=' + name)}" for name, code in rows.DROP_CODES.items()
    )
    stage = f"CASE fate {reasons} ELSE {d.literal('=' + GOOD)} END"
    meta = {
        "format": FORMAT,
        "version": __version__,
        "query_columns": list(p.roles.query),
        "segment_columns": list(p.roles.segment),
        "day": p.day,
        "days": bool(p.roles.day),
        "options": describe(p),
        "source": source,
    }
    told = d.literal("=" + json.dumps(meta, sort_keys=True, ensure_ascii=True))
    sums = {name: f"sum({name})" for name in _NUMBERS}
    selects = [
        f"{_row(p, SHOWN, **{n: n for n in (*fields, *_NUMBERS)}, rank='fate')}"
        f"\nFROM {_COUNTED} WHERE fate > 0",
        f"{_row(p, TOTAL, doc=stage, **sums)}\nFROM {_COUNTED} GROUP BY {stage}",
        f"{_row(p, TOTAL, doc=_joined(d, 'reason'), n='n', clicks='clicks')}\nFROM {OUTSIDE}",
        f"{_row(p, NOTE, doc=d.literal('=null_click'), n='sum(unknown)')}"
        f"\nFROM {_COUNTED} WHERE fate > 0",
        f"{_row(p, META, doc=told)}\nFROM (SELECT 1 AS one) AS one_row",
    ]
    return Plan(
        (
            *rows.steps(p),
            Step(_COUNTED, counted, keep=True),
            Step(RESULT, "\nUNION ALL\n".join(selects)),
        )
    )


def pairs_planner(planner: Planner) -> Planner:
    """The same for judging: a pair is a query and a doc, whatever else was the same."""
    return planner.but(
        roles=replace(planner.roles, same=(), time=None), rules=replace(planner.rules, window=1)
    )


def _day(p: Planner) -> str:
    """The number of a row's day. A planner for one day has no column of it."""
    if not p.roles.day or p.day == "":
        return "CAST(NULL AS BIGINT)"
    if p.day is not None:
        return str((datetime.date.fromisoformat(p.day) - _FIRST_DAY).days)
    return p.dialect.day_number.format("day")


def _joined(d: Dialect, name: str) -> str:
    return f"'=' || {d.text.format(name)}"


def _row(p: Planner, kind: str, **given: str) -> str:
    """SELECT list of the table's columns, typed NULLs where nothing is given."""
    texts = ", ".join(
        f"{p.dialect.text.format(given.get(name, 'NULL'))} AS {name}"
        for name in (*p.queries, "doc", *p.segments)
    )
    numbers = ", ".join(
        f"CAST({given.get(name, 'NULL')} AS BIGINT) AS {name}"
        for name in ("day", "rank", *_NUMBERS)
    )
    return f"SELECT {p.dialect.literal(kind)} AS kind, {texts}, {numbers}"


@names_checked
def appearances_by_day(
    log: Log,
    directory: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    each: Callable[[Day, Path, bool], None] | None = None,
) -> list[Path]:
    """Write what `judge` needs of a log, one file a day; days whose input is unchanged are left as
    they are. `judge` takes the folder, some of its files, or several folders, as it takes a log.

    Parameters
    ----------
    log
        From `read_log`; it needs a column for the day. Its segments are kept.
    directory
        Where the files go.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.
    each
        Called with each day, its file and whether it was skipped.

    Returns
    -------
    list of Path
        The files in the order of days, those that were skipped included.
    """
    need_log(log)
    if not log.roles.day:
        raise BadOption("Appearances by day need a day column. Name it with --day.")
    warn_of_oddities(log)

    def source(day: Day) -> str | None:
        return source_id(log, Sizes(), day.fingerprint, day.day)

    def write(part: Planner, path: Path, day: Day) -> None:
        connection = log.engine.run(appearances_plan(part, source(day)), progress)
        with replacing(path) as unfinished:
            connection.execute(
                f"COPY (FROM {RESULT_TABLE} ORDER BY ALL) TO {DUCKDB.literal(str(unfinished))}"
                f" (FORMAT parquet, COMPRESSION zstd, {stamps.PLACE})"
            )
            stamps.stamp(unfinished)
        connection.execute(f"DROP TABLE IF EXISTS {RESULT_TABLE}")

    def is_done(path: Path, wanted: str) -> bool:
        try:
            metas = open_appearances(str(path)).metas if path.exists() else ()
        except RankdriftError:
            return False
        return len(metas) == 1 and metas[0]["source"] == wanted

    return day_by_day(log, pairs_planner(log.planner()), directory, write, source, is_done, each)


# -- read ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Appearances:
    """Tables of appearances, opened; `metas` says what each is of, `read` how the log was read."""

    engine: Engine
    metas: tuple[Mapping[str, Any], ...]
    totals: Mapping[str, tuple[int, int]]
    unknown: int

    @property
    def query_columns(self) -> tuple[str, ...]:
        """What makes a query."""
        return tuple(self.metas[0]["query_columns"])

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """By which columns they were counted apart."""
        return tuple(self.metas[0]["segment_columns"])

    @property
    def read(self) -> Mapping[str, Any]:
        """How the rows of the log were read."""
        return dict(self.metas[0]["options"])

    @property
    def sources(self) -> list[str]:
        """What tells their inputs from all others, where that is known."""
        return sorted(str(meta["source"]) for meta in self.metas if meta["source"])

    def fingerprint(self) -> str | None:
        """Of the rows that were counted, whenever the tables were written; of the tables where that
        is not known."""
        if not all(meta["source"] for meta in self.metas):
            return self.engine.fingerprint()
        return hashlib.sha256("\n".join(self.sources).encode()).hexdigest()[:16]

    def steps(self, segments: Sequence[str]) -> tuple[Step, ...]:
        """The step that makes `rows_shown`: query, doc, the segments asked for, day, rank, n,
        clicked, clicks and ok."""
        own = {f"g{i + 1}": name for i, name in enumerate(self.segment_columns)}
        place = {name: column for column, name in own.items()}
        texts = {f"q{i + 1}": f"q{i + 1}" for i in range(len(self.query_columns))}
        texts |= {"doc": "doc"} | {f"g{i + 1}": place[name] for i, name in enumerate(segments)}
        picks = [f"substr({column}, 2) AS {name}" for name, column in texts.items()]
        picks += [f"CAST({name} AS BIGINT) AS {name}" for name in ("day", "rank", *_NUMBERS)]
        sql = (
            f"SELECT {', '.join(picks)}, TRUE AS ok FROM {self.engine.source}"
            f" WHERE kind = '{SHOWN}'"
        )
        return (Step(ROWS_SHOWN, sql),)


def holds_appearances(source: Any, format: str | None = None) -> bool:
    """Whether these names are of tables of appearances, by the columns of the first.

    Parameters
    ----------
    source
        What `judge` was given.
    format
        Where names of files do not tell.
    """
    from rankdrift.log.engines.duckdb.engine import DuckdbEngine

    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, list | tuple) or not names:
        return False
    if not all(isinstance(name, str | os.PathLike) for name in names):
        return False
    try:
        files = find(list(names), format=format)
        if not isinstance(files, Files):
            return False
        first = DuckdbEngine(Files(files.paths[:1], files.format))
    except (RankdriftError, OSError):
        return False
    return {"kind", "q1", "doc", "rank", *_NUMBERS} <= {name.lower() for name in first.columns}


def _refuse_others(engine: Any, files: Files) -> None:
    """Raise BadLog for files that are no tables of appearances, among others that are."""
    paths = ", ".join(map(DUCKDB.literal, files.paths))
    others = engine.query(
        f"SELECT file_name FROM parquet_schema([{paths}]) GROUP BY file_name"
        " HAVING count(*) FILTER (name IN ('kind', 'q1', 'doc')) < 3 ORDER BY file_name"
    )
    if others:
        raise BadLog(
            f"{others[0][0]} holds no appearances, as other files here do. Judge either a log, or "
            "what was counted of one."
        )


def open_appearances(
    source: Any,
    *,
    format: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Appearances:
    """Open tables of appearances; BadLog if they are damaged, or do not go together.

    Parameters
    ----------
    source
        A file, a folder, a glob or several of them.
    format
        csv, json or parquet, where names of files do not tell.
    memory, threads
        What the engine may use.
    """
    from rankdrift.log.engines.duckdb.engine import DuckdbEngine

    files = find(source, format=format)
    if isinstance(files, Files) and files.format == "parquet":
        for path in filter(os.path.isfile, files.paths):
            if changed := stamps.what_changed(path):
                raise BadLog(f"{path}: {changed}")
    engine = DuckdbEngine(files, memory=memory, threads=threads)
    if isinstance(files, Files) and files.format == "parquet" and len(files.paths) > 1:
        _refuse_others(engine, files)
    table = engine.source
    try:
        found = engine.query(f"SELECT substr(doc, 2) FROM {table} WHERE kind = '{META}'")
        metas = [parsed(text) for (text,) in found]
        number = max((meta["format"] for meta in metas), default=FORMAT)
        metas.sort(key=lambda meta: (meta["day"] or "", meta["source"] or ""))
        sums = ", ".join(f"sum(CAST({name} AS BIGINT))" for name in ("n", "clicks"))
        totals = {
            (kind, name): (int(n or 0), int(clicks or 0))
            for kind, name, n, clicks in engine.query(
                f"SELECT kind, CASE WHEN kind <> '{SHOWN}' THEN substr(doc, 2) END AS name, {sums}"
                f" FROM {table} WHERE kind <> '{META}' GROUP BY ALL"
            )
        }
    except (KeyError, TypeError, ValueError, RankdriftError) as error:
        raise BadLog(f"These appearances cannot be read ({error}). Make them again.") from error
    if number > FORMAT:
        raise BadLog(
            f"These appearances have format {number}; this rankdrift reads up to {FORMAT}. "
            "Upgrade rankdrift."
        )
    _check(metas, totals)
    reasons = {name: sums for (kind, name), sums in totals.items() if kind == TOTAL and name}
    reasons.pop(GOOD, None)
    return Appearances(engine, tuple(metas), reasons, totals.get((NOTE, "null_click"), (0, 0))[0])


def _check(metas: list[dict[str, Any]], totals: Mapping[tuple[str, str | None], Any]) -> None:
    if not metas:
        raise BadLog("These appearances do not say what they are of. Export the whole result.")
    there, said = (totals.get(key, (0, 0)) for key in ((SHOWN, None), (TOTAL, GOOD)))
    if there != said:
        raise BadLog(
            f"These appearances are not whole: they have {many(there[0], 'row')} of the log and "
            f"{many(there[1], 'click')}, and say that there were {said[0]:,} and {said[1]:,}. "
            "Export or copy them again."
        )
    first = metas[0]
    for meta in metas[1:]:
        if meta["options"] != first["options"]:
            name = next(
                name
                for name in {**meta["options"], **first["options"]}
                if meta["options"].get(name) != first["options"].get(name)
            )
            raise BadLog(
                "These appearances were made with different options and cannot be added up: "
                f"{name} was {first['options'].get(name)!r} and {meta['options'].get(name)!r}."
            )
    sources = [meta["source"] for meta in metas if meta["source"]]
    if len(set(sources)) < len(sources):
        day = next(m["day"] for m in metas if sources.count(m["source"]) > 1)
        raise BadLog(
            f"The same input is there twice ({day or 'undated'}): it would be counted twice. Give "
            "each file once."
        )
