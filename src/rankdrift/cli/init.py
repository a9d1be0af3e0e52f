"""rankdrift init"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import COUNTING, HELP, Sections, given, log_options, read, shorter
from rankdrift.cli.output import check_file, outside
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.cli.settings import FILE, default_of, settable
from rankdrift.cli.settings_schema import verbs
from rankdrift.core.addresses import without_secrets
from rankdrift.core.errors import CannotWrite
from rankdrift.core.files import write_text
from rankdrift.core.words import printable
from rankdrift.log.layouts import layouts_help
from rankdrift.log.options import IN_FILES, Rules

if TYPE_CHECKING:
    from rankdrift.diagnosis.inspection import Inspection

WIDTH = 88
OF_VERBS: Mapping[str, tuple[str, ...]] = {
    "harvest": ("by", "buckets", "max_shown"),
    "estimate": ("curve", "by", "errors", "reference", "level"),
    "train": ("features", "trees", "backend"),
    "drift": ("false_alarms", "smallest", "reference", "window", "since"),
    "report": ("title", "queries"),
    "run": ("log", "last", "since", "judge", "publish", "keep", "wait", "mlflow", "log_format"),
}
"""Options of verbs that the file names, for whoever reads it, besides those of the log."""
_EXAMPLES: Mapping[str, Any] = {
    "where": "sort = 'best'", "page_size": 24, "time_zone": "Europe/Berlin", "window": "7d",
    "outcome_at_least": 30, "format": "parquet", "table": "searches", "engine": "duckdb",
    "dates": "d/m/y", "master": "local[4]", "memory": "2GB", "threads": 4, "layout": "auto",
    "buckets": 64, "max_shown": 8, "reference": 1, "title": "Our shop",
    "last": 28, "mlflow": "rankdrift", "since": "2024-05-22",
}  # fmt: skip
"""What a line may look like that is but a comment, where nothing is taken for granted."""
_PARTS: Mapping[str, tuple[str, ...]] = {
    "Columns: which is what": (
        "query", "doc", "rank", "click", "shown", "clicked", "event", "day", "time", "search",
        "page", "score", "ranker", "user", "outcome", "randomised",
    ),
    "Pairs: what must be equal, and within how many days": ("same", "window"),
    "Segments: counted apart": ("segment",),
    "Rows: which are read, and how": (
        "layout", "where", "max_rank", "first_rank", "page_size", "first_page", "time_zone",
        "dates", "shown_events", "click_events", "dedupe", "outcome_at_least", "randomised_apart",
    ),
    "Files and engine": (),
}  # fmt: skip
"""Headings of the file, and the options under each; the last has the rest."""


@click.command(cls=Sections, first=("output", "force", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "-o", "--output", default=FILE, show_default=True, metavar="FILE", help="Where it goes."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@log_options()
@talking
def init(screen: Screen, logs: tuple[str, ...], output: str, force: bool, **options: Any) -> int:
    """Look a log over, and write what was understood to rankdrift.toml.

    Every verb that runs in the same folder then reads the log the same way: its columns, which
    rows, what makes a pair. The file has a line for every other option too, as a comment. Options
    that are given here go into it. Exits with 1 if the log will not do, and writes it all the
    same: mend the lines that are wrong.

    \b
        rankdrift init 'logs/*.parquet'
        rankdrift init searches.csv --query keywords --segment platform
    """
    if os.path.exists(output) and not force:
        raise CannotWrite(
            f"{output!r} is there already, and was left as it is. Replace it with --force, write "
            "to another file with -o, or see what it says: rankdrift config --changed"
        )
    log = read(logs, options)
    check_file(output)
    screen.note(log.remarks)
    from rankdrift.diagnosis.inspection import inspect
    from rankdrift.report.terminal.inspection import columns_table, verdict_lines
    from rankdrift.report.terminal.tables import heading

    with bar(screen, log) as progress:
        found = inspect(log, progress=progress)
    screen.note(remark for remark in found.remarks if remark not in log.remarks)
    settings = understood(found, given(options))
    screen.show(heading("Columns"), columns_table(found), heading("Verdict"), *verdict_lines(found))
    write_text(output, settings_text(settings, found, logs))
    screen.answer(
        {
            "file": output,
            "settings": settings,
            "guessed": dict(found.guessed),
            "verdict": str(found.verdict),
            "reasons": list(found.reasons),
            "advice": list(found.advice),
        }
    )
    screen.say("", f"The settings are in {output}. Look them over: what was guessed says so.")
    if found.verdict == "unfit" and not found.ways.best:
        screen.next("rankdrift", "inspect", *shorter(logs))
        return Exit.UNFIT
    named = [] if output == FILE else ["--config", output]
    place = outside("counts.parquet", logs)
    screen.next("rankdrift", "harvest", *shorter(logs), *named, "-o", place)
    return Exit.UNFIT if found.verdict == "unfit" else Exit.GOOD


def understood(found: Inspection, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say what `inspect` understood: what was asked for, the format that was
    recognised or else the columns that were found, and the way to read the log that was tried and
    gives more, if there is one."""
    format = found.roles.get("format")
    # A format tells its own columns: set here, they would be those of any other that is asked for.
    roles = {"format": format} if format else found.roles
    best = found.ways.best
    told = {name: value for name, value in roles.items() if value}
    return {**told, **asked, **(best.options if best else {})}


