"""The options of `read_log`, as options of a command: one for each of its parameters."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from rankdrift.core.errors import BadOption, RankdriftError
from rankdrift.log.log import Log, Names, read_log
from rankdrift.log.sql.values import Rules

ENGINE = ("engine", "master", "memory", "threads")
NOT_TYPED = ("source", "session")  # LOG itself, and an object that only Python can pass
LARGEST_RESULT = 100_000_000  # bytes: what is larger is a log, and takes long to look into


class Told(NamedTuple):
    section: str
    metavar: str
    help: str


_COLUMNS, _ROWS, _RUN = "Columns (guessed from their names if not given)", "Rows", "Where it runs"
_RULES = Rules()

# Every parameter of read_log but NOT_TYPED, in the order of the help.
HELP = {
    "query": Told(_COLUMNS, "NAME,…", "The query; several make one query together."),
    "doc": Told(_COLUMNS, "NAME", "The result shown: a product, a document."),
    "rank": Told(_COLUMNS, "NAME", "Its rank, 1 at the top."),
    "click": Told(_COLUMNS, "NAME", "Was it clicked? A flag, a number of clicks, or a time."),
    "day": Told(_COLUMNS, "NAME", 'The day or the time. "" for none, here as elsewhere.'),
    "time": Told(_COLUMNS, "NAME", "The time of day, if --day does not tell it."),
    "search": Told(_COLUMNS, "NAME", "Tells one search from another."),
    "same": Told(_COLUMNS, "NAME,…", "Must be equal for two appearances to be the same pair."),
    "segment": Told(_COLUMNS, "NAME,…", "Count these apart, such as web and mobile."),
    "page": Told(_COLUMNS, "NAME", "The page, where ranks start again on each."),
    "shown": Told(_COLUMNS, "NAME", "Layout list: the docs shown, in order."),
    "clicked": Told(_COLUMNS, "NAME", "Layout list: the docs clicked."),
    "event": Told(_COLUMNS, "NAME", "Layout events: what happened."),
    "layout": Told(_ROWS, "LAYOUT", "long: a row per result shown; list: per search; events."),
    "where": Told(_ROWS, "SQL", "Only rows that meet this condition."),
    "max_rank": Told(_ROWS, "N", f"Ignore deeper ranks.  [default: {_RULES.max_rank}]"),
    "first_rank": Told(_ROWS, "N", f"What the top rank is called.  [default: {_RULES.first_rank}]"),
    "page_size": Told(_ROWS, "N", "Results a page; goes with --page."),
    "first_page": Told(_ROWS, "N", f"What page one is called.  [default: {_RULES.first_page}]"),
    "time_zone": Told(_ROWS, "ZONE", "Where days begin at midnight, such as Europe/Berlin."),
    "shown_events": Told(
        _ROWS, "NAME,…", f"Events that show a result.  [default: {','.join(_RULES.shown_events)}]"
    ),
    "click_events": Told(
        _ROWS, "NAME,…", f"Events that click one.  [default: {','.join(_RULES.click_events)}]"
    ),
    "dedupe": Told(_ROWS, "", "Keep one of rows logged twice; needs the column of searches."),
    "format": Told(_RUN, "FORMAT", "parquet, csv, json or duckdb, where names do not tell."),
    "table": Told(_RUN, "NAME", "The table in a DuckDB file."),
    "config": Told(_RUN, "FILE", "A TOML file with any of these options; those typed here win."),
    "engine": Told(_RUN, "ENGINE", "duckdb or spark.  [default: duckdb]"),
    "master": Told(_RUN, "URL", "Of Spark, such as local[4]."),
    "memory": Told(_RUN, "SIZE", "What DuckDB may use, such as 2GB.  [default: most there is]"),
    "threads": Told(_RUN, "N", "What DuckDB may use.  [default: all cores]"),
}  # fmt: skip


class _Seed(click.ParamType):  # type: ignore[type-arg]  # generic only from click 8.5 on
    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if not str(value).isdecimal():
            self.fail(f"{value!r} is not a whole number from 0.", param, ctx)
        return int(value)


SEED = _Seed()


class LogOption(click.Option):
    """An option that goes to `read_log`."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class Sections(click.Command):
    """A command whose help lists options under headings, its own first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = parameter.section if isinstance(parameter, LogOption) else "Options"
                listed.setdefault(section, []).append(record)
        for name, records in listed.items():
            with formatter.section(name):
                formatter.write_dl(records)


Command = Callable[..., Any]


def log_options(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    """Adds an option for each parameter of `read_log`, described by `HELP`."""
    parameters = signature(read_log).parameters
    names = [name for name in parameters if name not in {*NOT_TYPED, *without}]
    order = {name: i for i, name in enumerate(HELP)}
    names.sort(key=lambda name: order.get(name, len(order)))

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = _option(name, parameters[name].annotation)(command)
        return command

    return add


def _option(name: str, annotation: Any) -> Callable[[Command], Command]:
    section, metavar, told = HELP.get(name, Told(_RUN, "VALUE", ""))
    flag = f"--{name.replace('_', '-')}"
    kind: dict[str, Any]
    if annotation == bool | None:
        flags, kind = f"{flag}/--no-{flag[2:]}", {"default": None}
    elif annotation == int | None:
        flags, kind = flag, {"type": int, "metavar": metavar}
    else:
        flags, kind = flag, {"multiple": annotation == Names, "metavar": metavar}
    return click.option(flags, name, cls=LogOption, section=section, help=told, **kind)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were typed, as `read_log` takes them."""
    plain = {k: _names(v) if isinstance(v, tuple) else v for k, v in options.items()}
    return {k: v for k, v in plain.items() if v is not None}


