"""Plans: named SQL steps that an engine runs one after the other, written for one log.

Names inside a plan: q1… the query's columns, doc, s1… columns that must be equal, g1… segment
columns, day, search, rank, click, h the key's hash, pair its number; score, ranker, visitor (the
user) and outcome, where splits are made; prior, where pairs shown at one rank are counted by it.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rankdrift.core.dialects import Dialect
from rankdrift.log.columns import Column, ColumnKind, Roles
from rankdrift.log.options import Rules
from rankdrift.log.sql import values

if TYPE_CHECKING:
    from rankdrift.log.layouts import Layout

# The steps that more than one place speaks of. From the source to rows …
SHOWN_SOURCE = "shown_source"  # the source, a row per result shown, its columns as they come
READ_ROWS = "read_rows"  # every value in its own type
ROWS_SHOWN = "rows_shown"  # every result shown, and what becomes of it
OUTSIDE = "outside"  # rows and clicks of the source that are not results shown
ANSWER = "answer"  # what a question about rows selects
# … from rows to pairs …
TALLY = "tally"  # every row, counted by what becomes of it
KNOWN = "known"  # the keys of the pairs that matter, numbered
CANDIDATES = "candidates"  # the rows of those pairs
TWICE = "twice"  # docs shown twice in one search
APPEARANCES = "appearances"  # the candidates without them
SEEN = "seen"  # how many candidates there are
CELLS = "cells"  # pairs by rank: how often shown, how often clicked
PAIRS = "pairs"  # pairs: the same, and which way they moved
USED = "used"  # the pairs that moved and were clicked
LISTED = "listed"  # those of them that were shown no more than `max_shown` times
# … and what comes of it all.
RESULT = "result"

SPLIT_COLUMNS = ("outcome", "score", "ranker", "visitor", "prior")
"""What rows carry along where splits are made, or pairs shown at one rank are counted, by its name
inside a plan."""
SCHEMA = "rd_plan"
"""Where an engine puts the tables of a plan, in DuckDB."""
RESULT_TABLE = f"{SCHEMA}.{RESULT}"


# A step of the plan after FROM or JOIN, outside of quotes.
_TABLE = re.compile(
    r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`)|\b(FROM|JOIN)\s+(\w+)\b(?![\w.(])(\s+AS\b)?""",
    re.S,
)

_WORD = re.compile(r"(?<![\w'])\w+(?![\w'])")  # that may be the name of a step, unlike a text


@dataclass(frozen=True)
class Step:
    """One SELECT of a plan, which later steps know by its name.

    Parameters
    ----------
    name, sql
        Its name, and the SELECT.
    keep
        Read more than once and far smaller than the log: an engine had better keep it.
    once
        Must not be worked out twice, which in one statement an engine might do.
    adds
        A log may be read in parts that share no pair. What this step finds in each part is added to
        what it found in the others, for the steps that need the whole of it.
    whole
        Needs what all the parts added.
    settled
        Small, and a lot is made from it: an engine that plans from the log on whatever it runs had
        better forget how it was made.
    second_held
        Of two tables that it joins, the second is the smaller by far, though that cannot be told
        beforehand: it is the one to hold in memory.
    """

    name: str
    sql: str
    keep: bool = False
    once: bool = False
    adds: bool = False
    whole: bool = False
    settled: bool = False
    second_held: bool = False


@dataclass(frozen=True)
class Plan:
    """The steps in order; what the last one selects is the answer."""

    steps: tuple[Step, ...]

    def as_query(self) -> str:
        """All of it as one statement."""
        *first, last = self.steps
        named = ",\n".join(
            f"{step.name} AS {'MATERIALIZED ' if step.once else ''}(\n{step.sql}\n)"
            for step in first
        )
        return f"WITH {named}\n{last.sql}"

    def as_script(self, d: Dialect) -> str:
        """All of it as several statements, for one session: what had better be kept is, in tables
        that go with the session; the last selects the answer."""
        *kept, (_, last) = self.tables(d)
        made = [d.keep.format(name=name, select=select) for name, select in kept]
        return "\n\n".join([*([d.opening] if d.opening else []), *made, last])

    def tables(self, d: Dialect) -> list[tuple[str, str]]:
        """What had better be kept, and the answer: names and SELECTs, with the other steps inside
        those that read them."""
        found: list[tuple[str, str]] = []
        inside: list[Step] = []
        for step in self.steps:
            used = _used_by(step, inside)
            named = ",\n".join(
                f"{each.name} AS (\n{d.inside.format(select=each.sql)}\n)" for each in used
            )
            if step.keep or step.once or step is self.steps[-1]:
                found.append((step.name, f"WITH {named}\n{step.sql}" if used else step.sql))
            else:
                inside.append(step)
        return found

    @property
    def of_part(self) -> tuple[Step, ...]:
        """The steps that a part of the log is enough for."""
        return tuple(step for step in self.steps if not step.whole)

    @property
    def added(self) -> frozenset[str]:
        """The names of the steps whose finds add up over the parts."""
        return frozenset(step.name for step in self.steps if step.adds)

    @property
    def of_whole(self) -> tuple[Step, ...]:
        """The steps that need all the parts."""
        return tuple(step for step in self.steps if step.whole)


def renamed(sql: str, names: Mapping[str, str]) -> str:
    """The same statement with some of the plan's steps under other names."""

    def rename(match: re.Match[str]) -> str:
        quoted, word, name, alias = match.groups()
        if quoted or name not in names:
            return match[0]
        return f"{word} {names[name]}{alias or f' AS {name}'}"

    return _TABLE.sub(rename, sql)


