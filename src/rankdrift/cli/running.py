"""A run of the command line, from its words to its exit code, whatever happens on the way."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from rankdrift.cli import stopping
from rankdrift.cli.exits import Exit
from rankdrift.cli.screen import (
    advise,
    join,
    json_line,
    talk,
    talk_as_json,
    talks_json,
    write,
    write_what_it_can,
)
from rankdrift.cli.verbs import rankdrift
from rankdrift.core.errors import NotConverged, NotIdentified, NoUsablePairs, RankdriftError
from rankdrift.core.words import printable


def run_and_exit(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    write_what_it_can()
    # Threads of LightGBM and XGBoost that wait for each other would keep the processor busy, and
    # from those they wait for: with six processes on two cores, training took four times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Matrices here are small: sharing them out among threads takes longer than the work itself, and
    # on busy processors 30 times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        stopping.begin()
        stopping.end(run(args))
    except KeyboardInterrupt as error:  # between the lines
        stopping.end(_stopped(_words(args), error))


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line, and give back its exit code."""
    words = _words(args)
    talk_as_json(False)
    try:
        code = rankdrift.main(words, prog_name="rankdrift", standalone_mode=False)
        return int(code or Exit.GOOD)
    except Exception as error:
        if stopping.asked() or interrupted(error):
            return _stopped(words, error)
        return _ended_by(error, words)
    except KeyboardInterrupt as error:
        return _stopped(words, error)
    except SystemExit as error:
        # Click's way to go when the reader of its help has gone.
        return _stopped(words, error) if stopping.asked() else Exit.GOOD


def _words(args: Sequence[str] | None) -> list[str]:
    return list(sys.argv[1:] if args is None else args)


def _ended_by(error: Exception, words: list[str]) -> int:
    """Say what is wrong; the exit code that goes with it."""
    if isinstance(error, click.ClickException):
        return _refuse(error, words)
    if isinstance(error, NoUsablePairs | NotIdentified | NotConverged):
        _fail(str(error), words)
        return Exit.UNFIT
    if isinstance(error, RankdriftError | OSError):
        return _fail(str(error), words)
    short = shortage_words(error)
    if short:
        return _fail(short, words)
    if talks_json():
        json_line("error", _DEFECT, traceback="".join(traceback.format_exception(error)))
    else:
        traceback.print_exception(error)
        talk(f"Error: {_DEFECT}")
    advise("Next: rankdrift --version")
    return Exit.BROKEN


_DEFECT = (
    "That was a defect of rankdrift, not of your data. Report it, with the lines above and the "
    "version."
)


def _fail(message: str, words: list[str]) -> int:
    """Say what is wrong, and where to read on unless talk is not wanted."""
    talk(f"Error: {message}")
    if not _quiet(words):
        advise(f"Next: {_verb(words)} --help")
    return Exit.WRONG


def _refuse(error: click.ClickException, words: list[str]) -> int:
    """What click would not take. Where a verb is missing, its message is the help."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return Exit.WRONG
    if isinstance(error, click.UsageError) and error.ctx and not talks_json():
        write(sys.stderr, f"{error.ctx.get_usage()}\n\n")
    return _fail(error.format_message(), words)


def _verb(words: list[str]) -> str:
    """What was asked for, as far as it is known: `rankdrift simulate market`."""
    context = click.Context(rankdrift, info_name="rankdrift")
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            break
        context = click.Context(found, info_name=word, parent=context)
    return context.command_path


def _quiet(words: list[str]) -> bool:
    return bool({"-q", "--quiet"} & {*words})


def _stopped(words: list[str], error: BaseException) -> int:
    """Say in what state things are, and how to go on."""
    stopping.settle(error)
    talk("Stopped.")
    if not _quiet(words):
        by_day = words[:1] == ["harvest"] and ("--by=day" in words or {"--by", "day"} <= {*words})
        by_day = by_day or words[:1] == ["run"]
        state = "Days that are done stay, the others follow" if by_day else "All of it starts over"
        again = printable(join(["rankdrift", *_shorter(words)]))
        talk(f"No file is half written. {state} with the next run.")
        advise(f"Next: {again}")
    return Exit.STOPPED


def _shorter(words: list[str]) -> list[str]:
    """The command with files that the shell listed as the pattern that it listed them for."""
    from rankdrift.cli.options import shorter

    files = [word for word in words if os.path.isfile(word)]
    pattern = shorter(files)
    if len(pattern) == len(files):
        return words
    first = words.index(files[0])
    return [*words[:first], *pattern, *(word for word in words[first:] if word not in files)]


def shortage_words(error: Exception) -> str | None:
    """What there was too little of, if that is what the error is about."""
    if isinstance(error, MemoryError):
        return "Not enough memory to go on. Use fewer days, or a machine with more."
    if "duckdb" not in sys.modules:
        return None
    from rankdrift.core.database import shortage

    return shortage(error)


def interrupted(error: BaseException | None) -> bool:
    """DuckDB has words of its own for Ctrl-C, and click has too."""
    while error is not None:
        if isinstance(error, click.Abort | KeyboardInterrupt):
            return True
        if type(error).__name__ == "InterruptException" or str(error) == "Query interrupted":
            return True
        error = error.__cause__ or error.__context__
    return False
