"""Where big data lives. An engine opens a source, tells its columns, and runs a plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rankdrift.core.dialects import Dialect
from rankdrift.log.columns import Column
from rankdrift.log.formats.format import Format
from rankdrift.log.sql.plan import Plan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Progress = Callable[[str, float], None]
"""Called with the step's name and the fraction of it that is done (0 to 1)."""


@dataclass(frozen=True)
class Day:
    """One day of a log; `fingerprint` changes when any input that holds rows of it does."""

    day: str  # ISO, or "" for the rows without a readable day
    rows: int
    fingerprint: str | None


class Days(Protocol):
    """The days of a log and where their rows are."""

    @property
    def all(self) -> list[Day]:
        """In order."""
        ...

    @property
    def apart(self) -> bool:
        """Can they be read one by one at the price of reading the log once?"""
        ...

    def part(self, day: Day) -> tuple[str, str | None]:
        """How to read one day: a FROM item that has all its rows, and perhaps more, and a plain
        condition which all of them meet and by which an engine may skip the others."""
        ...


class Engine(Protocol):
    """A log that was opened, and what reads it."""

    @property
    def dialect(self) -> Dialect:
        """The SQL that it understands."""
        ...

    @property
    def format(self) -> Format | None:
        """The known format that the log has, whose columns these are."""
        ...

    @property
    def columns(self) -> Mapping[str, Column]:
        """Those of the log, by name; the fields of a struct after the struct."""
        ...

    @property
    def source(self) -> str:
        """The log as a FROM item."""
        ...

    def prepare(self, used: list[str], spare: list[str]) -> list[str]:
        """Check that every file has the columns in use; remarks worth telling. Those to `spare` are
        in use too, but may be missing from some of the files."""
        ...

    def narrow(self, names: list[str] | None) -> None:
        """From now on only these columns are likely to be read, or all: an engine that copies the
        log may leave the others out, and copies again if one of them is asked for."""
        ...

    def fingerprint(self) -> str | None:
        """Changes when the input does; None when the engine cannot tell."""
        ...

    def rows(self) -> int | None:
        """How many rows there are, when that is known without reading them."""
        ...

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """A small result."""
        ...

    def run(self, plan: Plan, progress: Progress | None = None) -> "DuckDBPyConnection":
        """A DuckDB connection that has what the last step selects as `rd_plan.result`, if the step
        has the name `result`."""
        ...

    def fetch(self, plan: Plan, progress: Progress | None = None) -> dict[str, Any]:
        """What the last step selects, as arrays by column, masked where NULL: for what is too
        large to be kept twice."""
        ...

    def days(self, day_sql: str, column: Column, window: int) -> Days:
        """The days of the log by SQL on its rows, which reads that column; or the windows of so
        many days, each by its first."""
        ...


@runtime_checkable
class PartByPart(Engine, Protocol):
    """An engine that can run a plan on the parts of a log one after the other."""

    def run_part(self, plan: Plan, first: bool, progress: Progress | None = None) -> None:
        """Take the steps that a part is enough for, and add what they find to what the parts
        before it gave, unless this is the first."""
        ...

    def run_whole(self, plan: Plan, progress: Progress | None = None) -> "DuckDBPyConnection":
        """Take the steps that need all the parts; then as `run`."""
        ...
