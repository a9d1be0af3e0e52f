"""The options of a log as options of a command: one for each of those in `log/options.py`."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import digits
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from rankdrift.cli.screen import WHOLE
from rankdrift.cli.settings import from_settings
from rankdrift.core.errors import BadOption, RankdriftError
from rankdrift.log.engines.choosing import ENGINES
from rankdrift.log.layouts import layouts_help
from rankdrift.log.log import Log, read_log
from rankdrift.log.options import TAKES, Rules

ENGINE = ("engine", "master", "memory", "threads")
# LOG itself, an object that only Python can pass, and what every verb takes.
NOT_TYPED = ("source", "session", "config")
# What matters most of a log, where its rows are read, and where its pairs are counted.
READING = ("query", "doc", "rank", "click", "day", "search", "segment", "where", "max_rank")
COUNTING = (*READING, "same")
LARGEST_RESULT = 100_000_000  # bytes: what is larger is a log, and takes long to look into


class Help(NamedTuple):
    """What the help says of an option: under which heading, what it takes, and what it does."""

    section: str
    metavar: str
    text: str


_COLUMNS, _ROWS, _RUN = "Columns (guessed from their names if not given)", "Rows", "Where it runs"
_LOG = "Of the log (columns are guessed if not given)"
_RULES = Rules()

HELP = {
    "query": Help(_COLUMNS, "NAME,…", "The query; several make one query together."),
    "doc": Help(_COLUMNS, "NAME", "The result shown: a product, a document."),
    "rank": Help(_COLUMNS, "NAME", "Its rank, 1 at the top."),
    "click": Help(_COLUMNS, "NAME", "Was it clicked? A flag, a number of clicks, or a time."),
    "day": Help(_COLUMNS, "NAME", 'The day or the time. "" for none, here as elsewhere.'),
    "time": Help(_COLUMNS, "NAME", "The time of day, if --day does not tell it."),
    "search": Help(_COLUMNS, "NAME", "Tells one search from another."),
    "same": Help(_COLUMNS, "NAME,…", "Must be equal for two appearances to be the same pair."),
    "segment": Help(_COLUMNS, "NAME,…", "Count these apart, such as web and mobile."),
    "page": Help(_COLUMNS, "NAME", "The page, where ranks start again on each."),
    "shown": Help(_COLUMNS, "NAME", "Layout list: the docs shown, in order."),
    "clicked": Help(_COLUMNS, "NAME", "Layout list: the docs clicked."),
    "event": Help(_COLUMNS, "NAME", "Layout events: what happened."),
    "score": Help(_COLUMNS, "NAME", "For checks: the ranker's score of the result."),
    "ranker": Help(_COLUMNS, "NAME", "For checks: version of the ranker, arm of an A/B test."),
    "user": Help(_COLUMNS, "NAME", "For checks: who searched."),
    "outcome": Help(_COLUMNS, "NAME", "For checks: what came after the click, such as a purchase."),
    "randomised": Help(_COLUMNS, "NAME", "Was the order drawn at random? For experiments."),
    "layout": Help(_ROWS, "LAYOUT", ""),  # the layouts tell themselves
    "where": Help(_ROWS, "SQL", "Only rows that meet this condition."),
    "max_rank": Help(_ROWS, "N", f"Ignore deeper ranks.  [default: {_RULES.max_rank}]"),
    "first_rank": Help(_ROWS, "N", f"What the top rank is called.  [default: {_RULES.first_rank}]"),
    "page_size": Help(_ROWS, "N", "Results a page; goes with --page."),
    "first_page": Help(_ROWS, "N", f"What page one is called.  [default: {_RULES.first_page}]"),
    "dates": Help(_ROWS, "ORDER", "How dates such as 03/04/2024 are meant: d/m/y or m/d/y."),
    "time_zone": Help(_ROWS, "ZONE", "Where days begin at midnight, such as Europe/Berlin."),
    "window": Help(
        _ROWS, "DAYS", "Compare within so many days instead of one, such as 7d for weeks."
    ),
    "randomised_apart": Help(_ROWS, "", "Count without the rows in random order."),
    "shown_events": Help(
        _ROWS, "NAME,…", f"Events that show a result.  [default: {','.join(_RULES.shown_events)}]"
    ),
    "click_events": Help(
        _ROWS, "NAME,…", f"Events that click one.  [default: {','.join(_RULES.click_events)}]"
    ),
    "dedupe": Help(_ROWS, "", "Keep one of rows logged twice; needs the column of searches."),
    "outcome_at_least": Help(
        _ROWS, "NUMBER", "The outcome counts from this number on, such as 30 seconds of dwell."
    ),
    "format": Help(
        _RUN, "FORMAT", "ubi, ga4, … (see `rankdrift formats`); or parquet, csv, json, duckdb."
    ),
    "table": Help(_RUN, "NAME", "The table in a DuckDB file."),
    "engine": Help(_RUN, "ENGINE", f"{' or '.join(ENGINES.names)}.  [default: duckdb]"),
    "master": Help(_RUN, "URL", "Of Spark, such as local[4]."),
    "memory": Help(_RUN, "SIZE", "What DuckDB may use, such as 2GB; the program itself takes some "
                   "200MB beside it.  [default: most there is]"),
    "threads": Help(_RUN, "N", "What DuckDB may use.  [default: all cores]"),
}  # fmt: skip
"""Every option of a log but NOT_TYPED, in the order of the help."""


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


class LateHelp(click.Option):
    """An option whose help lists what there is when it is asked for: loading that takes longer than
    a help. `listed` gives it; `help` stays what it was."""

    def __init__(self, *args: Any, listed: Callable[[], str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.listed = listed

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """With what there is now."""
        before, self.help = self.help, self.listed()
        try:
            return super().get_help_record(ctx)
        finally:
            self.help = before


class Sections(click.Command):
    """A command with many options: --help lists those that matter most, --help-all lists all, under
    headings, its own before those of a log.

    Parameters
    ----------
    first
        Names of the options that matter most.
    """

    def __init__(self, *args: Any, first: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.first = tuple(first)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        whole = WHOLE in ctx.meta
        listed: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in options:
            if not whole and option.name not in self.first:
                continue
            section = "Options"
            if isinstance(option, LogOption):
                section = option.section if whole else _LOG
            if record := option.get_help_record(ctx):
                listed.setdefault(section, []).append(record)
        for name, records in listed.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if not whole:
            formatter.write_paragraph()
            formatter.write_text(
                f"--help-all lists all {len(options)} options; every verb takes --json, --quiet, "
                "--config."
            )


Command = Callable[..., Any]


def log_options(*, without: Iterable[str] = ()) -> Callable[[Command], Command]:
    """Adds an option for each of those of a log, described by `HELP`."""
    names = [name for name in TAKES if name not in {*NOT_TYPED, *without}]
    order = {name: i for i, name in enumerate(HELP)}
    names.sort(key=lambda name: order.get(name, len(order)))

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = _option(name)(command)
        return command

    return add


def _option(name: str) -> Callable[[Command], Command]:
    section, metavar, text = HELP.get(name, Help(_RUN, "VALUE", ""))
    flag, takes = _flag(name), TAKES[name]
    kind: dict[str, Any]
    if takes == "flag":
        flags, kind = f"{flag}/--no-{flag[2:]}", {"default": None}
    elif takes == "whole":
        flags, kind = flag, {"type": int, "metavar": metavar}
    elif takes == "number":
        flags, kind = flag, {"type": float, "metavar": metavar}
    else:
        flags, kind = flag, {"multiple": takes in ("columns", "event names"), "metavar": metavar}
    text = layouts_help() if name == "layout" else text
    return click.option(flags, name, cls=LogOption, section=section, help=text, **kind)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were typed or stand in the file of settings, as `read_log` takes them."""
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
    """The log that was typed; if it is none but a result, an error says how to go on with it."""
    if options.get("engine") == "spark" and not click.get_current_context().params.get("quiet"):
        click.echo("Starting Spark, which takes some seconds …", err=True)
    try:
        return read_log(logs[0] if len(logs) == 1 else list(logs), **given(options))
    except RankdriftError as error:
        if len(logs) == 1 and (advice := _is_result(logs[0])):
            raise BadOption(advice) from error
        raise


