"""The command line: the verbs of the Python API, thin. Parse, call, print.

screen.py    results to stdout, talk to stderr
options.py   the options of read_log
output.py    is the place to write to there?
progress.py  the bar
and a file for each verb, or two that belong together
"""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from rankdrift.cli.screen import join, write, write_what_it_can
from rankdrift.core.errors import RankdriftError
from rankdrift.core.version import __version__
from rankdrift.core.words import printable

GOOD, UNFIT, WRONG, BROKEN, STOPPED = 0, 1, 2, 70, 130

# How the help calls options that are files.
FILES = ("FILE", "FOLDER", "PATH", "LOG|SHARE")
# In flow order: verb -> the module it is in, what it does. Loaded when asked for.
VERBS = {
    "demo": ("demo", "Make up a log and go through all the steps."),
    "inspect": ("inspect", "Look a log over: what is in it, and will it do?"),
    "harvest": ("harvest", "Count a log: big log in, small file of counts out."),
    "merge": ("counts", "Add counts up: a month is the sum of its days."),
    "counts": ("counts", "Show what is in a file of counts."),
    "estimate": ("estimate", "Estimate propensities from counts or a log."),
    "diagnose": ("estimate", "Check whether the assumptions behind them hold."),
    "compare": ("compare", "Estimate the same curve by several methods, side by side."),
    "train": ("train", "Train a ranker on clicks worth 1 / propensity each."),
    "evaluate": ("evaluate", "Judge rankers fairly: among results shown at the same rank."),
    "report": ("report", "Tell all that was found on one page."),
    "export-training": ("train", "Write the training data for other tools."),
    "sql": ("warehouse", "Print the harvest as SQL, to run in a warehouse."),
    "import-counts": ("warehouse", "Take in the result of that SQL."),
    "simulate": ("simulate", "Make up data whose true propensities are known."),
    "reproduce": ("reproduce", "Make the paper's figures and table anew."),
}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"rankdrift.cli.{VERBS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        _complete_files(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, told) for name, (_, told) in VERBS.items()])


def _complete_files(command: click.Command) -> None:
    """The shell then offers files where the help asks for one: every argument is one."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument) or parameter.metavar in FILES:
            parameter.type = click.Path()
    for verb in command.commands.values() if isinstance(command, click.Group) else ():
        _complete_files(verb)


@click.group(
    cls=Verbs,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="rankdrift", message="%(prog)s %(version)s")
def rankdrift() -> None:
    """rankdrift reads the search logs you already have and tells how much a click at each rank
    is worth. The same result for the same query drifts between ranks by itself; which of its
    appearances gets the click tells the ranks apart.

    \b
        log --inspect--> a verdict: will it do?
         |
         +--harvest----------------------------> counts --estimate--> propensities
         |                                       ^  |  \\--diagnose--> do assumptions hold?
         |                                       |  +--merge--> counts of all days
         +--sql--> your warehouse --import-counts+
         |
         +--compare--> what do other methods say?
         +--train, with propensities--> ranker --evaluate--> did it help?

        all that was found --report--> one page

    \b
        log           a row a result shown: query, doc, rank (1: top), click, day
        pair          a query and a doc on a day; two ranks and a click make it usable
        counts        all that the estimate needs of a log, in a small file
        propensities  how likely each rank is looked at, compared with rank 1;
                      a click is worth 1 / propensity

    \b
    Begin with one of these:
        rankdrift demo                                a made-up log, all steps
        rankdrift inspect 'logs/*.parquet'            your log, nothing written
        rankdrift harvest 'logs/*.parquet' -o counts.parquet

    `rankdrift VERB --help` says more. Results go to stdout; talk goes to stderr, and ends with the
    next command to try. Every verb takes --json and --quiet. Exit code 0 is good, 1 means that the
    data will not do, 2 that the request would not.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    write_what_it_can()
    # Threads of LightGBM and XGBoost that wait for each other would keep the processor busy, and
    # from those they wait for: with six processes on two cores, training took four times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Matrices here are small: sharing them out among threads takes longer than the work itself, and
    # on busy processors 30 times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run(args)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop but the tidying up
    sys.exit(code)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if args is None else args)
    try:
        code = rankdrift.main(words, prog_name="rankdrift", standalone_mode=False)
        return int(code or GOOD)
    except click.ClickException as error:
        return _refuse(error, words)
    except RankdriftError as error:
        if _interrupted(error):
            return _stopped(words)
        return _fail(printable(str(error)), words)
    except (click.Abort, KeyboardInterrupt):
        return _stopped(words)
    except SystemExit:
        return GOOD  # click's way to go when the reader of its help has gone
    except OSError as error:
        return _fail(printable(str(error)), words)
    except Exception as error:
        if _interrupted(error):
            return _stopped(words)
        traceback.print_exc()
        write(sys.stderr, f"Error: {_DEFECT}\n\nNext: rankdrift --version\n")
        return BROKEN


_DEFECT = (
    "That was a defect of rankdrift, not of your data. Report it, with the lines above and the "
    "version."
)


def _fail(message: str, words: list[str]) -> int:
    """Say what is wrong, and where to read on unless talk is not wanted."""
    write(sys.stderr, f"Error: {message}\n")
    if not _quiet(words):
        write(sys.stderr, f"\nNext: {_verb(words)} --help\n")
    return WRONG


def _refuse(error: click.ClickException, words: list[str]) -> int:
    """What click would not take. Where a verb is missing, its message is the help."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return WRONG
    if isinstance(error, click.UsageError) and error.ctx:
        write(sys.stderr, f"{error.ctx.get_usage()}\n\n")
    return _fail(printable(error.format_message()), words)


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


def _stopped(words: list[str]) -> int:
    """Say in what state things are, and how to go on."""
    write(sys.stderr, "Stopped.\n")
    if not _quiet(words):
        by_day = words[:1] == ["harvest"] and ("--by=day" in words or {"--by", "day"} <= {*words})
        state = "Days that are done stay, the others follow" if by_day else "All of it starts over"
        again = printable(join(["rankdrift", *_shorter(words)]))
        write(sys.stderr, f"No file is half written. {state} with the next run.\n\nNext: {again}\n")
    return STOPPED


def _shorter(words: list[str]) -> list[str]:
    """The command with files that the shell listed as the pattern that it listed them for."""
    from rankdrift.cli.options import shorter

    files = [word for word in words if os.path.isfile(word)]
    pattern = shorter(files)
    if len(pattern) == len(files):
        return words
    first = words.index(files[0])
    return [*words[:first], *pattern, *(word for word in words[first:] if word not in files)]


def _interrupted(error: BaseException | None) -> bool:
    """DuckDB has words of its own for Ctrl-C."""
    while error is not None:
        if type(error).__name__ == "InterruptException" or str(error) == "Query interrupted":
            return True
        error = error.__cause__ or error.__context__
    return False