def _used_by(step: Step, steps: Sequence[Step]) -> list[Step]:
    """Those of the steps that a step, or one that it uses, reads."""
    words, found = set(re.findall(r"\w+", step.sql)), list[Step]()
    for each in reversed(steps):
        if each.name in words:
            words |= set(re.findall(r"\w+", each.sql))
            found.insert(0, each)
    return found


def spent(steps: Sequence[Step]) -> dict[str, list[str]]:
    """What is kept and read by no step later than one, by the name of that one. What adds up over
    the parts of a log stays, and so does the last."""
    last: dict[str, str] = {}
    for place, step in enumerate(steps):
        if step.keep or step.adds or step is steps[-1]:
            words = set(_WORD.findall(step.sql))
            for each in reversed(steps[:place]):
                if each.name in words and (each.keep or each.adds):
                    last[each.name] = step.name
                elif each.name in words:
                    words |= set(_WORD.findall(each.sql))
    found: dict[str, list[str]] = {}
    for each in steps[:-1]:
        if each.keep and not each.adds and each.name in last:
            found.setdefault(last[each.name], []).append(each.name)
    return found


@dataclass(frozen=True)
class Planner:
    """Writes the steps of plans for one log in one dialect.

    Parameters
    ----------
    source
        The log as a FROM item.
    columns, layout, roles, rules
        What the log's columns are, which part each plays, and how rows are read.
    dialect
        Of SQL.
    day
        None: the whole log. A day: only that day, or the window that begins on it. "": only rows
        without a readable day.
    prune
        A plain condition on the source's columns that every row of that day meets.
    carry
        What else comes along with every row shown: name -> SQL on `shown_source`.
    numbered
        Whether pairs are numbered first. Where all pairs are wanted, there is nothing to gain.
    pairs_before
        How many pairs other parts of the log have numbered already.
    """

    source: str
    columns: Mapping[str, Column]
    layout: "Layout"
    roles: Roles
    rules: Rules
    dialect: Dialect
    day: str | None = None
    prune: str | None = None
    carry: Mapping[str, str] = field(default_factory=dict)
    numbered: bool = True
    pairs_before: int = 0

    def but(self, **changes: Any) -> "Planner":
        """The same with some of its fields changed."""
        return replace(self, **changes)

    @property
    def queries(self) -> list[str]:
        """Names of the query's columns inside a plan."""
        return [f"q{i + 1}" for i in range(len(self.roles.query))]

    @property
    def same(self) -> list[str]:
        """Names of the columns that must be equal."""
        return [f"s{i + 1}" for i in range(len(self.roles.same))]

    @property
    def segments(self) -> list[str]:
        """Names of the columns that make segments."""
        return [f"g{i + 1}" for i in range(len(self.roles.segment))]

    @property
    def keys(self) -> list[str]:
        """What makes a pair, compared exactly; where there is but one day it tells none apart."""
        day = ["day"] if self.roles.day and self.day is None else []
        return [*self.queries, "doc", *self.same, *self.segments, *day]

    @property
    def pair(self) -> list[str]:
        """What tells pairs apart from the candidates on."""
        if not self.numbered:
            return self.keys
        return ["h", "pair"] if self.dialect.distributed else ["pair"]

    def hash_sql(self, keys: Sequence[str] | None = None) -> str:
        """The hash of some keys, by default of a pair's. Some engines' hashes pass over NULL, which
        would make ('a', NULL) and (NULL, 'a') one: where NULL is a value, whether it is one is
        hashed as well."""
        nullable = [*(self.queries if len(self.queries) > 1 else []), *self.segments]
        return self.dialect.hash.format(
            ", ".join([*(keys or self.keys), *(f"{k} IS NULL" for k in nullable)])
        )

    @property
    def has_search(self) -> bool:
        """Is the column of searches what tells a doc shown twice in one search from two searches?
        (A row that is a whole search tells by itself.)"""
        return bool(self.roles.search) and not self.layout.row_is_search

    def column(self, name: str) -> tuple[str, ColumnKind]:
        """A source column's SQL and kind."""
        column = self.columns[name]
        return self.dialect.quote(*column.path), column.kind

    def day_sql(self) -> str:
        """The day of a row of the source; of a longer window, its first."""
        assert self.roles.day
        column = self.columns[self.roles.day]
        day = values.day(column, self.column(column.name)[0], self.rules, self.dialect)
        return values.window_of(day, self.rules.window, self.dialect)

    def search_sql(self) -> str:
        """What tells searches of a day, or of a window, apart: their names may begin anew every
        day."""
        assert self.roles.search
        sql, kind = self.column(self.roles.search)
        search = values.key(sql, kind, self.dialect)
        if self.rules.window == 1:
            return search
        days = self.but(rules=replace(self.rules, window=1)).day_sql()
        text = values.as_text(search, kind, self.dialect)
        return f"{text} || ' ' || {self.dialect.text.format(f'({days})')}"

    def _in_window(self, date: str) -> str:
        """The condition that a date is in the window that begins on the day asked for."""
        first = datetime.date.fromisoformat(self.day or "")
        last = first + datetime.timedelta(days=self.rules.window - 1)
        if first == last:
            return f"{date} = DATE '{first}'"
        return f"{date} BETWEEN DATE '{first}' AND DATE '{last}'"

    def on_day(self, also: str | None = None) -> str:
        """WHERE clause on the source for the day asked for, and for what `also` says."""
        conditions = [c for c in (self.prune, also) if c]
        if self.day is not None:
            sql, kind = self.column(self.roles.day or "")
            if not self.day:
                conditions.append(f"{self.day_sql()} IS NULL")
            elif kind == "date":
                # As it is, so that engines can skip by statistics and folders.
                conditions.append(self._in_window(sql))
            else:
                conditions.append(f"{self.day_sql()} = DATE {self.dialect.literal(self.day)}")
        return f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
