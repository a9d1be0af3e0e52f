import importlib
from pathlib import Path

import duckdb
import numpy as np
import pytest

from rankdrift.core.errors import BadOption
from rankdrift.simulate import inverse_log, searches
from rankdrift.simulate.searches import query_text

module = importlib.import_module("rankdrift.simulate.searches")

SMALL = {"rows": 40_000, "days": 2, "queries": 50}
RATIO = 0.12  # over a dozen seeds the ratio of propensities below had a deviation of 4%
SHARE = 0.1  # of about 180 searches, a share has a deviation of 3%


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    made = searches(folder, **SMALL)
    return made, duckdb.read_parquet(str(folder / "*.parquet"))


def only(log, sql):
    """The single value of a query over the log, under the name `log`."""
    return log.query("log", sql).fetchall()[0][0]


def read_bytes(made):
    return [path.read_bytes() for path in made.paths]


def test_a_seed_makes_the_same_bytes_every_time(tmp_path, log):
    again = searches(tmp_path / "again", **SMALL)
    other = searches(tmp_path / "other", **SMALL, seed=2)
    assert read_bytes(again) == read_bytes(log[0])
    assert again.clicks == log[0].clicks
    assert all(a != b for a, b in zip(read_bytes(other), read_bytes(log[0]), strict=True))


def test_any_day_can_be_made_alone(tmp_path, log):
    alone = searches(tmp_path, rows=20_000, days=1, queries=50, start="2024-01-02")
    assert read_bytes(alone) == read_bytes(log[0])[1:]


def test_columns_and_files(log):
    made, rows = log
    assert [path.name for path in made.paths] == [
        "searches-2024-01-01.parquet",
        "searches-2024-01-02.parquet",
    ]
    assert dict(zip(rows.columns, map(str, rows.types), strict=True)) == {
        "search": "BIGINT",
        "query": "VARCHAR",
        "category": "VARCHAR",
        "doc": "BIGINT",
        "rank": "SMALLINT",
        "click": "TINYINT",
        "price": "DOUBLE",
        "platform": "VARCHAR",
        "day": "DATE",
    }
    assert only(rows, "SELECT count(*) FROM log") == made.rows == SMALL["rows"]
    assert only(rows, "SELECT sum(click) FROM log") == made.clicks > 0
    assert only(rows, "SELECT list_sort(list(DISTINCT platform)) FROM log") == ["mobile", "web"]
    assert only(rows, "SELECT list_sort(list(DISTINCT day::VARCHAR)) FROM log") == [
        "2024-01-01",
        "2024-01-02",
    ]
    assert 0 < only(rows, "SELECT avg((category IS NULL)::INT) FROM log") < 0.5


def test_a_search_shows_ranks_one_to_n_of_one_query_and_no_doc_twice(log):
    wrong = """
        SELECT count(*) FROM (
            SELECT count(*) AS shown, min(rank) AS first, max(rank) AS last,
                count(DISTINCT rank) AS ranks, count(DISTINCT doc) AS docs,
                count(DISTINCT (query, category, platform, day)) AS contexts
            FROM log GROUP BY search)
        WHERE first != 1 OR NOT (shown = last AND shown = ranks AND shown = docs) OR contexts != 1
    """
    assert only(log[1], wrong) == 0
    assert only(log[1], "SELECT count(DISTINCT search) FROM log") > 50


def test_ranks_drift_more_the_deeper_they_are(log):
    spread = """
        SELECT avg(spread) FROM (
            SELECT avg(rank) AS mean, stddev_samp(rank) AS spread FROM log
            GROUP BY query, doc HAVING count(*) >= 5) WHERE mean BETWEEN {} AND {}
    """
    near, far = (only(log[1], spread.format(*ranks)) for ranks in ((8, 12), (80, 120)))
    assert 0 < near < far / 4


def test_prices_change_seldom_and_at_most_once_a_day(log):
    prices = "SELECT {} FROM (SELECT count(DISTINCT price) AS n FROM log GROUP BY doc, day)"
    assert only(log[1], prices.format("max(n)")) == 2
    assert 0 < only(log[1], prices.format("avg(n) - 1")) < module.ON_SALE


def test_popular_queries_are_searched_more(log):
    shares = only(
        log[1], f"SELECT avg((query IN ('{query_text(0)}', '{query_text(1)}'))::INT) FROM log"
    )
    popularity = np.arange(1.0, 51) ** -module.ZIPF
    assert shares == pytest.approx(popularity[:2].sum() / popularity.sum(), abs=SHARE)


def test_every_query_has_its_own_words():
    texts = [query_text(number) for number in range(30_000)]
    assert len(set(texts)) == len(texts)
    assert texts[0] == "shirt"
    assert all(text == " ".join(text.split()) for text in texts)


def step(ranks):
    return np.where(ranks <= 10, 1.0, 0.4)


def test_clicks_follow_the_position_based_model(tmp_path):
    """The planted ratio of propensities comes back from pairs, and not from plain click rates."""
    made = searches(
        tmp_path,
        rows=600_000,
        days=2,
        queries=40,
        depth=100,
        click_rate=0.5,
        curve={"web": step, "mobile": np.ones_like},
    )
    assert made.propensities["web"][[0, 9, 10, 99]].tolist() == [1, 1, 0.4, 0.4]
    rows = duckdb.read_parquet(str(tmp_path / "*.parquet"))
    # With n appearances and c clicks of a pair above and below the step, c_above * n_below and
    # c_below * n_above have means in the ratio of the propensities, whatever the relevance.
    ratio = """
        SELECT sum(c_top * n_low / (n_top + n_low)) / sum(c_low * n_top / (n_top + n_low)),
            sum(c_top) / sum(n_top) / (sum(c_low) / sum(n_low))
        FROM (
            SELECT sum(if(rank <= 10, click, 0)) AS c_top, count_if(rank <= 10) AS n_top,
                sum(if(rank > 10, click, 0)) AS c_low, count_if(rank > 10) AS n_low
            FROM log WHERE platform = '{}' GROUP BY query, doc, price, day)
    """
    for segment, truth in (("web", 2.5), ("mobile", 1.0)):
        found, naive = rows.query("log", ratio.format(segment)).fetchall()[0]
        assert found == pytest.approx(truth, rel=RATIO)
        assert naive > 1.2 * truth


def test_default_curve_is_that_of_the_paper(log):
    propensities = log[0].propensities["web"]
    assert len(propensities) == 500
    assert propensities[:2].tolist() == [1, 1]
    assert propensities[2:] == pytest.approx(1 / np.log(np.arange(3, 501)))
    assert inverse_log(np.array([1.0, 100.0])) == pytest.approx([1, 1 / np.log(100)])


def test_a_failed_run_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    made = searches(tmp_path, rows=1_000, days=1, queries=5)
    before = read_bytes(made)

    def broken(*_):
        raise OSError("disk full")
        yield

    monkeypatch.setattr(module, "_chunks", broken)
    with pytest.raises(OSError, match="disk full"):
        searches(tmp_path, rows=2_000, days=1, queries=5)
    assert read_bytes(made) == before
    assert [Path(path) for path in tmp_path.iterdir()] == list(made.paths)


def test_a_directory_with_a_quote_in_its_name(tmp_path):
    assert searches(tmp_path / "it's", rows=100, days=1, queries=2).paths[0].exists()


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"days": 0}, {"queries": 0}, {"depth": 701}])
def test_options_that_cannot_be(tmp_path, wrong):
    with pytest.raises(BadOption, match="depth of at most 700"):
        searches(tmp_path, **wrong)
    assert list(tmp_path.iterdir()) == []