def settings_text(settings: Mapping[str, Any], found: Inspection, logs: tuple[str, ...]) -> str:
    """The file: what is set, and as comments what else may be."""
    usual: dict[str, Any] = {f.name: f.default for f in fields(Rules) if f.default is not None}
    usual |= _EXAMPLES
    format = found.roles.get("format")
    if format:
        usual |= found.roles
    lines = [
        *_comment(
            "How rankdrift reads this log. Every verb that runs in this folder obeys it; what is "
            "typed wins, and so does a variable such as RANKDRIFT_MAX_RANK. `rankdrift config` "
            "shows what is in force and why; `rankdrift config --schema` prints a JSON Schema for "
            "editors."
        ),
        "#",
        *_comment(f"Written from {without_secrets(', '.join(shorter(logs)))}, a log that is"),
        *_comment(f"{found.verdict}. {' '.join(found.reasons)}"),
    ]
    placed = {name for names in _PARTS.values() for name in names}
    if found.worth_segmenting:
        usual["segment"] = list(found.worth_segmenting)[:1]
    for heading, names in _PARTS.items():
        lines += ["", _ruled(heading)]
        if format and "query" in names:
            lines += _comment(f"These are told by the format {format}; a line that is set wins.")
        for name in names or [name for name in IN_FILES if name not in placed]:
            lines += _entry(name, settings, usual, name in found.guessed)
    return "\n".join([*lines, *_of_verbs(shorter(logs))]) + "\n"


def _entry(
    name: str, settings: Mapping[str, Any], usual: Mapping[str, Any], guessed: bool
) -> Iterator[str]:
    """What an option is for, and its line; a comment where nothing is said."""
    text = layouts_help() if name == "layout" else HELP[name].text
    if name in settings:
        yield from _comment(f"{_told(text)}{' Guessed.' if guessed else ''}")
        yield f"{name} = {_toml(settings[name])}"
    else:
        yield from _comment(_told(text))
        yield f"# {name} = {_toml(usual.get(name, ''))}"


def _of_verbs(logs: list[str]) -> Iterator[str]:
    """Tables of verbs, their options as comments. A run is of the log that was looked at, if its
    address holds no secret, which is not for a file."""
    named = [without_secrets(log) for log in logs]
    examples = {**_EXAMPLES, "log": named}
    for (verb, *more), command in verbs():
        if more or verb not in OF_VERBS:
            continue
        yield from ("", _ruled(f"What `{verb}` alone takes"), f"[{verb}]")
        for name in OF_VERBS[verb]:
            option = settable(command)[name]
            yield from _comment(_told(option.help or ""))
            default = default_of(option)
            if default is None and isinstance(option.type, click.Choice):
                default = option.type.choices[0]
            line = f"{name} = {_toml(examples.get(name, '') if default is None else default)}"
            yield line if name == "log" and named == logs else f"# {line}"


def _told(text: str) -> str:
    """The help without what is taken for granted, which the line itself shows."""
    return text.split("  [default")[0]


def _ruled(heading: str) -> str:
    return f"# -- {heading} {'-' * (WIDTH - len(heading) - 6)}"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent="# ", subsequent_indent="# ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _toml(value: Any) -> str:
    """A value as TOML has it: strings of JSON are strings of TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
