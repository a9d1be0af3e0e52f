"""The options of the command line are those of read_log, no more, no fewer."""

from inspect import signature

import pytest

from rankdrift import read_log
from rankdrift.cli.options import ENGINE, HELP, NOT_TYPED, given, shorter, typed
from rankdrift.core.errors import RankdriftError
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN
from rankdrift.log.options import Names
from rankdrift.simulate import pairs

TYPED = [name for name in signature(read_log).parameters if name not in NOT_TYPED]


class Seen(RankdriftError):
    pass


@pytest.fixture
def reached(rankdrift, monkeypatch):
    """What read_log is called with, for the words of a command."""

    def call(*words):
        found = {}

        def stand_in(source, **options):
            found.update(options, source=source)
            raise Seen("seen")

        monkeypatch.setattr("rankdrift.cli.options.read_log", stand_in)
        done = rankdrift(*words)
        assert done.err.startswith("Error: seen\n"), done.err
        return found

    return call


def sample(name):
    """A value for this parameter: as typed, and as read_log should get it."""
    annotation = signature(read_log).parameters[name].annotation
    if annotation == bool | None:
        return [], True
    if annotation == int | None:
        return ["7"], 7
    if annotation == float | None:
        return ["7.5"], 7.5
    return (["a,b"], ["a", "b"]) if annotation == Names else (["a,b"], "a,b")


def flag(name):
    return "--" + name.replace("_", "-")


def test_every_parameter_has_a_help_text_and_every_text_a_parameter():
    assert sorted(HELP) == sorted(TYPED)


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("verb", [["inspect", "LOG"], ["harvest", "LOG", "-o", "x.parquet"]])
def test_every_option_reaches_read_log(reached, verb, name):
    words, value = sample(name)
    assert reached(*verb, flag(name), *words) == {"source": "LOG", name: value}


@pytest.mark.parametrize("name", [name for name in TYPED if name not in (*ENGINE, "table")])
def test_every_option_of_sql_reaches_read_log_too(reached, name):
    words, value = sample(name)
    verb = ("sql", "LOG", "--dialect", "duckdb", "--table", "t")
    assert reached(*verb, flag(name), *words) == {"source": "LOG", name: value}


def test_options_that_are_not_typed_do_not_reach_read_log(reached):
    assert reached("inspect", "a", "b") == {"source": ["a", "b"]}


def test_names_with_commas_are_repeated(reached):
    seen = reached("inspect", "x", "--query", "Last, First", "--query", "b", "--same", "p, q")
    assert seen["query"] == ["Last, First", "b"]
    assert seen["same"] == ["p", "q"]
    assert (
        reached("inspect", "x", "--query", "Last, First", "--query", "")["query"] == "Last, First"
    )


def test_no_column_can_be_said(reached):
    assert reached("inspect", "x", "--search", "", "--segment", "") == {
        "source": "x", "search": "", "segment": "",
    }  # fmt: skip
    assert reached("inspect", "x", "--no-dedupe")["dedupe"] is False


@pytest.mark.parametrize(
    "options",
    [
        {"query": ("a,b",), "doc": "it's", "max_rank": 9, "dedupe": False, "table": None},
        {"query": ("Last, First", "b"), "dedupe": True},
        {"query": ("Last, First", "")},
        {"search": "", "segment": ()},
    ],
)
def test_what_is_typed_can_be_typed_again(reached, options):
    assert reached("inspect", "x", *typed(options)) == {"source": "x", **given(options)}


def test_defaults_in_the_help_are_those_of_the_api(rankdrift):
    told = " ".join(rankdrift("harvest", "--help-all").out.split())
    assert f"errors. [default: {BUCKETS}]" in told
    assert f"two ranks. [default: {MAX_SHOWN}]" in told
    assert "Ignore deeper ranks. [default: 500]" in told
    for heading in ("Options:", "Columns (guessed from their names if not given):", "Rows:"):
        assert heading in told


def test_many_files_are_told_as_a_pattern(tmp_path):
    files = [str(tmp_path / f"{i}.parquet") for i in range(5)]
    for path in files:
        open(path, "w").close()
    assert shorter(files) == [str(tmp_path / "*.parquet")]
    assert shorter(files[1:]) == files[1:]


def test_real_options_change_the_counts(rankdrift, log, tmp_path):
    path = tmp_path / "counts.parquet"
    words = ("--query", "query,category", "--max-rank", 20, "--where", "doc % 2 = 0")
    told = rankdrift("harvest", log, *words, "--json", "-o", path).json
    assert told["log"]["roles"]["query"] == ["query", "category"]
    assert told["counts"]["max_rank"] == 20
    assert told["funnel"]["dropped"]["deep_rank"]["rows"] > 0
    assert told["funnel"]["dropped"]["where"]["rows"] > 0


def test_choices_are_those_that_there_are():
    from rankdrift.cli.estimate import CLICKS, ERRORS
    from rankdrift.core import types

    assert (tuple(CLICKS.choices), tuple(ERRORS.choices)) == (types.CLICKS, types.ERRORS)


def test_a_pattern_does_not_match_what_is_written_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = [f"events_2024050{n}.parquet" for n in (1, 2, 3)]
    others = ["a.parquet", "b.parquet", "c.parquet"]
    for name in days:
        (tmp_path / name).touch()
    assert shorter(days) == ["events_*.parquet"]
    for name in others:
        (tmp_path / name).touch()
    assert shorter([*days, *others]) == [*days, *others]  # *.parquet has counts.parquet, too


def test_the_report_does_not_lead_back_to_the_estimate(rankdrift, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs(2_000, ranks=8, seed=1).counts.save("counts.parquet")
    words = ("report", "counts.parquet", "-o", "report.html")
    assert "Next: rankdrift estimate counts.parquet" in rankdrift(*words).err
    rankdrift("estimate", "counts.parquet", "-o", "propensities.json")
    assert "Next: rankdrift train LOG --propensities propensities.json" in rankdrift(*words).err
