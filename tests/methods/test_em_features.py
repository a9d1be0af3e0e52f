"""Regression EM: what it is told, what it tells, what it refuses."""

import numpy as np
import pytest
from support.method_world import made

from rankdrift import Matrix
from rankdrift.core.errors import (
    BadOption,
    MissingColumns,
    NotConverged,
    NotIdentified,
    NoUsablePairs,
)
from rankdrift.methods.em_features import bucket_weights, regression_em
from rankdrift.ranking.matrix_reading import read_matrix

QUICK = {"bootstrap": 0, "threads": 1, "leaves": 4, "trees": 5}


@pytest.fixture(scope="module")
def world():
    return made(21, queries=80, searches=10, level=0.4)


@pytest.fixture(scope="module")
def matrix(world):
    return read_matrix(world.log(), features=["f_good", "f_place"])


def test_the_same_every_time_and_all_of_it_told(matrix):
    said = []
    found = regression_em(matrix, say=said.append, **QUICK)
    assert found.equals(regression_em(matrix, **QUICK))
    assert said[0].startswith("8,000 rows with 2 features: training takes about 1 MB")
    assert f"in {found.provenance['rounds']} rounds of 5 trees" in said[1]
    assert f"to {found.log_likelihood:,.1f}, and p has" in said[1]
    told = found.provenance
    assert told["start"] == "click rates by rank"
    assert (told["leaves"], told["learning_rate"], told["tolerance"]) == (4, 0.1, 0.005)
    assert told["features"] == ["f_good", "f_place"]
    assert told["rounds"] == len(told["path"]) > 1
    assert told["path"][-1] == found.log_likelihood
    assert told["change"] < 0.01
    assert found.method == "regression EM"
    assert found.clicks.sum() == matrix.n_clicks
    assert found.table()["low"] == [None] * 10  # no refits, no intervals


def test_it_is_a_fixed_point(matrix):
    """Boost relevance for the p found, solve p for it: the same p again, to the tolerance."""
    found = regression_em(matrix, tolerance=0.002, **QUICK)
    assert found.provenance["change"] < 0.01
    tight = regression_em(matrix, tolerance=0.0005, **QUICK)
    assert np.abs(found.log_p - tight.log_p).max() < 0.02


def test_it_does_not_stop_where_it_only_creeps():
    """Docs hardly leave their places, so a round goes a small part of the way, and the last one
    says little of how much is left. Without looking ahead 2 to 6% would be."""
    slow = made(1, queries=150, searches=20, hidden=0.0, level=0.4, drift=0.7, levels=3)
    few = read_matrix(slow.log(), features=["f_good", "f_place"])
    options = {"bootstrap": 0, "threads": 1, "trees": 10, "leaves": 12, "learning_rate": 0.5}
    found = regression_em(few, tolerance=0.005, **options)
    tight = regression_em(few, tolerance=0.0005, **options)
    assert found.provenance["rounds"] < tight.provenance["rounds"]
    share = found.clicks / found.clicks.sum()
    apart = np.sqrt(share @ (found.log_p - tight.log_p) ** 2)
    assert apart < 3 * 0.005  # a straight line is not how it ends


def test_not_converged_carries_what_there_was(matrix):
    with pytest.raises(NotConverged, match=r"after 3 rounds of EM.*more rounds") as caught:
        regression_em(matrix, tolerance=1e-9, rounds=3, **QUICK)
    assert caught.value.partial.shape == (10,)
    assert len(caught.value.path) == 3


def test_intervals_come_from_queries_reweighted(matrix):
    found = regression_em(matrix, **{**QUICK, "bootstrap": 5})
    assert (found.errors, found.df) == ("bootstrap", 4)
    assert found.deviations.shape == (10, 5)
    assert found.std_error[0] == 0
    assert (found.std_error[1:] > 0).all()
    assert found.log_p == pytest.approx(regression_em(matrix, **QUICK).log_p)
    assert bucket_weights(5, 64, 0).mean() == pytest.approx(1, abs=0.2)


