"""A method is one object: adding it is all there is to do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.method_world import made

from rankdrift.cli import rankdrift, run
from rankdrift.core.errors import BadOption
from rankdrift.methods import ctr, tally
from rankdrift.methods.comparing import compare
from rankdrift.methods.estimators import METHODS
from rankdrift.methods.method import Inputs, Kind, Method

DOCS = Path(__file__).parents[2] / "docs"
HEAVY = {"numpy", "scipy", "duckdb", "lightgbm", "rich", "altair", "pandas", "pyarrow"}


@pytest.fixture(scope="module")
def world():
    return made(3, queries=40, searches=20)


@pytest.fixture
def dummy():
    """Click rates under another name."""

    def run(method, inputs):
        curve = ctr(tally(inputs.log), reference=inputs.reference)
        return method.made(curve, by_bucket=curve.deviations)

    method = Method(
        "guess", "a guess", "guesses", Kind.CLICK_RATES, "luck", "a log", "luck runs out", run
    )
    with METHODS.registered(method):
        yield method


def help_without_blanks():
    """Lines are broken anywhere, at hyphens too."""
    return "".join(CliRunner().invoke(rankdrift, ["compare", "--help"]).output.split())


def test_a_new_method_is_compared_with_the_others(world, dummy):
    said = []
    found = compare(world.log(), methods=["ctr", "guess"], reference=2, say=said.append)
    assert list(found.curves) == ["ctr", "guess"]
    assert (found.curves["guess"].log_p == found.curves["ctr"].log_p).all()
    assert (found.distances[0].verdict, found.distances[0].mean_percent) == ("agree", 0)
    assert said[-1] == "guess: a guess …"


def test_a_new_method_is_on_the_command_line(world, dummy, tmp_path, capsys):
    path = tmp_path / "log.parquet"
    world.rows.to_parquet(path)
    common = ["compare", str(path), "--day", "", "--search", "search", "--quiet"]
    assert run([*common, "--methods", "guess"]) == 0
    assert "guess: a guess" in capsys.readouterr().out
    assert "ctr;experiment,swaps,combined;dual;guess." in help_without_blanks()
    assert run([*common, "--methods", "gess"]) == 2
    assert "No method 'gess'. Did you mean 'guess'?" in capsys.readouterr().err


def test_a_new_method_is_named_where_a_name_is_wrong(world, dummy):
    with pytest.raises(BadOption) as raised:
        compare(world.log(), methods="nothing")
    assert str(raised.value).endswith(
        "swaps, combined, dual, guess, and curves such as 'loglog(1,2,5,10)'."
    )
    with pytest.raises(BadOption, match=r"swaps, combined, dual, guess\.$"):
        compare(world.log(), methods=[])


def test_the_help_lists_the_methods_by_family():
    assert (
        "auto,direct,loglogoranycurve;ratio;em,em-pairs;bayes;all-pairs,pivot-one,adjacent-chain;ctr;"
        "experiment,swaps,combined;dual.[default:auto,direct,all-pairs,ctr]"
    ) in help_without_blanks()


def test_the_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom rankdrift.cli import run\nrun(['compare', '--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


def test_the_documentation_lists_every_method_with_its_assumption():
    page = (DOCS / "other-estimators.md").read_text()
    table = page.split("| method | assumes | needs | fails when |\n|---|---|---|---|\n")[1]
    rows = [row.strip("| ").split(" | ") for row in table.split("\n\n")[0].splitlines()]
    found = [(name, *words) for names, *words in rows for name in re.findall("`(.+?)`", names)]
    assert found == [(m.name, m.assumes, m.needs, m.fails) for m in METHODS]


def test_the_help_of_compare_names_every_method():
    assert set(METHODS.names) <= set(re.findall(r'"(.+?)"', compare.__doc__))


def test_what_several_methods_need_is_read_once(world):
    inputs, reads = Inputs(world.log()), []

    def read(given):
        reads.append(given)
        return tally(given.log)

    assert inputs.once(read) is inputs.once(read)
    assert reads == [inputs]
    assert inputs.counts is inputs.counts


def test_kinds_are_in_the_order_of_how_little_they_assume():
    assert Kind.EXPERIMENT.place < Kind.DRIFT.place < Kind.FEATURES.place < Kind.CLICK_RATES.place
    assert [kind for kind in Kind if kind.same_relevance] == [
        Kind.COMBINED, Kind.DRIFT, Kind.INTERVENTIONS, Kind.PAIRS,
    ]  # fmt: skip
