"""Which format a log has: a look at its first documents, lines or columns."""

import glob
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import duckdb

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadLog
from rankdrift.core.plain import parsed
from rankdrift.log.formats import FORMATS
from rankdrift.log.formats.format import FILE_NAME, Fields, Format, Shape, Sight, paths
from rankdrift.log.layouts import AUTO
from rankdrift.log.options import Names, Options
from rankdrift.log.sources import Files

_DOCUMENTS = 300
_LINES = 50
_FILES = 8  # of many files, the first and the last
WITHIN = (("hits", "hits"), ("events",), ("results",))
"""Lists of documents: in the response of a search engine, in what a client sends, in the response
to several searches."""


def look(files: Files, con: duckdb.DuckDBPyConnection | None = None) -> Sight:
    """What the first documents or lines of text files show; nothing of files that are damaged.

    Parameters
    ----------
    files
        Where they are.
    con
        What reads them, if they are on another machine.
    """
    some = (
        files.paths
        if len(files.paths) <= _FILES
        else (*files.paths[: _FILES // 2], *files.paths[-_FILES // 2 :])
    )
    try:
        with nullcontext(con) if con else connect() as reads:
            if files.format == "json":
                return _seen([doc for path in some for doc in _documents(reads, path)])
            lines = [line for path in some for line in _lines(reads, path)]
    except duckdb.Error:  # who reads the files will say what is wrong with them
        return Sight()
    header = lines[0] if lines else ""
    cut = next((cut for cut in "\t,;|" if cut in header), ",")
    names = frozenset(name.strip().strip('"') for name in header.split(cut))
    return Sight(names, tuple(lines))


def _seen(documents: list[Any]) -> Sight:
    outermost = [doc for doc in documents if isinstance(doc, dict)]
    paths = frozenset(path for doc in documents for path in _paths(doc))
    texts = {name for doc in outermost for name, value in doc.items() if isinstance(value, str)}
    sources = [doc["_source"] for doc in outermost if isinstance(doc.get("_source"), dict)]
    dotted: set[tuple[str, ...]] = {(name,) for doc in outermost for name in doc if "." in name}
    dotted |= {("_source", name) for doc in sources for name in doc if "." in name}
    lists = {path: [_list_at(doc, path) for doc in documents] for path in WITHIN}
    within = tuple(path for path, found in lists.items() if any(found))
    inside = [doc for found in lists.values() for each in found for doc in each]
    whole = all(any(each) for each in zip(*lists.values(), strict=True))
    return Sight(
        paths,
        texts=frozenset(texts),
        dotted=frozenset(dotted),
        within=within,
        inside=_seen(inside[:_DOCUMENTS]) if within else None,
        beside=not whole,
    )


def _list_at(document: Any, path: tuple[str, ...]) -> list[Any]:
    """The documents in a list of a document, if that is what it is."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    found = document if isinstance(document, list) else []
    return found if all(isinstance(each, dict) for each in found) else []


def look_at(shape: Shape) -> Sight:
    """What the columns of a table show."""
    return Sight(frozenset(paths(shape)))


def choose(sight: Sight, options: Options) -> Format | None:
    """The format that was asked for, or that the log looks like; None if it is to be read by its
    columns, because it looks like none, or columns that no format has were named.

    Raises
    ------
    BadLog
        It looks like one, in a form that is not read.
    """
    for why in filter(None, (format.unread(sight) for format in FORMATS)):
        raise BadLog(why)
    if options.format is not None and options.format in FORMATS:
        return _as_said(FORMATS.get(options.format), sight, options)
    if options.layout not in (None, AUTO):
        return None
    found = next((format for format in FORMATS if format.recognises(sight)), None)
    if not found and sight.inside and not sight.beside:
        found = next((format for format in FORMATS if format.recognises(sight.inside)), None)
    named = (name for names in options.columns().values() for name in _each(names))
    if not found or not all(name in found.columns for name in named):
        return None
    return _as_said(found, sight, options)


def check_fields(format: Format, shape: Shape) -> None:
    """Raise BadLog if a table has none of the sets of fields that the format is known by."""
    there = set(paths(shape))
    if (FILE_NAME in there and "line" in there) or not format.marks:
        return
    if not any(there.issuperset(marks) for marks in format.marks):
        best = min(format.marks, key=lambda marks: len(set(marks) - there))
        missing = ", ".join(name for name in best if name not in there)
        raise BadLog(
            f"This does not look like {format.title}: there is no {missing}. It needs "
            f"{format.needs}. Leave out --format {format.name} to have the log looked at, or see "
            "`rankdrift formats`."
        )


def _as_said(format: Format, sight: Sight, options: Options) -> Format:
    """The same with what was said of its events and ranks, the fields as they are spelt, and the
    lists that documents are in."""
    inside = sight.inside if sight.inside and format.recognises(sight.inside) else None
    taken = any(outer in format.shape for outer, *_ in sight.within)
    if inside and sight.beside and taken:  # a name cannot be read as two things at once
        inside = None
    within, beside = (sight.within, sight.beside) if inside else ((), False)
    if inside:
        sight = _together(sight, inside) if beside else inside

    def names(given: Names, usual: tuple[str, ...]) -> tuple[str, ...]:
        given = (given,) if isinstance(given, str) else given
        return tuple(format.event_name(name) for name in given) if given else usual

    return replace(
        format,
        spelt=_as_spelt(format, sight),
        shown_events=names(options.shown_events, format.shown_events),
        click_events=names(options.click_events, format.click_events),
        first_rank=options.first_rank,
        within=within,
        beside=beside,
    )


def _together(one: Sight, other: Sight) -> Sight:
    return Sight(
        one.paths | other.paths,
        texts=one.texts | other.texts,
        dotted=one.dotted | other.dotted,
    )


def _as_spelt(format: Format, sight: Sight) -> Shape:
    """The fields to read. Documents are only looked for inside `_source`, which takes as long
    again, where some of those that were seen have it."""
    wrapped = not sight.paths or "_source" in sight.paths
    shape = {name: f for name, f in format.shape.items() if wrapped or name != "_source"}
    for name in sight.paths:
        usual = format.usual_name(name)
        if usual != name and usual in format.shape:
            shape[name] = format.shape[usual]
            if usual not in sight.paths:
                shape.pop(usual, None)  # names that differ in capitals alone are one
    for name in sight.texts & set(shape):
        shape[name] = "text"
    for *outer, name in sight.dotted:
        kind = Fields(format.shape, DUCKDB).find(*outer, *name.split("."))
        if kind and outer:
            shape["_source"] = {**shape["_source"], name: kind}
        elif kind:
            shape[name] = kind
    return shape


def as_table(format: Format, files: Files) -> bool:
    """Whether to read the files by their columns: so are those of other formats in CSV."""
    return format.reads == "table" or (format.reads == "json" and files.format == "csv")


def _each(names: str | tuple[str, ...] | None) -> Iterator[str]:
    for name in (names,) if isinstance(names, str) else names or ():
        if name:
            yield name


def _documents(con: duckdb.DuckDBPyConnection, path: str) -> list[Any]:
    """Some of them. Those that only DuckDB can read tell nothing."""
    found = con.execute(
        f"SELECT json FROM read_json_objects({_path(path)}, format = 'auto') LIMIT {_DOCUMENTS}"
    ).fetchall()
    documents = []
    for (text,) in found:
        with suppress(ValueError):
            documents.append(parsed(text))
    return documents


def _lines(con: duckdb.DuckDBPyConnection, path: str) -> list[str]:
    found = con.execute(
        f"SELECT line FROM {line_reader(_path(path))} WHERE line IS NOT NULL LIMIT {_LINES}"
    ).fetchall()
    return [line for (line,) in found]


def _path(path: str) -> str:
    return DUCKDB.literal(path if "://" in path else glob.escape(path))


def line_reader(files: str, more: str = "") -> str:
    """FROM text that reads lines as they are. What would separate columns is in no text."""
    return (
        f"read_csv({files}, columns = {{'line': 'VARCHAR'}}, delim = '\x1e\x1f', quote = '',"
        " escape = '', header = false, auto_detect = false, max_line_size = 16777216,"
        f" strict_mode = false{more})"
    )


def _paths(document: Any, before: str = "") -> Iterable[str]:
    if isinstance(document, list):
        for each in document[:3]:
            yield from _paths(each, before)
    elif isinstance(document, dict):
        for name, inner in document.items():
            yield f"{before}{name}"
            yield from _paths(inner, f"{before}{name}.")
