"""Spark starts without a word, and its warnings are told when it does not start."""

import os
import sys

import pytest

from rankdrift.log.engines.java import quiet


def test_what_is_started_within_is_not_heard(capfd):
    with quiet():
        os.system(f"{sys.executable} -c \"import os; os.write(2, b'a warning')\"")
    print("heard", file=sys.stderr)
    assert capfd.readouterr().err == "heard\n"


def test_what_does_not_start_is_heard(capfd):
    with pytest.raises(RuntimeError), quiet():
        os.write(2, b"the reason\n")
        raise RuntimeError
    assert capfd.readouterr().err == "the reason\n"
