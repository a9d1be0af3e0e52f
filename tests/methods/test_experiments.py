"""A slice in random order: kept apart, an experiment, and one curve of it and of the drift."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from oracle.harvest_oracle import tally as by_hand
from support.harness import assert_same, random_log, write_parquet
from support.hotel_log import SLOPE, hotel_table

from rankdrift import Propensities, compare, read_log
from rankdrift.core.errors import BadCounts, BadOption, NotIdentified, Remark
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.harvesting.warehouse import import_counts, warehouse_sql
from rankdrift.methods.experiments import combine, experiment
from rankdrift.methods.tallies import Tally, tally
from rankdrift.simulate import pairs

RANKS = 12
TRUTH = -SLOPE * np.log(np.arange(1, RANKS + 1))
SEEDS = 60
# 60 samples of 11 ranks that go together, with 95% each: less than 92% or more than 98% would be
# three standard errors off, were half of the ranks independent.
COVERAGE = (0.92, 0.98)
HOTEL = {
    "query": "srch_destination_id", "doc": "prop_id", "rank": "position", "click": "click_bool",
    "day": "", "search": "srch_id",
}  # fmt: skip


def two_curves(seed, n=3_000, shown=1_500):
    """The same truth from pairs that moved, and from results in random order."""
    counts = pairs(n, ranks=RANKS, propensities=np.exp(TRUTH), seed=seed).counts
    rng = np.random.default_rng(1_000 + seed)
    impressions = np.tile(rng.multinomial(shown, np.full(64, 1 / 64))[:, None], RANKS)
    rate = 0.2 * rng.gamma(8, 1 / 8, (64, 1))  # queries differ
    clicks = rng.binomial(impressions, np.minimum(rate * np.exp(TRUTH), 1))
    return estimate(counts, curve="loglog"), experiment(Tally(impressions, clicks))


def test_the_combined_curve_is_nearer_to_the_truth_and_knows_how_near():
    errors, inside = {}, []
    for seed in range(SEEDS):
        drift, drawn = two_curves(seed)
        both = combine(drift, drawn)
        for name, curve in {"drift": drift, "experiment": drawn, "both": both}.items():
            at = np.isin(curve.ranks, both.ranks)
            off = curve.log_p[at] - TRUTH[both.ranks - 1]
            errors.setdefault(name, []).extend(off[1:])
        low, high = both.interval()
        truth = np.exp(TRUTH[both.ranks - 1])
        inside.extend(((low <= truth) & (truth <= high))[1:])
    size = {name: np.sqrt(np.mean(np.square(off))) for name, off in errors.items()}
    assert size["both"] < 0.9 * min(size["drift"], size["experiment"])
    assert COVERAGE[0] < np.mean(inside) < COVERAGE[1]


def test_the_surer_curve_counts_for_more():
    drift, drawn = two_curves(1, n=20_000, shown=300)
    both = combine(drift, drawn)
    at = np.isin(drift.ranks, both.ranks)
    drawn_at = np.isin(drawn.ranks, both.ranks)
    to_drift = np.abs(both.log_p - drift.log_p[at]).sum()
    assert to_drift < np.abs(both.log_p - drawn.log_p[drawn_at]).sum()
    assert (both.std_error <= drift.std_error[at] + 1e-9).all()


def test_what_cannot_be_combined(tmp_path):
    drift, drawn = two_curves(2)
    with pytest.raises(BadOption, match="relative to rank 1, the other to rank 2"):
        combine(drift, drawn.relative_to(2))
    deep = pairs(500, ranks=3, seed=1).counts
    drawn.save(tmp_path / "p.csv")
    with pytest.raises(BadOption, match="go together is not known"):
        combine(drift, Propensities.load(tmp_path / "p.csv"))
    one = experiment(Tally(np.full((64, 1), 9), np.full((64, 1), 3)))
    with pytest.raises(NotIdentified, match="share rank 1 alone"):
        combine(estimate(deep, curve="direct"), one)


# -- rows kept apart -------------------------------------------------------------------------------


def drawn_log(seed):
    return [{**row, "is_random": int(row["sid"][1:]) % 4 == 0} for row in random_log(seed, 200)]


def test_rows_in_random_order_are_kept_apart(tmp_path):
    rows = drawn_log(1)
    path = write_parquet(tmp_path / "log.parquet", rows, is_random=pa.bool_())
    log = read_log(path, day="on", randomised_apart=True)
    assert log.guessed["randomised"] == "is_random"
    apart = harvest(log)
    options = {"day": "on", "randomised": "is_random", "randomised_apart": True}
    assert_same(apart, by_hand(rows, **options))
    assert apart.funnel.dropped["randomised"].rows > 0
    # What the experiment is made of is what the counts are made without.
    slice_ = tally(log, randomised="is_random").impressions.sum()
    assert slice_ == apart.funnel.dropped["randomised"].rows
    whole = harvest(read_log(path, day="on"))
    with pytest.raises(BadCounts, match="option 'randomised_apart' is"):
        whole + apart


def test_kept_apart_in_a_warehouse_too(tmp_path):
    rows = drawn_log(2)
    path = write_parquet(tmp_path / "log.parquet", rows, is_random=pa.bool_())
    sql = warehouse_sql(
        "log", dialect="duckdb", log=read_log(path, day="on", randomised_apart=True)
    )
    with duckdb.connect() as con:
        con.execute(f"CREATE VIEW log AS FROM '{path}'")
        con.execute(f"COPY ({sql}) TO '{tmp_path / 'result.parquet'}'")
    options = {"day": "on", "randomised": "is_random", "randomised_apart": True}
    assert_same(import_counts(tmp_path / "result.parquet"), by_hand(rows, **options))


def test_a_column_that_never_says_yes_is_told_of(tmp_path):
    rows = [{**row, "is_random": False} for row in random_log(4)]
    path = write_parquet(tmp_path / "log.parquet", rows, is_random=pa.bool_())
    with pytest.warns(Remark, match="No row was kept apart: the column 'is_random'"):
        harvest(read_log(path, randomised_apart=True))


def test_there_must_be_a_column(tmp_path):
    path = write_parquet(tmp_path / "log.parquet", random_log(3))
    with pytest.raises(BadOption, match="needs the column that tells which rows"):
        read_log(path, randomised_apart=True)


@pytest.fixture(scope="module")
def hotel():
    return hotel_table(searches=3_000, cities=150, shown=8, random=0.4)


def test_compare_keeps_both_apart_and_joins_them(hotel):
    log = read_log(hotel, **HOTEL, randomised_apart=True)
    found = compare(log, methods=["auto", "experiment", "combined"])
    auto, drawn, both = (found.curves[name] for name in ("auto", "experiment", "combined"))
    assert auto.log_p == pytest.approx(estimate(harvest(log)).log_p)
    assert both.log_p == pytest.approx(combine(auto, drawn).log_p)
    assert both.std_error.mean() < min(auto.std_error.mean(), drawn.std_error.mean())
    low, high = both.interval(0.999, simultaneous=True)
    truth = both.ranks.astype(float) ** -SLOPE
    assert ((low <= truth) & (truth <= high)).all()


def test_the_curves_can_be_saved(hotel, tmp_path, capsys):
    from rankdrift.cli import run

    pa.parquet.write_table(hotel, tmp_path / "hotel.parquet")
    columns = [word for name, value in HOTEL.items() for word in (f"--{name}", value)]
    log, folder = str(tmp_path / "hotel.parquet"), tmp_path / "curves"
    words = ["compare", log, *columns, "--methods", "loglog(1,3,10),experiment"]
    assert run([*words, "-o", str(folder)]) == 0
    said = capsys.readouterr()
    assert "Rows in random order (random_bool) are counted like all others" in said.err
    assert sorted(path.name for path in folder.iterdir()) == [
        "experiment.json", "loglog-1-3-10.json",
    ]  # fmt: skip
    assert Propensities.load(folder / "experiment.json").errors == "buckets"
    assert run(["estimate", log, *columns, "--randomised-apart"]) == 0
    said = capsys.readouterr()
    assert "Rows in random order (random_bool) are kept apart" in said.err
