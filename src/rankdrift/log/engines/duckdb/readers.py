"""How DuckDB reads files: FROM items, and what is said when it cannot."""

import glob
import gzip
import json
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import duckdb

from rankdrift.core.addresses import without_secrets
from rankdrift.core.database import cut_messages_mended, first_line, interrupted, shortage
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadLog
from rankdrift.core.words import many
from rankdrift.log.formats.format import FILE_NAME, LINES, Format, Shape, as_text
from rankdrift.log.formats.recognising import line_reader
from rankdrift.log.sources import Files, Source

_AWAY = (
    "{path!r} is not on this machine. DuckDB reads it with its extension httpfs, which is not "
    "installed, and rankdrift fetches no program by itself. Copy the files here first, or install "
    "the extension once: python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\""
)
_WHOLE = (
    "{path!r} is on a server that gives files as a whole only: Parquet is read in pieces (HTTP "
    "range requests). Copy the file here first, or have it on a server that gives pieces."
)
_EXTENSION = re.compile(r"required extension '(\w+)|exists in the (\w+) extension")
_NOT_HERE = (
    "The condition of --where needs DuckDB's extension {name}, which is not installed, and "
    "rankdrift fetches no program by itself. Say it in another way, or install the extension once: "
    "python -c \"import duckdb; duckdb.sql('INSTALL {name}')\""
)
_OF_STATEMENTS = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.ParserException,
)
_BROKEN = re.compile(r'Malformed JSON in file "(.+?)", at byte \d+ in line (\d+): ([^.\n]+)')
_BROKEN_LINE = (
    "{where} of {path!r} is no JSON: {why}. Nothing was counted, as nobody can tell what it was. "
    "Look at it ({look}) and mend it, or take it out and read the log again."
)
_NO_OBJECTS = (
    'Not every line of {path} is an object of JSON, such as {{"query": ...}}: there are lists, '
    "numbers or texts among them. Take those lines out and read the log again."
)
_ABOUT = 3  # lines by which DuckDB may be off
FOLDERS_LEFT = (
    "Folders' names tell {}, and so do the files themselves: what is in the files is used."
)


FOLDERS_DIFFER = (
    "Some folders' names tell {}, and others do not: that is not read. Name all folders alike "
    "(day=2024-12-31), or give those that are."
)


def reader(
    paths: tuple[str, ...], format: str, filename: bool = False, folders: bool = True
) -> str:
    """FROM text that reads these files; columns are matched by name, and those that the names of
    folders tell are read unless told otherwise."""
    files = f"[{DUCKDB.literals(unglobbed(paths))}]"
    named = ", filename = 'rd_filename'" if filename else ""
    named += "" if folders else ", hive_partitioning = false"
    if format == "parquet":
        return f"read_parquet({files}, union_by_name = true{named})"
    if format == "csv":
        # Everything stays text: '007' is not 7, and a letter in the last row breaks nothing.
        return (
            f"read_csv({files}, all_varchar = true, union_by_name = true, header = true,"
            f" quote = '\"', escape = '\"'{named})"
        )
    form = "auto" if Files(paths, format).array else "newline_delimited"
    return (
        f"read_json({files}, format = '{form}', union_by_name = true,"
        f" sample_size = -1, map_inference_threshold = -1{named})"
    )


def format_reader(files: Files, format: Format, lenient: bool = True) -> tuple[str, Shape]:
    """FROM text that reads the fields of a known format from text files, and what they are.

    Parameters
    ----------
    files, format
        Where they are, and what is in them.
    lenient
        Of JSON: is a value of an unexpected type NULL, so that no document spoils the others?
        Otherwise it is an error, and reading takes two thirds of the time.
    """
    listed, named = f"[{DUCKDB.literals(unglobbed(files.paths))}]", f", filename = '{FILE_NAME}'"
    if format.reads == "json":
        shape = {**as_text(format.spelt or format.shape), FILE_NAME: "text"}
        if lenient:
            objects = f"read_json_objects({listed}, format = 'auto'{named})"
            fields = f"unnest(from_json(json, {_said(format.read)}))"
            found = f"(SELECT {fields}, {FILE_NAME} FROM {objects})"
        else:
            columns = ", ".join(
                f"{DUCKDB.literal(name)}: {DUCKDB.literal(_type(inner))}"
                for name, inner in format.read.items()
            )
            form = "auto" if files.array or format.within else "newline_delimited"
            found = f"read_json({listed}, columns = {{{columns}}}, format = '{form}'{named})"
        if format.within:
            names = [DUCKDB.quote(name) for name in format.spelt or format.shape]
            alone = f"[struct_pack({', '.join(f'{name} := {name}' for name in names)})]"
            lists = format.documents(alone, "[]", DUCKDB)
            each = f"SELECT unnest(flatten([{lists}])) AS rd_each, {FILE_NAME} FROM {found}"
            found = f"(SELECT unnest(rd_each), {FILE_NAME} FROM ({each}))"
        return found, shape
    lines = line_reader(listed, named)
    number = "row_number() OVER ()" if format.keeps_order else "CAST(NULL AS BIGINT)"
    return f"(SELECT line, {number} AS rd_line, {FILE_NAME} FROM {lines})", LINES


