"""diagnose keeps quiet where an assumption holds, and speaks up where it is broken."""

from dataclasses import replace

import numpy as np
import pytest
from support.worlds import DOWN_SHORT, UP_SHORT, dips, listed, power, simulate

from rankdrift.core.verdicts import Verdict
from rankdrift.counts.tables import stack
from rankdrift.diagnosis.diagnosing import diagnose

GOOD, CAUTION, SERIOUS, UNKNOWN = Verdict
WORLDS = 40
# All seven checks of a world together warn by chance with about 7 × 1%, the level for caution: of
# 40 worlds in 3 or fewer. More than 6 is once in 40 times; these seeds give the same number always.
FALSE_ALARMS = 6
# Of 40 p-values below 5%: 2 expected, more than 7 once in a thousand times.
BELOW_5 = 7


def verdicts(counts, **options):
    return {check.name: check for check in diagnose(counts, **options).checks}


@pytest.fixture(scope="module")
def sound():
    """Worlds in which all assumptions hold but that clicks be rare."""
    same = {"app": power(0.6), "web": power(0.6)}
    return [
        verdicts(simulate(1500, 40, seed, drift=True, segments=same, queries=500).counts)
        for seed in range(WORLDS)
    ]


@pytest.mark.slow
def test_false_alarms_are_rare(sound):
    alarms = [
        [name for name, check in found.items() if check.verdict in (CAUTION, SERIOUS)]
        for found in sound
    ]
    kinds = [set(names) - {"click probabilities", "support"} for names in alarms]
    assert sum(bool(names) for names in kinds) <= FALSE_ALARMS
    assert not any(check.verdict == SERIOUS for found in sound for name, check in found.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["moved up against moved down", "short against long gaps", "fit", "curve", "segments"]
)
def test_p_values_of_sound_worlds(sound, name):
    p = np.array([found[name].numbers["p_value"] for found in sound])
    assert (p < 0.05).sum() <= BELOW_5
    assert (p > 0.5).sum() >= WORLDS / 5  # and the test is no mere formality either


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
        check = verdicts(listed(rows))["fit"]
        assert check.verdict == GOOD and check.numbers["p_value"] > 0.001


def test_advice_comes_with_trouble_only(sound):
    for found in sound:
        for check in found.values():
            assert bool(check.advice) == (check.verdict in (CAUTION, SERIOUS))
            assert check.words.endswith(".")


def test_clicks_that_are_not_rare():
    """At a relevance of 0.1 pairs with a single click already give a curve some 20% off."""
    often = verdicts(simulate(6000, 40, 1, level=0.1, curve=power(0.6)).counts)
    check = often["click probabilities"]
    assert check.verdict == CAUTION  # never serious: clicks="every" does not need them rare
    assert check.numbers["beyond_noise"] > 0.1
    assert "clicks='every'" in check.advice
    rarely = verdicts(simulate(1500, 40, 1, level=0.005, curve=power(0.6)).counts)
    assert rarely["click probabilities"].verdict == GOOD
    assert rarely["click probabilities"].numbers["beyond_noise"] < 0.05


def test_relevance_that_rises_between_appearances():
    found = verdicts(simulate(6000, 40, 2, drift=True, trend=1.0).counts)
    assert found["moved up against moved down"].verdict == SERIOUS
    assert "--same" in found["moved up against moved down"].advice


def test_pairs_shown_far_apart_that_tell_another_curve():
    near = simulate(6000, 40, 3, drift=True, curve=power(0.2)).counts
    far = simulate(6000, 40, 4, drift=True, curve=power(1.0)).counts
    short = near.pairs.take(np.isin(near.pairs.drift, (UP_SHORT, DOWN_SHORT)))
    long = far.pairs.take(np.isin(far.pairs.drift, (UP_SHORT + 1, DOWN_SHORT + 1)))
    both = replace(near, pairs=stack([short, long]), options={"restrict": {"test": True}})
    assert verdicts(both)["short against long gaps"].verdict == SERIOUS


