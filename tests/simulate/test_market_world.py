"""What a marketplace sells: what moves a listing's rank, and what moves its relevance."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from rankdrift.simulate.market_world import (
    FEATURES,
    OFFERED,
    PRICE_CUT,
    Impressions,
    features,
    listed_and_sold,
    make_world,
    open_day,
    price,
    relevance,
    score,
    stock_shelf,
)

DAY = date(2024, 1, 3)
MANY = 60


@pytest.fixture(scope="module")
def world():
    return make_world(seed=1, click_rate=0.065, auctions=0.12, price_changes=0.3)


def shelf_at(world, moment, queries=40):
    query = np.arange(queries)
    today = open_day(world, DAY)
    return today, stock_shelf(world, today, query, np.full(queries, moment, np.float32), MANY)


def shown(world, shelf):
    """Every candidate of every query as if it were shown."""
    query, place = (index.ravel() for index in np.indices(shelf.slot.shape))
    return Impressions(
        query=query, place=place, doc=(50 * query + place) * 100_000 + shelf.listing.ravel(),
        slot=shelf.slot.ravel(), price=price(world, shelf).ravel(),
        popularity=shelf.popularity.ravel(), cut=shelf.cut.ravel(), ending=shelf.ending.ravel(),
        age=shelf.age.ravel(),
    )  # fmt: skip


def test_within_a_day_relevance_stays_while_popularity_moves_scores(world):
    (today, early), (_, late) = shelf_at(world, 0.2), shelf_at(world, 0.7)
    stays = (early.listing == late.listing) & (early.cut == late.cut)
    stays &= (early.ending == 0) & (late.ending == 0)
    z = [relevance(world, today, shown(world, s)).reshape(early.slot.shape) for s in (early, late)]
    assert stays.mean() > 0.5 and np.array_equal(z[0][stays], z[1][stays])
    no_taste = np.zeros(early.slot.shape, np.float32)
    moved = score(today, early, no_taste) != score(today, late, no_taste)
    assert moved[stays & early.offered & late.offered].mean() > 0.9


def test_a_price_cut_and_the_end_of_an_auction_raise_relevance(world):
    today, shelf = shelf_at(world, 0.95)
    there = shown(world, shelf)
    cut = there.cut & (there.ending == 0)
    ending = there.ending > 0
    assert cut.any() and ending.any() and not (cut & world.auction[there.slot]).any()
    assert world.auction[there.slot[ending]].all()
    z = relevance(world, today, there)
    plain = replace(there, cut=np.zeros_like(there.cut), ending=np.zeros_like(there.ending))
    before = relevance(world, today, plain)
    assert (z[cut | ending] > before[cut | ending]).all()
    assert np.array_equal(z[~cut & ~ending], before[~cut & ~ending])


def test_prices_fall_by_a_fifth(world):
    _, early = shelf_at(world, 0.0)
    _, late = shelf_at(world, 0.95)
    fell = ~early.cut & late.cut & (early.listing == late.listing)
    before, after = (price(world, s)[fell] for s in (early, late))
    assert fell.any() and after == pytest.approx(PRICE_CUT * before, abs=0.011)  # to the cent


def test_the_mean_relevance_at_the_best_place_is_the_click_rate(world):
    today, shelf = shelf_at(world, 0.0, queries=4000)
    there = shown(world, shelf)
    plain = replace(there, cut=np.zeros_like(there.cut), ending=np.zeros_like(there.ending))
    level = replace(today, season=np.zeros_like(today.season))
    z = relevance(world, level, plain)[there.place == 0]
    # 4,000 docs: the mean has a deviation of about 0.001.
    assert z.mean() == pytest.approx(0.065, abs=0.005)


def test_nothing_is_sold_before_it_is_listed(world):
    today, shelf = shelf_at(world, 0.5)
    listed, sold = listed_and_sold(world, today, shelf.slot.ravel(), shelf.listing.ravel())
    number, offered = DAY.toordinal(), shelf.offered.ravel()
    assert (listed <= number).all() and (sold >= listed).all()
    assert (sold[offered] >= number).all()
    assert offered.mean() == pytest.approx(OFFERED, abs=0.05)


def test_features_are_columns_of_numbers(world):
    today, shelf = shelf_at(world, 0.5)
    columns = features(world, today, shown(world, shelf))
    assert len(columns) == FEATURES
    assert all(
        column.shape == (shelf.slot.size,) and np.isfinite(column).all() for column in columns
    )
