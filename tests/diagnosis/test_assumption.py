"""A check is one object: adding it is all there is to do."""

import json
import re
from pathlib import Path

import pytest
from support.worlds import simulate

from rankdrift.cli import run
from rankdrift.core.errors import NotIdentified
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis import diagnose
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Finding

DOCS = Path(__file__).parents[2] / "docs"


def parity(data):
    """A check in two lines, of the counts and of the curve fitted to them."""
    odd = int((data.fitted.likelihood.ranks % 2).sum())
    return Finding(Verdict.SERIOUS, f"{odd} ranks are odd.", "Count in twos.", {"odd": odd})


@pytest.fixture
def counts():
    return simulate(300, 10, 1).counts


@pytest.fixture
def dummy():
    check = Assumption("parity", "Are all ranks even?", "ranks", parity)
    with ASSUMPTIONS.registered(check):
        yield check


def test_a_new_check_is_made_with_the_others(counts, dummy):
    before = ASSUMPTIONS.names
    found = diagnose(counts)
    assert before[-1] == "parity" == found.checks[-1].name
    assert found.checks[-1].words == "5 ranks are odd."
    assert found.verdict is Verdict.SERIOUS
    assert "parity" in found._repr_html_()


def test_a_new_check_is_on_the_command_line(counts, dummy, tmp_path, capsys):
    path = tmp_path / "counts.parquet"
    counts.save(path)
    assert run(["diagnose", str(path), "--quiet"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"serious\s+parity\n5 ranks are odd\.\n> Count in twos\.", said)
    assert run(["diagnose", str(path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["checks"][-1] == {
        "name": "parity",
        "verdict": "serious",
        "words": "5 ranks are odd.",
        "advice": "Count in twos.",
        "numbers": {"odd": 5},
    }


def test_a_check_that_the_data_do_not_allow_says_so(counts):
    def never(data):
        raise NotIdentified("There are no ranks.")

    with ASSUMPTIONS.registered(Assumption("never", "Ever?", "ranks", never)):
        check = diagnose(counts).checks[-1]
    assert (check.verdict, check.words) == ("cannot tell", "Could not be told: There are no ranks.")


def test_a_check_that_is_not_asked_of_these_counts_is_not_made(counts):
    check = Assumption("parity", "Are all ranks even?", "ranks", parity, lambda counts: False)
    with ASSUMPTIONS.registered(check):
        assert "parity" not in [check.name for check in diagnose(counts).checks]


def test_the_documentation_lists_every_check_in_order():
    page = (DOCS / "reading-the-diagnoses.md").read_text()
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \|$", page, re.M)
    assert rows == [(each.name, each.question, each.needs) for each in ASSUMPTIONS]
    told = [name for name in re.findall(r"^\*\*([^*]+)\*\* ", page, re.M)]
    assert told == list(ASSUMPTIONS.names)
