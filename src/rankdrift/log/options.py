"""The options of a log, stated once: their names, what each takes, which may stand in a file, and
what they come to. `read_log`, `warehouse_sql` and the command line all go by this list."""

import math
import re
import tomllib
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike, fspath
from typing import Any, Literal

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import read_text
from rankdrift.log.columns import Roles

Names = str | Sequence[str] | None
"""One name or several; "" says that there is none, None says nothing."""
Takes = Literal[
    "column", "columns", "event names", "text", "whole", "number", "flag", "engine", "path",
    "session",
]  # fmt: skip
"""What an option may be given: the name of a column, names of columns or of events, text, a whole
number, any number, yes or no, the name of an engine, a path, or an object that only Python can
pass."""
DATES = tuple(separator.join(order) for separator in "./-" for order in ("dmy", "mdy"))
"""Orders of dates whose year comes last: d.m.y is 31.12.2024, m/d/y is 12/31/2024."""
LARGEST = 100_000
MOST_THREADS = 1024


@dataclass(frozen=True)
class Rules:
    """How rows are read: everything about a log that is not the name of a column."""

    max_rank: int = 500
    first_rank: int = 1
    page_size: int | None = None
    first_page: int = 1
    time_zone: str | None = None
    where: str | None = None
    shown_events: tuple[str, ...] = ("impression",)
    click_events: tuple[str, ...] = ("click",)
    dedupe: bool = False
    outcome_at_least: float | None = None
    window: int = 1  # days
    randomised_apart: bool = False
    dates: str | None = None  # of DATES; None where text has the year first


def _takes(takes: Takes) -> dict[str, Takes]:
    """What a field of `Options` knows of itself."""
    return {"takes": takes}


@dataclass(frozen=True)
class Options:
    """All that may be said of a log besides where it is. `read_log` tells what each means.

    None means that nothing is said. What was read from a file is of any type until `check`,
    `columns` and `rules` have seen it.
    """

    query: Names = field(default=None, metadata=_takes("columns"))
    doc: str | None = field(default=None, metadata=_takes("column"))
    rank: str | None = field(default=None, metadata=_takes("column"))
    click: str | None = field(default=None, metadata=_takes("column"))
    shown: str | None = field(default=None, metadata=_takes("column"))
    clicked: str | None = field(default=None, metadata=_takes("column"))
    event: str | None = field(default=None, metadata=_takes("column"))
    day: str | None = field(default=None, metadata=_takes("column"))
    time: str | None = field(default=None, metadata=_takes("column"))
    search: str | None = field(default=None, metadata=_takes("column"))
    page: str | None = field(default=None, metadata=_takes("column"))
    same: Names = field(default=None, metadata=_takes("columns"))
    segment: Names = field(default=None, metadata=_takes("columns"))
    score: str | None = field(default=None, metadata=_takes("column"))
    ranker: str | None = field(default=None, metadata=_takes("column"))
    user: str | None = field(default=None, metadata=_takes("column"))
    outcome: str | None = field(default=None, metadata=_takes("column"))
    randomised: str | None = field(default=None, metadata=_takes("column"))
    layout: str | None = field(default=None, metadata=_takes("text"))
    where: str | None = field(default=None, metadata=_takes("text"))
    max_rank: int | None = field(default=None, metadata=_takes("whole"))
    first_rank: int | None = field(default=None, metadata=_takes("whole"))
    page_size: int | None = field(default=None, metadata=_takes("whole"))
    first_page: int | None = field(default=None, metadata=_takes("whole"))
    time_zone: str | None = field(default=None, metadata=_takes("text"))
    shown_events: Names = field(default=None, metadata=_takes("event names"))
    click_events: Names = field(default=None, metadata=_takes("event names"))
    dedupe: bool | None = field(default=None, metadata=_takes("flag"))
    outcome_at_least: float | None = field(default=None, metadata=_takes("number"))
    window: str | None = field(default=None, metadata=_takes("text"))
    randomised_apart: bool | None = field(default=None, metadata=_takes("flag"))
    dates: str | None = field(default=None, metadata=_takes("text"))
    format: str | None = field(default=None, metadata=_takes("text"))
    table: str | None = field(default=None, metadata=_takes("text"))
    config: str | PathLike[str] | None = field(default=None, metadata=_takes("path"))
    engine: str | None = field(default=None, metadata=_takes("engine"))
    session: Any = field(default=None, metadata=_takes("session"))
    master: str | None = field(default=None, metadata=_takes("text"))
    memory: str | None = field(default=None, metadata=_takes("text"))
    threads: int | None = field(default=None, metadata=_takes("whole"))

    def with_file(self) -> "Options":
        """The same, with what the file `config` says wherever nothing else is said."""
        found = read_settings(self.config)[0] if self.config is not None else {}
        return replace(self, **{k: v for k, v in found.items() if getattr(self, k) is None})

    def check(self) -> None:
        """Raise BadOption for what is wrong whatever the log is, before the log is opened."""
        for name, takes in TAKES.items():
            value = getattr(self, name)
            if takes == "text" and not isinstance(value, str | None):
                raise BadOption(f"{name} must be text, not {value!r}.")
        if self.threads is not None:
            _check_whole("threads", self.threads, 1, MOST_THREADS)
        least = self.outcome_at_least
        if least is not None and not (_is_number(least) and 0 < least < math.inf):
            raise BadOption(
                f"outcome_at_least must be a number greater than 0, not {least!r}. It says from "
                "which value of the outcome on a click counts, such as 30 seconds of dwell."
            )

    def columns(self) -> dict[str, str | tuple[str, ...] | None]:
        """Role -> the column or columns named for it."""
        return {role: _names(getattr(self, role), role) for role in ROLES}

    def rules(self, roles: Roles) -> Rules:
        """How rows are to be read, checked against the columns there are."""
        chosen = {f.name: getattr(self, f.name) for f in fields(Rules)}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        for name in chosen:
            if TAKES[name] == "event names":
                names = _names(chosen[name], name)
                chosen[name] = (names,) if isinstance(names, str) else names
            elif TAKES[name] == "number":
                chosen[name] = float(chosen[name])
        if "window" in chosen:
            chosen["window"] = _window(chosen["window"])
        rules = Rules(**chosen)
        _check_rules(rules, roles)
        return rules