def guesses(log: Log) -> list[str]:
    """What was guessed, or taken for what, to be told before time is spent on it."""
    if log.format:
        origins = log.format.origins
        taken = {
            role: [
                origins.get(name, name) for name in ([found] if isinstance(found, str) else found)
            ]
            for role, found in log.roles.to_dict().items()
            if role != "time"
        }
        words = "; ".join(f"{role} = {' + '.join(fields)}" for role, fields in taken.items())
        return [f"Read as {log.format.name}: {words}."]
    if not log.guessed:
        return []
    columns = ", ".join(f"{role} = {name}" for role, name in log.guessed.items())
    flag = f"--{next(iter(log.guessed))}"
    return [f"Guessed the columns: {columns}. If one is wrong, name it ({flag} …)."]


def randomised_words(options: Mapping[str, Any]) -> list[str]:
    """Whether rows in random order are among those counted, by what a log or counts say."""
    column = options.get("randomised")
    if not column:
        return []
    if options.get("randomised_apart"):
        return [f"Rows in random order ({column}) are kept apart, for an experiment."]
    return [
        f"Rows in random order ({column}) are counted like all others; --randomised-apart keeps "
        "them for an experiment (compare --methods auto,experiment,combined)."
    ]


def _is_result(path: str) -> str:
    """Of what cannot be read as a log: that it is a result of rankdrift's own, and how to go on."""
    from rankdrift.core.artefacts import ResultKind
    from rankdrift.report.results import gather

    inside = sorted(glob.glob(os.path.join(glob.escape(path), "*.parquet")))
    file = inside[0] if os.path.isdir(path) and inside else path
    if not os.path.isfile(file) or os.path.getsize(file) > LARGEST_RESULT:
        return ""
    try:
        ((_, kind),) = gather(file).given
    except RankdriftError:
        return ""
    quoted = shlex.quote(path)
    to_go_on = {
        ResultKind.COUNTS: ("are", f"rankdrift estimate {quoted}"),
        ResultKind.JUDGMENTS: ("are", f"rankdrift report {quoted} -o report.html"),
        ResultKind.PROPENSITIES: (
            "are",
            f"rankdrift train LOG --propensities {quoted} -o ranker.txt",
        ),
    }
    verb, command = to_go_on.get(kind, ("is a", f"rankdrift report {quoted} -o report.html"))
    these = "These" if verb == "are" else "This"
    return f"{path!r} is no log. {these} {verb} {kind}, made by rankdrift: try `{command}`."


