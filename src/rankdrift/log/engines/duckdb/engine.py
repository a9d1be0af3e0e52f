"""The embedded engine: DuckDB reads the files, spills to disk, and reduces them to counts."""

import os
import shutil
import threading
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import duckdb

from rankdrift.core.database import connect, cut_messages_mended, first_line
from rankdrift.core.dialects import DUCKDB, Dialect
from rankdrift.core.errors import BadLog, BadOption, MissingColumns, did_you_mean
from rankdrift.core.scratch import Scratch
from rankdrift.log.columns import Column, ColumnKind
from rankdrift.log.engines.duckdb.days import BY_DAY, DuckdbDays
from rankdrift.log.engines.duckdb.readers import (
    FOLDERS_DIFFER,
    FOLDERS_LEFT,
    check_objects,
    folders_tell,
    format_reader,
    parsed,
    reader,
    reading,
    unglobbed,
)
from rankdrift.log.engines.duckdb.remote import reach
from rankdrift.log.engines.engine import Progress
from rankdrift.log.engines.parquet import check_schemas, rows, with_statistics
from rankdrift.log.formats import FORMATS
from rankdrift.log.formats.format import FILE_NAME, Fields, Format, Shape, fitted
from rankdrift.log.formats.recognising import as_table, check_fields, choose, look, look_at
from rankdrift.log.options import Options
from rankdrift.log.sources import TEXT, Files, Frame, Source, Stream, Table, cannot_tell, find
from rankdrift.log.sql.plan import SCHEMA, Plan, Step, spent

_ROW_GROUP = 61_440  # of a copy: half of what is usual, so that dictionaries stay in the caches
LONG_STEP = 1.0
"""Seconds: a step that takes so long leaves memory behind that is worth giving back."""
_INTEGERS = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"}
_KINDS: dict[str, ColumnKind] = {
    "varchar": "text", "boolean": "bool", "date": "date",
    "timestamp": "timestamp", "timestamp_s": "timestamp", "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp", "timestamp with time zone": "instant",
    "ubigint": "huge", "hugeint": "huge", "uhugeint": "huge", "bignum": "huge",
    "float": "float", "double": "float", "decimal": "float",
    "list": "list", "array": "list", "struct": "nested", "map": "nested", "union": "nested",
}  # fmt: skip


def open_engine(source: Any, options: Options) -> "DuckdbEngine":
    """What `rankdrift.log.engines.choosing` calls."""
    name = options.format
    known = FORMATS.get(name) if name and name in FORMATS else None
    reads = {"json": "json", "lines": TEXT}
    found = find(
        source,
        format=None if known else name,
        table=options.table,
        every=known is not None,
        elsewhere=reads.get(known.reads) if known else None,
        more=FORMATS.names,
    )
    return DuckdbEngine(found, memory=options.memory, threads=options.threads, options=options)


