"""The log of an experiment that ran where the drift of ranks tells nothing."""

import csv
from functools import cache

import numpy as np
import pandas as pd
import pytest

from rankdrift import estimate, harvest, read_log
from rankdrift.core.errors import BadLog, BadOption, MissingColumns, NoUsablePairs
from rankdrift.core.verdicts import Verdict
from rankdrift.experiments.analysing import analyse
from rankdrift.experiments.assigning import HALF, digits
from rankdrift.experiments.designs import fairpairs, shuffle, swaps
from rankdrift.experiments.experiment import Experiment
from rankdrift.experiments.preferring import prefer
from rankdrift.simulate import world

R = 6
DESIGNS = {
    "swaps": Experiment("s", swaps([(1, 2), (2, 6)], [0.4, 0.6]), share=0.5),
    "fairpairs": Experiment("f", fairpairs(1, R), share=0.5),
    "shuffle": Experiment("r", shuffle(1, R), share=0.5),
    "by user": Experiment("u", shuffle(1, R), share=0.5, unit="user"),
}


@cache
def run(name):
    """A personalised ranker: docs stand higher for those who want them more."""
    experiment = DESIGNS[name]
    made = world(
        "personalised", pairs=3_000, queries=300, ranks=R, seed=5, experiment=experiment,
        columns=["user"],
    )  # fmt: skip
    return experiment, made, pd.DataFrame(dict(made.columns))


@pytest.fixture(scope="module", params=DESIGNS)
def ran(request):
    return run(request.param)


@pytest.fixture(scope="module", params=["swaps", "by user"])
def one(request):
    return run(request.param)


def test_the_truth_comes_back_where_drift_fails(ran):
    experiment, made, rows = ran
    found = analyse(read_log(rows), experiment)
    assert found.verdict is Verdict.GOOD
    ratio = found.curve.ratio(R, 1)
    assert ratio.low < made.truth[R - 1] < ratio.high
    drift = estimate(harvest(read_log(rows, randomised_apart=True))).ratio(R, 1)
    assert drift.high < made.truth[R - 1]
    took_part = rows[rows.randomised]
    assert found.shown.sum() == len(took_part) and found.clicks.sum() == took_part.click.sum()
    by_hand = took_part.groupby(["original_rank", "rank"]).size()
    for (before, rank), n in by_hand.items():
        assert found.shown[before - 1, rank - 1] == n


def test_with_what_drift_says_it_is_combined(one):
    experiment, _, rows = one
    drift = estimate(harvest(read_log(rows, randomised_apart=True)))
    found = analyse(read_log(rows), experiment, propensities=drift)
    assert found.combined is not None and found.combined.reference == drift.reference
    alone, both = found.curve.ratio(R, 1), found.combined.ratio(R, 1)
    assert both.high / both.low < alone.high / alone.low


@pytest.mark.parametrize("wrong", ["salt", "design", "moved", "not drawn"])
def test_a_log_of_another_experiment_is_refused(one, wrong):
    experiment, _, rows = one
    other = experiment
    if wrong == "salt":
        other = Experiment(experiment.name, experiment.design, share=experiment.share, salt="other",
                           unit=experiment.unit)  # fmt: skip
        told = "took part though their id was not drawn"
    elif wrong == "design":
        other = Experiment(experiment.name, swaps([(3, 4)]), share=experiment.share,
                           salt=experiment.salt, unit=experiment.unit)  # fmt: skip
        told = "stand at another rank than their id says"
    elif wrong == "moved":
        rows = rows.assign(randomised=rows.randomised & (rows.search % 10 > 0))
        told = "were moved though they took no part"
    else:
        rows = rows.assign(randomised=True)
        told = "took part though their id was not drawn"
    with pytest.raises(BadLog, match=told):
        analyse(read_log(rows), other)


def test_a_share_that_is_off_and_lost_rows_are_seen(one):
    experiment, _, rows = one
    # Half of those that took part are not logged.
    unit = rows.user if experiment.unit == "user" else rows.search
    lost = rows.randomised & (unit % 2 == 0)
    checks = {c.name: c for c in analyse(read_log(rows[~lost]), experiment).checks}
    assert checks["share"].verdict is Verdict.SERIOUS and checks["share"].p_value < 0.001
    assert checks["assignment"].verdict is Verdict.GOOD
    # Docs that were moved down are logged less often.
    moved = rows.randomised & (rows["rank"] > rows.original_rank) & (unit % 3 > 0)
    checks = {c.name: c for c in analyse(read_log(rows[~moved]), experiment).checks}
    assert checks["places"].verdict is Verdict.SERIOUS


def test_columns_that_are_not_there_are_named(one):
    experiment, _, rows = one
    with pytest.raises(MissingColumns, match="rank_before"):
        analyse(read_log(rows), experiment, original="rank_before")
    with pytest.raises(MissingColumns, match="Did you mean 'randomised'"):
        analyse(read_log(rows), experiment, randomised="randomized")
    with pytest.raises(MissingColumns, match=f"for the {experiment.unit}"):
        analyse(read_log(rows.drop(columns=["search", "user"])), experiment)
    with pytest.raises(NoUsablePairs, match="No result took part"):
        analyse(read_log(rows.assign(randomised=False)), experiment)


def test_neighbours_are_preferred_by_what_they_are_clicked_below(tmp_path):
    experiment, _, rows = run("fairpairs")
    rows = rows[rows.search < 1_500]
    found = prefer(read_log(rows), experiment)
    assert (np.diff(found.probability) <= 0).all() and (found.probability >= 0.5).all()
    # By hand: how often was each doc the lower one of two neighbours that were drawn?
    tallies = {}
    part = rows[rows.randomised]
    for search, inside in part.groupby("search"):
        first = 2 if digits("first", experiment.salt, str(search)) < HALF else 1
        docs, clicks, query = inside.doc.tolist(), inside.click.tolist(), inside["query"].iloc[0]
        for rank in range(first, R, 2):
            upper, lower = docs[rank - 1], docs[rank]
            tally = tallies.setdefault((query, frozenset((upper, lower))), {})
            shown, clicked = tally.get(lower, (0, 0))
            tally[lower] = shown + 1, clicked + clicks[rank]
    assert len(found.doc) == len(tallies)
    for i, query in enumerate(found.queries[:, 0]):
        tally = tallies[int(query), frozenset((int(found.doc[i]), int(found.other[i])))]
        mine, others = (tally.get(int(doc), (0, 0)) for doc in (found.doc[i], found.other[i]))
        assert mine == (found.shown_below[i], found.clicks[i])
        assert others == (found.other_shown_below[i], found.other_clicks[i])
    found.save(tmp_path / "p.csv")
    with open(tmp_path / "p.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(found.doc) and lines[0]["doc"] == str(found.doc[0])


def test_only_fairpairs_tell_preferences(one):
    with pytest.raises(BadOption, match="Preferences come from FairPairs"):
        prefer(read_log(one[2]), one[0])
