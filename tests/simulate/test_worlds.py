"""The lab's worlds: the curve is right where they say so, and wrong, in the way they say, where
they do not."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rankdrift import estimate, harvest, read_log
from rankdrift.core.errors import BadOption
from rankdrift.simulate import world
from rankdrift.simulate.true_curves import steady
from rankdrift.simulate.worlds import WORLDS
from rankdrift.simulate.worlds.drawing import HARM
from rankdrift.simulate.worlds.scene import Change, Recipe, Shown, WorldKind, make_scene
from rankdrift.simulate.worlds.serving import serve

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"
VALID = [kind.name for kind in WORLDS if kind.valid]
BROKEN = [kind.name for kind in WORLDS if not kind.valid]
HARMFUL = [kind.name for kind in WORLDS if abs(kind.bias) > HARM]
HARMLESS = [name for name in BROKEN if name not in HARMFUL]
# Of some 400 errors looked at, none is so many standard errors off by chance.
SURE = 4.5
# A bias shows in one draw if it is made strong: that of bots, the least, at 4 standard errors or
# one more or less. Fewer than these may be luck.
STRONG, SHOWS = 3, 2.5
# Usable pairs of one draw of 4,000 vary by about 6% of it; so much was promised of their mean.
PROMISED = 0.15
# The share of searches with a click at rank 1, with some 130 queries: its deviation is 3%.
RATE = 0.08


def usable(made):
    """Pairs of a day that were clicked, and shown at two ranks or more."""
    rank, click, _, pair = by_pair(made)
    low, high = np.full(pair.max() + 1, 10**6), np.zeros(pair.max() + 1)
    np.minimum.at(low, pair, rank)
    np.maximum.at(high, pair, rank)
    return int(((low < high) & (np.bincount(pair, click) > 0)).sum())


def by_pair(made):
    """Of each row rank, click and true propensity; and the number of its pair of a day."""
    columns = made.columns
    day = (columns["day"] - columns["day"].min()).astype(int)
    pair = np.unique(columns["doc"].astype(np.int64) * 1000 + day, return_inverse=True)[1]
    return columns["rank"], columns["click"], made.truth[columns["rank"] - 1], pair


def tilt(made):
    """By how much log p would be too steep or too flat, per log rank, and its standard error.

    One step of Newton's method from the truth along log rank, from Eq. (3), log-like: of all that
    an estimate could get wrong the largest part, without an estimator.
    """
    rank, click, p, pair = by_pair(made)
    x = np.log(rank)
    clicks, weight, mean, square = (
        np.bincount(pair, values) for values in (click, p, p * x, p * x * x)
    )
    mean, square = mean / weight, square / weight
    score = np.bincount(pair, click * (x - mean[pair]))
    information = (clicks * (square - mean**2)).sum()
    return score.sum() / information, np.sqrt((score**2).sum()) / information


def frame(made):
    return pa.table(dict(made.columns))


@pytest.mark.slow
@pytest.mark.parametrize("name", VALID)
def test_the_truth_comes_back_where_assumptions_hold(name):
    made = world(name, pairs=20_000, columns=())
    found = estimate(harvest(read_log(frame(made), time="time")), curve="direct")
    off = found.log_p - np.log(made.truth[found.ranks - 1])
    below = (found.ranks > 1) / (found.ranks > 1).sum()
    error = np.sqrt(below @ found.covariance @ below)
    assert len(off) == 40 and made.valid and not made.harmful
    assert abs(below @ off) < SURE * error
    held = np.abs(off) <= SURE * found.std_error
    assert held[found.supported].all()


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMFUL)
def test_the_curve_is_off_in_the_stated_direction(name):
    found = [world(name, pairs=40_000, strength=STRONG, columns=(), seed=s) for s in (1, 2)]
    off, error = np.transpose([tilt(made) for made in found])
    made = found[0]
    assert not made.valid and made.harmful
    assert off.sum() * np.sign(made.bias) > SHOWS * np.sqrt((error**2).sum())


@pytest.mark.parametrize("name", HARMLESS)
def test_some_broken_assumptions_do_no_harm(name):
    made = world(name, pairs=20_000, columns=())
    off, error = tilt(made)
    assert not made.valid and not made.harmful
    assert abs(off) < SURE * error


@pytest.mark.parametrize("name", BROKEN)
def test_at_strength_0_nothing_goes_wrong(name):
    """Relevance stays, no click moves a rank, and clicks follow Eq. (1), prob-click."""
    kind = WORLDS.get(name)
    p = steady(np.arange(1.0, 11))
    scene = make_scene(kind.recipe, p, np.ones(5), 2, 300, (1,))
    change = kind.happens(scene, 0)
    assert change.boost == 0
    assert change.log_z is None or not change.log_z.any()
    if change.look:
        chances = []

        class Noted(Shown):
            def draw(self, chance):
                chances.append(np.broadcast_to(chance, self.z.shape))
                return super().draw(chance)

        item = np.tile(np.arange(10), (300, 1))
        z = np.exp(scene.log_z[scene.query[:, None], item])
        shown = Noted(scene, np.random.default_rng(1), np.arange(300), item, z, z * p)
        looked = change.look(shown)
        assert chances[0] == pytest.approx(z * p, rel=1e-5)
        assert all(not more.any() for more in chances[1:])  # nobody stops
        truth = p if looked.truth is None else looked.truth
        assert truth == pytest.approx(p, rel=1e-5)
        assert looked.genuine is None or (looked.genuine == 1).all()
    assert world(name, pairs=200, strength=0).valid


def test_a_seed_makes_the_same_arrays_every_time():
    first, again, other = (world("personalised", pairs=500, seed=seed) for seed in (1, 1, 2))
    assert first.columns.keys() == again.columns.keys()
    for name, values in first.columns.items():
        assert np.array_equal(values, again.columns[name])
    assert np.array_equal(first.truth, again.truth)
    assert first.clicks != other.clicks


@pytest.mark.parametrize("name", WORLDS.names)
def test_as_many_usable_pairs_as_asked_for(name):
    found = np.mean([usable(world(name, pairs=4_000, seed=s, columns=())) for s in (1, 2)])
    assert found == pytest.approx(4_000, rel=PROMISED)


def test_pairs_are_found_whatever_else_is_asked_for():
    for more in ({"queries": 400}, {"days": 2}, {"ranks": 15}, {"curve": lambda r: r**-0.3}):
        made = world("valid", pairs=4_000, columns=(), **more)
        assert usable(made) == pytest.approx(4_000, rel=PROMISED), more
    assert usable(world("trust", pairs=60, columns=())) == pytest.approx(60, rel=0.5)  # few vary


@pytest.fixture(scope="module")
def made():
    return world("price-cuts", pairs=3_000, columns=("score", "ranker", "user", "outcome"))


def grid(made, name):
    """(searches, ranks)"""
    return made.columns[name].reshape(-1, len(made.truth))


def test_a_search_shows_each_rank_once_in_the_order_of_scores(made):
    assert (grid(made, "rank") == np.arange(1, 41)).all()
    assert (np.diff(grid(made, "score"), axis=1) <= 0).all()
    assert all(len(set(docs)) == 40 for docs in grid(made, "doc"))
    for name in ("search", "day", "time", "query", "ranker", "user"):
        assert (grid(made, name) == grid(made, name)[:, :1]).all(), name


def test_searches_come_in_the_order_of_time_over_six_days(made):
    time = grid(made, "time")[:, 0]
    assert (np.diff(time) >= np.timedelta64(0)).all()
    assert np.array_equal(time.astype("datetime64[D]"), grid(made, "day")[:, 0])
    assert len(np.unique(made.columns["day"])) == 6
    assert len(np.unique(made.columns["search"])) == len(time)


def test_users_come_back_and_both_rankers_are_used(made):
    _, often = np.unique(grid(made, "user")[:, 0], return_counts=True)
    assert 3 < often.mean() < 30
    share = (made.columns["ranker"] == "A").mean()
    assert set(made.columns["ranker"]) == {"A", "B"} and 0.4 < share < 0.6


def test_rankers_differ_in_a_docs_usual_rank_and_searches_in_its_rank():
    plain = world("valid", pairs=20_000).columns
    doc, rank = plain["doc"], np.log(plain["rank"])
    by_arm = []
    for arm in "AB":
        of = plain["ranker"] == arm
        many = np.bincount(doc[of], minlength=doc.max() + 1)
        total = np.bincount(doc[of], rank[of], minlength=doc.max() + 1)
        by_arm.append(np.where(many > 10, total / np.maximum(many, 1), np.nan))
    apart = np.nanstd(by_arm[0] - by_arm[1])
    assert 0.15 < apart < 0.5  # the scores differ by 0.3
    spread = np.sqrt(np.nanmean((rank - by_arm[0][doc])[plain["ranker"] == "A"] ** 2))
    assert 0.1 < spread < 0.4  # Appendix D has a fifth of the rank


def test_outcomes_follow_clicks_and_better_docs_have_more():
    plain = world("valid", pairs=20_000).columns
    assert not plain["outcome"][plain["click"] == 0].any()
    clicks = np.bincount(plain["doc"], plain["click"])
    bought = np.bincount(plain["doc"], plain["outcome"])
    few, many = (which & (clicks > 0) for which in (clicks <= 2, clicks >= 6))
    assert bought[few].sum() / clicks[few].sum() < 0.9 * bought[many].sum() / clicks[many].sum()


def test_prices_fall_at_most_once_a_day_and_docs_rise_then(made):
    columns = made.columns
    day = columns["day"].astype(int)
    both = columns["doc"].astype(np.int64) * 100_000 + day
    order = np.lexsort((columns["time"], both))
    same = np.diff(both[order]) == 0
    steps = np.diff(columns["price"][order])[same]
    assert (steps <= 0).all() and (steps < 0).any()
    rose = np.diff(columns["score"][order])[same]
    assert rose[steps < 0].mean() > rose[steps == 0].mean() + 0.3  # by 0.5, but for the drift


def test_the_same_price_puts_price_worlds_right():
    for name in ("price-cuts", "prices-both-ways"):
        drawn = world(name, pairs=20_000, strength=2, columns=())
        off, error = tilt(drawn)
        price = np.unique(drawn.columns["price"], return_inverse=True)[1]
        doc = drawn.columns["doc"].astype(np.int64) * 1_000_000 + price
        _, doc = np.unique(doc, return_inverse=True)
        split = type(drawn)(**{**vars(drawn), "columns": {**drawn.columns, "doc": doc}})
        mended, its_error = tilt(split)
        assert off < -SURE * error
        assert abs(mended) < SURE * its_error


def test_a_listing_that_ends_is_another_doc():
    for name in ("auctions", "fresh"):
        columns = world(name, pairs=2_000, columns=()).columns
        plain = world("valid", pairs=2_000, columns=()).columns
        queries = len(np.unique(columns["query"]))
        of_query = len(np.unique(columns["doc"])) / queries
        assert of_query > 1.3 * len(np.unique(plain["doc"])) / queries


def test_a_click_raises_its_doc():
    drawn = world("clicks-move-ranks", pairs=4_000, strength=10).columns
    still = world("clicks-move-ranks", pairs=4_000, strength=0).columns

    def rise(columns):
        pair = columns["doc"].astype(np.int64) * 10 + columns["day"].astype(int) % 7
        late = columns["time"] - columns["day"] > np.timedelta64(12, "h")
        size = pair.max() + 1
        mean = {}
        for part, which in (("early", ~late), ("late", late)):
            many = np.bincount(pair[which], minlength=size)
            total = np.bincount(pair[which], columns["score"][which], minlength=size)
            mean[part] = np.where(many > 0, total / np.maximum(many, 1), np.nan)
        clicked = np.bincount(pair[~late], columns["click"][~late], minlength=size) > 0
        return np.nanmean((mean["late"] - mean["early"])[clicked])

    assert rise(drawn) > rise(still) + 0.1


@pytest.mark.parametrize("columns", [(), ("user",), ("platform", "score"), "outcome"])
def test_columns_are_logged_as_asked_for(columns):
    usual = ["search", "day", "time", "query", "doc", "rank", "click"]
    wanted = [columns] if isinstance(columns, str) else list(columns)
    made = world("valid", pairs=200, columns=columns)
    assert list(made.columns) == usual + wanted
    assert {len(values) for values in made.columns.values()} == {made.rows}
    cut = world("price-cuts", pairs=200, columns=columns)
    assert list(cut.columns) == [*usual, "price", *wanted]


def test_truths_that_are_averages():
    dips = world("dips-unsegmented", pairs=2_000, columns=("platform",))
    web, mobile = dips.parts["web"], dips.parts["mobile"]
    share = (dips.columns["platform"] == "web").mean()
    assert dips.truth == pytest.approx(share * web + (1 - share) * mobile, rel=1e-5)
    assert (mobile[[9, 19]] < 0.6 * web[[9, 19]]).all()
    trust = world("trust", pairs=200)
    alpha, beta = trust.parts["alpha"], trust.parts["beta"]
    assert trust.truth == pytest.approx(alpha / alpha[0])
    assert alpha + beta == pytest.approx(steady(np.arange(1.0, 41)))
    assert beta[0] > 10 * beta[9] > 0
    classes = world("classes", pairs=500).parts
    assert (classes["navigational"][1:] < classes["exploratory"][1:]).all()
    cascade = world("cascade", pairs=500)
    assert (cascade.truth[1:] < steady(np.arange(2.0, 41))).all()


def test_each_segment_of_the_dips_has_its_own_truth():
    drawn = world("dips-unsegmented", pairs=20_000, columns=("platform",))
    for name, curve in drawn.parts.items():
        of = drawn.columns["platform"] == name
        part = {key: values[of] for key, values in drawn.columns.items()}
        off, error = tilt(type(drawn)(**{**vars(drawn), "columns": part, "truth": curve}))
        assert abs(off) < SURE * error


def test_worlds_are_as_extreme_as_their_names():
    large = world("large-clicks", pairs=8_000, columns=())
    assert grid(large, "click")[:, 0].mean() == pytest.approx(0.45, abs=RATE)
    plain, heads, few = (
        world(name, pairs=8_000, columns=()) for name in ("valid", "heads", "few-queries")
    )

    def most_shown(made):
        *_, pair = by_pair(made)
        return np.bincount(pair).max()

    assert most_shown(heads) > 100 > most_shown(plain)
    assert len(np.unique(few.columns["query"])) < len(np.unique(plain.columns["query"])) / 10
    assert world("steep", pairs=200).truth[-1] < 0.2 * plain.truth[-1]


def test_the_top_is_thin():
    def moves(made):
        """Share of a pair's appearances at rank 1 to 3 that are elsewhere on the same day."""
        rank, _, _, pair = by_pair(made)
        top = np.bincount(pair, rank <= 3)
        return np.minimum(top, np.bincount(pair) - top).sum() / top.sum()

    plain, thin = (world(name, pairs=8_000, columns=()) for name in ("valid", "thin-top"))
    assert moves(thin) < 0.6 * moves(plain)