def parsed(text: str, shape: Any) -> str:
    """What a text of JSON says, as a shape; NULL where it is no JSON."""
    return f"CASE WHEN json_valid({text}) THEN from_json({text}, {_said(shape)}) END"


def _said(shape: Any) -> str:
    return DUCKDB.literal(json.dumps(_structure(shape)))


def _structure(shape: Any) -> Any:
    if isinstance(shape, Mapping):
        return {name: _structure(inner) for name, inner in shape.items()}
    return [_structure(inner) for inner in shape] if isinstance(shape, list) else "VARCHAR"


def _type(shape: Any) -> str:
    """The same as a type of DuckDB's."""
    if isinstance(shape, Mapping):
        fields = (f"{DUCKDB.quote(name)} {_type(inner)}" for name, inner in shape.items())
        return f"STRUCT({', '.join(fields)})"
    return f"{_type(shape[0])}[]" if isinstance(shape, list) else "VARCHAR"


def folders_tell(con: duckdb.DuckDBPyConnection, source: Source) -> bool:
    """Whether to read columns from the names of folders (day=2024-05-05): not where the files have
    such a column of their own, which DuckDB and Spark would put aside without a word."""
    told = source.told_by_folders if isinstance(source, Files) else set()
    if not told or not isinstance(source, Files):
        return True
    files = reader(source.paths[:1], source.format, folders=False)
    own = told & {name.lower() for name in con.sql(f"SELECT * FROM {files} LIMIT 0").columns}
    if own and own != told:
        both, alone = (", ".join(sorted(names)) for names in (own, told - own))
        raise BadLog(
            f"Folders' names tell {both}, and so do the files themselves; {alone} is in folders' "
            "names alone. Rename the folders, or take the columns out of the files, so that each "
            "is told once."
        )
    return not own


def unglobbed(paths: tuple[str, ...]) -> list[str]:
    """Each path means one file, even if its name has stars or brackets."""
    return [path if "://" in path else glob.escape(path) for path in paths]


@contextmanager
def reading(source: Source, where: str | None = None) -> Iterator[None]:
    """DuckDB's errors, as ours; with a condition, it may be that which is wrong."""
    try:
        with cut_messages_mended():
            yield
    except duckdb.Error as error:
        if interrupted(error):
            raise KeyboardInterrupt from None
        raise BadLog(_words(error, source, where)) from None
    except (UnicodeDecodeError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "nanobind::str()" not in str(error):
            raise
        what = _told(source) if isinstance(source, Files) else "the log"
        raise BadLog(
            f"The name of a column or field in {what} is no text (UTF-8). The file may be damaged."
        ) from None


def _words(error: duckdb.Error, source: Source, where: str | None) -> str:
    said, lacking = without_secrets(first_line(error)), _EXTENSION.search(str(error))
    files = source if isinstance(source, Files) else None
    away = next((path for path in files.paths if "://" in path), None) if files else None
    if where and lacking and not away:
        return _NOT_HERE.format(name=lacking[1] or lacking[2])
    if isinstance(error, _OF_STATEMENTS):
        return (
            f"The log cannot be read with these columns and conditions: {said} "
            "Check --where (it is SQL on the log's own columns) and the column names."
        )
    short = shortage(error)
    if short:
        return short
    if away and "extension" in str(error).lower():
        return _AWAY.format(path=without_secrets(away))
    if away and "range requests" in str(error):
        return _WHOLE.format(path=without_secrets(away))
    broken = _BROKEN.search(str(error)) if files else None
    if broken:
        return broken_line(broken[1], int(broken[2]), broken[3])
    unfit = ", or --where asks for what some row has not" if where else ""
    if files:
        return (
            f"Cannot read {_told(files)} as {files.format}: {said} "
            f"The file may be damaged, cut short or of another format (--format){unfit}."
        )
    return f"Cannot read the log: {said}" + (" Check --where." if where else "")


def check_objects(source: Source, columns: Mapping[str, Any]) -> None:
    """BadLog for JSON that DuckDB could not take apart, as a line of it has no names."""
    if isinstance(source, Files) and source.format == "json" and list(columns) == ["json"]:
        raise BadLog(_NO_OBJECTS.format(path=_told(source)))


def _told(files: Files) -> str:
    if len(files.paths) > 1:
        return many(len(files.paths), "file")
    return repr(without_secrets(files.paths[0]))


def broken_line(path: str, number: int | None, why: str) -> str:
    """Words for a line that is no JSON: this one, or about there, or the first that there is."""
    packed = path.lower().endswith((".gz", ".gzip"))
    where = f"A line about the {number:,}th" if number else "A line"
    first, last = (max(0, number - 1 - _ABOUT), number + _ABOUT) if number else (0, None)
    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            for at, line in enumerate(islice(file, first, last), first + 1):
                if line.strip() and not _is_json(line):
                    where, number = f"Line {at:,}", at
                    break
    except (OSError, EOFError, zlib.error):  # damaged, of another packing, or elsewhere
        pass
    name = shlex.quote(without_secrets(path))
    if not number:
        return _BROKEN_LINE.format(
            where=where, path=without_secrets(path), why=why, look=f"jq . {name} stops there"
        )
    look = f"zcat {name} | sed -n {number}p" if packed else f"sed -n {number}p {name}"
    return _BROKEN_LINE.format(where=where, path=without_secrets(path), why=why, look=look)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
