"""Verdicts are text wherever they are written."""

import json

import pytest

from rankdrift.core.verdicts import Agreement, Fitness, Verdict

WORDS = {
    Verdict: ["good", "caution", "serious", "cannot tell"],
    Fitness: ["good", "weak", "unfit"],
    Agreement: ["agree", "differ", "cannot tell"],
}


@pytest.mark.parametrize("kind", WORDS)
def test_a_verdict_is_written_as_its_word(kind):
    assert list(kind) == WORDS[kind]
    assert [f"{verdict}" for verdict in kind] == WORDS[kind]
    assert json.loads(json.dumps(list(kind))) == WORDS[kind]
    assert {verdict: 1 for verdict in kind} == dict.fromkeys(WORDS[kind], 1)
    assert all(kind(word) == word for word in WORDS[kind])


def test_a_word_outside_the_set_is_refused():
    with pytest.raises(ValueError, match="perfect"):
        Verdict("perfect")


def test_the_word_of_older_files_is_understood():
    assert Verdict("unknown") is Verdict.CANNOT_TELL