TAKES: Mapping[str, Takes] = {f.name: f.metadata["takes"] for f in fields(Options)}
"""Every option and what it takes."""
IN_FILES = tuple(name for name, takes in TAKES.items() if takes not in ("path", "session"))
"""Options that may stand in a file."""
TABLES = (
    "demo", "inspect", "formats", "init", "harvest", "merge", "counts", "estimate", "diagnose",
    "compare", "models", "train", "evaluate", "judge", "experiment", "drift", "report", "run",
    "export-training", "sql", "import-counts", "simulate", "reproduce", "config",
)  # fmt: skip
"""Verbs of the command line, which may have a table of their own in such a file."""
_MOST = 1 << 20  # bytes of options
ROLES = tuple(f.name for f in fields(Roles))
"""Options that name columns."""


def read_settings(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options in a TOML file, by name, their values not looked at yet; and its tables, which
    only the command line uses: options of a verb, by the verb's name."""
    try:
        found = tomllib.loads(read_text(path, _MOST))
    except OSError as error:
        raise BadOption(f"Cannot read the options in {fspath(path)!r}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadOption(f"{fspath(path)!r} is not TOML: {error}.") from None
    for name in found:
        if name not in IN_FILES and name not in TABLES:
            hint = did_you_mean(name, (*IN_FILES, *TABLES))
            raise BadOption(
                f"{fspath(path)!r} has an unknown option {name!r}.{hint} "
                f"Known are {', '.join(IN_FILES)}; options of one verb go under its name, such as "
                "[estimate]."
            )
        if name in TABLES and not isinstance(found[name], dict):
            raise BadOption(
                f"{fspath(path)!r}: {name} is a verb. Its options go under [{name}], a line each."
            )
    options = {name: value for name, value in found.items() if name in IN_FILES}
    return options, {name: value for name, value in found.items() if name in TABLES}


def _names(value: Any, name: str) -> str | tuple[str, ...] | None:
    """What was given for an option that takes names; "" is kept: it says that there is none, so
    that none is guessed."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        if TAKES[name] in ("columns", "event names"):
            return tuple(value)
        raise BadOption(f"{name} takes one column, not {list(value)!r}.")
    what = "names of events" if TAKES[name] == "event names" else "the name of a column"
    raise BadOption(f"{name} takes {what}, not {value!r}.")


def _window(text: str) -> int:
    """How many days "7d" is."""
    found = re.fullmatch(r"([1-9][0-9]{0,3}) ?d(ays?)?", text.strip().lower())
    if not found:
        raise BadOption(
            f"window must be a number of days such as 7d, not {text!r}. For the whole log leave it "
            'out and say that there is no day: --day "".'
        )
    return int(found[1])


def _check_rules(rules: Rules, roles: Roles) -> None:
    for name, least in (("max_rank", 2), ("first_rank", 0), ("first_page", 0)):
        _check_whole(name, getattr(rules, name), least)
    if rules.page_size is not None:
        _check_whole("page_size", rules.page_size, 1)
    if bool(roles.page) != bool(rules.page_size):
        missing = "page_size (results a page)" if roles.page else "page (the page's column)"
        raise BadOption(f"page and page_size go together: {missing} is missing.")
    if rules.time_zone is not None and rules.time_zone not in zoneinfo.available_timezones():
        known = zoneinfo.available_timezones()
        raise BadOption(
            f"No time zone {rules.time_zone!r}.{did_you_mean(rules.time_zone, known)} "
            "Write it as Europe/Berlin or UTC."
        )
    if rules.dates is not None and rules.dates not in DATES:
        raise BadOption(
            f"dates is {rules.dates!r}. Where the year comes last it is one of {', '.join(DATES)}; "
            "dates such as 2024-12-31 need nothing."
        )
    for name in ("dedupe", "randomised_apart"):
        if not isinstance(getattr(rules, name), bool):
            raise BadOption(f"{name} must be true or false, not {getattr(rules, name)!r}.")
    if rules.randomised_apart and not roles.randomised:
        raise BadOption(
            "randomised_apart needs the column that tells which rows are in random order: name it "
            "with --randomised."
        )
    if rules.dedupe and not roles.search:
        raise BadOption(
            "dedupe needs the column that tells searches apart (--search): without it, the same "
            "doc shown again at the same rank cannot be told from a row logged twice."
        )
    if rules.outcome_at_least is not None and not roles.outcome:
        raise BadOption(
            "outcome_at_least needs the column that it is about: name it with --outcome."
        )
    if rules.window > 1 and not roles.day:
        raise BadOption(
            "window needs the column of the day: name it with --day, or leave out --window to "
            "compare a pair's appearances over the whole log."
        )
    if rules.where is not None and not rules.where.strip():
        raise BadOption(
            "where is empty. Leave it out, or give a condition such as \"sort = 'best'\"."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_whole(name: str, value: Any, least: int, most: int = LARGEST) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadOption(f"{name} must be a whole number from {least} to {most:,}, not {value!r}.")
