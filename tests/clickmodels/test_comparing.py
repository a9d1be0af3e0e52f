"""Models side by side: measures by hand, verdicts where the truth is known, and the command."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.search_lists import DOCS, made_searches

import rankdrift
from rankdrift.cli import rankdrift as group
from rankdrift.clickmodels.comparing import MUCH
from rankdrift.clickmodels.dynamic_bayesian import DynamicBayesian
from rankdrift.clickmodels.measures import buckets_of_queries, drawn_weights, forecast
from rankdrift.clickmodels.model import LEAST
from rankdrift.clickmodels.models import MODELS
from rankdrift.clickmodels.position_based import PositionBased
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.core.verdicts import Verdict
from rankdrift.simulate import pairs

QUERIES = 40
AVERAGE = 0.1  # of a propensity: intervals of deep ranks are 12% wide to either side
RNG = np.random.default_rng(2)
Z = RNG.beta(1, 3, QUERIES * DOCS)
LOOKS = np.append(0.5, 0.95 / np.arange(1, 7) ** 0.7)
WORLDS = {
    "pbm": PositionBased(Z, LOOKS),
    "dbn": DynamicBayesian(Z, RNG.beta(4, 2, QUERIES * DOCS), 0.9),
}


def table(model, n=12_000):
    model = WORLDS[model] if isinstance(model, str) else model
    drawn = model.sample(made_searches(n, QUERIES, seed=1), np.random.default_rng(3))
    return pa.table(
        {
            "search": drawn.lists.list_of_rows(),
            "query": drawn.query_of_pair[drawn.pair],
            "doc": drawn.pair,
            "rank": drawn.rank,
            "click": drawn.click,
        }
    )


@pytest.fixture(scope="module")
def compared():
    return {name: rankdrift.compare_models(table(name)) for name in WORLDS}


def test_where_looks_do_not_hang_together_the_position_based_model_is_good_enough(compared):
    found = compared["pbm"]
    assert found.verdict == Verdict.GOOD
    assert "good enough" in found.words
    assert all(s.high < 0.002 for s in found.scores.values() if s.name != "pbm")
    assert found.scores["pbm"].difference == 0


def test_rates_of_ranks_that_forecast_better_are_no_objection():
    """Docs that are all alike are better forecast without them, and users look by rank all the
    same."""
    z = np.random.default_rng(2).beta(200, 600, QUERIES * DOCS)
    alike = PositionBased(z, np.append(0.95, 0.95 / np.arange(1, 7) ** 1.5))
    found = rankdrift.compare_models(table(alike, 3_000))
    assert found.best == "rctr" and found.scores["rctr"].more_low > MUCH
    assert found.verdict == Verdict.GOOD and found.to_judge_by is None
    assert "rctr explains" in found.words and "no objection" in found.words
    assert "average user" not in found.words
    check = found.as_check()
    assert (check.verdict, check.advice) == (Verdict.GOOD, "")
    assert check.numbers["best"] == "rctr" and check.numbers["rival"] == "ubm"
    assert check.numbers["more"] == found.scores["ubm"].more < 0
    rates = rankdrift.compare_models(table(alike, 3_000), models=["rctr", "dctr"])
    assert rates.verdict == Verdict.CANNOT_TELL and "name some of cm, dcm" in rates.words


def test_where_users_stop_after_a_click_it_is_said_so(compared):
    found = compared["dbn"]
    assert found.best == "dbn"
    assert found.verdict == Verdict.SERIOUS
    assert found.words.startswith("Users stop after a click")
    assert "average user" in found.words
    best = found.scores["dbn"]
    assert 0 < best.low < best.difference < best.high
    floor, reference = found.scores["rcm"], found.scores["pbm"]
    explained = reference.log_likelihood - floor.log_likelihood
    assert best.more == pytest.approx(best.difference / explained)


def test_propensities_are_then_those_of_the_average_user():
    """Where users stop after a click, the curve is how often each rank is looked at, on average."""
    curve = rankdrift.estimate(rankdrift.harvest(rankdrift.read_log(table("dbn", 40_000)))).table()
    lists = made_searches(40_000, QUERIES, seed=1)
    reached = WORLDS["dbn"].click_probabilities(lists) / Z[lists.pair]
    looks = np.bincount(lists.rank, reached)[1:] / np.bincount(lists.rank)[1:]
    assert looks[-1] < 0.35  # they do stop
    inside = (np.array(curve["low"]) <= looks) & (looks <= np.array(curve["high"]))
    assert inside.sum() >= len(looks) - 1
    np.testing.assert_allclose(curve["propensity"], looks, rtol=AVERAGE)


def test_measures_are_those_worked_out_by_hand():
    searches = WORLDS["dbn"].sample(made_searches(50, 4, seed=5), np.random.default_rng(1))
    model = MODELS.get("cm").fit(searches)  # says of some clicks that they cannot be
    bucket, buckets = buckets_of_queries(searches)
    found = forecast(model, searches, bucket, buckets)
    p = model.conditional_click_probabilities(searches)
    total = np.zeros(buckets)
    bits = {rank: [] for rank in range(1, 7)}
    for i in range(searches.rows):
        happened = max(p[i] if searches.click[i] else 1 - p[i], LEAST)
        total[searches.query_of_pair[searches.pair[i]]] += np.log(happened)
        bits[int(searches.rank[i])].append(np.log2(happened))
    np.testing.assert_allclose(found.by_bucket, total)
    expected = [2 ** -np.mean(bits[rank]) for rank in range(1, 7)]
    np.testing.assert_allclose(found.conditional_perplexity[1:], expected)


def test_the_means_are_over_results_and_over_ranks(compared):
    score = compared["dbn"].scores["ubm"]
    assert score.perplexity == pytest.approx(np.mean(score.by_rank["perplexity"]))
    assert score.by_rank["rank"] == [1, 2, 3, 4, 5, 6]


def test_intervals_cover_queries_drawn_anew():
    weights = drawn_weights(50, seed=1)
    assert (weights.sum(axis=1) == 50).all()
    # The deviation of a mean of 50, by as many draws as there are: to a tenth.
    values = np.random.default_rng(1).standard_normal(50)
    means = weights @ values / 50
    assert means.std() == pytest.approx(values.std() / np.sqrt(50), rel=0.1)


def test_the_same_seed_gives_the_same():
    some = table("dbn", 1_500)
    one, same = (rankdrift.compare_models(some, models="ubm", seed=4).to_dict() for _ in range(2))
    assert one == same


def test_only_those_asked_for_and_what_they_are_set_beside():
    found = rankdrift.compare_models(table("pbm", 1_500), models=["dctr"])
    assert list(found.scores) == ["rcm", "dctr", "pbm"]
    with pytest.raises(BadOption, match="Did you mean"):
        rankdrift.compare_models(table("pbm", 100), models=["dbm"])
    with pytest.raises(BadOption, match="strength"):
        rankdrift.compare_models(table("pbm", 100), strength=0.0)


def test_too_little_is_not_taken_for_an_answer():
    with pytest.raises(BadLog, match="too few"):
        rankdrift.compare_models(table("pbm", 3))
    one = table("dbn", 2_000).filter(pc.equal(table("dbn", 2_000)["query"], 0))
    found = rankdrift.compare_models(one, models=["dbn"])
    assert found.verdict == Verdict.CANNOT_TELL and "of 1 query" in found.words
    assert found.scores["dbn"].more is None  # no interval of one query, which would have no width
    few = rankdrift.compare_models(table("pbm", 60), models=["ubm", "dbn"])
    assert few.verdict in (Verdict.CANNOT_TELL, Verdict.GOOD)


def test_it_shows_in_notebooks_and_draws(compared, tmp_path):
    found = compared["dbn"]
    assert "dbn" in found._repr_html_()
    assert "serious" in repr(found)
    assert found.table()["model"] == list(MODELS.names)
    found.plot().save(tmp_path / "models.svg")
    assert "dynamic Bayesian" in (tmp_path / "models.svg").read_text()


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table("dbn", 3_000), "log.parquet")
    words = ["models", "log.parquet", "--models", "dbn", "--chart", "models.svg"]
    shown = CliRunner().invoke(group, words)
    assert shown.exit_code == 0, shown.output
    assert "Users stop after a click" in " ".join(shown.stdout.split())
    assert (tmp_path / "models.svg").exists()
    assert "rankdrift judge log.parquet --model dbn" in shown.stderr
    told = json.loads(CliRunner().invoke(group, [*words, "--json"]).stdout)
    assert [model["name"] for model in told["models"]] == ["rcm", "pbm", "dbn"]
    assert told["searches"]["train"] + told["searches"]["test"] == 3_000
    without = CliRunner().invoke(group, ["models", "log.parquet", "--search", ""])
    assert isinstance(without.exception, BadLog)
    assert "--search" in str(without.exception)


def test_a_chart_of_nothing_does_not_cost_the_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table("dbn", 60), "log.parquet")
    words = ["models", "log.parquet", "--models", "dbn", "--chart", "models.svg"]
    shown = CliRunner().invoke(group, words)
    assert shown.exit_code == 0, shown.output
    assert "queries differ: 10 would do" in " ".join(shown.stdout.split())
    assert "nothing to draw" in shown.stderr and not (tmp_path / "models.svg").exists()
    assert json.loads(CliRunner().invoke(group, [*words, "--json"]).stdout)["chart"] is None


def test_a_check_of_a_diagnosis_calls_for_caution_at_most(compared):
    serious, good = compared["dbn"].as_check(), compared["pbm"].as_check()
    assert compared["dbn"].verdict == Verdict.SERIOUS
    assert (serious.name, serious.verdict) == ("models", Verdict.CAUTION)
    assert serious.words == compared["dbn"].words and "rankdrift models" in serious.advice
    assert "rankdrift judge --model dbn" in serious.advice
    assert serious.numbers["best"] == "dbn" and serious.numbers["more_low"] > 0.1
    assert (good.verdict, good.advice) == (Verdict.GOOD, "")
    before = rankdrift.diagnose(pairs(1_500, ranks=10, seed=1).counts)
    assert before.with_check(serious).checks == (*before.checks, serious)
    assert before.with_check(serious).verdict in (Verdict.CAUTION, Verdict.SERIOUS)


def test_the_check_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table("dbn", 4_000), "log.parquet")
    answer = CliRunner().invoke(group, ["diagnose", "log.parquet", "--models", "--json"])
    assert json.loads(answer.stdout)["checks"][-1]["name"] == "models", answer.output
    pairs(1_500, ranks=10, seed=1).counts.save("counts.parquet")
    answer = CliRunner().invoke(group, ["diagnose", "counts.parquet", "--models"])
    assert isinstance(answer.exception, BadOption) and "Give the log" in str(answer.exception)
