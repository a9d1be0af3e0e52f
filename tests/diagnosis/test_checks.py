"""Checks one by one, on contests with a planted difference: which side, how large, what words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.worlds import listed, simulate

from rankdrift.core.errors import NotIdentified
from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.core.verdicts import Verdict
from rankdrift.counts.counts import ByRank
from rankdrift.counts.tables import QUERY_BUCKETS, SPLITS, UNIT, Splits
from rankdrift.diagnosis.assumption import (
    FEEDBACK,
    KINDS,
    MOVES,
    Assumption,
    Data,
    Evidence,
    Finding,
)
from rankdrift.diagnosis.checks import (
    click_probabilities,
    curve_shape,
    direction,
    fit_of_blocks,
    gaps,
    neighbours,
    outcome,
    period,
    prior,
    queries,
    relevance,
    support,
    users,
)
from rankdrift.diagnosis.checks.queries import within_queries
from rankdrift.diagnosis.diagnosing import Check, Diagnosis, _judged, _more
from rankdrift.estimation.fitting import Options, fit

GOOD, CAUTION, SERIOUS, CANNOT_TELL = Verdict
RANKS = (1, 2, 4, 8, 16)
BUCKETS = 64
CLICKS = 30_000
STEEPNESS = 0.7
# Blocks of one rank each: only the score test's one step and 30,000 clicks are in the way.
CLOSE = 0.05


def contests(split, slopes, *, seed=1, share=0.5, groups=(0, 1), own=0.0, buckets=BUCKETS):
    """Counts with contests between RANKS: in the first of `groups`, which has `share` of them, won
    by a curve with the first of `slopes`, and so on; `own` is how far those of buckets differ."""
    rng = np.random.default_rng(seed)
    a, b = (each.ravel() for each in np.meshgrid(RANKS, RANKS))
    a, b = a[a < b], b[a < b]
    pair = rng.integers(0, len(a), CLICKS)
    a, b = a[pair], b[pair]
    second = rng.random(CLICKS) >= share
    bucket = rng.integers(0, buckets, CLICKS)
    slope = np.where(second, slopes[1], slopes[0]) + own * rng.normal(size=buckets)[bucket]
    top = rng.random(CLICKS) < 1 / (1 + (b / a) ** slope)
    won, lost = np.where(top, a, b), np.where(top, b, a)
    if split == "queries":  # few among as many buckets as there are
        bucket = bucket * (QUERY_BUCKETS // buckets)
    zero = np.zeros(CLICKS, np.int64)
    splits = Splits(
        zero, zero + SPLITS.index(split), np.where(second, groups[1], groups[0]), bucket,
        half_octave_of(won), half_octave_of(lost), zero + UNIT,
        np.rint(np.log2(lost / won) * UNIT).astype(np.int64), zero,
    )  # fmt: skip
    return replace(simulate(100, 16, 1).counts, splits=splits.collapse())


def of(check, counts):
    return check.check(Data(counts, None, None))


DEPTH = float(np.mean(np.log(np.arange(1, 17))))  # of ranks 1 to 16, from the first


@pytest.mark.parametrize("more", [-0.3, 0.3])
def test_clicks_with_the_outcome(more):
    """In a quarter of the clicks, those without, the curve is what it is; the others' is steeper or
    flatter, which tells of one thing or of another."""
    found = of(outcome, contests("outcome", (-STEEPNESS, -STEEPNESS + more), share=0.25))
    mean, noise = found.numbers["mean_difference"], found.numbers["noise"]
    assert found.evidence.p_value < 1e-6
    assert np.sign(mean) == np.sign(more)
    assert ("lead nowhere prefer" in found.alarm) == (more > 0)
    assert ("lead somewhere prefer" in found.alarm) == (more < 0)
    assert np.sign(found.evidence.signs[KINDS].sum()) == np.sign(more)
    assert np.sign(found.evidence.signs[MOVES].sum()) == -np.sign(more)
    assert found.evidence.reach == pytest.approx(0.25 * (abs(mean) + 1.645 * noise), rel=0.05)


@pytest.mark.parametrize(("more", "objects"), [(0.3, True), (-0.3, False)])
def test_appearances_before_one_user(more, objects):
    """Only a steeper curve between users tells of docs that move because they are better."""
    found = of(users, contests("user", (-STEEPNESS, -STEEPNESS + more)))
    assert (found.evidence.p_value < 1e-6) is objects
    assert (found.evidence.p_value > 1 - 1e-6) is not objects
    assert (found.evidence.signs[MOVES].sum() > 3) == objects
    assert (found.evidence.signs[FEEDBACK].sum() > 3) != objects
    mean, noise = found.numbers["mean_difference"], found.numbers["noise"]
    assert found.evidence.reach == pytest.approx(abs(mean) + 1.645 * noise)


@pytest.mark.parametrize(("more", "objects"), [(-0.3, True), (0.3, False)])
def test_appearances_a_long_time_apart(more, objects):
    """Times within an hour in the one half, beyond a day in the other."""
    near, far = 64 * 8 + 3, 64 * 8 + 6
    rows = contests("score", (-STEEPNESS, -STEEPNESS + more), groups=(near, far))
    found = of(gaps, rows)
    assert (found.evidence.p_value < 1e-6) is objects
    assert (found.evidence.signs[MOVES].sum() > 3) == objects
    assert (found.evidence.signs[FEEDBACK].sum() > 3) != objects
    assert ("Over longer times the curve is steeper" in found.alarm) is objects


def test_times_that_are_not_known():
    rows = contests("score", (-STEEPNESS, -STEEPNESS), groups=(64 * 8 + 3, 64 * 8 + 3))
    with pytest.raises(NotIdentified, match="how far apart in time"):
        of(gaps, rows)


@pytest.mark.parametrize("more", [-0.3, 0.3])
def test_docs_that_are_clicked_more(more):
    found = of(relevance, contests("relevance", (-STEEPNESS, -STEEPNESS + more), groups=(12, 20)))
    mean, noise = found.numbers["mean_difference"], found.numbers["noise"]
    assert found.evidence.p_value < 1e-6 and np.sign(mean) == np.sign(more)
    assert ("the flatter its curve" in found.alarm) == (more > 0)
    assert np.sign(found.evidence.signs[KINDS].sum()) == np.sign(more)
    # From the least to the most relevant docs is three times the spread, which is half of 8 here.
    assert found.evidence.reach == pytest.approx(3 * (abs(mean) + 1.645 * noise))


@pytest.mark.parametrize("more", [-0.3, 0.3])
def test_searches_with_another_click(more):
    found = of(neighbours, contests("neighbours", (-STEEPNESS, -STEEPNESS + more)))
    assert found.evidence.p_value < 1e-6
    assert ("looks further down" in found.alarm) == (more > 0)
    assert not found.evidence.signs


def test_parts_that_are_alike_leave_little_open():
    for check, split in ((outcome, "outcome"), (users, "user"), (neighbours, "neighbours")):
        found = of(check, contests(split, (-STEEPNESS, -STEEPNESS), seed=2))
        assert found.evidence.p_value > 0.01
        assert found.evidence.size < 0.05 and found.evidence.reach < 0.12


@pytest.mark.parametrize("check", [outcome, users, neighbours, relevance, queries, gaps])
def test_a_log_without_the_column(check):
    with pytest.raises(NotIdentified):
        of(check, simulate(100, 16, 1).counts)


@pytest.mark.parametrize("check", [outcome, users])
def test_a_column_that_says_nothing_of_pairs_that_moved(check):
    counts = simulate(100, 16, 1).counts
    name = check.__name__.split(".")[-1].rstrip("s")
    for options, words in (({}, "no column"), ({name: "c"}, "known")):
        with pytest.raises(NotIdentified, match=words):
            of(check, replace(counts, options=options))


# -- queries ---------------------------------------------------------------------------------------


def test_queries_with_curves_of_their_own():
    """Slopes of buckets have the standard deviation 0.3, on odd days and on even days alike."""
    found = of(queries, contests("queries", (-STEEPNESS,) * 2, own=0.3, buckets=256))
    assert found.evidence.p_value < 1e-4
    assert np.log1p(found.evidence.size) == pytest.approx(0.3 * DEPTH, rel=0.15)
    assert f"{found.evidence.size:.0%} at a typical rank" in found.alarm
    assert found.numbers["queries"] == 256
    # Half of what 95% to one side leave open.
    spread = np.log1p(found.evidence.size) ** 2 + 1.645 * found.numbers["noise"] ** 2
    assert found.evidence.reach == pytest.approx(0.5 * np.sqrt(spread))
    root = found.numbers["noise"] ** 2 * found.numbers["statistic"]
    assert root == pytest.approx(np.log1p(found.evidence.size) ** 2)


def test_queries_with_one_curve():
    found = of(queries, contests("queries", (-STEEPNESS,) * 2, buckets=256, seed=3))
    assert 0.01 < found.evidence.p_value < 0.999 and found.evidence.reach < 0.1
    # What differs between days, but not between queries, is none of it.
    days = of(queries, contests("queries", (-0.5, -0.9), buckets=256, seed=3))
    assert days.evidence.p_value > 0.01


def test_queries_seen_on_one_day_only():
    with pytest.raises(NotIdentified, match="odd and on even days"):
        of(queries, contests("queries", (-STEEPNESS,) * 2, share=1.0))


def test_queries_at_as_few_blocks_of_ranks_as_can_be():
    """Two ranks are enough to compare; with one block there is nothing to."""
    counts = contests("queries", (-STEEPNESS,) * 2, own=0.3, buckets=256)
    table = counts.splits
    blocks = np.unique(table.clicked)
    two = table.take(np.isin(table.clicked, blocks[:2]) & np.isin(table.other, blocks[:2]))
    found = of(queries, replace(counts, splits=two))
    assert found.numbers["queries"] > 200
    one = two.take(two.clicked == blocks[0])  # which never loses: nothing parts it from the other
    with pytest.raises(NotIdentified, match="too few to tell queries apart"):
        of(queries, replace(counts, splits=one))


# -- the curve itself ------------------------------------------------------------------------------


def rates(impressions, clicks, ranks=(1, 2, 3)):
    table = ByRank([0] * 4, [1, 2, 3, 4], impressions, clicks)
    return SimpleNamespace(
        pooled=SimpleNamespace(by_rank=table),
        fitted=SimpleNamespace(likelihood=SimpleNamespace(ranks=np.array(ranks))),
    )


def test_how_far_a_single_click_is_off():
    """At 0.1 and 0.28 clicks an impression, by (1 - 0.1) / (1 - 0.28); rank 4 has no estimate."""
    found = click_probabilities.check(rates([100, 100, 0, 10], [10, 28, 0, 9]))
    assert found.verdict is CAUTION
    assert found.numbers["beyond_noise"] == pytest.approx(0.9 / 0.72 - 1)
    assert found.numbers["largest_rate"] == 0.28
    assert "28% of results at rank 2" in found.words and "off by 25%" in found.words
    rare = click_probabilities.check(rates([1000, 1000, 1000, 10], [10, 5, 1, 9]))
    assert rare.verdict is GOOD and rare.words == "At most 1.0% of results are clicked (rank 1)."
    assert rare.numbers["beyond_noise"] == pytest.approx(0.999 / 0.99 - 1)


def test_results_that_are_always_clicked_are_no_division_by_zero():
    found = click_probabilities.check(rates([100, 100, 100, 10], [100, 50, 50, 9]))
    assert found.numbers["beyond_noise"] == pytest.approx(0.5 / 0.01 - 1)
    empty = click_probabilities.check(rates([100, 100, 0, 10], [9, 9, 0, 9], ranks=(3,)))
    assert empty.numbers["largest_rate"] == 0 and "rank 0" in empty.words


def fitted(counts, curve):
    options = Options(curve=curve, reference=1)
    return Data(counts, options, fit(counts, options))


def wins(rows, buckets=32):
    """((rank, lower rank), clicks on the one, on the other), spread over buckets evenly."""
    return listed(
        [
            (((a, top), (b, not top)), k, many // buckets)
            for (a, b), *both in rows
            for top, many in zip((True, False), both, strict=True)
            for k in range(buckets)
        ],
        buckets=buckets,
    )


def test_wins_in_a_circle_by_hand():
    """1 over 2, 2 over 4 and 4 over 1, three times in four each: the best that propensities can do
    is that all are equal, and every pair of blocks is off by log 3 / 2 in its log odds to first
    order: 0.25 of share over a spread of 0.25."""
    rows = [((1, 2), 960, 320), ((2, 4), 960, 320), ((1, 4), 320, 960)]
    found = fit_of_blocks.check(fitted(wins(rows), "loglog(1, 2, 4)"))
    told = found.numbers
    assert told["expected"] == pytest.approx(0.5)
    assert abs(told["observed"] - 0.5) == pytest.approx(0.25)
    # One thing is wrong, a circle: what noise makes of each is 1/3 of 1 / (1280 / 4).
    assert told["beyond_noise"] == pytest.approx(
        np.expm1(np.sqrt(1.0 - 1 / (3 * 1280 / 4))), rel=1e-3
    )
    assert told["df"] == 1 and told["p_value"] < 1e-6
    assert found.evidence.p_value == told["p_value"]


@pytest.mark.parametrize(("more", "told"), [(0, True), (-2, False)])
def test_50_clicks_between_two_blocks_are_enough(more, told):
    """In two of the three pairs of blocks; it takes two."""
    rows = [((1, 2), 30, 20), ((2, 4), 30 + more, 20), ((1, 4), 10, 20)]
    found = fit_of_blocks.check(fitted(wins(rows, buckets=2), "loglog(1, 2, 4)"))
    assert (found.evidence is not None) is told
    if not told:
        assert found.verdict is CANNOT_TELL and found.wanted == "Add days."


def test_blocks_that_nothing_else_compares_fit_by_themselves():
    """Between ranks in a row any wins are those of some curve, however many: nothing is tested."""
    for many in (10**3, 10**6, 10**9):
        rows = [((k, 2 * k), (7 + k % 5) * many, 4 * many) for k in (1, 2, 4, 8, 16, 32)]
        found = fit_of_blocks.check(fitted(wins(rows), "loglog(1, 2, 4, 8, 16, 32, 64)"))
        assert found.verdict is CANNOT_TELL and not found.numbers


def test_the_noise_of_a_curve_that_is_too_stiff():
    jump = simulate(3000, 40, 1, curve=lambda r: np.where(np.asarray(r) > 25, 0.2, 1.0)).counts
    told = curve_shape.check(fitted(jump, "loglog(1, 40)")).numbers
    assert told["noise"] == pytest.approx(np.sqrt(np.mean(np.square(told["error"][1:]))))
    assert 0 < told["noise"] < 1


@pytest.mark.parametrize(
    ("found", "verdict"), [((None, 0.0), GOOD), ((5, 0.0), GOOD), ((5, 0.1), CAUTION)]
)
def test_a_period_must_pay(monkeypatch, found, verdict):
    monkeypatch.setattr(period, "best_period", lambda fit: found)
    told = period.check(SimpleNamespace(fitted=SimpleNamespace(fit=None)))
    assert told.verdict is verdict
    assert told.numbers == {"period": found[0], "gain": found[1]}


def test_pairs_that_moved_up_or_down_count_however_long_it_took():
    """An hour or a day between appearances: the comparison is the same."""
    counts = simulate(1500, 8, 1, drift=True).counts
    up = np.isin(counts.pairs.drift, direction.UP)
    assert up.any() and not up.all()
    told = []
    for way_up, way_down in ((1, 3), (2, 3), (1, 4)):
        pairs = replace(counts.pairs, drift=np.where(up, way_up, way_down))
        found = direction.check(fitted(replace(counts, pairs=pairs), "loglog(1, 3, 8)"))
        told.append((found.numbers["clicks"], found.numbers["mean_difference"]))
    assert told[1:] == [pytest.approx(told[0])] * 2 and told[0][0] > 100


def test_what_two_curves_have_in_common_is_no_noise_between_them(monkeypatch):
    """The posterior rests on the pairs that moved as well: of the variance of the plain curve, its
    own is in both, and the rest is what they differ by."""

    def curve(log_p, errors):
        return SimpleNamespace(
            ranks=np.array([1, 2]), reference=1, clicks=np.array([50, 50]),
            log_p=np.array([0.0, log_p]), deviations=np.diag([0.0, errors]),
            std_error=np.array([0.0, errors]),
        )  # fmt: skip

    monkeypatch.setattr(prior, "to_propensities", lambda *given: curve(-1.0, 0.5))
    monkeypatch.setattr(prior, "estimate_posterior", lambda *given: curve(-0.8, 0.3))
    counts = SimpleNamespace(options={"singles": {"prior": "known"}})
    data = SimpleNamespace(
        counts=counts, pooled=counts, fitted=None, options=SimpleNamespace(reference=1)
    )
    found = prior.check(data)
    assert found.numbers["noise"] == pytest.approx(np.sqrt(0.5**2 - 0.3**2))
    assert found.numbers["error"] == pytest.approx([0.0, found.numbers["noise"]])
    assert found.evidence.p_value == pytest.approx(0.61708, abs=1e-5)  # of 0.2 / 0.4
    assert "60% of that of the plain one" in found.words


# -- all of them -----------------------------------------------------------------------------------


def judged(*rows):
    """(p-value, worst, weight) of checks that each found 20%."""
    made = [Assumption(f"c{i}", "?", "", lambda data: None, worst=worst, weight=weight)
            for i, (_, worst, weight) in enumerate(rows)]  # fmt: skip
    found = [
        Finding(None, "words", "advice", {"n": 1}, "alarm", "wanted", Evidence(p, 0.2, 0.5))
        for p, *_ in rows
    ]
    return list(_judged(made, found))


def test_all_checks_together_are_taken_into_account():
    """Four at 0.02 each are 0.08 together, and one alone is 0.02."""
    assert [check.verdict for check in judged((0.02, SERIOUS, 1.0))] == [CAUTION]
    four = judged(*[(0.02, SERIOUS, 1.0)] * 4)
    assert [check.verdict for check in four] == [CANNOT_TELL] * 4
    weighty = judged((0.02, SERIOUS, 3.0), *[(0.9, SERIOUS, 0.5)] * 2)
    assert weighty[0].verdict is CAUTION


def test_checks_for_information_are_judged_alone_and_burden_no_other():
    found = judged((0.02, SERIOUS, 1.0), *[(0.03, GOOD, 1.0)] * 3)
    assert [check.verdict for check in found] == [CAUTION] * 4


def test_words_and_advice_follow_the_verdict():
    sure, unsure = judged((1e-6, SERIOUS, 1.0), (0.5, SERIOUS, 1.0))
    assert (sure.verdict, sure.words, sure.advice) == (SERIOUS, "alarm", "advice")
    assert (unsure.verdict, unsure.words, unsure.advice) == (CANNOT_TELL, "words", "wanted")
    assert unsure.numbers == {"n": 1, "reach": 0.5}
    plain = list(_judged([Assumption("c", "?", "", lambda data: None)],
                         [Finding(GOOD, "words", "advice", wanted="wanted")]))  # fmt: skip
    assert plain == [Check("c", GOOD, "words", "", {})]


@pytest.mark.parametrize(
    ("used", "each", "days"),
    [(16, 400, False), (17, 1000, True), (16, 399, True), (1, 400, False)],
)
def test_days_or_queries(used, each, days):
    """400 clicks in each bucket that has any, and no more than half of 32 have."""
    rows = [(((1, True), (2, False)), bucket, each) for bucket in range(used)]
    said = _more(listed(rows, buckets=32))
    assert (
        said == "Add days" if days else f"all {used * each:,} clicks are of about {used})" in said
    )


def test_numbers_that_are_not_known_are_none():
    check = Check(
        "fit", GOOD, "W.", "", {"a": np.inf, "b": [float("nan"), 1.5, 2], "c": {"d": 0.0}}
    )
    (told,) = Diagnosis((check,)).to_dict()["checks"]
    assert told["numbers"] == {"a": None, "b": [None, 1.5, 2], "c": {"d": 0.0}}


def test_a_diagnosis_in_short_names_what_objects():
    verdicts = {"fit": GOOD, "gaps": CAUTION, "users": SERIOUS, "score": CANNOT_TELL}
    found = Diagnosis(tuple(Check(name, verdict, "W.") for name, verdict in verdicts.items()))
    assert "4 checks" in repr(found) and "against it: gaps, users" in repr(found)
    assert "against" not in repr(Diagnosis((Check("fit", GOOD, "W."),)))


@pytest.mark.parametrize("queries", [300, 20_000])
def test_buckets_of_many_queries_do_not_pass_for_queries(queries):
    """Products within queries, from sums over buckets alone: right in the mean, where the products
    of the sums are too much, the more the more queries there are."""
    chance = np.random.default_rng(8)
    found, naive, true = 0.0, 0.0, 0.0
    for _ in range(20):
        odd, even = chance.gamma(0.5, size=queries) * chance.uniform(0.5, 1.5, (2, queries))
        bucket = chance.integers(4096, size=queries)
        sums = [np.bincount(bucket, each, 4096) for each in (odd, even)]
        found += within_queries(*sums)
        naive += float((sums[0] * sums[1]).sum())
        true += float(odd @ even)
    assert found == pytest.approx(true, rel=0.04)
    assert naive / true > (1.01 if queries == 300 else 2)


# -- support ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("thin", "verdict"), [(0, GOOD), (3, GOOD), (4, CANNOT_TELL)])
def test_a_curve_cannot_be_told_where_more_than_half_of_its_ranks_are_thin(thin, verdict):
    counts = simulate(300, 6, 3).counts
    terms = fit(counts, Options("loglog")).likelihood
    fitted = SimpleNamespace(likelihood=terms, supported=np.arange(6) < 6 - thin)
    found = support.check(SimpleNamespace(counts=counts, fitted=fitted))
    assert found.verdict == verdict and found.numbers["weak"] == list(range(7 - thin, 7))
