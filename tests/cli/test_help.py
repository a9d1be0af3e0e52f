"""Help that is read: --help is a screen of what matters most, --help-all has every option."""

import re

import click
import pytest
from click.testing import CliRunner

from rankdrift.cli import VERBS
from rankdrift.cli import rankdrift as group
from rankdrift.cli.options import COUNTING, READING, LogOption, Sections

SCREEN, COLUMNS = 30, 80  # lines and characters: what one sees at once


def _commands():
    for name in VERBS:
        command = group.get_command(None, name)
        parts = command.commands if isinstance(command, click.Group) else {}
        yield from ((f"{name} {part}", verb) for part, verb in parts.items())
        if not parts:
            yield name, command


COMMANDS = dict(_commands())
GROUPS = ["simulate", "experiment", "reproduce", ""]
FITTING = [*COMMANDS, *GROUPS]
LONG = [name for name, command in COMMANDS.items() if isinstance(command, Sections)]
OF_LOGS = [n for n in LONG if any(isinstance(p, LogOption) for p in COMMANDS[n].params)]


def told(name, flag):
    done = CliRunner().invoke(group, [*name.split(), flag], prog_name="rankdrift")
    assert done.exit_code == 0 and done.stderr == ""
    return done.stdout


def listed(text):
    """The options that have a line of their own."""
    return {
        flag
        for line in re.findall(r"^  (-.+?)(?:  |$)", text, re.M)
        for flag in re.findall(r"--[a-z-]+", line)
    }


def flags(command):
    return {max(p.opts, key=len): p for p in command.params if isinstance(p, click.Option)}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_screen_and_help_all_is_all(name):
    short, whole = told(name, "--help"), told(name, "--help-all")
    assert told(name, "-h") == short
    assert len(short.splitlines()) <= SCREEN
    assert short.split("\n\nOptions:")[0] == whole.split("\n\nOptions:")[0]  # text and examples
    assert {*flags(COMMANDS[name]), "--help"} <= listed(whole)
    assert "--help-all" in short and "--json" in short and "--quiet" in short
    needed = {flag for flag, option in flags(COMMANDS[name]).items() if option.required}
    assert needed <= listed(short) <= listed(whole)


@pytest.mark.parametrize("name", LONG)
def test_what_matters_most_is_in_the_help(name):
    command = COMMANDS[name]
    first = {flag for flag, option in flags(command).items() if option.name in command.first}
    assert len(first) == len(set(command.first)), "an option that there is not"
    short = told(name, "--help")
    assert first == listed(short) - {"--help-all"} - {
        flag for option in flags(command).values() for flag in option.secondary_opts
    }
    lists_all = int(re.search(r"--help-all lists all (\d+) options", short)[1])
    assert lists_all == len(flags(command)) + 1  # and --help


@pytest.mark.parametrize("name", OF_LOGS)
def test_columns_come_first_where_logs_are_read(name):
    if name not in ("estimate", "run"):  # of counts, mostly; by the file of settings
        assert set(READING) <= set(COMMANDS[name].first)
    if name in ("inspect", "harvest", "compare", "diagnose", "sql"):
        assert set(COUNTING) <= set(COMMANDS[name].first)


def test_the_docs_list_every_option():
    """As mkdocs-click does: those that are not hidden."""
    for command in COMMANDS.values():
        assert not any(p.hidden for p in command.params if isinstance(p, click.Option))


@pytest.mark.parametrize("flag", ["--help", "--help-all"])
@pytest.mark.parametrize("name", FITTING)
def test_help_fits_a_screen_and_breaks_no_word(name, flag):
    if flag == "--help-all" and name in GROUPS:
        return
    for line in told(name, flag).splitlines():
        assert len(line) <= COLUMNS and not re.search(r"\w-$", line), line
