"""Leaves, rows a leaf, norm and clip are chosen by clicks that the trees did not see."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from support.clicklogs import curve, frame, matrix, power

from rankdrift.core.errors import BadOption
from rankdrift.ranking import choosing
from rankdrift.ranking.backends import Grown, LightGBM, Settings
from rankdrift.ranking.choosing import GRID, PAPER, SMALL, Capacity, candidates, choose
from rankdrift.ranking.gains import Shared, Weighting, ideal_dcg, weigh
from rankdrift.ranking.measures import measures
from rankdrift.ranking.ranker import Ranker
from rankdrift.ranking.training import train
from rankdrift.report.terminal.rankers import ranker_report

MANY = 10**6
P = curve(power(12))
# The same sums of doubles in another order.
ROUNDING = 1e-9


class OneFeature(LightGBM):
    """Scores by the first feature, upside down unless it has eight leaves; notes what it saw."""

    def __init__(self):
        self.seen = []

    def grow(self, train, valid, settings, each):
        self.seen.append((settings, set(train.matrix.query_keys.tolist()), train.gain.max()))
        return Grown(json.dumps(1.0 if settings.leaves == 8 else -1.0), settings.trees, ())

    def open(self, text):
        return json.loads(text)

    def predict(self, booster, x, features, trees):
        return booster * x[:, 0].astype(float)


@pytest.fixture
def rows():
    return matrix(frame(searches=900, queries=200)).only_clicked()


def printed(group):
    screen = Console(width=100, file=io.StringIO())
    screen.print(group)
    return screen.file.getvalue()


def chosen(rows, backend, wanted=(PAPER, SMALL), p=P, **more):
    told = []
    weighting = Weighting(p, None, "error", False)
    settings = Settings(trees=100, threads=1)
    found = choose(rows, wanted, weighting, settings, backend, each=None, say=told.append, **more)
    return found, told


def test_a_setting_is_worth_the_dcg_of_clicks_it_did_not_see(rows, monkeypatch):
    monkeypatch.setattr(choosing, "HOPELESS", 1e9)
    backend = OneFeature()
    found, told = chosen(rows, backend)
    assert found.capacity == SMALL and found.weighted and found.tried[0].behind == 0
    gain = weigh(rows, P).gain
    ideal = ideal_dcg(gain, rows.search, rows.n_searches).mean()
    for tried, sign in zip(found.tried, (1, -1), strict=True):
        dcg = measures(rows, sign * rows.x[:, 0].astype(float), gain)["weighted DCG"].value
        assert tried.value == pytest.approx(dcg / ideal, rel=ROUNDING)
    # Every query was left out once for each setting, and judged then.
    every = set(rows.query_keys.tolist())
    for setting in (backend.seen[::2], backend.seen[1::2]):
        out = [every - queries for _, queries, _ in setting]
        assert set.union(*out) == every and sum(map(len, out)) == len(every)
    assert {settings.trees for settings, _, _ in backend.seen} == {choosing.TREES}
    assert "2 settings" in told[0] and f"{2 * 2 * 0.4:.1f} times the work" in told[0]


def test_the_clip_is_of_what_is_learnt_and_not_of_what_judges(rows):
    backend = OneFeature()
    wanted = [Capacity(8, 20, True, None), Capacity(8, 20, True, 2.0)]
    found, _ = chosen(rows, backend, wanted)
    assert [top for *_, top in backend.seen] == [pytest.approx(12**0.7), 2.0] * 3
    # The same order is worth the same, whatever its training weighed; the first is taken.
    assert found.tried[0].value == found.tried[1].value and found.capacity == wanted[0]


def test_of_those_hardly_told_from_the_best_the_first_is_taken():
    rng = np.random.default_rng(0)
    base = rng.random(400) + 1
    noise = rng.normal(size=400)
    noise -= noise.mean()
    near, far = base - 0.02 + noise, base - 0.2 + noise
    for first, taken in ((near, 0), (far, 1)):
        found = choosing._best(GRID[:2], np.stack([first, base]), 1000.0, weighted=True)
        assert found.capacity == GRID[taken]
        assert found.tried[0].behind == 0 and found.tried[0].capacity == GRID[1]
        gap = (base - first).sum() / base.sum()
        assert found.tried[1].behind == pytest.approx(gap)
        assert found.tried[1].sd == pytest.approx(np.sqrt(400) * noise.std() / base.sum())


def test_a_setting_far_behind_is_given_up(rows):
    backend = OneFeature()
    found, _ = chosen(rows, backend)
    assert [settings.leaves for settings, *_ in backend.seen] == [31, 8, 8, 8]
    best, other = found.tried
    assert best.capacity == found.capacity == SMALL and other.behind > choosing.HOPELESS * other.sd
    assert other.value == pytest.approx(best.value * (1 - other.behind))


def test_weights_must_earn_their_place():
    rng = np.random.default_rng(0)
    base, noise = rng.random(400) + 1, rng.normal(size=400)
    noise -= noise.mean()
    for off, words in ((0.02, "is ahead by 1."), (-0.02, "is behind by 1.")):
        found = choosing._best(GRID[:2], np.stack([base - off + noise, base]), 1e3, weighted=True)
        assert found.capacity.clip == 1 and "no weights" in str(found.capacity)
        assert "weights do not pay here" in found.reason and words in found.reason
    found = choosing._best(GRID[:2], np.stack([base - 0.2 + noise, base]), 1e3, weighted=True)
    assert found.capacity == SMALL and "pay" not in found.reason
    # One that was given up is not taken, however little is known of how far it is behind.
    part = np.where(np.arange(400) < 130, base + noise, np.nan)
    assert choosing._best(GRID[:2], np.stack([part, base]), 1e3, weighted=True).capacity == SMALL
    # What is given is not told of.
    given = [Capacity(n, 20, True, 1.0) for n in (8, 31)]
    assert "pay" not in choosing._best(given, np.stack([base, base]), 1e3, weighted=True).reason


def test_trees_of_shared_rows_are_the_same(rows):
    shared, library = Shared(), LightGBM()
    for capacity in (Capacity(8, 200, True, 1.0), Capacity(31, 20, False, None)):
        lists = Weighting(P, capacity.clip, "error", False).weigh(rows)[0]
        settings = Settings(
            trees=3, threads=1, leaves=capacity.leaves, min_rows=capacity.min_rows,
            norm=capacity.norm,
        )  # fmt: skip
        apart, together = (
            library.grow(replace(lists, shared=given), None, settings, None).text
            for given in (None, shared)
        )
        trees = [text[text.index("\nTree=0") : text.index("end of trees")]
                 for text in (apart, together)]  # fmt: skip
        assert trees[0] == trees[1]
    assert list(shared) == ["lightgbm"]


def test_what_is_given_is_not_tried():
    whole = candidates({}, rows=MANY, weighted=True, counts_rows=True, fixed=False)
    assert whole == GRID and whole[1] == SMALL and PAPER in whole
    biased = candidates({}, rows=MANY, weighted=False, counts_rows=True, fixed=False)
    assert {c.clip for c in biased} == {None} and len(biased) == len(set(biased)) < len(GRID)
    other = candidates({"leaves": 5}, rows=MANY, weighted=True, counts_rows=False, fixed=False)
    assert {(c.leaves, c.min_rows) for c in other} == {(5, 0)}
    given = {"leaves": 5, "min_rows": 7, "norm": False, "clip": None}
    assert candidates(given, rows=9, weighted=True, counts_rows=True, fixed=False) == (
        Capacity(**given),
    )
    flat = candidates({}, rows=MANY, weighted=True, counts_rows=True, fixed=False, largest=5.0)
    assert {c.clip for c in flat} == {1.0, 3.0, None} and len(flat) == len(GRID) - 1
    few = candidates({}, rows=1000, weighted=True, counts_rows=True, fixed=False)
    assert max(c.min_rows for c in few) == 20
    assert candidates({"norm": True}, rows=1, weighted=True, counts_rows=True, fixed=True) == (
        Capacity(31, 20, True, None),
    )


def test_few_queries_get_small_trees_and_the_reason(tmp_path):
    grown = []
    made = train(matrix(frame()), propensities=P, trees=4, threads=1, each=grown.append)
    assert grown == [1, 2, 3, 4]
    assert made.options["leaves"] == SMALL.leaves and made.options["norm"]
    assert made.options["clip"] == SMALL.clip
    assert "54 queries with 243 clicks" in made.choice["reason"] and not made.choice["tried"]
    assert np.ptp(made.predict(matrix(frame()))) > 0  # and they are not so small as to be one leaf
    made.save(tmp_path / "m.txt")
    assert Ranker.load(tmp_path / "m.txt").choice == made.choice


@pytest.mark.parametrize(("queries", "enough"), [(90, False), (110, True)])
def test_a_hundred_queries_are_enough_to_choose_by(queries, enough):
    rows = matrix(frame(searches=2000, queries=queries)).only_clicked()
    assert rows.n_queries == queries and rows.n_clicks > 1000
    found = chosen(rows, OneFeature())[0]
    assert bool(found.tried) == enough
    assert enough or "90 queries" in found.reason


def test_train_chooses_says_so_and_uses_it(rows, monkeypatch):
    monkeypatch.setattr(choosing, "TREES", 3)
    told = []
    made = train(rows, propensities=P, leaves=6, min_rows=30, trees=5, threads=1, say=told.append)
    # Without norm and with it, which is also tried with clips 1 and 3: no weight comes near 10.
    assert len(made.choice["tried"]) == 4
    assert any("Choosing among 4 settings" in t for t in told)
    for name in ("leaves", "min_rows", "norm", "clip"):
        assert made.options[name] == made.choice[name]
    again = train(
        rows, propensities=P, fixed=True, trees=5, threads=1,
        **{name: made.options[name] for name in ("leaves", "min_rows", "norm", "clip")},
    )  # fmt: skip
    assert again.text == made.text and again.choice["reason"] == "as given"
    biased = train(rows, leaves=6, min_rows=30, trees=5, threads=1)
    assert not biased.choice["weighted"] and "position bias and all" in biased.choice["reason"]
    free = train(rows, propensities=P, clip=np.inf, trees=2, threads=1, leaves=6, min_rows=30)
    assert free.options["clip"] is None and {t["clip"] for t in free.choice["tried"]} == {None}
    bare = train(rows, propensities=P, clip=1, fixed=True, trees=2, threads=1)
    assert bare.text == train(rows, fixed=True, trees=2, threads=1).text
    assert "all 1, as without propensities" in printed(ranker_report(bare))


def test_xgboost_and_segments_choose_too(monkeypatch):
    monkeypatch.setattr(choosing, "TREES", 2)
    table = frame(searches=900, queries=200)
    rows = matrix(table, segment=table.platform)
    by = {("web",): curve(power(12, 0.3)), ("mobile",): curve(power(12, 1.1))}
    p = curve(power(12), segment_columns=("segment",), by_segment=by)
    made = train(rows, propensities=p, backend="xgboost", trees=2, leaves=8, threads=1)
    assert {(t["norm"], t["clip"]) for t in made.choice["tried"]} == {
        (True, None), (True, 10.0), (True, 3.0), (True, 1.0), (False, None),
    }  # fmt: skip
    assert {t["min_rows"] for t in made.choice["tried"]} == {0}
    with pytest.raises(BadOption, match="no propensities"):
        train(rows, clip=2, trees=2, threads=1)


def test_a_part_is_of_whole_queries(monkeypatch, rows):
    monkeypatch.setattr(choosing, "MOST_ROWS", len(rows) // 2)
    part = rows.take(choosing._part(rows, 1))
    assert 0.45 * len(rows) < len(part) <= len(rows) // 2
    sizes = {m: dict(zip(m.query_keys.tolist(), np.bincount(m.query), strict=True))
             for m in (rows, part)}  # fmt: skip
    assert all(sizes[rows][query] == n for query, n in sizes[part].items())
