"""Shell completion: verbs, options, values, and files where a file is asked for."""

import os
import subprocess
import sys

import click
import pytest
from click.shell_completion import ShellComplete

from rankdrift.cli import VERBS
from rankdrift.cli import rankdrift as group


def offered(*words, incomplete=""):
    found = ShellComplete(group, {}, "rankdrift", "_RANKDRIFT_COMPLETE")
    return [(item.type, item.value) for item in found.get_completions(list(words), incomplete)]


def test_verbs_options_and_values_are_offered():
    assert offered(incomplete="ev") == [("plain", "evaluate")]
    assert offered("simulate", incomplete="m") == [("plain", "market")]
    assert ("plain", "--propensities") in offered("train", incomplete="--prop")
    assert offered("train", "--beyond") == [("plain", "error"), ("plain", "clip")]


@pytest.mark.parametrize("verb", VERBS)
def test_files_are_offered_where_the_help_asks_for_one(verb):
    command = group.get_command(None, verb)
    parts = command.commands if isinstance(command, click.Group) else {"": command}
    for name, part in parts.items():
        typed = [verb, *([name] if name else [])]
        for parameter in part.params:
            if isinstance(parameter, click.Argument):
                assert offered(*typed, incomplete="log") == [("file", "log")], typed
            elif "FILE" in (parameter.metavar or "") or "--output" in parameter.opts:
                flag = parameter.opts[-1]
                assert offered(*typed, flag, incomplete="p") == [("file", "p")], (typed, flag)


def test_bash_asks_and_is_told():
    env = {**os.environ, "_RANKDRIFT_COMPLETE": "bash_complete", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", "from rankdrift.cli import main; main()"],
        env=env | {"COMP_WORDS": "rankdrift train lo"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "file,lo\n", "")