def test_files_are_a_log_with_its_truth_beside_it(made, tmp_path):
    paths = made.write(tmp_path)
    days = np.unique(made.columns["day"])
    assert [path.name for path in paths] == [f"world-{day}.parquet" for day in days]
    told = json.loads((tmp_path / "truth.json").read_text())
    assert told["propensities"] == pytest.approx(made.truth, abs=1e-6)
    assert (told["world"], told["valid"]) == ("price-cuts", False)
    assert told["options"]["pairs"] == 3_000
    one = made.write(tmp_path / "one", by_day=False)
    assert [path.name for path in one] == ["world.parquet"]
    counts = harvest(read_log(frame(made), time="time"))
    for source in (tmp_path / "one", [*paths]):
        assert harvest(read_log(source, time="time")).equals(counts)
    before = [path.read_bytes() for path in paths]
    made.write(tmp_path)
    assert [path.read_bytes() for path in paths] == before


def test_a_world_of_ones_own():
    def worse(scene, strength):
        return Change(log_z=np.full(scene.shape, -strength, np.float32))

    own = WorldKind("own", "All docs are worse.", valid=True, happens=worse, recipe=Recipe(days=2))
    with WORLDS.registered(own):
        made = world("own", pairs=500, columns=())
        assert len(np.unique(made.columns["day"])) == 2
        twice = world("own", pairs=500, strength=2, columns=())
        assert twice.clicks / twice.rows < 0.6 * made.clicks / made.rows
    with pytest.raises(BadOption, match="No world 'own'"):
        world("own")


