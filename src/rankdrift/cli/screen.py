"""Where words go: results to stdout, talk to stderr."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, wraps
from typing import IO, TYPE_CHECKING, Any

import click

from rankdrift.cli.settings import running_settings, takes_settings, told
from rankdrift.core.artefacts import REPORTED, kind_of_json
from rankdrift.core.digests import sealed
from rankdrift.core.errors import BadOption, Remark
from rankdrift.core.settings_used import using
from rankdrift.core.words import printable, typed_word

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WHOLE = "rankdrift.help.whole"  # in a context's `meta` while --help-all is answered
_WRITTEN = ("output", "chart", "html", "dbt", "metrics")  # options that name what is written
# What to write where the terminal's encoding lacks a character we use.
_PLAIN = {"–": "-", "—": "-", "±": "+/-", "…": "...", "─": "-", "━": "-"}


@dataclass(frozen=True)
class Screen:
    """What a verb writes with; `alone` unless another verb runs it and knows what comes next."""

    quiet: bool
    json: bool
    alone: bool = True

    def say(self, *texts: str) -> None:
        """Talk to whoever watches, a line each."""
        if not self.quiet:
            for text in texts:
                talk(text)

    def note(self, remarks: Iterable[str]) -> None:
        """Talk about what was noticed on the way."""
        self.say(*(f"Note: {remark}" for remark in remarks))

    def next(self, *command: str) -> None:
        """Say which command to try next."""
        if self.alone:
            self.command("Next:", *command)

    def command(self, sign: str, *command: str) -> None:
        """Show a command after a sign, on one line, that it may be copied."""
        if not self.quiet:
            advise(f"{sign} {printable(join(command))}")

    def show(self, *blocks: RenderableType) -> None:
        """Print results for people; the same as JSON go to `answer`."""
        if not self.json:
            with self.out.capture() as printed:
                self.out.print(*blocks, sep="\n")
            write(sys.stdout, "\n".join(text.rstrip() for text in printed.get().split("\n")))

    def text(self, text: str) -> None:
        """Print a result that is to be used as it is."""
        if not self.json:
            write(sys.stdout, text + "\n")

    def answer(self, document: dict[str, Any]) -> None:
        """Print the result for programs, one JSON document, if that was asked for; what `report`
        reads again has the settings it was made with, and its digest."""
        if not self.json:
            return
        kept = kind_of_json(document) in REPORTED
        text = json.dumps(document, indent=2, allow_nan=False)
        if kept:
            text = json.dumps(sealed(json.loads(text)), indent=2)
        write(sys.stdout, text + "\n")

    @property
    def lively(self) -> bool:
        """Is somebody watching stderr?"""
        return not self.quiet and sys.stderr.isatty()

    @cached_property
    def out(self) -> Console:
        """The console of results."""
        return _console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """The console of talk."""
        return _console(sys.stderr)


class Step:
    """Marks, as the object of click's context, a verb that another one runs."""


def talking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every verb takes, and hand the command a `screen`. Nearest to the function."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
    @click.option("--quiet", "-q", is_flag=True, help="Print no remarks and no progress.")
    @takes_settings
    @click.option(
        "--help-all",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_help_all,
        help="Show every option and exit.",
    )
    @wraps(command)
    def run(as_json: bool, quiet: bool, config: str | None, **options: Any) -> Any:
        context = click.get_current_context()
        _refuse_nameless(options)
        screen = Screen(quiet, as_json, alone=context.find_object(Step) is None)
        screen.say(*told(context))
        with _noting(screen), using(running_settings()):
            return command(screen=screen, **options)

    return run


def _refuse_nameless(options: Mapping[str, Any]) -> None:
    """An empty name, as of a variable of a shell that is not set, is no wish to write nothing."""
    for name in _WRITTEN:
        if options.get(name) in ("", ("",)):
            raise BadOption(f"--{name} has an empty name. Name a file, or leave it out.")


def _help_all(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[WHOLE] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


@contextmanager
def _noting(screen: Screen) -> Iterator[None]:
    """Our remarks become notes; what libraries warn of is for programmers."""

    def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, Remark):
            screen.note([str(message)])

    with warnings.catch_warnings():
        warnings.simplefilter("always", Remark)
        warnings.showwarning = note
        yield


def join(command: Iterable[str]) -> str:
    """A command as one would type it."""
    return " ".join(map(typed_word, command))


class _Lines:
    """Whether talk is for programs: a JSON object a line."""

    as_json = False


def talk_as_json(wanted: bool) -> None:
    """From here on every line of talk is a JSON object, or none is any more."""
    _Lines.as_json = wanted


def talks_json() -> bool:
    """Whether every line of talk is a JSON object."""
    return _Lines.as_json


def json_line(level: str, message: str, **fields: Any) -> None:
    """Write a line of talk for programs."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = {"time": moment, "level": level, "message": message, **fields}
    write(sys.stderr, json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def advise(text: str) -> None:
    """Write a command to try, set apart from what was said, on one line, that it may be copied."""
    if _Lines.as_json:
        json_line("info", text)
    else:
        write(sys.stderr, f"\n{text}\n")


def talk(text: str) -> None:
    """Write a line to stderr. On a terminal, which would break it anywhere, between words."""
    text = printable(text)
    if _Lines.as_json:
        sign, _, message = text.partition(": ")
        level = {"Error": "error", "Note": "warning"}.get(sign)
        if text:
            json_line(level or "info", message if level else text)
        return
    if sys.stderr.isatty():
        room = shutil.get_terminal_size().columns
        more = "  " if text.startswith("> ") else ""
        text = textwrap.fill(
            text, room, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
        )
    write(sys.stderr, text + "\n")


def write(stream: IO[str], text: str) -> None:
    """Write at once. When the reader has gone, what is left to write is dropped."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        close(stream)


def close(stream: IO[str]) -> None:
    """Send all that is still to come nowhere, as the reader has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def write_what_it_can() -> None:
    """Neither characters that the terminal lacks nor a stream that was closed must end a run."""
    codecs.register_error("rankdrift", _stand_in)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:  # as with `>&-`
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)  # lest another file get the number
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="rankdrift")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, ascii(c)[1:-1]) for c in characters), error.end


def _console(stream: IO[str]) -> Console:
    from rich.console import Console

    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, markup=False, emoji=False, highlight=False, color_system=colours)
