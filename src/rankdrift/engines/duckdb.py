"""The embedded engine: DuckDB reads the files, spills to disk, and reduces them to counts."""

import datetime
import glob
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from rankdrift.columns import Column
from rankdrift.dialects import DUCKDB, Dialect
from rankdrift.engines import Day, Progress
from rankdrift.engines.parquet import check_schemas, facts
from rankdrift.errors import BadLog, BadOption, MissingColumns, did_you_mean
from rankdrift.files import is_alive
from rankdrift.plan import Plan
from rankdrift.sources import Files, Frame, Table

_INTEGERS = {
    "tinyint", "smallint", "integer", "bigint", "hugeint",
    "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint", "bignum",
}  # fmt: skip
_KINDS = {
    "varchar": "text", "boolean": "bool", "date": "date",
    "timestamp": "timestamp", "timestamp_s": "timestamp", "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp", "timestamp with time zone": "instant",
    "float": "float", "double": "float", "decimal": "float",
    "list": "list", "array": "list", "struct": "nested", "map": "nested", "union": "nested",
}  # fmt: skip
# Rereading files for each day costs more than sorting them by day once when days are mixed.
_MIXED = 4


class DuckdbEngine:
    """One in-memory database with the log as the view `rd_log`."""

    def __init__(
        self,
        source: Files | Table | Frame,
        *,
        memory: str | None = None,
        threads: int | None = None,
    ) -> None:
        _sweep()
        self._folder = tempfile.TemporaryDirectory(prefix=f"rankdrift-{os.getpid()}-")
        self._input = source
        self._con = self._connect(memory, threads)
        with reading(source):
            self._con.execute(f"CREATE VIEW main.rd_log AS SELECT * FROM {self._open(source)}")
            self.columns: Mapping[str, Column] = self._describe()
        self._staged = False

    dialect: Dialect = DUCKDB
    source = "rd_log"

    def _connect(self, memory: str | None, threads: int | None) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {
            "temp_directory": self._path("spill"),
            "preserve_insertion_order": "false",
        }
        if memory:
            config["memory_limit"] = memory
        if threads:
            config["threads"] = threads
        try:
            con = duckdb.connect(config=config)
        except duckdb.Error as error:
            raise BadOption(
                f"Cannot use memory {memory!r} with {threads} threads: {first_line(error)} "
                "Write memory as 800MB or 2GB."
            ) from None
        con.execute("SET TimeZone = 'UTC'")
        con.execute("SET enable_progress_bar = true")
        con.execute("SET enable_progress_bar_print = false")
        return con

    # -- opening -------------------------------------------------------------------------------

    def _open(self, source: Files | Table | Frame) -> str:
        if isinstance(source, Frame):
            self._con.register("rd_frame", source.table)
            return "rd_frame"
        if isinstance(source, Table):
            return self._attach(source)
        return _reader(source.paths, source.format)

    def _attach(self, source: Table) -> str:
        self._con.execute(f"ATTACH {DUCKDB.literal(source.path)} AS rd_db (READ_ONLY)")
        names = [
            (schema, name)
            for schema, name in self._con.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_catalog = 'rd_db' ORDER BY ALL"
            ).fetchall()
        ]
        labels = {name if schema == "main" else f"{schema}.{name}": (schema, name)
                  for schema, name in names}  # fmt: skip
        wanted = source.name or (next(iter(labels)) if len(labels) == 1 else None)
        if wanted not in labels:
            hint = did_you_mean(wanted, labels) if wanted else ""
            what = f"has no table {wanted!r}" if wanted else f"has {len(labels)} tables"
            raise BadLog(
                f"{source.path!r} {what}.{hint} Name one with --table: {', '.join(labels)}."
            )
        return DUCKDB.quote("rd_db", *labels[wanted])

    def _describe(self) -> dict[str, Column]:
        relation = self._con.sql("SELECT * FROM rd_log LIMIT 0")
        columns: dict[str, Column] = {}
        for name, type_ in zip(relation.columns, relation.types, strict=True):
            columns |= {c.name: c for c in _columns((name,), type_)}
        return columns

    # -- what engines tell ---------------------------------------------------------------------

    def prepare(self, used: list[str]) -> list[str]:
        source, columns = self._input, [self.columns[name] for name in used]
        if not isinstance(source, Files):
            return []
        with reading(source):
            if source.format == "csv":
                self._check_headers(source, columns)
            if source.format != "parquet":
                return []
            paths = _unglobbed(source.paths)
            self.columns = {**self.columns, **facts(self._con, paths, columns)}
            return check_schemas(self._con, paths, columns) if len(source.paths) > 1 else []

    def _check_headers(self, source: Files, columns: list[Column]) -> None:
        """A CSV file that lacks a column would be read as if all were missing there."""
        for path in source.paths if len(source.paths) > 1 else ():
            there = self._con.sql(f"SELECT * FROM {_reader((path,), 'csv')} LIMIT 0").columns
            for column in columns:
                if column.path[0] not in there:
                    raise MissingColumns(
                        f"{path!r} has no column {column.path[0]!r} in its first line. Give it a "
                        "header like the other files, or leave it out."
                    )

    def fingerprint(self) -> str | None:
        if isinstance(self._input, Files) and not any("://" in p for p in self._input.paths):
            return self._input.fingerprint()
        if isinstance(self._input, Table):
            return Files((self._input.path,), "duckdb").fingerprint()
        return None

    def rows(self) -> int | None:
        if isinstance(self._input, Files) and self._input.format != "parquet":
            return None
        with reading(self._input):
            return int(self.query("SELECT count(*) FROM rd_log")[0][0])

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self._con

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with reading(self._input):
            self._stage()
            self._execute(sql, "query", None)
            return self._con.fetchall()

    # -- running -------------------------------------------------------------------------------

    def run(self, plan: Plan, progress: Progress | None = None) -> duckdb.DuckDBPyConnection:
        with reading(self._input):
            self._stage(progress)
            self._con.execute("DROP SCHEMA IF EXISTS rd_plan CASCADE; CREATE SCHEMA rd_plan")
            self._con.execute("SET schema = 'rd_plan'")
            try:
                for step in plan.steps:
                    keep = step.keep or step is plan.steps[-1]
                    thing = "TABLE" if keep else "VIEW"
                    self._execute(f"CREATE {thing} {step.name} AS {step.sql}", step.name, progress)
            finally:
                self._con.execute("SET schema = 'main'")
        return self._con

    def _execute(self, sql: str, name: str, progress: Progress | None) -> None:
        """Run in a thread, so that progress is seen and Ctrl-C stops it at once."""
        failed: list[BaseException] = []
        # Not Thread.join: interrupted, it takes a thread that still runs for a finished one.
        finished = threading.Event()

        def work() -> None:
            try:
                self._con.execute(sql)
            except BaseException as error:
                failed.append(error)
            finally:
                finished.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            while not finished.wait(0.1 if progress else None):
                if progress:
                    progress(name, max(0.0, self._con.query_progress()) / 100)
        except BaseException:
            self._con.interrupt()
            while not finished.wait(0.1):
                self._con.interrupt()
            raise
        if failed:
            raise failed[0]
        if progress:
            progress(name, 1.0)

    def _stage(self, progress: Progress | None = None) -> None:
        """Text formats are parsed once, into Parquet: the plan reads its rows several times."""
        source = self._input
        if self._staged or not isinstance(source, Files) or source.format == "parquet":
            return
        staged = self._path("staged.parquet")
        reader = _reader(source.paths, source.format, filename=True)
        self._execute(
            f"COPY (SELECT * FROM {reader}) TO {DUCKDB.literal(staged)} (FORMAT parquet)",
            f"parsing {source.format}",
            progress,
        )
        self._con.execute(
            "CREATE OR REPLACE VIEW main.rd_log AS SELECT * EXCLUDE (rd_filename)"
            f" FROM read_parquet({DUCKDB.literal(staged)})"
        )
        self._staged = True

    # -- by day --------------------------------------------------------------------------------

    def days(self, day_sql: str) -> list[Day]:
        with reading(self._input):
            self._stage()
        found = self.query(
            f"SELECT {day_sql} AS day, {self._filename} AS file, count(*)"
            f" FROM {self._filed} GROUP BY ALL ORDER BY ALL"
        )
        self._files_of: dict[str, dict[str, int]] = {}
        for day, path, rows in found:
            self._files_of.setdefault(str(day or ""), {})[path] = rows
        return [
            Day(day, sum(files.values()), self._fingerprint_of(files))
            for day, files in sorted(self._files_of.items())
        ]

    @property
    def _filed(self) -> str:
        """The log, with the file that each row came from where there are files."""
        if not isinstance(self._input, Files):
            return "rd_log"
        if self._staged:
            return f"read_parquet({DUCKDB.literal(self._path('staged.parquet'))})"
        return _reader(self._input.paths, self._input.format, filename=True)

    @property
    def _filename(self) -> str:
        return "rd_filename" if isinstance(self._input, Files) else "''"

    def _fingerprint_of(self, files: Mapping[str, int]) -> str | None:
        if isinstance(self._input, Files) and self.fingerprint():
            return self._input.fingerprint(files)
        return self.fingerprint()

    def part(self, day: Day, day_sql: str, column: Column) -> tuple[str, str | None]:
        with reading(self._input):
            if self._mixed:
                return self._sorted(day, day_sql), None
            files = self._files_of[day.day]
            if not isinstance(self._input, Files) or len(files) == len(self._input.paths):
                return "rd_log", _prune(day, column)
            return self._some_files(tuple(sorted(files))), _prune(day, column)

    def is_split_by_day(self) -> bool:
        return isinstance(self._input, Files) and not self._mixed

    @property
    def _mixed(self) -> bool:
        """Would reading each day's files read the log several times over?"""
        if not isinstance(self._input, Files) or len(self._files_of) == 1:
            return False
        size: dict[str, int] = {}
        for files in self._files_of.values():
            for path, rows in files.items():
                size[path] = size.get(path, 0) + rows
        read = sum(size[path] for files in self._files_of.values() for path in files)
        return self._staged or read > _MIXED * sum(size.values())

    def _sorted(self, day: Day, day_sql: str) -> str:
        """Days are mixed within files: write the rows once, a folder a day."""
        folder = self._path("by-day")
        if not os.path.exists(folder):
            label = f"coalesce(CAST({day_sql} AS VARCHAR), 'none')"
            self._execute(
                f"COPY (SELECT *, {label} AS rd_day FROM rd_log) TO {DUCKDB.literal(folder)}"
                " (FORMAT parquet, PARTITION_BY (rd_day))",
                "sorting by day",
                None,
            )
        files = DUCKDB.literal(os.path.join(folder, f"rd_day={day.day or 'none'}", "*.parquet"))
        return f"read_parquet({files}, hive_partitioning = false)"

    def _some_files(self, paths: tuple[str, ...]) -> str:
        """These files, with the columns and types that the whole log has."""
        reader = _reader(paths, "parquet")
        there = set(self._con.sql(f"SELECT * FROM {reader} LIMIT 0").columns)
        log = self._con.sql("SELECT * FROM rd_log LIMIT 0")
        columns = (
            f"CAST({DUCKDB.quote(name) if name in there else 'NULL'} AS {type_})"
            f" AS {DUCKDB.quote(name)}"
            for name, type_ in zip(log.columns, log.types, strict=True)
        )
        return f"(SELECT {', '.join(columns)} FROM {reader})"

    def _path(self, name: str) -> str:
        return os.path.join(self._folder.name, name)