def test_words_and_missing_values_are_features_too(world):
    rng = np.random.default_rng(0)
    rows = world.rows
    words = np.where(rows["f_place"] < 4, "top", np.where(rows["f_place"] < 7, "middle", None))
    holes = np.where(rng.random(len(rows)) < 0.2, np.nan, rows["f_good"])
    rows = rows.assign(f_good=holes, f_word=words, f_same=3.0)
    log = type(world)(rows, world.log_p).log()
    more = {**QUICK, "trees": 40, "leaves": 7}
    found = regression_em(read_matrix(log, features=["f_good", "f_word", "f_same"]), **more)
    assert np.isfinite(found.log_p).all()
    without = regression_em(read_matrix(log, features=["f_good", "f_same"]), **more)
    assert found.log_p[-1] > without.log_p[-1]  # the word tells what the place would have


def test_features_that_never_vary_are_refused(world):
    log = type(world)(world.rows.assign(f_same=1.0, f_none=np.nan), world.log_p).log()
    with pytest.raises(BadOption, match=r"No feature \(f_same, f_none\) ever varies"):
        regression_em(read_matrix(log, features=["f_same", "f_none"]), **QUICK)


def test_one_ranker_only():
    """A doc belongs at a place and is always shown there: the place tells the rank."""
    still = made(5, queries=20, searches=10, drift=0.0)
    for features, named in ((["f_good", "f_place"], "f_place"), ("f_word", "f_word")):
        rows = still.rows.assign(f_word="place " + still.rows["f_place"].astype(str))
        log = type(still)(rows, still.log_p).log()
        with pytest.raises(BadOption, match=rf"'{named}' tells the rank.*another ranker"):
            regression_em(read_matrix(log, features=features), **QUICK)
    # A feature that is different for every doc does not count: trees learn of all alike.
    found = regression_em(read_matrix(still.log(), features="f_good"), **QUICK)
    assert found.ranks.tolist() == list(range(1, 11))


def test_no_features():
    log = made(1, queries=5, searches=2).log()
    with pytest.raises(BadOption, match=r"No features were named.*such as 'f_\*'"):
        read_matrix(log, features=[])
    with pytest.raises(MissingColumns, match="'g_\\*'"):
        read_matrix(log, features="g_*")


def test_a_rank_with_no_clicks_is_named(matrix):
    quiet = Matrix.from_arrays(
        matrix.x, rank=matrix.rank, click=matrix.click & (matrix.rank != 7),
        query=matrix.query, search=matrix.search,
    )  # fmt: skip
    found = regression_em(quiet, **QUICK)
    assert 7 not in found.ranks
    assert "never clicked" in found.gaps[7]
    with pytest.raises(NotIdentified, match="Rank 7, the reference"):
        regression_em(quiet, reference=7, **QUICK)
    few = Matrix.from_arrays(
        matrix.x, rank=matrix.rank, click=matrix.click & (np.cumsum(matrix.click) < 20),
        query=matrix.query, search=matrix.search,
    )  # fmt: skip
    with pytest.raises(NoUsablePairs, match=r"19 clicks in 8,000 rows: too few.*needs 20"):
        regression_em(few, **QUICK)
    silent = Matrix.from_arrays(
        matrix.x, rank=matrix.rank, click=np.zeros(len(matrix), bool), query=matrix.query,
        search=matrix.search,
    )  # fmt: skip
    with pytest.raises(NoUsablePairs, match="not a single click in 8,000 rows"):
        regression_em(silent, **QUICK)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"trees": 0}, "trees must be 1 or more, not 0"),
        ({"rounds": 2}, "rounds must be 3 or more, not 2"),
        ({"bootstrap": 3}, "0, for no intervals, or 5 or more, not 3"),
        ({"tolerance": 0}, "must be above 0"),
    ],
)
def test_options(matrix, option, said):
    with pytest.raises(BadOption, match=said):
        regression_em(matrix, **{**QUICK, **option})
