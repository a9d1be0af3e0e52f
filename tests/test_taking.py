"""In Python as on the command line: a path, a log or counts, wherever counts or a log are asked
for."""

import pandas
import pytest
from support.curve_example import hand

import rankdrift as rd
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.simulate import searches

FEW = {"methods": ["loglog", "ctr"]}  # of `compare`: what takes no time


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log of two days, its counts, and the counts of each day."""
    folder = tmp_path_factory.mktemp("given")
    searches(folder / "log", rows=20_000, days=2, queries=40, depth=12, click_rate=0.2)
    log = rd.read_log(folder / "log")
    rd.harvest_by_day(log, folder / "days")
    rd.harvest(log).save(folder / "counts.parquet")
    return folder


@pytest.mark.slow
def test_estimate_and_diagnose_take_counts_or_a_log_or_where_they_are(folder):
    log, counts = rd.read_log(folder / "log"), rd.Counts.load(folder / "counts.parquet")
    wanted = rd.estimate(counts, curve="loglog")
    table = pandas.concat(pandas.read_parquet(path) for path in (folder / "log").iterdir())
    for given in (
        folder / "counts.parquet",
        str(folder / "counts.parquet"),
        folder / "days",
        str(folder / "days" / "*.parquet"),
        sorted((folder / "days").iterdir()),
        log,
        folder / "log",
        str(folder / "log" / "*.parquet"),
        table,
    ):
        assert (rd.estimate(given, curve="loglog").log_p == wanted.log_p).all()
    verdict = rd.diagnose(counts, curve="loglog").to_dict()
    for given in (folder / "counts.parquet", folder / "log", log):
        assert rd.diagnose(given, curve="loglog").to_dict() == verdict


@pytest.mark.slow
def test_inspect_and_compare_take_a_log_or_where_it_is(folder):
    log = rd.read_log(folder / "log")
    assert rd.inspect(folder / "log").to_dict() == rd.inspect(log).to_dict()
    wanted = rd.compare(log, **FEW).to_dict()
    assert rd.compare(str(folder / "log" / "*.parquet"), **FEW).to_dict() == wanted


def test_counts_are_no_log_and_propensities_are_neither(folder, tmp_path):
    hand().save(tmp_path / "p.json")
    for given in (folder / "counts.parquet", rd.Counts.load(folder / "counts.parquet")):
        with pytest.raises(BadOption, match="needs the log itself"):
            rd.inspect(given)
    for function in (rd.inspect, rd.compare, rd.estimate, rd.diagnose):
        with pytest.raises(BadOption, match=r"p\.json is no log and no counts.*Propensities\.load"):
            function(tmp_path / "p.json")
        with pytest.raises(BadLog, match="nowhere"):
            function(tmp_path / "nowhere.parquet")


@pytest.mark.parametrize(
    "step",
    [
        rd.harvest,
        rd.read_matrix,
        lambda path: rd.harvest_by_day(path, "days"),
        lambda path: rd.appearances_by_day(path, "days"),
    ],
    ids=["harvest", "read_matrix", "harvest_by_day", "appearances_by_day"],
)
def test_what_needs_a_log_that_was_read_says_so(step):
    with pytest.raises(BadOption, match=r"takes a Log, not a str.*read_log"):
        step("logs/day.parquet")