def test_clicks_move_ranks_in_no_world_that_looks_in_its_own_way():
    with pytest.raises(ValueError, match="not both"):
        Change(boost=0.1, look=lambda shown: None)


def test_no_score_is_lost_in_serving():
    """What a world adds to scores and log z is what docs are sorted by and clicked for."""
    scene = make_scene(Recipe(drift=0.0), np.ones(5), np.ones(3), 1, 50, (1,))
    score = np.tile(np.arange(7.0, dtype=np.float32) * 100, (50, 1))
    log_z = np.where(np.arange(7) == 6, 5, -50).astype(np.float32) * np.ones((50, 1), np.float32)
    served = serve(scene, Change(score=score, log_z=log_z), (1,))
    assert (served.item == [6, 5, 4, 3, 2]).all()
    assert served.looked.click[:, 0].mean() > 0.7 and not served.looked.click[:, 1:].any()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": "price-cut"}, "Did you mean 'price-cuts'"),
        ({"pairs": 0}, "pairs is 0, but must be at least 1"),
        ({"ranks": 1}, "ranks is 1, but must be at least 2"),
        ({"seed": -1}, "seed is -1, but must be at least 0"),
        ({"name": "bots", "strength": -1}, "strength is -1: use 0"),
        ({"strength": 2}, "'valid' has nothing that could be stronger"),
        ({"columns": ["scores"]}, "Did you mean 'score'"),
        ({"queries": 10}, r"show 3,360 pairs at most.*20\.8 times as many queries"),
        ({"curve": [1.0, 0.5]}, "one number for each of 40 ranks"),
        ({"curve": lambda ranks: ranks}, "at most 1 at every rank"),
    ],
)
def test_options_that_cannot_be(wrong, says):
    with pytest.raises(BadOption, match=says):
        world(**{"name": "valid", **wrong})


def test_the_page_tells_of_every_world():
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.+?) \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.M
    )
    assert {name: sentence for name, sentence, _ in rows} == {k.name: k.sentence for k in WORLDS}
    for name, _, told in rows:
        mean, error = (float(number.replace("−", "-")) for number in told.split(" ± "))
        kind = WORLDS.get(name)
        if kind.valid:
            assert kind.bias == 0 and abs(mean) < SURE * error
        else:
            assert kind.bias == pytest.approx(mean, abs=0.006)  # written with two digits