def _names(typed: tuple[str, ...]) -> str | list[str] | None:
    """One value is split at commas; of several each is one name, commas and all."""
    values = typed[0].split(",") if len(typed) == 1 else typed
    names = [value.strip() for value in values if value.strip()]
    if not typed:
        return None
    return names if len(names) > 1 else "".join(names)


def read(logs: Sequence[str], options: Mapping[str, Any]) -> Log:
    try:
        return read_log(logs[0] if len(logs) == 1 else list(logs), **given(options))
    except RankdriftError as error:
        if len(logs) == 1 and (told := _is_result(logs[0])):
            raise BadOption(told) from error
        raise


def guesses(log: Log) -> list[str]:
    """What was guessed, to be told before time is spent on it."""
    if not log.guessed:
        return []
    told = ", ".join(f"{role} = {name}" for role, name in log.guessed.items())
    flag = f"--{next(iter(log.guessed))}"
    return [f"Guessed the columns: {told}. If one is wrong, name it ({flag} …)."]


def _is_result(path: str) -> str:
    """Of what cannot be read as a log: that it is a result of rankdrift's own, and how to go on."""
    from rankdrift.report.results import COUNTS, CURVE, gather

    if not os.path.isfile(path) or os.path.getsize(path) > LARGEST_RESULT:
        return ""
    try:
        ((_, kind),) = gather(path).given
    except RankdriftError:
        return ""
    to_go_on = {
        COUNTS: ("are", f"rankdrift estimate {path}"),
        CURVE: ("are", f"rankdrift train LOG --propensities {path} -o ranker.txt"),
    }
    verb, command = to_go_on.get(kind, ("is a", f"rankdrift report {path} -o report.html"))
    these = "These" if verb == "are" else "This"
    return f"{path!r} is no log. {these} {verb} {kind}, made by rankdrift: try `{command}`."


def typed(options: Mapping[str, Any]) -> list[str]:
    """The options as one would type them again."""
    words: list[str] = []
    for name, value in given(options).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
            continue
        values = value if isinstance(value, list) else [value]
        if isinstance(options[name], tuple):
            if not any("," in v for v in values):
                values = [",".join(values)]
            elif len(values) == 1:
                values = [*values, ""]  # repeated, so that the comma stays in the name
        words += [word for v in values for word in (flag, str(v))]
    return words


def again(*more: str, verb: str | None = None, without: Iterable[str] = ()) -> list[str]:
    """The command that is running, as it was typed, with more at its end; or another verb with the
    same options, but for those left out."""
    context = click.get_current_context()
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) != ParameterSource.COMMANDLINE or name in without:
            continue
        value = context.params.get(name)
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            words = [*shorter([str(v) for v in values]), *words]
        elif isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[-1])
        else:
            words += [word for v in values for word in (parameter.opts[-1], str(v))]
    return ["rankdrift", verb or str(context.info_name), *words, *more]


def shorter(logs: Sequence[str]) -> list[str]:
    """Files that the shell listed, as the pattern that it listed them for."""
    folders = {os.path.dirname(log) for log in logs}
    endings = {os.path.splitext(log)[1] for log in logs}
    if len(logs) > 2 and len(folders) == len(endings) == 1:
        pattern = os.path.join(folders.pop(), f"*{endings.pop()}")
        if set(glob.glob(pattern)) == set(logs):
            return [pattern]
    return list(logs)
