"""The distributed engine: Spark reduces the log to counts where it lies; only those come home."""

import glob
import hashlib
import os
import re
import uuid
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB, SPARK, Dialect
from rankdrift.core.errors import BadLog, BadOption, MissingExtra
from rankdrift.log.columns import Column, ColumnKind
from rankdrift.log.engines.duckdb.readers import broken_line, folders_tell
from rankdrift.log.engines.engine import Day, Progress
from rankdrift.log.engines.java import java, quiet, why_not
from rankdrift.log.engines.parquet import check_schemas
from rankdrift.log.engines.spark_progress import watched
from rankdrift.log.formats import FORMATS
from rankdrift.log.formats.format import FILE_NAME, Fields, Format, fitted
from rankdrift.log.formats.recognising import as_table, check_fields, choose, look, look_at
from rankdrift.log.options import Options
from rankdrift.log.sources import TEXT, Files, cannot_tell, find
from rankdrift.log.sql.plan import (
    CANDIDATES,
    CELLS,
    KNOWN,
    PAIRS,
    RESULT_TABLE,
    SCHEMA,
    TALLY,
    TWICE,
    USED,
    Plan,
    renamed,
)

with warnings.catch_warnings():  # whether it likes the pandas that is there, which we do not use
    warnings.simplefilter("ignore")
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
        from pyspark.sql import types as spark_types
    except ImportError as error:
        raise MissingExtra(
            f"Spark is not installed ({error}). Install it: pip install 'rankdrift[spark]'"
        ) from None

_KINDS: dict[type, ColumnKind] = {
    spark_types.BooleanType: "bool", spark_types.DateType: "date",
    spark_types.TimestampType: "instant", spark_types.TimestampNTZType: "timestamp",
    spark_types.FloatType: "float", spark_types.DoubleType: "float",
    spark_types.DecimalType: "float", spark_types.ArrayType: "list",
    spark_types.StructType: "nested", spark_types.MapType: "nested",
    spark_types.ByteType: "int", spark_types.ShortType: "int",
    spark_types.IntegerType: "int", spark_types.LongType: "int",
    spark_types.StringType: "text", spark_types.BinaryType: "other",
}  # fmt: skip
# Read several times, and costly to make again. Those in _FIRST are made before they are used, so
# that Spark knows how small they are and sends them to the data instead of sorting the data.
_FIRST = (TALLY, KNOWN, CANDIDATES, TWICE, CELLS, PAIRS, USED)
_PLAN_LENGTH = 2_000  # characters
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_FEWEST_PARTS = 8
_CORRUPT = "_corrupt_record"  # Spark's name for it


def open_engine(source: Any, options: Options) -> "SparkEngine":
    """What `rankdrift.log.engines.choosing` calls."""
    return SparkEngine(
        source,
        session=options.session,
        master=options.master,
        format=None if options.format in FORMATS else options.format,
        table=options.table,
        options=options,
    )


