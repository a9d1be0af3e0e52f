"""What a known format is: its fields, how it is known by them, and a SELECT from them to rows.

The rows have columns with our own names, in a layout that is read already (`log/layouts.py`), so
that all that works on a log works on them. A row is a result shown, a click or any other event:
whatever cannot be used stays a row, so that the funnel tells of it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankdrift.core.dialects import Dialect
from rankdrift.core.errors import BadLog
from rankdrift.log.columns import Column, ColumnKind
from rankdrift.log.layouts import EVENTS, Layout
from rankdrift.log.sql import values

Shape = Mapping[str, Any]
"""The fields of a log: name -> kind, or the `Shape` of a struct, or [what a list holds]."""
LINES: Shape = {"line": "text", "rd_line": "int", "rd_filename": "text"}
"""What text read line by line has: `rd_line` grows with the place in its file."""
FILE_NAME = "rd_filename"
KINDS_OF: Mapping[str, ColumnKind] = {
    "rank": "int", "click": "int", "ordinal": "int", "place": "int", "day": "date",
    "timestamp": "instant", "price": "float", "score": "float", "dwell": "float",
    "propensity_score": "float", "visit": "int", "seconds_passed": "int",
}  # fmt: skip
"""Our names of columns that are not text."""


@dataclass(frozen=True)
class Sight:
    """What is seen of a log before it is read.

    Parameters
    ----------
    paths
        Its fields, those inside structs and lists with dots.
    lines
        The first lines, of text whose fields have no names.
    texts
        Of JSON, the outermost fields that are texts, in some documents at least.
    dotted
        Of JSON, the names that have dots themselves, outermost or below `_source`.
    within
        Of JSON, lists of documents that some documents are.
    inside
        What is seen in those lists.
    beside
        Are there documents beside them, too, that are no such list?
    """

    paths: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    dotted: frozenset[tuple[str, ...]] = frozenset()
    within: tuple[tuple[str, ...], ...] = ()
    inside: "Sight | None" = None
    beside: bool = False


@dataclass(frozen=True)
class Fields:
    """The fields that a log has, as SQL; one that it lacks is NULL.

    Parameters
    ----------
    shape
        The fields.
    dialect
        Of SQL.
    within
        What they are fields of: the alias of a struct.
    """

    shape: Shape
    dialect: Dialect
    within: tuple[str, ...] = ()

    def find(self, *path: str) -> Any:
        """The kind of a field, the `Shape` of a struct, [of a list]; None if it is not there."""
        return next((kind for _, kind in _spelt(self.shape, path)), None)

    def sql(self, *path: str) -> str:
        """A field as it is; of one that some rows have nested and others flattened, whichever."""
        kind = self.find(*path)
        there = [
            self.dialect.quote(*self.within, *names)
            for names, other in _spelt(self.shape, path)
            if other == kind
        ]
        return f"coalesce({', '.join(there)})" if len(there) > 1 else there[0] if there else "NULL"

    def text(self, *path: str) -> str:
        """A field as text, NULL where that is empty."""
        sql = self.dialect.text.format(self.sql(*path))
        return f"nullif({sql}, '')" if self.find(*path) else sql

    def any_text(self, *paths: tuple[str, ...]) -> str:
        """The first of these fields that is not empty."""
        there = [self.text(*path) for path in paths if self.find(*path)]
        if not there:
            return self.dialect.text.format("NULL")
        return there[0] if len(there) == 1 else f"coalesce({', '.join(there)})"

    def whole(self, *path: str) -> str:
        """A field as a whole number, NULL where it is none, such as '(not set)'."""
        if self.find(*path) == "int":
            return self.sql(*path)
        return self.dialect.integer.format(self.text(*path))

    def number(self, *path: str) -> str:
        """A field as a double, NULL where it is none."""
        if self.find(*path) in ("int", "float"):
            return f"CAST({self.sql(*path)} AS {self.dialect.double})"
        return self.dialect.number.format(self.text(*path))

    def any_number(self, *names: str) -> str:
        """The first of these fields that is a number."""
        return f"coalesce({', '.join(self.number(name) for name in names)})"

    def instant(self, *paths: tuple[str, ...]) -> str:
        """The first of these fields that is not NULL, as an instant: an epoch in s, ms, µs or ns,
        or a date and time, in UTC if it names no zone."""
        there = [
            values.instant(self.sql(*path), kind, self.dialect)
            for path in paths
            if (kind := self.find(*path))
        ]
        if not there:
            return null("instant", self.dialect)
        return there[0] if len(there) == 1 else f"coalesce({', '.join(there)})"

    def listed(self, *path: str) -> str | None:
        """A list, if the log has it."""
        return self.sql(*path) if isinstance(self.find(*path), list) else None

    def inside(self, *path: str, alias: str = "rd_doc") -> "Fields":
        """The fields of an element of a list, under the name that it has then."""
        found = self.find(*path)
        shape = found[0] if isinstance(found, list) and isinstance(found[0], Mapping) else {}
        return Fields(shape, self.dialect, (alias,))

    def with_entries(self, source: str, path: str, key: str, **names: str) -> "tuple[Fields, str]":
        """The fields and the FROM item with some entries of a list of them, such as event_params,
        beside the others, each found once.

        Parameters
        ----------
        source
            The FROM item that has the list.
        path
            The list.
        key
            The field of an entry that names it.
        names
            What the entry is to be called -> how its key names it.
        """
        listed, entry, d = self.listed(path), self.inside(path), self.dialect
        if not listed or not entry.find(key):
            return self, source
        found = ", ".join(
            f"{d.entry.format(listed, d.quote(key), d.literal(name))} AS {column}"
            for column, name in names.items()
        )
        shape = {**self.shape, **dict.fromkeys(names, entry.shape)}
        return Fields(shape, d, self.within), f"(SELECT *, {found} FROM {source}) AS rd_entries"


def _spelt(shape: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """How a field is spelt, and its kind: by structs in structs, or flattened, with dots."""
    for n in range(1, len(path) + 1):
        name, rest = ".".join(path[:n]), path[n:]
        found = shape.get(name) if isinstance(shape, Mapping) else None
        if found is not None and not rest:
            yield (name,), found
        elif found is not None:
            yield from (((name, *names), kind) for names, kind in _spelt(found, rest))


def null(kind: ColumnKind, d: Dialect) -> str:
    """A NULL of a kind of column."""
    if kind == "instant":
        return d.epoch_instant.format(f"CAST(NULL AS {d.double})")
    types = {"int": "BIGINT", "float": d.double, "date": "DATE", "bool": "BOOLEAN"}
    return f"CAST(NULL AS {types[kind]})" if kind in types else d.text.format("NULL")


@dataclass(frozen=True)
class Format:
    """A known format of logs; subclasses say in `select` how its rows come about.

    Parameters
    ----------
    name, title
        What it is called in options, and in a sentence.
    schema
        Which published description of it was read.
    needs
        What must be logged.
    shape
        The fields that are looked at.
    marks
        Sets of fields: a log that has all of one set is of this format.
    line
        A pattern: text is of this format if all lines that are seen match it.
    origins
        The columns that its rows have: our name -> the fields that it comes from.
    reads
        Are its files JSON, lines of text, or tables with named columns?
    layout
        What a row is.
    shown_events, click_events
        How its events are called, the usual ones.
    counts_from
        Are ranks logged by the client, from 0 or from 1? Then rows have `ordinal`, as logged, and
        `place`, the place in a list where there is one, instead of `rank`.
    first_rank
        What the top rank is called, if that was said; None lets the log tell.
    place_fills_in
        Does `place` stand in wherever the ordinal is missing, or only if none was ever logged?
    keeps_order
        Does the meaning of a line depend on those before it?
    kept_on
        The column of a day that a list and its clicks always have in common, if there is one.
    read_again
        Are its rows made from Parquet about as fast as they are read from a copy?
    remark
        What everybody who reads such a log should know.
    roles
        Role -> our column, where the two are not called the same.
    kinds
        Kinds of columns that are not those usual for their names.
    spelt
        The fields to read from text files, as this log spells them; {} for those of `shape`.
    within
        Lists that the documents of this log are in, such as `hits.hits` of a response.
    beside
        Are there documents that are in none of them, too?
    """

    name: str
    title: str
    schema: str
    needs: str
    shape: Shape
    origins: Mapping[str, str]
    marks: tuple[tuple[str, ...], ...] = ()
    line: str = ""
    reads: Literal["json", "lines", "table"] = "json"
    layout: Layout = EVENTS
    shown_events: tuple[str, ...] = ("impression",)
    click_events: tuple[str, ...] = ("click",)
    counts_from: bool = False
    first_rank: int | None = None
    place_fills_in: bool = False
    keeps_order: bool = False
    kept_on: str = ""
    read_again: bool = False
    remark: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    spelt: Shape = field(default_factory=dict)
    within: tuple[tuple[str, ...], ...] = ()
    beside: bool = False

    @property
    def read(self) -> Shape:
        """The fields to read from JSON: of documents, or of lists of them."""
        fields = self.spelt or self.shape
        lists = {
            outer: {inner[0]: [fields]} if inner else [fields] for outer, *inner in self.within
        }
        return {**fields, **lists} if self.beside or not lists else lists

    def documents(self, alone: str, empty: str, d: Dialect) -> str:
        """SQL of the lists that the documents are in, with commas between.

        Parameters
        ----------
        alone
            SQL of a list of nothing but the document itself, for one that has none of the lists.
        empty
            SQL of a list of nothing.
        d
            The dialect of both.
        """
        lists = [d.quote(*path) for path in self.within]
        found = [f"coalesce({each}, {empty})" for each in lists]
        if self.beside:
            found.append(
                f"CASE WHEN coalesce({', '.join(lists)}) IS NULL THEN {alone} ELSE {empty} END"
            )
        return ", ".join(found)

    @property
    def columns(self) -> Mapping[str, ColumnKind]:
        """The columns that its rows have: our name -> kind."""
        return {name: self._kind(name) for name in self.origins}

    def _kind(self, name: str) -> ColumnKind:
        return self.kinds.get(name) or KINDS_OF.get(name, "text")

    def recognises(self, sight: Sight) -> bool:
        """Whether a log looks like this."""
        if self.line:
            return bool(sight.lines) and all(re.fullmatch(self.line, seen) for seen in sight.lines)
        paths = {self.usual_name(path) for path in sight.paths}
        return any(paths.issuperset(marks) for marks in self.marks)

    def unread(self, sight: Sight) -> str:
        """If a log looks like this in a form that is not read: what to do about it."""
        return ""

    def usual_name(self, name: str) -> str:
        """What `shape` calls an outermost field that some logs call otherwise."""
        return name

    def check_files(self, paths: Iterable[str]) -> None:
        """Raise BadLog if these files must not be read together."""

    def select(self, f: Fields, source: str) -> str:
        """The SELECT from the log, a FROM item that has these fields, to its rows."""
        raise NotImplementedError  # every format has its own: there is no usual one

    def event_name(self, name: str) -> str:
        """What its rows call an event that a user names."""
        return name

    def rows(self, f: Fields, source: str, file: str = FILE_NAME, **sql: str) -> str:
        """A SELECT of the columns that rows have; those that are not given are NULL. `file` is the
        name of the file, where that is known."""
        names = self.stored
        assert set(sql) <= set(names), set(sql) - set(names)
        columns = [
            f"{sql.get(name) or null(kind, f.dialect)} AS {f.dialect.quote(name)}"
            for name, kind in names.items()
        ]
        if FILE_NAME in f.shape:
            columns.append(f"{file} AS {FILE_NAME}")
        return f"SELECT {', '.join(columns)}\nFROM {source}"

    @property
    def stored(self) -> Mapping[str, ColumnKind]:
        """The columns of `select`: `rank` may still have to be told from others."""
        if not self.counts_from:
            return self.columns
        names = (*(name for name in self.columns if name != "rank"), "ordinal", "place")
        return {name: self._kind(name) for name in names}

    def lowest(self, source: str, d: Dialect) -> str | None:
        """The SELECT of the least ordinal of all that was shown, from the rows that `select` gives:
        `rd_low`, NULL if none was logged. None where ranks need no telling."""
        if not self.counts_from:
            return None
        shown = f"{d.quote('event')} IN ({d.literals(self.shown_events)})"
        return f"SELECT min(ordinal) AS rd_low FROM {source} WHERE {shown} AND ordinal >= 0"

    def numbered(self, source: str, d: Dialect, lowest: str | None = None) -> str:
        """The SELECT from the rows that `select` gives to those with ranks from 1: ordinals count
        from 0 if any of them is 0.

        Parameters
        ----------
        source
            The rows.
        d
            The dialect.
        lowest
            The table that has what `lowest` selects, if that was kept.
        """
        names = ", ".join(d.quote(name) for name in self.columns if name != "rank")
        low = self.lowest(source, d)
        if not low:
            return f"SELECT {names}, {d.quote('rank')} FROM {source}"
        first = "CASE WHEN rd_low = 0 THEN 0 ELSE 1 END"
        if self.first_rank is not None:
            first = str(self.first_rank)
        place = "place" if self.place_fills_in else "CASE WHEN rd_low IS NULL THEN place END"
        return (
            f"SELECT {names}, ordinal, coalesce(ordinal + 1 - {first}, {place}) AS rank"
            f" FROM {source} CROSS JOIN {lowest or f'({low}) AS rd_lowest'}"
        )

    def as_columns(self) -> dict[str, Column]:
        """The columns of its rows, by name."""
        names = (*self.columns, *(["ordinal"] if self.counts_from else []))
        return {name: Column((name,), self._kind(name)) for name in names}

    def described(self) -> dict[str, Any]:
        """What is kept of it with every artefact made from such a log."""
        said = {} if self.first_rank is None else {"ordinals_from": self.first_rank}
        return {"format": self.name, **said}

    def given_roles(self) -> dict[str, str]:
        """Role -> our column that plays it."""
        day = "day" if "day" in self.columns else "timestamp" if "timestamp" in self.columns else ""
        found = {
            role: role
            for role in ("query", "search", "doc", "rank", "click", "event", "user", "outcome")
            if role in self.columns
        }
        found |= {"day": day} | ({"time": "timestamp"} if "timestamp" in self.columns else {})
        return found | dict(self.roles)


def has(name: str, names: Iterable[str], d: Dialect) -> str:
    """The condition that a text is one of these."""
    return f"coalesce({name}, '') IN ({d.literals(names)})"


def named(f: Fields, source: str, **sql: str) -> str:
    """FROM: these expressions on the source, by name, so that each is worked out once."""
    columns = [f"{expression} AS {name}" for name, expression in sql.items()]
    columns += [FILE_NAME] if FILE_NAME in f.shape else []
    return f"(SELECT {', '.join(columns)} FROM {source}) AS rd_named"


def cut_lines(f: Fields, source: str, **more: str) -> str:
    """FROM: the fields of every line, which tabs are between, as the list `e_parts`."""
    parts = f.dialect.cut.format("line", "'\t'")
    return named(f, f"{source} WHERE line IS NOT NULL", e_parts=parts, **more)


def unfolded(source: str, listed: str, d: Dialect) -> str:
    """FROM: a row per element of a list, `rd_doc`, and its place from 1, `rd_place`; one row where
    there is no list."""
    return d.unfold.format(source=f"(SELECT * FROM {source})", list=listed)


def told_by(keys: Iterable[str], d: Dialect) -> str:
    """A number that tells by these whether two rows belong together. It is a hash: of a hundred
    million searches no two are alike, but with a chance of one in two thousand."""
    return d.whole_hash.format(d.hash.format(", ".join(keys)))


def visit(who: Iterable[str], keys: Iterable[str], d: Dialect) -> str:
    """What a list shown and its clicks have in common; NULL where nobody knows whose they are.

    Parameters
    ----------
    who
        Users and sessions, as text: one of them must be known.
    keys
        What else must be equal, as text, such as the list.
    d
        The dialect that these are in.
    """
    who = tuple(who)
    parts = [f"coalesce({each}, '')" for each in (*who, *keys)]
    known = f"coalesce({', '.join(who)})" if len(who) > 1 else who[0]
    return f"CASE WHEN {known} IS NOT NULL THEN {told_by(parts, d)} END"


def view(shown: str, visit: str, at: str, d: Dialect) -> str:
    """What tells lists shown apart where none has an id: the visit, and when it was."""
    return f"CASE WHEN {shown} THEN {told_by((visit, at), d)} END"


def search_words(url: str, d: Dialect) -> str:
    """What was searched for, by the usual parameters of a page's address."""
    found = d.extract.format(url, d.literal("(?:^|[?&])(?:q|s|search|query|keyword)=([^&#]+)"))
    return f"nullif(replace(replace({found}, '+', ' '), '%20', ' '), '')"


