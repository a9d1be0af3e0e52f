"""Plans: named SQL steps that an engine runs one after the other, written for one log.

Names inside a plan: q1… the query's columns, doc, s1… columns that must be equal, g1… segment
columns, day, search, rank, click, h the key's hash, pair its number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rankdrift.core.dialects import Dialect
from rankdrift.log.columns import Column, Roles
from rankdrift.log.sql import values as reading
from rankdrift.log.sql.values import Rules


@dataclass(frozen=True)
class Step:
    name: str
    sql: str
    # Read more than once and far smaller than the log: an engine had better keep it.
    keep: bool = False
    # Must not be worked out twice, which in one statement an engine might do.
    once: bool = False
    # A log may be read in parts that share no pair. What this step finds in each part is added to
    # what it found in the others, for the steps that need the whole of it.
    adds: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Plan:
    """The steps in order; the last, `result`, is the table that `Counts` is made of."""

    steps: tuple[Step, ...]

    def as_query(self) -> str:
        """All of it as one statement."""
        *first, last = self.steps
        named = ",\n".join(
            f"{step.name} AS {'MATERIALIZED ' if step.once else ''}(\n{step.sql}\n)"
            for step in first
        )
        return f"WITH {named}\n{last.sql}"

    @property
    def of_part(self) -> tuple[Step, ...]:
        """The steps that a part of the log is enough for."""
        return tuple(step for step in self.steps if not step.whole)

    @property
    def added(self) -> frozenset[str]:
        return frozenset(step.name for step in self.steps if step.adds)

    @property
    def of_whole(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.whole)


@dataclass(frozen=True)
class Planner:
    """Writes the plan for one log in one dialect."""

    source: str  # a FROM item
    columns: Mapping[str, Column]
    roles: Roles
    rules: Rules
    dialect: Dialect
    # How counts are split: only the harvest needs to say.
    buckets: int = 1
    max_shown: int = 2
    # None: the whole log. A day: only that day. "": only rows without a readable day.
    day: str | None = None
    # A plain condition on the source's columns that every row of that day meets.
    prune: str | None = None
    # What else comes along with every row shown: name -> SQL on `shown_source`.
    carry: Mapping[str, str] = field(default_factory=dict)
    # Where all pairs are wanted, there is nothing to gain from numbering them first.
    numbered: bool = True
    # Pairs that other parts of the log have numbered already.
    pairs_before: int = 0

    def but(self, **changes: Any) -> "Planner":
        return replace(self, **changes)

    @property
    def queries(self) -> list[str]:
        return [f"q{i + 1}" for i in range(len(self.roles.query))]

    @property
    def same(self) -> list[str]:
        return [f"s{i + 1}" for i in range(len(self.roles.same))]

    @property
    def segments(self) -> list[str]:
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

    def hash_sql(self) -> str:
        """The key's hash. Some engines' hashes pass over NULL, which would make ('a', NULL) and
        (NULL, 'a') one: where NULL is a value, whether it is one is hashed as well."""
        nullable = [*(self.queries if len(self.queries) > 1 else []), *self.segments]
        return self.dialect.hash.format(
            ", ".join([*self.keys, *(f"{k} IS NULL" for k in nullable)])
        )

    @property
    def has_search(self) -> bool:
        """Can a doc shown twice in one search be told from two searches? (A list row can
        tell by itself.)"""
        return bool(self.roles.search) and self.roles.layout != "list"

    def column(self, name: str) -> tuple[str, str]:
        """A source column's SQL and kind."""
        column = self.columns[name]
        return self.dialect.quote(*column.path), column.kind

    def day_sql(self) -> str:
        assert self.roles.day
        column = self.columns[self.roles.day]
        return reading.day(column, self.column(column.name)[0], self.rules, self.dialect)