class SparkEngine:
    """A DataFrame, known to SQL by a name that nobody else uses."""

    dialect: Dialect = SPARK
    format: Format | None = None

    def __init__(
        self,
        source: Any,
        *,
        session: Any = None,
        master: str | None = None,
        format: str | None = None,
        table: str | None = None,
        options: Options | None = None,
    ) -> None:
        self._files: Files | None = None
        with reading(source):
            self._spark = session or _session_of(source) or _session(master)
            self._frame = self._open(source, format, table, options)
            if options and not self.format:
                self.format = choose(look_at(_shape(self._frame.schema)), options)
            if self.format:
                self._frame = self._rows(self.format, self._frame)
            self.source = f"rd_{uuid.uuid4().hex}"
            self._frame.createOrReplaceTempView(self.source)
            weakref.finalize(self, _forget, self._spark, self.source)
            self.columns: Mapping[str, Column] = {
                column.name: column
                for field in self._frame.schema.fields
                for column in _columns((field.name,), field.dataType)
            }

    def _rows(self, format: Format, frame: Any) -> Any:
        """The rows of a log in a known format."""
        name = f"rd_{uuid.uuid4().hex}"
        frame.createOrReplaceTempView(name)
        weakref.finalize(self, _forget, self._spark, name)
        if self._files:
            format.check_files(self._files.paths)
        source, shape = fitted(format, name, _shape(frame.schema), SPARK, _parsed)
        check_fields(format, shape)
        select = format.select(Fields(shape, SPARK), source)
        return self._spark.sql(format.numbered(f"({select}) AS rd_rows", SPARK))

    def _open(
        self, source: Any, format: str | None, table: str | None, options: Options | None
    ) -> Any:
        if hasattr(source, "schema") and hasattr(source, "createOrReplaceTempView"):
            return source
        if table and not source:
            return self._spark.table(table)
        if isinstance(source, str) and not os.path.exists(source) and self._has_table(source):
            return self._spark.table(source)
        if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
            raise BadOption(
                "Spark does not read tables in this process's memory. Leave out engine='spark', "
                "or make a Spark DataFrame of it: spark.createDataFrame(table)."
            )
        known = options is not None and options.format in FORMATS
        found = find(source, format=format, every=known, more=FORMATS.names)
        if not isinstance(found, Files):
            raise BadOption("A DuckDB file is read by DuckDB: leave out engine='spark'.")
        if not any("://" in path for path in found.paths):
            self._files = found
            if options and found.format != "parquet":
                self.format = choose(look(found), options)
        if self.format and not as_table(self.format, found):
            return _read_format(self._spark, found, self.format)
        if found.format == TEXT:
            raise cannot_tell(found.paths[0])
        return _read(self._spark, found)

    def _has_table(self, name: str) -> bool:
        plain = re.fullmatch(r"[\w`.-]+", name) is not None and "/" not in name
        return plain and bool(self._spark.catalog.tableExists(name))

    # -- what engines tell ---------------------------------------------------------------------

    def prepare(self, used: list[str], spare: list[str]) -> list[str]:
        """See `Engine`."""
        files = self._files
        if self.format or files is None or files.format != "parquet" or len(files.paths) == 1:
            return []
        with connect() as con:
            paths = [glob.escape(path) for path in files.paths]
            return check_schemas(con, paths, [self.columns[name] for name in used])

    def narrow(self, names: list[str] | None) -> None:
        """See `Engine`: nothing is copied."""

    def fingerprint(self) -> str | None:
        """See `Engine`."""
        return self._files.fingerprint() if self._files else None

    def rows(self) -> int | None:
        """See `Engine`."""
        return None

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Engine`."""
        with reading():
            return [tuple(row) for row in self._spark.sql(sql).collect()]

    # -- running -------------------------------------------------------------------------------

    def run(self, plan: Plan, progress: Progress | None = None) -> duckdb.DuckDBPyConnection:
        """See `Engine`."""
        with reading(), self._short_plans():
            try:
                return self._run(plan, progress, checkpoints=True)
            except (PySparkException, Py4JError) as error:
                if _LOST not in str(error):
                    raise
            # A worker died, and with it the only copy of a result whose making was forgotten. Now
            # nothing is forgotten: what the next one to die takes along is made again.
            return self._run(plan, progress, checkpoints=False)

    def fetch(self, plan: Plan, progress: Progress | None = None) -> dict[str, Any]:
        """See `Engine`."""
        with self.run(plan, progress) as connection:
            return dict(connection.execute(f"FROM {RESULT_TABLE}").fetchnumpy())

    def _run(
        self, plan: Plan, progress: Progress | None, checkpoints: bool
    ) -> duckdb.DuckDBPyConnection:
        names: dict[str, str] = {}
        kept: list[Any] = []
        group = f"rankdrift-{uuid.uuid4().hex}"
        # The work of a step that is not settled is done by the next that is.
        told = [step.name for step in plan.steps[:-1] if step.settled or step.name in _FIRST]
        told.append(plan.steps[-1].name)
        with (
            self._cancelled_on_interrupt(group) as context,
            watched(context, group, progress, told[0]) as watch,
        ):
            try:
                for step in plan.steps:
                    frame = self._spark.sql(renamed(step.sql, names))
                    if step is plan.steps[-1]:
                        return _in_duckdb(frame.toArrow())
                    if step.name == CANDIDATES and "h" in frame.columns:
                        # All that follows groups by the hash: bring what belongs together to
                        # one place once.
                        frame = frame.repartition("h")
                    if step.settled and checkpoints:
                        frame = frame.localCheckpoint()
                    elif step.keep or step.settled:
                        frame = frame.persist()
                        kept.append(frame)
                    if step.name in _FIRST:
                        frame.count()
                    if progress and step.name in told:
                        progress(step.name, 1.0)
                        if watch:
                            watch.begin(told[told.index(step.name) + 1])
                    names[step.name] = f"{group.replace('-', '_')}_{step.name}"
                    frame.createOrReplaceTempView(names[step.name])
            finally:
                for frame in reversed(kept):
                    frame.unpersist()
                for name in names.values():
                    _forget(self._spark, name)
        raise AssertionError("a plan has steps")

    @contextmanager
    def _cancelled_on_interrupt(self, group: str) -> Iterator[Any]:
        """Ctrl-C stops what runs on the cluster too. Gives Spark's context, if it has one."""
        context = getattr(self._spark, "sparkContext", None) if _is_classic(self._spark) else None
        if context:
            context.setJobGroup(group, "rankdrift harvest", True)
        try:
            yield context
        except KeyboardInterrupt:
            if context:
                context.cancelJobGroup(group)
            raise
        finally:
            if context:
                context.setLocalProperty("spark.jobGroup.id", None)

    @contextmanager
    def _short_plans(self) -> Iterator[None]:
        """Spark writes out the whole plan, down to the log, whenever a stage ends, for a page that
        hardly anybody opens: for the small last steps that takes as long as the work."""
        conf, name = self._spark.conf, "spark.sql.maxPlanStringLength"
        try:
            before = conf.get(name)
            conf.set(name, _PLAN_LENGTH)
        except PySparkException:  # a cluster may not let its users set it
            yield
            return
        try:
            yield
        finally:
            conf.set(name, before)

    # -- by day --------------------------------------------------------------------------------

    def days(self, day_sql: str, column: Column, window: int) -> "SparkDays":
        """See `Engine`."""
        with reading():
            file = "concat_ws('|', _metadata.file_path, _metadata.file_size,"
            file += " _metadata.file_modification_time)"
            try:
                named = self._frame.selectExpr(f"{day_sql} AS day", f"{file} AS file")
                found = named.groupBy("day", "file").count().collect()
            except PySparkException:  # not from files
                named = self._frame.selectExpr(f"{day_sql} AS day", "CAST(NULL AS STRING) AS file")
                found = named.groupBy("day", "file").count().collect()
        files: dict[str, dict[str | None, int]] = {}
        for day, name, rows in found:
            files.setdefault(str(day or ""), {})[name] = rows
        return SparkDays(
            self.source,
            [
                Day(day, sum(of_day.values()), _fingerprint(of_day))
                for day, of_day in sorted(files.items())
            ],
        )


@dataclass(frozen=True)
class SparkDays:
    """The days of a log that Spark reads: see `Days`."""

    source: str
    all: list[Day]
    apart: bool = False

    def part(self, day: Day) -> tuple[str, str | None]:
        """See `Days`."""
        return self.source, None


def _session_of(source: Any) -> Any:
    return getattr(source, "sparkSession", None)


def _session(master: str | None) -> Any:
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    builder = (
        SparkSession.builder.master(master or "local[*]")
        .appName("rankdrift")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    try:
        with java(), quiet():
            session = builder.getOrCreate()
            _as_many_parts_as_needed(session)
            return session
    except PySparkException as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise MissingExtra(why_not()) from None


def _as_many_parts_as_needed(session: Any) -> None:
    """Spark cuts everything into 200 parts unless told otherwise, which is for clusters: on one
    machine most of the time would go into looking after empty ones."""
    context = session.sparkContext if _is_classic(session) else None
    name = "spark.sql.shuffle.partitions"
    if context and context.master.startswith("local") and session.conf.get(name) == "200":
        session.conf.set(name, max(_FEWEST_PARTS, 4 * context.defaultParallelism))


def _is_classic(session: Any) -> bool:
    return not type(session).__module__.startswith("pyspark.sql.connect")


def _read_format(session: Any, files: Files, format: Format) -> Any:
    """The fields of a known format from text files; what is of another type is NULL."""
    if format.reads == "json":
        fields = (f"{SPARK.quote(name)} {_ddl(inner)}" for name, inner in format.read.items())
        reader = session.read.schema(", ".join(fields))
        whole = files.whole
        _refuse_several(whole)
        lines = [path for path in files.paths if path not in whole]
        frames = [
            reader.option("multiLine", over_lines).json(_for_spark(paths))
            for over_lines, paths in ((False, lines), (True, whole))
            if paths
        ]
        frame = reduce(lambda one, other: one.union(other), frames)
        alone = ", ".join(SPARK.quote(name) for name in format.spelt or format.shape)
        lists = format.documents(f"array(struct({alone}))", "array()", SPARK)
        return frame.selectExpr(f"inline(concat({lists}))") if lists else frame
    return session.read.text(_for_spark(files.paths)).selectExpr(
        "nullif(value, '') AS line",
        "monotonically_increasing_id() AS rd_line",
        f"input_file_name() AS {FILE_NAME}",
    )


def _for_spark(paths: Iterable[str]) -> list[str]:
    return [path if "://" in path else _literal_path(path) for path in paths]


def _refuse_several(whole: Iterable[str]) -> None:
    """Of several documents that are not a line each, Spark would read the first alone."""
    with connect() as con:
        for path in whole:
            read = f"read_json_objects({DUCKDB.literal(glob.escape(path))}, format='unstructured')"
            try:
                found = con.sql(f"SELECT 1 FROM {read} LIMIT 2").fetchall()
            except duckdb.Error:  # damaged, or too long: Spark will say what is wrong
                continue
            if len(found) > 1:
                raise BadLog(
                    f"{path!r} has several documents over more than a line each, which Spark does "
                    "not read. Have each on a line of its own (`jq -c .` writes them so), or use "
                    "--engine duckdb."
                )


def _parsed(text: str, shape: Any) -> str:
    """What a text of JSON says, as a shape; NULL where it is no JSON."""
    return f"from_json({text}, {SPARK.literal(_ddl(shape))})"


def _ddl(shape: Any) -> str:
    """A shape as Spark writes it, every value a text."""
    if isinstance(shape, list):
        return f"array<{_ddl(shape[0])}>"
    if isinstance(shape, Mapping):
        fields = ", ".join(f"{SPARK.quote(name)}: {_ddl(inner)}" for name, inner in shape.items())
        return f"struct<{fields}>"
    return "string"


def _shape(type_: Any) -> Any:
    """What a column holds, down to the fields of structs in lists."""
    if isinstance(type_, spark_types.StructType):
        return {field.name: _shape(field.dataType) for field in type_.fields}
    if isinstance(type_, spark_types.ArrayType):
        return [_shape(type_.elementType)]
    return _kind(type_)


def _read(session: Any, files: Files) -> Any:
    reader = session.read
    paths = _for_spark(files.paths)
    root = _partition_root(files.paths)
    if root and _folders_tell(files):
        reader = reader.option("basePath", root)
    if files.format == "parquet":
        try:
            frame = reader.option("mergeSchema", len(paths) > 1).parquet(*paths)
        except (PySparkException, Py4JError) as error:
            if "CANNOT_MERGE" not in str(error):
                raise
            frame = _widened([reader.parquet(path) for path in paths])
    elif files.format == "json":
        frame = reader.option("multiLine", files.array).json(paths)
        _refuse_broken(frame)
    else:
        ending = os.path.splitext(re.sub(r"\.(gz|gzip|zst|zstd|bz2)$", "", paths[0].lower()))[1]
        separator = {".tsv": "\t", ".psv": "|"}.get(ending, ",")
        cells = reader.options(header=True, sep=separator, quote='"', escape='"', multiLine=True,
                               enforceSchema=False)  # fmt: skip
        frames = [cells.csv(_for_spark(some)) for some in _alike(files.paths, separator)]
        frame = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    return frame


def _alike(paths: Sequence[str], separator: str) -> list[list[str]]:
    """Files of cells by the columns they begin with: Spark goes by their order alone. Those that
    are elsewhere are taken to be alike."""
    if len(paths) == 1 or any("://" in path for path in paths):
        return [list(paths)]
    found: dict[tuple[str, ...], list[str]] = {}
    with connect() as con:
        for path in paths:
            options = f"all_varchar = true, header = true, delim = {DUCKDB.literal(separator)}"
            read = f"read_csv({DUCKDB.literal(glob.escape(path))}, {options})"
            try:
                columns = con.sql(f"FROM {read}").columns
            except duckdb.Error:  # damaged: Spark will say what is wrong
                columns = []
            found.setdefault(tuple(columns), []).append(path)
    return list(found.values())


def _refuse_broken(frame: Any) -> None:
    """BadLog for a line that is no JSON: Spark makes a row of it that has nothing, and this column
    for what it says."""
    if _CORRUPT not in frame.columns:
        return
    broken = frame.where(f"{SPARK.quote(_CORRUPT)} IS NOT NULL")
    found = broken.selectExpr("*", f"input_file_name() AS {FILE_NAME}").first()
    if found:
        path = unquote(urlsplit(found[FILE_NAME]).path)
        raise BadLog(broken_line(path, None, "Spark cannot read it"))


def _folders_tell(files: Files) -> bool:
    """As for DuckDB: what files say themselves comes before the names of folders."""
    with connect() as con:
        return folders_tell(con, files)


def _partition_root(paths: Sequence[str]) -> str | None:
    """The folder above the first one called like column=value."""
    folders = os.path.commonpath([os.path.dirname(p) for p in paths]) if paths else ""
    if "://" in "".join(paths) or not any("=" in os.path.dirname(path) for path in paths):
        return None
    parts = folders.split(os.sep)
    plain = next((i for i, part in enumerate(parts) if "=" in part), len(parts))
    return os.sep.join(parts[:plain]) or None


def _widened(frames: Sequence[Any]) -> Any:
    """Files whose types differ, as one: a column is as wide as its widest, or text."""
    kinds: dict[str, set[ColumnKind]] = {}
    for frame in frames:
        for field in frame.schema.fields:
            kinds.setdefault(field.name, set()).add(_kind(field.dataType))
    wide = {
        name: "bigint" if found == {"int"} else "double" if found <= {"int", "float"} else "string"
        for name, found in kinds.items()
    }
    same = {name for name, found in kinds.items() if len(found) == 1 and found != {"int"}}

    def widened(name: str) -> str:
        quoted = SPARK.quote(name)
        return quoted if name in same else f"CAST({quoted} AS {wide[name]}) AS {quoted}"

    cast = [frame.selectExpr(*(widened(f.name) for f in frame.schema.fields)) for frame in frames]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), cast)


def _literal_path(path: str) -> str:
    """Hadoop takes these for patterns."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _kind(type_: Any) -> ColumnKind:
    for known, kind in _KINDS.items():
        if isinstance(type_, known):
            return kind
    return "text"


def _columns(path: tuple[str, ...], type_: Any) -> Iterator[Column]:
    """The column, and the fields below it when it is a struct."""
    yield Column(path, _kind(type_))
    if isinstance(type_, spark_types.StructType):
        for field in type_.fields:
            yield from _columns((*path, field.name), field.dataType)


def _in_duckdb(result: Any) -> duckdb.DuckDBPyConnection:
    """An Arrow table, brought home as the result of a plan."""
    connection = connect()
    connection.execute(f"CREATE SCHEMA {SCHEMA}")
    connection.register("rd_result", result)
    connection.execute(f"CREATE TABLE {RESULT_TABLE} AS FROM rd_result")
    connection.unregister("rd_result")
    return connection


def _fingerprint(files: Mapping[str | None, int]) -> str | None:
    if None in files:
        return None
    names = sorted(unquote(str(name)) for name in files)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def _forget(session: Any, view: str) -> None:
    with suppress(Exception):  # the session has ended, and the view with it
        session.catalog.dropTempView(view)


def _cause(error: Any) -> str:
    """What lies behind an error of Spark's, in a sentence; nothing if nothing does."""
    origin, said = getattr(error, "_origin", None) or getattr(error, "java_exception", None), ""
    with suppress(PySparkException, Py4JError, AttributeError, TypeError):
        while origin is not None and (origin := origin.getCause()) is not None:
            said = str(origin.getMessage() or "").strip()
    return f"({said.splitlines()[0][:300]}) " if said else ""


@contextmanager
def reading(source: Any = None) -> Iterator[None]:
    """Spark's errors, as ours: the first line, without the JVM's stack."""
    named = isinstance(source, str | os.PathLike | list | tuple)
    what = f"{source!s}" if named else "the log with these columns and conditions"
    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = next((line for line in lines if not line.startswith(("An error", "JVM"))), "")
        said = re.sub(r"^(:\s*)?([\w.]+(Exception|Error):\s*)+", "", said)
        if "TIMESTAMP(NANOS" in said:
            raise BadLog(
                f"Spark cannot read {what}: it has times to the nanosecond, which Spark does not "
                "read from Parquet. Write them to the microsecond (in pandas: "
                "to_parquet(…, coerce_timestamps='us')), or use --engine duckdb."
            ) from None
        raise BadLog(
            f"Spark cannot read {what}: {said[:400]} {_cause(error)}"
            "Check the path, the column names and --where (it is Spark SQL on the log's own "
            "columns)."
        ) from None
