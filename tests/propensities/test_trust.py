"""A curve with trust: kept in files, told in tables, and used by whoever takes propensities."""

import json
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from support.clicklogs import curve
from support.curve_example import hand

from rankdrift.core.errors import BadOption, BadPropensities
from rankdrift.judging.shrinkage import Evidence
from rankdrift.propensities.exports import label_gain, labels_with_trust, sql_case
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.evaluation import evaluate
from rankdrift.ranking.exporting import export_training
from rankdrift.ranking.gains import fingerprint, weigh
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.training import train

TRUST = np.array([0.08, 0.02, 0.005, 0.0])
ERROR = np.array([0.01, 0.004, 0.003, 0.0])


def trusting():
    return hand(trust=TRUST, trust_error=ERROR)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("ending", ["json", "parquet", "csv"])
def test_files_keep_it(tmp_path, ending, full):
    path = tmp_path / f"p.{ending}"
    trusting().save(path, full=full)
    found = Propensities.load(path)
    np.testing.assert_array_equal(found.trust, TRUST)
    np.testing.assert_array_equal(found.trust_error, ERROR)
    if ending != "csv":
        assert found.equals(trusting()) is full
        found.save(tmp_path / f"again.{ending}", full=full)
        assert path.read_bytes() == (tmp_path / f"again.{ending}").read_bytes()


def test_files_that_were_changed_are_refused(tmp_path):
    path = tmp_path / "p.json"
    trusting().save(path)
    kept = json.loads(path.read_text())
    assert kept["format"] == 3  # older versions would pass over trust without a word
    kept["curves"][0]["trust"][0] = 0.09
    path.write_text(json.dumps(kept))
    with pytest.raises(BadPropensities):
        Propensities.load(path)
    for trust in (TRUST[:2], TRUST + 1, TRUST * np.nan):
        with pytest.raises(BadPropensities, match="trust"):
            replace(trusting(), trust=trust).save(tmp_path / "bad.json")
    (tmp_path / "bad.csv").write_text("rank,propensity,trust\n1,1,0.1\n2,0.5,\n")
    with pytest.raises(BadPropensities, match="1 of 2 rows has no trust"):
        Propensities.load(tmp_path / "bad.csv")


def test_tables_tell_it():
    table = trusting().table()
    low, high = trusting().trust_interval()
    assert table["trust"] == TRUST.tolist() and table["trust_low"] == low.tolist()
    assert high[0] - low[0] == pytest.approx(2 * 2.3646 * 0.01, rel=1e-4)  # t with 7 degrees
    assert "trust" not in hand().table()
    assert trusting().summary()["at"][1]["trust"] == 0.08
    with pytest.raises(BadOption, match="--adjust trust"):
        hand().trust_interval()


def test_gains():
    p = trusting()
    ranks, clicks = np.array([1, 1, 2, 5]), np.array([True, False, True, False])
    np.testing.assert_allclose(p.gains(ranks, clicks), [0.92, -0.08, 1.96, 0.0])
    np.testing.assert_allclose(p.gains(ranks, clicks, clip=1.5), [0.92, -0.08, 1.47, 0.0])
    np.testing.assert_allclose(hand().gains(ranks, clicks), [1, 0, 2, 0])
    with pytest.raises(BadOption, match="one click"):
        p.gains(ranks, clicks[:2])


def test_exports(tmp_path):
    p = trusting()
    found = labels_with_trust(p)
    gains = np.array(found.gains)
    every = [found.clicked[r] for r in (1, 2, 3, 5)] + [found.unclicked[r] for r in (1, 2, 3, 5)]
    wanted = p.gains(np.tile(p.ranks, 2), np.repeat([True, False], 4))
    np.testing.assert_allclose(gains[every] - gains[found.unclicked[5]], wanted, atol=1e-12)
    assert gains[0] == 0 and (np.diff(gains) > 0).all()
    p.export(tmp_path / "l.json", "lightgbm")
    assert "label_of_no_click_at_rank" in json.loads((tmp_path / "l.json").read_text())
    log = "(VALUES (1, true), (1, false), (2, true), (4, true)) AS t (rank, click)"
    said = duckdb.sql(f"SELECT {sql_case(p)} FROM {log}").fetchall()
    assert [v for (v,) in said] == pytest.approx([0.92, -0.08, 1.96, None])
    for refused in (lambda: label_gain(p), lambda: p.export(tmp_path / "u.json", "ultra")):
        with pytest.raises(BadOption, match="trust"):
            refused()


def test_the_likelihood_of_a_relevance():
    """c clicks of n rows at one rank, by the binomial itself."""
    p, trust, clicks, rows = 0.5, 0.03, 4.0, 50.0
    found = Evidence(
        *(np.array([x]) for x in (clicks, rows * p, rows * p**2, 1.0)), np.array([rows * trust])
    )
    z = np.linspace(0.01, 0.9, 50)
    chance = p * z + trust
    exact = clicks * np.log(chance) + (rows - clicks) * np.log1p(-chance)
    got = found.log_likelihood(np.log(z / (1 - z))[None])[0]
    np.testing.assert_allclose(got - got[0], exact - exact[0], atol=1e-9)


def rows(searches=400, seed=1):
    """One feature tells the relevance; docs at the top are clicked on trust too."""
    rng = np.random.default_rng(seed)
    feature = rng.normal(size=(searches, 4))
    p, trust = np.array([1.0, 0.5, 0.25, 0.2]), np.array([0.3, 0.1, 0.02, 0.0])
    chance = p * 0.4 / (1 + np.exp(-3 * feature)) + trust
    click = rng.random(chance.shape) < chance
    search = np.repeat(np.arange(searches), 4)
    made = Matrix.from_arrays(
        feature.reshape(-1, 1), rank=np.tile(np.arange(1, 5), searches), click=click.ravel(),
        query=search, search=search,
    )  # fmt: skip
    return made, replace(curve(p), trust=trust, trust_error=np.zeros(4))


def test_training_takes_rows_without_a_click(tmp_path):
    made, p = rows()
    found = weigh(made, p)
    wanted = p.gains(made.rank, made.click)
    np.testing.assert_allclose(found.gain - found.raised, wanted, atol=1e-12)
    assert found.gain.min() == 0 and found.raised == pytest.approx(0.3)
    ranker = train(made, propensities=p, trees=5, fixed=True, threads=1)
    assert ranker.training["searches"] == 400  # those without a click, too
    plain = replace(p, trust=None, trust_error=None)
    assert train(made, propensities=plain, trees=2, fixed=True).training["searches"] < 400
    assert ranker.propensities == fingerprint(p) != fingerprint(plain)
    export_training(made, tmp_path / "w.csv", form="weights", propensities=p)
    weights = duckdb.sql(f"SELECT weight FROM '{tmp_path / 'w.csv'}'").fetchnumpy()["weight"]
    np.testing.assert_allclose(np.sort(weights), np.sort(wanted), atol=1e-9)
    for gains in ("dr", "poisson"):
        with pytest.raises(BadOption, match="trust"):
            train(made, propensities=p, gains=gains)
    with pytest.raises(BadOption, match="evaluate weighs clicks"):
        evaluate([ranker], made, propensities=p)