def test_counts_that_do_not_tell_when():
    found = verdicts(simulate(800, 20, 3).counts)
    for name in ("moved up against moved down", "short against long gaps"):
        assert found[name].verdict == UNKNOWN
        assert "--time" in found[name].advice


def test_a_check_that_cannot_be_made_keeps_its_name():
    """Every pair was clicked twice, so there is none with a single click."""
    rows = [(((rank, 1), (rank + 1, 1)), bucket, 5) for rank in (1, 2, 3) for bucket in range(16)]
    found = diagnose(listed(rows)).checks
    assert found[0].name == "click probabilities"
    assert found[0].verdict == UNKNOWN
    assert "no usable pair" in found[0].words
    assert [check.name for check in found] == [
        "click probabilities", "moved up against moved down", "short against long gaps", "fit",
        "curve", "support", "period",
    ]  # fmt: skip


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
    assert thin.verdict == CAUTION
    assert thin.numbers["weak"] == [3]


def test_support_that_is_all_of_neighbours_is_told():
    """Rank 7 was shown, but its pairs were clicked elsewhere; ranks 4 and 9 were not shown."""
    shown = [(1, 2), (2, 3), (3, 5), (5, 6), (6, 8), (8, 10), (1, 10)]
    rows = [(((a, c), (b, 1 - c)), k, 5) for a, b in shown for k in range(16) for c in (0, 1)]
    rows += [(((6, 1), (7, 0)), k, 1) for k in range(16)]
    found = verdicts(listed(rows, buckets=16), curve="loglog(1, 3, 10)")["support"]
    assert found.verdict == GOOD
    assert found.numbers["without_clicks"] == [4, 7, 9]
    assert found.words == (
        "10 of 10 ranks are well supported, 3 of them only by others between the same knots of the "
        "curve, for they have no click of their own."
    )
    full = listed([row for row in rows if 7 not in (row[0][0][0], row[0][1][0])], buckets=16)
    assert "click of their own" not in verdicts(full, curve="direct")["support"].words


@pytest.mark.parametrize(
    ("p_value", "beyond", "verdict", "said"),
    [
        (0.3, 0.268, GOOD, "they differ by no more than chance explains (p = 0.3), at most by 40%"),
        (0.004, 0.03, GOOD, "they differ (p = 0.004), but little: beyond noise by 3.0% at a"),
        (0.004, 0.268, CAUTION, "they differ (p = 0.004): beyond noise by 26.8% at a typical rank"),
        (1e-5, 0.268, SERIOUS, "they differ (p = 1e-05): beyond noise by 26.8% at a typical rank"),
    ],
)
def test_words_and_verdict_say_the_same(monkeypatch, p_value, beyond, verdict, said):
    numbers = {"p_value": p_value, "beyond_noise": beyond, "largest": 0.4, "at_rank": 9}
    monkeypatch.setattr("rankdrift.diagnosis.halves.difference_of", lambda *_: numbers)
    check = verdicts(simulate(800, 20, 3, drift=True).counts)["moved up against moved down"]
    assert check.verdict == verdict and f"moved down: {said}" in check.words
    assert check.words.endswith("with noise (rank 9).")


def test_results_loaded_in_batches():
    world = simulate(12_000, 120, 1, curve=dips(power(0.3), 20, depth=2.0), level=0.2)
    found = verdicts(world.counts, curve="loglog")["period"]
    assert found.verdict == CAUTION
    assert found.numbers["period"] == 20
    assert "periodic(20)" in found.advice
    assert verdicts(world.counts)["period"].verdict == GOOD  # the curve that was chosen has it


def test_segments_that_differ():
    segments = {"app": power(1.2), "web": power(0.2)}
    found = verdicts(simulate(5000, 30, 1, segments=segments).counts)["segments"]
    assert found.verdict == CAUTION
    assert "--by device" in found.advice


def test_the_worst_check_is_the_verdict():
    found = diagnose(simulate(6000, 40, 2, drift=True, trend=1.0).counts)
    assert found.verdict == SERIOUS
    told = found.to_dict()
    assert told["verdict"] == SERIOUS
    assert [check["name"] for check in told["checks"]] == [check.name for check in found.checks]
