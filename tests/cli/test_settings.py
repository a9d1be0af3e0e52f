"""Options in rankdrift.toml: found by itself, said, and beaten by what is typed."""

import re

import click
import pytest

from rankdrift import Counts
from rankdrift.cli import VERBS
from rankdrift.cli import rankdrift as group
from rankdrift.cli.settings import TYPED_ONLY
from rankdrift.log.options import TABLES, read_settings


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Write rankdrift.toml, or another file, where the command runs."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="rankdrift.toml"):
        (tmp_path / name).write_text(text)

    return write


@pytest.fixture
def read(monkeypatch, rankdrift):
    """What read_log is called with, and what was said before."""
    import rankdrift.cli.options as options

    def call(*words):
        found = {}
        real = options.read_log

        def stand_in(source, **given):
            found.update(given)
            return real(source, **given)

        with monkeypatch.context() as patch:
            patch.setattr(options, "read_log", stand_in)
            done = rankdrift(*words)
        return found, done

    return call


def test_every_verb_may_have_a_table():
    assert tuple(VERBS) == TABLES


def test_a_file_that_is_there_is_used_and_told(settings, read, log):
    settings('query = ["query", "category"]\nmax_rank = 20\nsame = "price"\n')
    found, done = read("inspect", log)
    assert found == {"query": ["query", "category"], "same": "price", "max_rank": 20}
    first, *_, last = done.err.splitlines()
    assert first == "From rankdrift.toml: query, same, max_rank (--config '' to go without)."
    assert last == f"Next: rankdrift harvest {log} -o counts.parquet"

    found, done = read("inspect", log, "--max-rank", 30, "--same", "")
    assert found == {"query": ["query", "category"], "same": "", "max_rank": 30}
    assert done.err.startswith("From rankdrift.toml: query (--config")
    assert f"{log} --max-rank 30 --same '' -o counts.parquet" in done.err

    found, done = read("inspect", log, "--quiet")
    assert found["max_rank"] == 20 and done.err == ""


def test_another_file_instead_or_none(settings, read, log):
    settings("max_rank = 20")
    settings("max_rank = 10", "other.toml")
    found, done = read("inspect", log, "--config", "other.toml")
    assert found == {"max_rank": 10} and "From " not in done.err
    assert f"Next: rankdrift harvest {log} --config other.toml -o counts.parquet" in done.err
    found, done = read("inspect", log, "--config", "")
    assert found == {} and "From " not in done.err
    _, done = read("inspect", log, "--config", "no.toml")
    assert done.code == 2 and "Cannot read the options in 'no.toml'" in done.err


def test_a_table_has_options_of_its_verb(settings, rankdrift, log):
    settings(
        "max_rank = 20\n[harvest]\nbuckets = 8\n"
        "[estimate]\ncurve = 'loglog'\nby = ['platform']\nsimultaneous = true\nlevel = 1\n"
        "[report]\nqueries = false\n[simulate.pairs]\nranks = 5\n"
    )
    assert rankdrift("harvest", log, "--segment", "platform", "-o", "c.parquet").code == 0
    counts = Counts.load("c.parquet")
    assert (counts.max_rank, counts.buckets) == (20, 8)
    done = rankdrift("estimate", "c.parquet", "--level", 0.9, "--json")
    assert done.err.startswith("From rankdrift.toml: curve, by, simultaneous, max_rank (")
    assert "tell how to read a log" not in done.err  # nobody typed them
    assert (done.json["level"], done.json["simultaneous"]) == (0.9, True)
    assert done.json["summary"]["method"].startswith("loglog")
    assert {"web", "mobile"} < set(done.json["table"]["segment"])
    made = rankdrift("simulate", "pairs", "-o", "p.parquet", "--pairs", 50, "--json")
    assert len(made.json["truth"]) == 5
    told = rankdrift("counts", "c.parquet")
    assert "rankdrift.toml" not in told.err  # nothing in it is for this verb


def test_values_become_what_is_typed(settings, read, log):
    settings('query = "a, b"\nsegment = []\ndedupe = false\nshown_events = ["x", "y"]\nthreads = 2')
    found, _ = read("inspect", log)
    assert found == {
        "query": "a, b", "segment": "", "dedupe": False, "shown_events": ["x", "y"], "threads": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("quary = 'q'", "unknown option 'quary'. Did you mean 'query'?"),
        ("[estimat]\ncurve = 'loglog'", "unknown option 'estimat'. Did you mean 'estimate'?"),
        ("curve = 'loglog'", "options of one verb go under its name, such as [estimate]"),
        ("train = 3", "train is a verb. Its options go under [train]"),
        ("[inspect]\nquite = true", "unknown option 'quite' of inspect. Did you mean 'quiet'?"),
        ("[inspect]\nhtml = 'x'", "'rankdrift.toml': html cannot be in a file."),
        ("[inspect]\nhelp_all = true", "help_all cannot be in a file."),
        ("where = 1", "'rankdrift.toml': where takes text, not 1."),
        ("max_rank = '20'", "'rankdrift.toml': max_rank takes a whole number, not '20'."),
        ("max_rank = true", "max_rank takes a whole number, not True."),
        ("dedupe = 1", "dedupe takes true or false, not 1."),
        ("doc = ['a', 'b']", "doc takes text, not ['a', 'b']."),
        ("outcome_at_least = 'much'", "outcome_at_least takes a number, not 'much'."),
        ("query = [1]", "query takes text, not [1]."),
        ("rank = = 5", "is not TOML"),
        ("rank = " + "9" * 5_000, "is not TOML: Exceeds the limit"),
        ("rank = " + "[" * 5_000, "is not TOML: maximum recursion depth"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(settings, rankdrift, log, text, told):
    settings(text)
    done = rankdrift("inspect", log)
    assert done.code == 2 and told in done.err, done.err
    assert rankdrift("inspect", "--help").code == 0  # which says how to mend it


def test_a_choice_that_there_is_not(settings, rankdrift):
    settings("[estimate]\nclicks = 'evry'\n[simulate]\nmarkt = 1\n")
    told = rankdrift("estimate", "c.parquet").err
    assert "'rankdrift.toml': clicks: 'evry' is not one of 'every', 'single'." in told
    told = rankdrift("simulate", "market").err
    assert "'markt' under [simulate]" in told and "Did you mean 'market'?" in told


def test_python_and_steps_of_the_demo_do_not_look_for_it(settings, rankdrift, log):
    settings("max_rank = 2\n[inspect]\nmax_rank = 3\n[simulate.market]\nbots = 0.5\n")
    from rankdrift import read_log

    assert read_log(log).rules.max_rank == 500
    assert read_log(log, config="rankdrift.toml").rules.max_rank == 2
    assert read_settings("rankdrift.toml")[1]["inspect"] == {"max_rank": 3}
    done = rankdrift("demo", "--rows", 600, "-o", "demo", "--json")
    assert done.json["simulate"]["options"]["bots"] == 0
    assert "rankdrift.toml" not in done.err


def test_no_file_says_where_to_write():
    """Which options are places to write is known by the words of their help."""
    places = set()
    for name in VERBS:
        verb = group.get_command(None, name)
        for command in verb.commands.values() if isinstance(verb, click.Group) else [verb]:
            for option in command.params:
                words = (getattr(option, "help", None) or "").lower()
                if re.search(r"where .+ goe?s?|^also (write|draw)|^table .+ chart", words):
                    places.add(option.name)
    assert places == {"output", "html", "chart", "export", "metrics"} < set(TYPED_ONLY)