class DuckdbEngine:
    """One in-memory database with the log as the view `rd_log`.

    Parameters
    ----------
    source
        From `rankdrift.log.sources.find`.
    memory
        What DuckDB may use, such as "2GB".
    threads
        How many it may use.
    options
        What is said of the log, to know its format by; None reads it by its columns.
    """

    dialect: Dialect = DUCKDB
    source = "rd_log"
    format: Format | None = None

    def __init__(
        self,
        source: Source,
        *,
        memory: str | None = None,
        threads: int | None = None,
        options: Options | None = None,
    ) -> None:
        _refuse_bzip2(source)
        self._folder = Scratch()
        self.staged: str | None = None  # the file that text formats were parsed into
        self._wanted: frozenset[str] | None = None  # of a known format: the columns to copy, or all
        self.rows_sql = ""  # of a known format: the SELECT from its files to its rows
        self._stream_kept = False
        self._con = self._connect(memory, threads)
        self.input = source = reach(self._con, source)
        self._where = options.where if options else None
        with self.reading():
            self.folders = folders_tell(self._con, source)
            self._open_log(source, options)
            self.columns: Mapping[str, Column] = (
                self.format.as_columns() if self.format else self._describe()
            )
        check_objects(source, self.columns)

    def _connect(self, memory: str | None, threads: int | None) -> duckdb.DuckDBPyConnection:
        config: dict[str, Any] = {
            "temp_directory": self.path("spill"),
            "preserve_insertion_order": "false",
        }
        if memory:
            config["memory_limit"] = memory
        if threads:
            config["threads"] = threads
        try:
            con = connect(watched=True, **config)
        except duckdb.Error as error:
            raise BadOption(
                f"Cannot use memory {memory!r}: {first_line(error)} Write memory as 800MB or 2GB."
            ) from None
        con.execute("SET TimeZone = 'UTC'")
        con.execute("SET parquet_metadata_cache = true")
        # Keys of clicked pairs are spread over the whole range: to sift by their least and greatest
        # costs every row and leaves out none.
        con.execute("SET disabled_optimizers = 'join_filter_pushdown'")
        return con

    def reading(self) -> AbstractContextManager[None]:
        """What goes wrong inside, told of this log."""
        return reading(self.input, self._where)

    # -- opening -------------------------------------------------------------------------------

    def _open_log(self, source: Source, options: Options | None) -> None:
        """Let `rd_log` be the log as its columns have it, or the rows of a known format."""
        text = isinstance(source, Files) and source.format != "parquet"
        if options and isinstance(source, Files) and text:
            self.format = choose(look(source, self._con), options)
            if self.format and not as_table(self.format, source):
                self._take_format(self.format, *format_reader(source, self.format, lenient=False))
                return
            if source.format == TEXT:
                raise cannot_tell(source.paths[0])
        self._con.execute(f"CREATE VIEW main.rd_log AS SELECT * FROM {self._open(source)}")
        if not options:
            return
        relation = self._con.sql("SELECT * FROM rd_log LIMIT 0")
        shape = dict(zip(relation.columns, map(_shape, relation.types), strict=True))
        if not text:
            self.format = choose(look_at(shape), options)
        if self.format:
            self._con.execute("DROP VIEW main.rd_log")
            if isinstance(source, Files):
                shape |= {FILE_NAME: "text"}
            opened = f"SELECT * FROM {self._open(source, filename=True)}"
            if self._lacks_structs(source, shape):
                opened = f"WITH rd_whole AS MATERIALIZED ({opened}) SELECT * FROM rd_whole"
            self._take_format(self.format, f"({opened})", shape)

    def _lacks_structs(self, source: Source, shape: Shape) -> bool:
        """Is a struct in some of several Parquet files alone? DuckDB 2.0 fails when it is asked for
        a field of it, and must read it whole first."""
        structs = [name for name, inner in shape.items() if isinstance(inner, Mapping)]
        if not isinstance(source, Files) or len(source.paths) == 1 or not structs:
            return False
        listed = DUCKDB.literals(unglobbed(source.paths))
        there = self._con.sql(
            f"SELECT name, count(DISTINCT file_name) FROM parquet_schema([{listed}])"
            f" WHERE name IN ({DUCKDB.literals(structs)}) GROUP BY name"
        ).fetchall()
        return any(files < len(source.paths) for _, files in there)

    def _take_format(self, format: Format, read: str, shape: Shape) -> None:
        if isinstance(self.input, Files):
            format.check_files(self.input.paths)
        source, shape = fitted(format, f"{read} AS rd_read", shape, DUCKDB, parsed)
        check_fields(format, shape)
        self.rows_sql = format.select(Fields(shape, DUCKDB), source)
        if not self._copied:
            self._name_rows(f"({self.rows_sql}) AS rd_rows")

    def _name_rows(self, rows: str, lowest: str | None = None) -> None:
        assert self.format
        numbered = self._kept(self.format).numbered(rows, DUCKDB, lowest)
        self._con.execute(f"CREATE OR REPLACE VIEW main.rd_log AS {numbered}")

    def _kept(self, format: Format) -> Format:
        """The format with those of its columns that are copied."""
        if self._wanted is None:
            return format
        kept = {name: told for name, told in format.origins.items() if name in self._wanted}
        return replace(format, origins=kept)

    def _open(self, source: Source, filename: bool = False) -> str:
        if isinstance(source, Frame):
            self._con.register("rd_frame", source.table)
            return "rd_frame"
        if isinstance(source, Table):
            return self._attach(source)
        if isinstance(source, Stream):
            return self._keep(source)
        return reader(source.paths, source.format, filename=filename, folders=self.folders)

    def _keep(self, source: Stream) -> str:
        """What can be read but once is written to a file: the plan reads its rows several times.
        Not to Parquet, which has no whole numbers of 128 bits."""
        kept = "rd_kept.main.rows"
        if self._stream_kept:
            return kept
        self._con.execute(f"ATTACH {DUCKDB.literal(self.path('stream.duckdb'))} AS rd_kept")
        self._con.register("rd_stream", source.reader)
        self.execute(f"CREATE TABLE {kept} AS SELECT * FROM rd_stream", "stream", None)
        self._con.unregister("rd_stream")
        self._stream_kept = True
        if not self._con.sql(f"SELECT 1 FROM {kept} LIMIT 1").fetchall():
            raise BadLog(
                f"No row came from the {type(source.reader).__name__}. A stream can be read once: "
                "if something has read it before, make it anew."
            )
        return kept

    def _attach(self, source: Table) -> str:
        self._con.execute(
            f"ATTACH IF NOT EXISTS {DUCKDB.literal(source.path)} AS rd_db (READ_ONLY)"
        )
        names = [
            (schema, name)
            for schema, name in self._con.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_catalog = 'rd_db' ORDER BY ALL"
            ).fetchall()
        ]
        labels = {
            name if schema == "main" else f"{schema}.{name}": (schema, name)
            for schema, name in names
        }
        if not labels:
            raise BadLog(f"{source.path!r} has no table. Give another file.")
        wanted = source.name or (next(iter(labels)) if len(labels) == 1 else None)
        if wanted not in labels:
            hint = did_you_mean(wanted, labels) if wanted else ""
            what = f"has no table {wanted!r}" if wanted else f"has {len(labels):,} tables"
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

    def prepare(self, used: list[str], spare: list[str]) -> list[str]:
        """See `Engine`."""
        source, columns = self.input, [self.columns[name] for name in used]
        if self.format or not isinstance(source, Files):
            return []
        with self.reading():
            told = source.told_by_folders
            remarks = [] if self.folders else [FOLDERS_LEFT.format(", ".join(sorted(told)))]
            unread = told - {name.lower() for name in self.columns}
            remarks += [FOLDERS_DIFFER.format(", ".join(sorted(unread)))] if unread else []
            if source.format == "csv":
                self._check_headers(source, columns)
            if source.format != "parquet":
                return remarks
            paths = unglobbed(source.paths)
            every = [*columns, *(self.columns[name] for name in spare)]
            self.columns = {**self.columns, **with_statistics(self._con, paths, every)}
            several = len(source.paths) > 1
            return remarks + (check_schemas(self._con, paths, columns) if several else [])

    def _check_headers(self, source: Files, columns: list[Column]) -> None:
        """A CSV file that lacks a column would be read as if all were missing there."""
        for path in source.paths if len(source.paths) > 1 else ():
            there = self._con.sql(
                f"SELECT * FROM {reader((path,), 'csv', folders=self.folders)} LIMIT 0"
            ).columns
            for column in columns:
                if column.path[0] not in there:
                    raise MissingColumns(
                        f"{path!r} has no column {column.path[0]!r} in its first line. Give it a "
                        "header like the other files, or leave it out."
                    )

    def narrow(self, names: list[str] | None) -> None:
        """See `Engine`."""
        if self.format and not self.staged:
            self._wanted = None if names is None else frozenset(names)

    def fingerprint(self) -> str | None:
        """See `Engine`."""
        if isinstance(self.input, Files) and not any("://" in p for p in self.input.paths):
            return self.input.fingerprint()
        if isinstance(self.input, Table):
            path = self.input.path
            unmerged = f"{path}.wal"  # of a writer that was killed
            paths = (path, unmerged) if os.path.exists(unmerged) else (path,)
            return Files(paths, "duckdb").fingerprint()
        return None

    def rows(self) -> int | None:
        """See `Engine`."""
        with self.reading():
            if isinstance(self.input, Files):
                if self.input.format != "parquet" or self.format:
                    return None
                return rows(self._con, unglobbed(self.input.paths))
            return int(self.query("SELECT count(*) FROM rd_log")[0][0])

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The database."""
        return self._con

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Engine`."""
        with self.reading():
            self._stage()
            self.execute(sql, "query", None)
            return self._con.fetchall()

    # -- running -------------------------------------------------------------------------------

    def run(self, plan: Plan, progress: Progress | None = None) -> duckdb.DuckDBPyConnection:
        """See `Engine`."""
        self._forget()
        return self._take(plan, plan.steps, progress)

    def fetch(self, plan: Plan, progress: Progress | None = None) -> dict[str, Any]:
        """See `Engine`."""
        self._forget()
        *before, last = plan.steps
        with self._in_schema(progress):
            for step in before:
                self._make(step, step.keep, progress)
            return self.execute(last.sql, last.name, progress, fetch=True)

    def run_part(self, plan: Plan, first: bool, progress: Progress | None = None) -> None:
        """See `PartByPart`."""
        if first:
            self._forget()
        self._take(plan, plan.of_part, progress, added=() if first else plan.added)

    def run_whole(self, plan: Plan, progress: Progress | None = None) -> duckdb.DuckDBPyConnection:
        """See `PartByPart`."""
        return self._take(plan, plan.of_whole, progress)

    def _forget(self) -> None:
        self._con.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")

    def _take(
        self,
        plan: Plan,
        steps: Sequence[Step],
        progress: Progress | None,
        added: Container[str] = (),
    ) -> duckdb.DuckDBPyConnection:
        """Take these steps of a plan; those called `added` add to what they have found before."""
        over = spent(plan.steps)
        with self._in_schema(progress):
            for step in steps:
                began = time.monotonic()
                with self._sides(step):
                    if step.name in added:
                        self.execute(f"INSERT INTO {step.name} {step.sql}", step.name, progress)
                    else:
                        keep = step.keep or step.adds or step is steps[-1]
                        self._make(step, keep, progress)
                for name in over.get(step.name, ()):
                    self._con.execute(f"DROP TABLE IF EXISTS {name}")
                if time.monotonic() - began >= LONG_STEP:
                    self._give_back()
        return self._con

    @contextmanager
    def _sides(self, step: Step) -> Iterator[None]:
        """While a step is made whose joins hold in memory what is written second."""
        if not step.second_held:
            yield
            return
        [(off,)] = self._con.sql("SELECT current_setting('disabled_optimizers')").fetchall()
        self._con.execute(f"SET disabled_optimizers = '{off},build_side_probe_side'")
        try:
            yield
        finally:
            self._con.execute(f"SET disabled_optimizers = '{off}'")

    def _give_back(self) -> None:
        """Return memory that a step is done with to the system: DuckDB's allocator keeps it, and
        the next step then takes other. It lets go of all when threads come or go."""
        [(threads,)] = self._con.sql("SELECT current_setting('threads')").fetchall()
        for many in (threads + 1, threads):
            self._con.execute(f"SET threads = {many}")

    def _make(self, step: Step, keep: bool, progress: Progress | None) -> None:
        thing = "TABLE" if keep else "VIEW"
        sql = f"CREATE OR REPLACE {thing} {step.name} AS {step.sql}"
        self.execute(sql, step.name, progress)

    @contextmanager
    def _in_schema(self, progress: Progress | None) -> Iterator[None]:
        """Where the steps of a plan find each other."""
        with self.reading():
            self._stage(progress)
            self._con.execute(f"SET schema = {DUCKDB.literal(SCHEMA)}")
            try:
                yield
            finally:
                self._con.execute("SET schema = 'main'")

    def execute(
        self, sql: str, name: str, progress: Progress | None, fetch: bool = False
    ) -> dict[str, Any]:
        """Run in a thread, so that progress is seen and Ctrl-C stops it at once; the columns of
        what it selects, if they are to be fetched."""
        failed: list[BaseException] = []
        found: dict[str, Any] = {}
        # Not Thread.join: interrupted, it takes a thread that still runs for a finished one.
        finished = threading.Event()

        def work() -> None:
            try:
                with cut_messages_mended():
                    result = self._con.execute(sql)
                    if fetch:
                        found.update(result.fetchnumpy())
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
        if failed and self._wanted is not None and isinstance(failed[0], duckdb.BinderException):
            self._widen(progress)  # it may ask for a column that was not copied
            return self.execute(sql, name, progress, fetch)
        if failed:
            raise failed[0]
        if progress:
            progress(name, 1.0)
        return found

    def _widen(self, progress: Progress | None) -> None:
        """Copy the log again, with all its columns."""
        self._wanted, self.staged = None, None
        shutil.rmtree(self.path(BY_DAY), ignore_errors=True)
        if not self._copied:
            self._name_rows(f"({self.rows_sql}) AS rd_rows")
        self._stage(progress)

    @property
    def _copied(self) -> bool:
        """Is the log read from a copy? Text formats are parsed once, into Parquet: the plan reads
        its rows several times."""
        again = not self.format or self.format.read_again
        return isinstance(self.input, Files) and not (self.input.format == "parquet" and again)

    def _stage(self, progress: Progress | None = None) -> None:
        """Make the copy, if there is none."""
        source = self.input
        if self.staged or not self._copied or not isinstance(source, Files):
            return
        staged = self.path("staged.parquet")
        read = reader(source.paths, source.format, filename=True, folders=self.folders)
        try:
            self._write(
                self._to_copy() if self.format else f"SELECT * FROM {read}", staged, progress
            )
        except duckdb.InvalidInputException:
            if not self.format or self.format.reads != "json":
                raise
            # Some value is of another type than others of its field.
            self._take_format(self.format, *format_reader(source, self.format))
            self._write(self._to_copy(), staged, progress)
        parsed = f"read_parquet({DUCKDB.literal(staged)})"
        if self.format:
            self._name_rows(parsed, self._lowest(parsed))
        else:
            self._con.execute(
                "CREATE OR REPLACE VIEW main.rd_log AS SELECT * EXCLUDE (rd_filename)"
                f" FROM {parsed}"
            )
        self.staged = staged

    def _lowest(self, rows: str) -> str | None:
        """The least ordinal is looked for once: every step reads the rows."""
        low = self.format and self.format.lowest(rows, DUCKDB)
        if low:
            self._con.execute(f"CREATE OR REPLACE TABLE main.rd_lowest AS {low}")
        return "main.rd_lowest" if low else None

    def _to_copy(self) -> str:
        """The rows of a known format, with the columns that are wanted: to write one costs about as
        much as to make it out."""
        assert self.format
        assert isinstance(self.input, Files)
        told = self._wanted is None or FILE_NAME in self._wanted
        file = [FILE_NAME] if told and len(self.input.paths) > 1 else []
        names = ", ".join(map(DUCKDB.quote, (*self._kept(self.format).stored, *file)))
        return f"SELECT {names} FROM ({self.rows_sql})"

    def _write(self, rows: str, path: str, progress: Progress | None) -> None:
        ordered = bool(self.format and self.format.keeps_order)
        self._con.execute(f"SET preserve_insertion_order = {ordered}")
        try:
            self.execute(
                f"COPY ({rows}) TO {DUCKDB.literal(path)} (FORMAT parquet, COMPRESSION snappy,"
                f" ROW_GROUP_SIZE {_ROW_GROUP}, WRITE_BLOOM_FILTER false)",
                f"parsing {getattr(self.input, 'format', '')}",
                progress,
            )
        finally:
            self._con.execute("SET preserve_insertion_order = false")

    def days(self, day_sql: str, column: Column, window: int) -> DuckdbDays:
        """See `Engine`."""
        with self.reading():
            self._stage()
            return DuckdbDays(self, day_sql, column, window)

    def path(self, name: str) -> str:
        """A file of that name in the folder that goes with the engine."""
        return str(self._folder.path / name)


def _refuse_bzip2(source: Source) -> None:
    packed = (
        [p for p in source.paths if p.lower().endswith(".bz2")] if isinstance(source, Files) else []
    )
    if packed:
        raise BadLog(
            f"{packed[0]!r} is compressed with bzip2, which only Spark reads here. Unpack it "
            "(bunzip2), compress it with gzip or zstd instead, or use --engine spark."
        )


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


def _shape(type_: Any) -> Any:
    """What a column holds, down to the fields of structs in lists."""
    if type_.id in ("list", "array"):
        return [_shape(type_.children[0][1])]
    if type_.id == "struct":
        return {name: _shape(child) for name, child in type_.children}
    return next(iter(_columns(("",), type_))).kind
