"""Where a log's rows are: files on disk, a table in a database file, or a table in memory."""

import glob
import gzip
import hashlib
import json
import os
import shlex
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from rankdrift.core.addresses import is_address, without_secrets
from rankdrift.core.errors import BadLog, BadOption, did_you_mean
from rankdrift.core.words import many

FORMATS = ("parquet", "csv", "json", "duckdb")
TEXT = "text"
"""What files are that are none of these by their names, nor by how they begin."""
_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".parq": "parquet",
    ".csv": "csv", ".tsv": "csv", ".psv": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".duckdb": "duckdb", ".ddb": "duckdb", ".db": "duckdb",
}  # fmt: skip
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_GZIP = (".gz", ".gzip")
_HERE = "file://"
_GIVERS = ("to_pyarrow_dataset", "to_arrow_batch_reader")  # of tables of Delta; scans of Iceberg
_SETTINGS = "rankdrift.toml"  # may be in the folder of the log
_LOOKED_AT = 80  # bytes of how a file begins
_Takes = Literal["all", "text", "named"]
_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd", ".bz2")
TRUTH = "truth.json"  # what a made-up log's true propensities are kept in, beside it


@dataclass(frozen=True)
class Files:
    """Files of one format, in name order; `names` tell them apart wherever the folder is moved."""

    paths: tuple[str, ...]
    format: str

    @property
    def names(self) -> dict[str, str]:
        """Path -> its part below the folder all files share."""
        if len(self.paths) == 1:
            return {self.paths[0]: os.path.basename(self.paths[0])}
        root = os.path.commonpath([os.path.dirname(p) for p in self.paths])
        return {path: os.path.relpath(path, root) for path in self.paths}

    @property
    def array(self) -> bool:
        """Whether this is JSON of one array, not an object a line."""
        return self.format == "json" and _begins(self.paths[0]).lstrip().startswith(b"[")

    @property
    def whole(self) -> tuple[str, ...]:
        """Of JSON, the files whose documents are not a line each: an array, or one over lines."""
        return tuple(path for path in self.paths if _over_lines(_begins(path)))

    @property
    def told_by_folders(self) -> set[str]:
        """Columns that folders' names tell, as in day=2024-05-05/part-0.parquet."""
        folders = {folder for path in self.paths for folder in Path(path).parts[:-1]}
        return {folder.split("=")[0].lower() for folder in folders if "=" in folder[1:]}

    def fingerprint(self, paths: Iterable[str] | None = None) -> str:
        """Changes when any of these files does (by name, size and time of change)."""
        digest = hashlib.sha256()
        chosen = set(paths) if paths is not None else set(self.paths)
        for path, name in sorted(self.names.items(), key=lambda item: item[1]):
            if path in chosen:
                try:
                    stat = os.stat(path)
                except OSError as error:
                    raise BadLog(f"Cannot read {path!r}: {error.strerror}.") from None
                digest.update(f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Table:
    """A table or view in a DuckDB file."""

    path: str
    name: str | None


@dataclass(frozen=True)
class Frame:
    """A pandas, Polars or Arrow table in memory, or an Arrow dataset: it can be read again."""

    table: Any


@dataclass(frozen=True)
class Stream:
    """Whatever else gives Arrow data, such as a reader of batches: it can be read once."""

    reader: Any


Source = Files | Table | Frame | Stream


def find(
    source: object,
    *,
    format: str | None = None,
    table: str | None = None,
    every: bool = False,
    elsewhere: str | None = None,
    more: Sequence[str] = (),
) -> Source:
    """What the user means by a source.

    Parameters
    ----------
    source
        A path, a glob, a folder or several of them; a pandas, Polars or Arrow table; an Arrow
        dataset, a relation of DuckDB's, or anything with `__arrow_c_stream__`.
    format
        One of `FORMATS`; by default as the names of the files say.
    table
        Of a DuckDB file.
    every
        Of a folder, are files meant whose names do not tell what they are?
    elsewhere
        What files on another machine are whose names do not tell: they are not looked into.
    more
        Names of formats that somebody else knows, for the error.

    Raises
    ------
    BadOption
        There is no such format, or nothing that can be read.
    BadLog
        There is no such file, or files are of different formats.
    """
    if format is not None and format not in FORMATS:
        raise BadOption(
            f"No format {format!r}.{did_you_mean(format, (*FORMATS, *more))} There are "
            f"{', '.join((*FORMATS, *more))}."
        )
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, Sequence) and all(isinstance(s, str | os.PathLike) for s in source):
        return _find_files([os.fspath(s) for s in source], format, table, every, elsewhere)
    if hasattr(source, "to_arrow_reader"):  # a relation, which no other connection can read
        return Stream(source.to_arrow_reader())
    if _read_again(source):
        return Frame(source)
    if hasattr(source, "__arrow_c_stream__"):
        return Stream(source)
    hint = "".join(
        f" What its {method}() gives can be read." for method in _GIVERS if hasattr(source, method)
    )
    raise BadOption(
        f"Cannot read a log from a {type(source).__name__}. Give a path, a glob, a folder, "
        f"a pandas, Polars or Arrow table or stream, or a Spark DataFrame.{hint}"
    )