def fitted(
    format: Format, source: str, shape: Shape, d: Dialect, parsed: Callable[[str, Any], str]
) -> tuple[str, Shape]:
    """The FROM item and its fields as the format is described: under their usual names, and where
    a struct or a list is kept as a text, of JSON or with commas between, what that says.

    Parameters
    ----------
    format
        That of the log.
    source, shape
        The FROM item and the fields that it has.
    d
        The dialect of SQL.
    parsed
        SQL of what a text of JSON says, as a shape.

    Raises
    ------
    BadLog
        Columns that mean the same are not of the same type.
    """
    names: dict[str, list[str]] = {}
    for name in shape:
        names.setdefault(format.usual_name(name), []).append(name)
    sql, fields = {}, dict[str, Any]()
    for usual, spelt in names.items():
        wanted, there = format.shape.get(usual), shape[spelt[0]]
        if any(shape[name] != there for name in spelt):
            raise BadLog(
                f"{' and '.join(map(repr, spelt))} are versions of the same, with other fields "
                "each. Give files that have one of them at a time."
            )
        quoted = ", ".join(map(d.quote, spelt))
        sql[usual] = f"coalesce({quoted})" if len(spelt) > 1 else quoted
        fields[usual] = there
        if there in ("text", "json") and isinstance(wanted, Mapping | list):
            text = d.text.format(sql[usual])
            sql[usual] = parsed(text, wanted)
            if wanted == ["text"]:  # or docs with commas between
                cut = d.cut.format(f"nullif({text}, '')", "','")
                sql[usual] = f"CASE WHEN {text} LIKE '[%' THEN {sql[usual]} ELSE {cut} END"
            fields[usual] = as_text(wanted)
        elif isinstance(wanted, list) and (inner := _in_a_list(there)):
            sql[usual] = d.each.format(f"{sql[usual]}.{d.quote('list')}", d.quote(inner))
            fields[usual] = [there["list"][0][inner]]
    if fields == shape:
        return source, shape
    columns = ", ".join(f"{each} AS {d.quote(name)}" for name, each in sql.items())
    return f"(SELECT {columns} FROM {source}) AS rd_fitted", fields


def _in_a_list(shape: Any) -> str:
    """What the field of a struct is called that stands around every element of a list, as in tables
    that were made from Parquet by its letter: list.element."""
    inside = shape.get("list") if isinstance(shape, Mapping) and len(shape) == 1 else None
    if not isinstance(inside, list) or not isinstance(inside[0], Mapping) or len(inside[0]) != 1:
        return ""
    return str(next(iter(inside[0])))


def as_text(shape: Any) -> Any:
    """The same shape with every value a text, as JSON is read."""
    if isinstance(shape, Mapping):
        return {name: as_text(inner) for name, inner in shape.items()}
    return [as_text(inner) for inner in shape] if isinstance(shape, list) else "text"


def paths(shape: Any, before: str = "") -> Iterable[str]:
    """Every field of a shape, with dots."""
    if isinstance(shape, list):
        yield from paths(shape[0] if shape else {}, before)
    elif isinstance(shape, Mapping):
        for name, inner in shape.items():
            yield f"{before}{name}"
            yield from paths(inner, f"{before}{name}.")