def typed(options: Mapping[str, Any]) -> list[str]:
    """The options as one would type them again, with the file that has the others."""
    context = click.get_current_context(silent=True)
    config = context.params.get("config") if context else None
    words: list[str] = [] if config is None else ["--config", config]
    for name, value in given(options).items():
        if from_settings(name):
            continue
        flag = _flag(name)
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
    return ["rankdrift", *([verb] if verb else _path(context)), *words, *more]


def _path(context: click.Context) -> list[str]:
    """The running verb as typed: that of a group has the group before it."""
    if context.parent is None:
        return []
    return [*_path(context.parent), str(context.info_name)]


def shorter(logs: Sequence[str]) -> list[str]:
    """Files that the shell listed, as the pattern that it listed them for; not as one that what is
    written here next would match too."""
    folders = {os.path.dirname(log) for log in logs}
    endings = {os.path.splitext(log)[1] for log in logs}
    if len(logs) > 2 and len(folders) == len(endings) == 1:
        names = [os.path.basename(log) for log in logs]
        start = os.path.commonprefix(names).rstrip(digits)  # noqa: RUF071  # of names, not paths
        pattern = os.path.join(*folders, f"{start}*{endings.pop()}")
        if (start or folders != {""}) and set(glob.glob(pattern)) == set(logs):
            return [pattern]
    return list(logs)