def _read_again(source: object) -> bool:
    """Whether it is a table, which knows how long it is, or a dataset of PyArrow's."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
        return hasattr(source, "__len__") or hasattr(source, "num_rows")
    return type(source).__module__.startswith("pyarrow.") and hasattr(source, "get_fragments")


def _find_files(
    sources: list[str],
    format: str | None,
    table: str | None,
    every: bool,
    elsewhere: str | None,
) -> Files | Table:
    if not sources or not all(sources):  # "" would be the folder where one happens to be
        raise BadOption("No log was named. Give a file, a folder or a glob.")
    # Of one said format are all files of a folder; those of a known format may be text too.
    takes: _Takes = "all" if format else "text" if every else "named"
    paths = [path for source in sources for path in _expand(source, takes)]
    paths = [path for path in paths if not _is_truth(path)] or paths
    formats = {path: format or _format(path, elsewhere) for path in paths}
    kinds = sorted(set(formats.values()))
    if len(kinds) > 1:
        examples = ", ".join(f"{k} ({next(p for p in paths if formats[p] == k)})" for k in kinds)
        raise BadLog(
            f"The files are of different formats: {examples}. Read one format at a time, such as "
            f"{_such_as(paths[0])!r}, or choose it with --format."
        )
    if kinds == ["duckdb"]:
        if len(paths) > 1:
            raise BadLog(f"Give one DuckDB file at a time, not {len(paths)}.")
        return Table(paths[0], table)
    if table:
        raise BadOption("--table goes with a DuckDB file or with Spark; these are plain files.")
    beginning = next(filter(None, map(_begins, paths)), b"")
    if not beginning:
        what = f"{paths[0]!r} is" if len(paths) == 1 else f"All {many(len(paths), 'file')} are"
        raise BadLog(f"{what} empty, of 0 bytes. Check that what writes the log did so.")
    if kinds == ["json"] and len(paths) == 1 and beginning.split() in ([b"[]"], [b"[", b"]"]):
        raise BadLog(f"{paths[0]!r} is an empty list. Check that what writes the log did so.")
    _check_packing(paths[0])
    if kinds in (["csv"], ["parquet"]) and beginning.lstrip().startswith(b"{"):
        kinds = ["json"]  # whatever its name says
    if kinds == ["csv"] and beginning.startswith(_UTF_16):
        raise BadLog(
            f"{paths[0]!r} is in UTF-16, as Excel and Windows write it. Turn it into UTF-8 first: "
            f"iconv -f UTF-16 -t UTF-8 {shlex.quote(paths[0])} > utf8.csv"
        )
    return Files(tuple(dict.fromkeys(paths)), kinds[0])


def _expand(source: str, takes: _Takes) -> list[str]:
    """The files that a name stands for; of a folder all, or those whose names tell that they are
    logs and, if "text" is taken too, others: but none that is text beside files that are not."""
    if source.startswith(_HERE):
        source = unquote(source.removeprefix(_HERE))
    if is_address(source):  # the engine's own business
        return [source]
    path = os.path.abspath(os.path.expanduser(source))
    if os.path.isdir(path):
        found = [
            file
            for file in _files_below(path)
            if not any(p.startswith((".", "_")) for p in Path(file).relative_to(path).parts)
            and Path(file).name != _SETTINGS
        ]
        named = [file for file in found if _ending(file)]
        if takes == "text" and named:  # beside which text is a page, a note or settings
            found = [file for file in found if _ending(file) or _begins_like(file) != TEXT]
        elif takes == "named":
            found = named
        if not found:
            others = [file for file in _files_below(path) if not Path(file).name.startswith(".")]
            hint = f" To have others looked at, name them: {others[0]}." if others else ""
            raise BadLog(
                f"No log files in the folder {source!r}. "
                f"Files must end in {', '.join(_ENDINGS)} (compressed or not).{hint}"
            )
        return found
    if os.path.exists(path):  # before globbing: a name may hold brackets and stars
        return [path]
    found = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
    if not found:
        raise BadLog(f"No file {source!r}.{_near(path)}")
    return found


def _such_as(path: str) -> str:
    """A glob of the files beside this one that are called like it."""
    ending = "".join(Path(path).suffixes[-2:]) if path.endswith(_GZIP) else Path(path).suffix
    return os.path.join(os.path.dirname(path), f"*{ending}")


def _files_below(folder: str) -> list[str]:
    """All of them: what may not be looked into is an error, not left out."""

    def stop(error: OSError) -> None:
        raise BadLog(f"Cannot read the folder {error.filename!r}: {error.strerror}.")

    tree = os.walk(folder, onerror=stop)
    return sorted(os.path.join(inside, name) for inside, _, names in tree for name in names)


def _begins(path: str) -> bytes:
    """How a file begins; something, where that cannot be told: reading it will."""
    if not os.path.isfile(path):  # of a pipe what is read is gone
        return b"?"
    try:
        with (gzip.open if path.lower().endswith(_GZIP) else open)(path, "rb") as file:
            return bytes(file.read(_LOOKED_AT))
    except (OSError, EOFError, zlib.error):
        return b"?"


def _over_lines(begin: bytes) -> bool:
    """Whether a file of JSON that begins so has other than a document in its first line."""
    first, end, _ = begin.lstrip().partition(b"\n")
    if first.startswith(b"["):
        return True
    try:
        return bool(end) and not json.loads(first)
    except ValueError:
        return first.startswith(b"{")


def _check_packing(path: str) -> None:
    """Raise BadLog if a file is compressed and its name does not say so, or the other way round:
    engines go by the name."""
    if not os.path.isfile(path):
        return
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
    except OSError:  # which reading it will tell
        return
    if packed != path.lower().endswith(_GZIP):
        is_so, named, do = "is not", "does", "Take that off its name"
        if packed:
            is_so, named, do = "is", "does not", "Add that to its name"
        raise BadLog(
            f"{path!r} {is_so} compressed with gzip, but its name {named} end in .gz, which is "
            f"what engines go by. {do}."
        )


def _is_truth(path: str) -> bool:
    """Whether `simulate market` wrote this beside its log, by its name and how it begins."""
    if os.path.basename(path) != TRUTH:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(80).lstrip(b"{ \r\n").startswith(b'"propensities"')
    except OSError:  # reading the log will say why
        return False


def _near(path: str) -> str:
    try:
        return did_you_mean(os.path.basename(path), os.listdir(os.path.dirname(path)))
    except OSError:
        return " Its folder does not exist either."


def _ending(path: str) -> str | None:
    if is_address(path):  # what may be after the name: a signature, a token
        path = path.partition("?")[0]
    stem, ending = os.path.splitext(path.lower())
    if ending in _COMPRESSED:
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending)


def _format(path: str, elsewhere: str | None) -> str:
    found = _ending(path) or (elsewhere if is_address(path) else None)
    if found:
        return found
    if path.lower().endswith(_SHEETS):
        raise BadLog(
            f"{path!r} is a spreadsheet. Save it as CSV first (in Excel: File, Save As, CSV UTF-8)."
        )
    return _begins_like(path)


def _begins_like(path: str) -> str:
    """What a file is whose name does not tell."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with (gzip.open if packed else open)(path, "rb") as file:
            first = file.read(4096).lstrip()
    except (OSError, EOFError, zlib.error):  # not here, or damaged: who reads it will say so
        raise cannot_tell(path) from None
    if first.startswith(b"PAR1"):
        return "parquet"
    return "json" if first.startswith((b"{", b"[")) else TEXT


def cannot_tell(path: str) -> BadLog:
    """The error to raise for a file of which nothing tells what it is."""
    files = ", or name the files by a pattern, such as *.parquet" if is_address(path) else ""
    return BadLog(
        f"Cannot tell the format of {without_secrets(path)!r} from its name. Say it with --format "
        f"({', '.join(FORMATS)}, or one of those that `rankdrift formats` lists){files}."
    )
