"""The made-up marketplace: what is in its log, and that the log tells its truth."""

import json
from functools import cache

import duckdb
import numpy as np
import pytest

from rankdrift import estimate, harvest, read_log
from rankdrift.core.errors import BadOption
from rankdrift.simulate.marketplace import NAMES, SHUFFLED, market
from rankdrift.simulate.true_curves import steady

SMALL = {"rows": 60_000, "days": 2, "queries": 40}
FILTERS = {
    "query": ["keywords", "category", "aspects"],
    "same": "price",
    "where": "sort = 'best_match' AND NOT auction",
    "day": "day",
    "time": "time",
    "search": "search",
    "max_rank": 100,
}
# Over five seeds, the mean error of log p at DEEP with all filters was 0.06 at most.
NOISE = 0.15
# What leaving a filter out adds to that error: 0.11 to 0.42 over five seeds, 0.2 or more here.
MATTERS = 0.1
DEEP = np.array([20, 35, 50, 70, 100])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    made = market(folder, **SMALL, labels=True, randomised=0.2, click_rate=0.3)
    return made, duckdb.read_parquet(str(folder / "*.parquet"))


def only(log, sql):
    return log[1].query("log", sql).fetchall()[0][0]


def test_a_seed_makes_the_same_bytes_every_time(tmp_path):
    first, again, other = (
        market(tmp_path / name, rows=8_000, days=2, seed=seed, bots=0.05, duplicates=0.01)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    read = [[path.read_bytes() for path in made.paths] for made in (first, again, other)]
    assert read[0] == read[1]
    assert all(a != b for a, b in zip(read[0], read[2], strict=True))


def test_any_day_can_be_made_alone(tmp_path):
    both = market(tmp_path / "both", rows=8_000, days=2)
    alone = market(tmp_path / "alone", rows=4_000, days=1, start="2024-01-02")
    assert both.paths[1].read_bytes() == alone.paths[0].read_bytes()


def test_features_and_labels_change_no_click(tmp_path, log):
    plain = market(tmp_path, **SMALL, features=False, randomised=0.2, click_rate=0.3)
    columns = "search, user, session, time, day, keywords, category, aspects, platform, sort, "
    columns += "randomised, doc, rank, click, price, auction, listed, sold"
    read = duckdb.read_parquet(str(tmp_path / "*.parquet"))
    assert read.columns == columns.split(", ")
    assert log[1].columns == [*columns.split(", "), *NAMES, "relevance"]
    same = [rows.query("log", f"SELECT {columns} FROM log").fetchall() for rows in (read, log[1])]
    assert same[0] == same[1]
    assert plain.clicks == log[0].clicks


def test_searches_show_ranks_one_to_n_and_no_doc_twice(log):
    wrong = """
        SELECT count(*) FROM (
            SELECT count(*) AS n, min(rank) AS low, max(rank) AS high,
                count(DISTINCT doc) AS docs, count(DISTINCT (user, session, time, keywords, aspects,
                platform, sort)) AS contexts
            FROM log GROUP BY search)
        WHERE low != 1 OR high != n OR docs != n OR contexts != 1"""
    assert only(log, wrong) == 0
    assert only(log, "SELECT count(*) FROM log") == log[0].rows == SMALL["rows"]


def test_loads_come_in_pages_and_batches(log):
    lengths = """SELECT list_sort(list(DISTINCT n)) FROM (SELECT count(*) AS n FROM log
        WHERE platform = '{}' GROUP BY search, day QUALIFY max(search) OVER (PARTITION BY day)
        != search)"""
    for platform, batch in (("web", 50), ("mobile", 40)):
        found = np.array(only(log, lengths.format(platform)))
        assert set(found % batch) <= {0, 500 % batch}
        assert len(found) > 3


def test_the_click_rate_is_propensity_times_relevance(log):
    sums = log[1].query(
        "log",
        "SELECT platform, rank, sum(click), sum(relevance), sum(relevance * (1 - relevance / 2))"
        " FROM log WHERE sort = 'best_match' AND rank <= 60 GROUP BY ALL",
    )
    off = []
    for platform, rank, clicks, relevance, _ in sums.fetchall():
        expected = log[0].propensities[platform][rank - 1] * relevance
        off.append((clicks - expected) / np.sqrt(expected))
    assert np.mean(np.square(off)) < 1.4  # 1 at most but for chance, of 120 squares 0.13
    assert abs(np.mean(off)) < 0.4  # deviation 0.09


def test_the_truth_is_beside_the_log(log):
    told = json.loads(log[0].truth.read_text())
    for platform, truth in log[0].propensities.items():
        assert told["propensities"][platform]["best_match"] == pytest.approx(truth, abs=1e-6)
    assert told["options"]["seed"] == 1
    mobile, web = log[0].propensities["mobile"], log[0].propensities["web"]
    assert mobile[39] < 0.4 * web[39]
    assert mobile[[0, 24, 40, 80]] == pytest.approx(web[[0, 24, 40, 80]])


def test_a_randomised_search_shows_the_top_in_any_order(log):
    slope = "SELECT regr_slope(relevance, rank) FROM log WHERE rank <= {} AND {} randomised"
    slope += " AND sort = 'best_match'"
    by_chance, ranked = (only(log, slope.format(SHUFFLED, word)) for word in ("", "NOT"))
    assert ranked < 0
    assert abs(by_chance) < 0.2 * abs(ranked)


def test_prices_and_auctions_change_within_a_day(log):
    prices = "SELECT avg(n - 1) FROM (SELECT count(DISTINCT price) AS n FROM log GROUP BY doc, day)"
    assert 0 < only(log, prices) < 0.05
    moving = """SELECT avg(high / low - 1) FROM (
        SELECT max(relevance) AS high, min(relevance) AS low FROM log
        WHERE auction = {} GROUP BY keywords, aspects, doc, day, price)"""
    assert only(log, moving.format("false")) < 1e-5
    assert only(log, moving.format("true")) > 0.01


def test_a_doc_is_shown_from_the_day_it_is_listed_to_the_day_it_is_sold(log):
    assert only(log, "SELECT count(*) FROM log WHERE day NOT BETWEEN listed AND sold") == 0
    dates = "SELECT max(n) FROM (SELECT count(DISTINCT (listed, sold)) AS n FROM log GROUP BY doc)"
    assert only(log, dates) == 1
    lasts = "SELECT avg(sold - listed) FROM log WHERE auction = {}"
    assert only(log, lasts.format("true")) < 4 < 10 < only(log, lasts.format("false"))


def test_bots_and_duplicates_are_made_when_asked_for(tmp_path):
    made = market(tmp_path, rows=50_000, days=1, bots=0.05, duplicates=0.1, features=False)
    rows = duckdb.read_parquet(str(tmp_path / "*.parquet"))
    assert made.rows == pytest.approx(55_000, rel=0.02)
    twice = rows.query("log", "SELECT count(*) - count(DISTINCT (search, rank)) FROM log")
    assert twice.fetchall()[0][0] == made.rows - 50_000
    bots = rows.query("log", "SELECT avg(click), min(n) FROM (SELECT *, count(*) OVER"
                      " (PARTITION BY search) AS n FROM log) WHERE user >= 20000")  # fmt: skip
    clicks, shown = bots.fetchall()[0]
    assert clicks == pytest.approx(0.2, abs=0.02)
    assert shown > 100


@pytest.fixture(scope="module")
def restless(tmp_path_factory):
    """Much that changes relevance; the same propensities everywhere."""
    return market(
        tmp_path_factory.mktemp("restless"), rows=450_000, days=3, queries=60, features=False,
        click_rate=0.3, auctions=0.4, price_changes=0.5, seed=2,
        curves={"web": steady, "mobile": steady},
    )  # fmt: skip


def error(made, **changed):
    log = read_log([str(path) for path in made.paths], **{**FILTERS, **changed})
    found = np.log(estimate(harvest(log)).at(DEEP))
    return float(np.mean(found - np.log(made.propensities["web"][DEEP - 1])))


def test_filters_matter(restless):
    """With the paper's filters the truth comes back; without one of them it does not."""
    right = error(restless)
    assert abs(right) < NOISE
    for without in (
        {"same": ""},
        {"day": ""},
        {"query": ["keywords", "category"]},
        {"where": "sort = 'best_match' AND auction"},
    ):
        assert error(restless, **without) < right - MATTERS, without


@pytest.fixture(scope="module")
def made_with(tmp_path_factory):
    """A log by the way in which its queries differ."""

    @cache
    def make(**more):
        folder = tmp_path_factory.mktemp("differ")
        market(folder, **SMALL, labels=True, click_rate=0.3, **more)
        return duckdb.read_parquet(str(folder / "*.parquet"))

    return make


def test_levels_of_queries_change_features_and_nothing_else(made_with):
    alike, levels = made_with(), made_with(level_spread=1.0)
    rest = f"SELECT * EXCLUDE ({', '.join(NAMES)}) FROM log ORDER BY search, rank"
    assert alike.query("log", rest).fetchall() == levels.query("log", rest).fetchall()
    # f_01 goes by the level most, f_12 and those of the doc alone not at all.
    grouped = (
        "SELECT stddev(m) FROM (SELECT keywords, category, aspects, avg({}) AS m FROM log"
        " WHERE rank <= 20 GROUP BY ALL)"
    )
    spread = {
        name: [one.query("log", grouped.format(name)).fetchall()[0][0]
               for one in (alike, levels)]
        for name in ("f_01", "f_12", "f_13")
    }  # fmt: skip
    assert spread["f_01"][1] > 3 * spread["f_01"][0] and spread["f_01"][1] == pytest.approx(
        0.8, 0.4
    )
    for name in ("f_12", "f_13"):
        assert spread[name][0] == pytest.approx(spread[name][1], rel=1e-9)


def test_queries_find_more_or_fewer_items(made_with):
    longest = "SELECT max(rank) FROM log GROUP BY keywords, category, aspects"
    alike, differ = (
        sorted(n for (n,) in made.query("log", longest).fetchall())
        for made in (made_with(), made_with(candidate_spread=3.0))
    )
    # Searches load 40 results at least, and the rarest query finds 20 items.
    assert differ[0] <= 20 and alike[0] >= 40 and differ[-1] > 40


def test_a_ranker_that_knows_more_shows_more_relevant_results_first(made_with):
    slope = (
        "SELECT regr_slope(ln(relevance / (1 - relevance)), ln(rank)) FROM log"
        " WHERE sort = 'best_match'"
    )
    blind, knowing = (
        made.query("log", slope).fetchall()[0][0]
        for made in (made_with(), made_with(hidden_knowledge=0.35))
    )
    assert knowing < blind - 0.03 < 0


@pytest.mark.parametrize(
    "wrong",
    [{"rows": 0}, {"days": 0}, {"bots": 1.5}, {"click_rate": 0}, {"start": "yesterday"},
     {"level_spread": -1}, {"hidden_knowledge": 11},
     {"curves": {"web": steady}}, {"curves": {"web": steady, "mobile": lambda r: r}}],
)  # fmt: skip
def test_options_that_cannot_be(tmp_path, wrong):
    with pytest.raises(BadOption):
        market(tmp_path / "none", **wrong)
    assert not (tmp_path / "none").exists()