def _sweep() -> None:
    """Remove what runs that were killed had spilled."""
    for folder in Path(tempfile.gettempdir()).glob("rankdrift-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not is_alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _reader(paths: tuple[str, ...], format: str, filename: bool = False) -> str:
    """FROM text that reads these files; columns are matched by name."""
    files = f"[{DUCKDB.literals(_unglobbed(paths))}]"
    named = ", filename = 'rd_filename'" if filename else ""
    if format == "parquet":
        return f"read_parquet({files}, union_by_name = true{named})"
    if format == "csv":
        # Everything stays text: '007' is not 7, and a letter in the last row breaks nothing.
        return (
            f"read_csv({files}, all_varchar = true, union_by_name = true, header = true,"
            f" quote = '\"', escape = '\"'{named})"
        )
    return (
        f"read_json({files}, format = 'newline_delimited', union_by_name = true,"
        f" sample_size = -1, map_inference_threshold = -1{named})"
    )


def _unglobbed(paths: tuple[str, ...]) -> list[str]:
    """Each path means one file, even if its name has stars or brackets."""
    return [path if "://" in path else glob.escape(path) for path in paths]


def _columns(path: tuple[str, ...], type_: Any) -> Iterator[Column]:
    """The column, and the fields below it when it is a struct."""
    name = str(type_).lower()
    if name == "json":
        yield Column(path, "json")
        return
    yield Column(path, "int" if type_.id in _INTEGERS else _KINDS.get(type_.id, "other"))
    if type_.id == "struct":
        for field, child in type_.children:
            yield from _columns((*path, field), child)


def _prune(day: Day, column: Column) -> str | None:
    if not day.day or column.kind not in ("timestamp", "instant"):
        return None
    name, near = DUCKDB.quote(*column.path), datetime.timedelta(days=2)
    at = datetime.date.fromisoformat(day.day)
    kind = "TIMESTAMP" if column.kind == "timestamp" else "TIMESTAMPTZ"
    return f"{name} >= {kind} '{at - near}' AND {name} < {kind} '{at + near}'"


def first_line(error: BaseException) -> str:
    """What DuckDB says, without its hints and its drawing of the statement."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and "CSV Error on Line" in lines[0]:
        lines[0] += "".join(f", {line}" for line in lines[1:] if line.startswith("Expected"))
    line = lines[0] if lines else type(error).__name__
    line = re.sub(r"^[A-Z][A-Za-z ]* (Error|Exception): ", "", line)
    return line if line.endswith((".", "!")) else line + "."


@contextmanager
def reading(source: Files | Table | Frame) -> Iterator[None]:
    """DuckDB's errors, as ours."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise BadLog(
            f"Not enough memory or disk to go on: {first_line(error)} Allow more with --memory, "
            "use fewer --threads, or harvest --by day."
        ) from None
    except (duckdb.BinderException, duckdb.ParserException, duckdb.ConversionException) as error:
        raise BadLog(
            f"The log cannot be read with these columns and conditions: {first_line(error)} "
            "Check --where (it is SQL on the log's own columns) and the column names."
        ) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        if isinstance(source, Files):
            what = repr(source.paths[0]) if len(source.paths) == 1 else f"{len(source.paths)} files"
            raise BadLog(
                f"Cannot read {what} as {source.format}: {first_line(error)} "
                "The file may be damaged, cut short or of another format (--format)."
            ) from None
        raise BadLog(f"Cannot read the log: {first_line(error)}") from None
