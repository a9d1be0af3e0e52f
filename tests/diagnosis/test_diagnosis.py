"""diagnose keeps quiet where an assumption holds, and speaks up where it is broken."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.lab import lab_counts
from support.worlds import dips, listed, power, simulate

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.checks import ASSUMPTIONS
from rankdrift.diagnosis.diagnosing import diagnose

GOOD, CAUTION, SERIOUS, CANNOT_TELL = Verdict
WORLDS = 40
# Of 40 p-values below 5%: 2 expected, more than 7 once in a thousand times.
BELOW_5 = 7
# A sound world is called caution by chance in 5 of 100: of 40, more than 6 once in a hundred times.
CAUTIONS = 6


def verdicts(counts, **options):
    return {check.name: check for check in diagnose(counts, **options).checks}


@pytest.fixture(scope="module")
def sound():
    """Worlds in which all assumptions hold but that clicks be rare."""
    same = {"app": power(0.6), "web": power(0.6)}
    return [
        diagnose(simulate(1500, 40, seed, drift=True, segments=same, queries=500).counts)
        for seed in range(WORLDS)
    ]


@pytest.mark.slow
def test_a_sound_world_is_hardly_ever_called_worse_than_cannot_tell(sound):
    told = [found.verdict for found in sound]
    assert told.count(CAUTION) <= CAUTIONS
    assert told.count(CAUTION) + told.count(CANNOT_TELL) == WORLDS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trend", "fit", "curve", "segments"])
def test_p_values_of_sound_worlds(sound, name):
    checks = [check for found in sound for check in found.checks if check.name == name]
    p = np.array([check.numbers["p_value"] for check in checks])
    assert (p < 0.05).sum() <= BELOW_5
    assert (p > 0.5).sum() >= WORLDS / 5  # and the test is no mere formality either


@pytest.mark.slow
def test_advice_comes_with_trouble_or_ignorance_only(sound):
    for found in sound:
        for check in found.checks:
            assert bool(check.advice) == (check.verdict != GOOD)
            assert check.words.endswith(".")


def test_ranks_that_a_parameter_is_there_for_alone_are_no_misfit():
    """Rank 1 met rank 2 only, so the knot of rank 1 makes them fit to the last digit: what is left
    is rounding, which is not to be weighed against its own size."""
    for seed in range(8):
        pairs = simulate(1500, 40, seed, curve=power(0.6)).counts.pairs
        rows = [
            ([(code >> 1, code & 1) for code in codes], bucket, times)
            for codes, bucket, times in zip(pairs.shown, pairs.bucket, pairs.pairs, strict=True)
            if codes[0] >> 1 > 1 or codes[1] >> 1 == 2
        ]
        check = verdicts(listed(rows), curve="loglog")["fit"]
        assert check.verdict == GOOD and check.numbers["p_value"] > 0.001


def test_clicks_that_are_not_rare_are_told_and_leave_the_verdict_alone():
    often = diagnose(simulate(6000, 40, 1, level=0.3, curve=power(0.6)).counts)
    check = next(check for check in often.checks if check.name == "click probabilities")
    assert check.verdict == CAUTION
    # With a mean relevance of 0.3 at the top, one click falls there with odds 1 / (1 - 0.3) of
    # what it should, and the deepest ranks with hardly less than they should.
    assert 0.2 < check.numbers["beyond_noise"] < 0.6
    assert "--clicks every" in check.advice
    assert often.verdict == CANNOT_TELL
    rarely = verdicts(simulate(1500, 40, 1, level=0.005, curve=power(0.6)).counts)
    assert rarely["click probabilities"].verdict == GOOD
    assert rarely["click probabilities"].numbers["beyond_noise"] < 0.05


def test_a_trend_is_told_and_leaves_the_verdict_alone():
    """Relevance that merely rises over the day: the curve is right."""
    found = diagnose(simulate(6000, 40, 2, drift=True, trend=1.0).counts)
    check = next(check for check in found.checks if check.name == "trend")
    assert check.verdict == CAUTION and "rise" in check.words
    assert found.verdict == CANNOT_TELL


@pytest.mark.slow
def test_appearances_far_apart_that_tell_another_curve():
    """Prices change now and then: the longer apart, the likelier one has changed in between."""
    for columns in ((), ("score",)):
        found = {
            c.name: c for c in diagnose(lab_counts("prices-both-ways", 35_000, 1, columns)).checks
        }
        assert found["gaps"].verdict in (CAUTION, SERIOUS) and "steeper" in found["gaps"].words
    same = {c.name: c for c in lab("valid", 2000, 0).checks}["gaps"]
    assert same.verdict == CANNOT_TELL and same.numbers["p_value"] > 0.01


def test_counts_that_do_not_tell_when():
    found = verdicts(simulate(800, 20, 3).counts)
    for name in ("trend", "gaps"):
        assert found[name].verdict == CANNOT_TELL
        assert "--time" in found[name].advice


def test_counts_without_columns_say_which_to_log():
    found = diagnose(simulate(3000, 20, 3).counts)
    checks = {check.name: check for check in found.checks}
    for name, option in (
        ("score", "--score"), ("rankers", "--ranker"), ("outcome", "--outcome"),
        ("users", "--user"), ("neighbours", "--search"),
    ):  # fmt: skip
        assert checks[name].verdict == CANNOT_TELL and option in checks[name].advice
    assert found.verdict == CANNOT_TELL
    assert len(found.unseen) == 3
    assert "--score" in found.unseen[0] and found.to_dict()["unseen"] == list(found.unseen)


def test_clicks_that_no_curve_explains():
    """1 wins over 2, 2 over 5 and 5 over 1: no propensities do that."""
    rng = np.random.default_rng(1)
    rows = []
    for bucket in range(32):
        for winner, loser in ((1, 2), (2, 5), (5, 1)):
            for first, mean in ((winner, 12), (loser, 4)):
                shown = tuple((rank, int(rank == first)) for rank in sorted((winner, loser)))
                rows.append((shown, bucket, 1 + int(rng.poisson(mean))))
    found = verdicts(listed(rows, buckets=32), curve="loglog(1, 2, 5)")["fit"]
    assert found.verdict == SERIOUS
    assert found.numbers["observed"] > found.numbers["expected"] + 0.1


def test_a_curve_too_stiff_for_a_jump():
    jump = simulate(12_000, 40, 1, curve=lambda r: np.where(np.asarray(r) > 25, 0.2, 1.0)).counts
    assert verdicts(jump, curve="loglog")["curve"].verdict == SERIOUS
    assert verdicts(jump)["curve"].verdict == GOOD


def test_thin_data():
    found = verdicts(simulate(60, 30, 1).counts, curve="loglog(1, 30)", reference=20)
    assert found["support"].verdict == GOOD  # few parameters, which all of it serves
    few = listed(
        [(((1, c), (2, 1 - c)), b, 5) for b in range(16) for c in (0, 1)]
        + [(((2, c), (3, 1 - c)), 1, 2) for c in (0, 1)]
    )
    thin = verdicts(few, curve="direct")["support"]
    assert thin.numbers["weak"] == [3] and "thin: 3." in thin.words


def test_a_curve_most_of_whose_ranks_are_thin_cannot_be_told():
    rows = [(((rank, c), (rank + 1, 1 - c)), b, 1) for rank in range(1, 9) for b in range(3)
            for c in (0, 1)]  # fmt: skip
    found = diagnose(listed(rows), curve="direct")
    support = next(check for check in found.checks if check.name == "support")
    assert support.verdict == CANNOT_TELL and "Add days" in support.advice


def test_support_that_is_all_of_neighbours_is_told():
    """Rank 7 was shown, but its pairs were clicked elsewhere; ranks 4 and 9 were not shown."""
    shown = [(1, 2), (2, 3), (3, 5), (5, 6), (6, 8), (8, 10), (1, 10)]
    rows = [(((a, c), (b, 1 - c)), k, 5) for a, b in shown for k in range(16) for c in (0, 1)]
    rows += [(((6, 1), (7, 0)), k, 1) for k in range(16)]
    found = verdicts(listed(rows, buckets=16), curve="loglog(1, 3, 10)")["support"]
    assert found.verdict == GOOD
    assert found.numbers["without_clicks"] == [4, 7, 9]
    assert found.words == (
        "10 of 10 ranks are well supported, 3 of them only by neighbours on the curve, having no "
        "click of their own."
    )
    full = listed([row for row in rows if 7 not in (row[0][0][0], row[0][1][0])], buckets=16)
    assert "click of their own" not in verdicts(full, curve="direct")["support"].words


def test_results_loaded_in_batches():
    world = simulate(12_000, 120, 1, curve=dips(power(0.3), 20, depth=2.0), level=0.2)
    found = verdicts(world.counts, curve="loglog")["period"]
    assert found.verdict == CAUTION
    assert found.numbers["period"] == 20
    assert "batch(20)" in found.advice
    assert verdicts(world.counts)["period"].verdict == GOOD  # the curve that was chosen has it


def test_segments_that_differ():
    segments = {"app": power(1.2), "web": power(0.2)}
    found = verdicts(simulate(5000, 30, 1, segments=segments).counts)["segments"]
    assert found.verdict == CAUTION
    assert "--by device" in found.advice


def test_every_check_has_a_name_a_question_and_a_place():
    found = diagnose(simulate(800, 20, 3, segments={"a": power(0.5), "b": power(0.5)}).counts)
    on_request = {"prior"}  # of counts that were harvested for it
    always = [name for name in ASSUMPTIONS.names if name not in on_request]
    assert [check.name for check in found.checks] == always
    assert all(check.question.endswith("?") for check in ASSUMPTIONS)


# -- the lab, in short: `python -m benchmarks.accuracy.verdicts` has the whole of it ---------------


@cache
def lab(name, pairs, seed, columns=("score", "ranker", "user", "outcome")):
    return diagnose(lab_counts(name, pairs, seed, columns))


def objecting(found):
    return {check.name for check in found.checks if check.verdict in (CAUTION, SERIOUS)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["valid", "thin-top", "rising", "few-queries"])
def test_worlds_in_which_the_curve_is_right(name):
    """At most one in two hundred is called serious, and one in twenty caution."""
    told = [lab(name, 2000, seed).verdict for seed in range(4)]
    assert SERIOUS not in told and GOOD not in told
    assert told.count(CAUTION) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("personalised", {"score", "outcome", "users"}),
        ("popularity", {"score"}),
        ("auctions", {"moves"}),
    ],
)
def test_worlds_in_which_docs_move_because_they_are_better(name, by):
    found = lab(name, 35_000, 1)
    assert found.verdict in (SERIOUS, CAUTION)
    assert objecting(found) & by


@pytest.mark.slow
def test_a_world_in_which_clicks_move_docs():
    """The curve is too flat, which only feedback looks for."""
    found = lab("clicks-move-ranks", 35_000, 1, ("score", "user"))
    assert found.verdict in (SERIOUS, CAUTION)
    assert objecting(found) - {"click probabilities", "trend"} == {"feedback"}


@pytest.mark.slow
def test_the_same_without_the_columns_is_never_good():
    for name in ("personalised", "trust", "price-cuts"):
        assert lab(name, 6000, 1, ()).verdict != GOOD


@pytest.mark.slow
def test_plain_values_only():
    """What --json prints has no NaN and no array, also where checks could not be made."""
    for found in (lab("valid", 2000, 0), diagnose(simulate(60, 30, 1).counts)):
        assert "NaN" not in json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", ["time", "score", "ranker", "user", "outcome", "search"])
def test_a_column_that_is_there_is_not_asked_for(name):
    """Not by the checks, and not by what to do to know."""
    rows = [(((a, c), (a + 1, 1 - c)), k, 2) for a in range(1, 6) for k in range(16)
            for c in (0, 1)]  # fmt: skip
    counts = listed(rows, buckets=16)
    asked = [diagnose(replace(counts, options={**counts.options, **more}))
             for more in ({}, {name: "c"})]  # fmt: skip
    flags = [
        " ".join((*found.unseen, *(check.advice for check in found.checks))) for found in asked
    ]
    assert f"--{name}" in flags[0]
    flag = {"score": "harvest with --score", "ranker": "use --ranker", "outcome": "with --outcome"}
    assert flag.get(name, f"--{name}") not in flags[1]
    if name in ("ranker", "score"):
        assert all(f"(--{name})" not in danger for danger in asked[1].unseen)
    if name == "ranker":
        assert "or with rankers that differ more" in asked[1].unseen[0]


def test_clicks_of_a_few_queries_do_not_ask_for_days():
    """Five buckets of queries, with thousands of clicks each."""
    rows = [(((a, c), (a + 1, 1 - c)), k, 400) for a in range(1, 8) for k in range(5)
            for c in (0, 1)]  # fmt: skip
    found = diagnose(listed(rows, buckets=64), curve="loglog")
    said = " ".join((*found.unseen, *(check.advice for check in found.checks))).lower()
    assert "log more queries (all 28,000 clicks are of about 5)" in said
    assert "add days" not in said


def test_ranks_of_one_block_are_not_set_against_themselves():
    """Of ranks 2 and 3, one block, the higher wins more than a straight line says."""
    rows = [(((1, c), (4, 1 - c)), k, 30) for k in range(16) for c in (0, 1)]
    rows += [(((2, c), (3, 1 - c)), k, 90 if c else 10) for k in range(16) for c in (0, 1)]
    rows += [(((1, c), (2, 1 - c)), k, 30) for k in range(16) for c in (0, 1)]
    words = verdicts(listed(rows, buckets=16), curve="loglog(1, 4)")["fit"].words
    assert (
        "furthest off is the higher of two ranks within ranks 2–3: 90.0% of clicks on it" in words
    )
