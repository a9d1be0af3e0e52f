"""What a made-up marketplace sells: slots with listings that come, change and go.

A query's candidates are the slots from 50 times its number on, so that neighbouring queries share
docs. A slot holds one listing after the other; the doc is the slot and the number of the listing.
Most of what a slot does is looked up in tables of SLOTS rows, so that memory does not grow with
the market; slots that share a row differ in what hangs on their hash: docs, features, relevance.

Within one day, at one price, the relevance z of a fixed-price doc for a query does not change,
while popularity and the taste of the visitor move its rank: this is the drift that tells
propensities. A price cut, the end of an auction and the season change z and the rank together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.simulate.hashing import mix

Singles = NDArray[np.float32]

SLOTS = 1 << 16  # rows of the tables
CANDIDATES = 700  # slots that a query finds
SHARED = 50  # the next query's candidates begin this much further on
FEATURES = 25
MATCH, ITEM = 12, 8  # features of query and doc together, and of the doc alone
LISTINGS = 100_000  # more than any slot ever has; doc = slot * LISTINGS + listing
OFFERED = 0.94  # share of the time that a slot has a listing on offer

# What moves the ranker's score, in units of the log of a place.
POPULARITY, TASTE, SEASON, CUT, ENDING = 0.35, 0.35, 0.5, 0.5, 1.2
# What the same does to the logit of relevance. Popularity and taste: nothing.
Z_SEASON, Z_CUT, Z_ENDING = 0.9, 0.9, 2.5
Z_PLACE = 0.2  # the production ranker is no fool: better places are more relevant
HIDDEN = 0.5  # deviation of what no feature tells
FEWEST = 20  # candidates that a query has, however rare
PRICE_CUT = 0.8


@dataclass(frozen=True)
class World:
    """Tables that follow from the seed. (S,) has S = SLOTS rows, one a slot.

    life (S,) days from one listing to the next, phase (S,); waves (2, S) speed and (2, S) start of
    popularity; season_length, season_start (S,); auction (S,); log_price (S,); cut_at (S,) time of
    day of a price cut, 2 for none; match (S, MATCH), item (S, ITEM), normal (S,), standard normal;
    match_worth, item_worth (S,), their part in the logit of relevance; base: its constant.
    candidate_spread, level_spread, hidden_knowledge: how queries differ, as of `market`.
    """

    life: Floats
    phase: Floats
    speed: Floats
    start: Floats
    season_length: Floats
    season_start: Floats
    auction: Bools
    log_price: Singles
    cut_at: Singles
    match: Singles
    item: Singles
    normal: Singles
    match_worth: Singles
    item_worth: Singles
    base: float
    seed: int
    candidate_spread: float = 0.0
    level_spread: float = 0.0
    hidden_knowledge: float = 0.0


@dataclass(frozen=True)
class Today:
    """The slots on one day, all (S,) float32 but listing and turn (int64): the share of its life
    that a slot has behind it at midnight, how fast that grows in a day, popularity's place and
    speed (2, S), the season, the time of a price cut, the listing on offer at midnight, and the how
    manieth of the slot that is."""

    share: Singles
    rate: Singles
    place: Singles
    speed: Singles
    season: Singles
    cut_at: Singles
    listing: Ints
    turn: Ints


@dataclass(frozen=True)
class Shelf:
    """Candidates of N searches at their moments, each (N, M)."""

    slot: NDArray[np.uint16]  # row of the tables
    listing: Ints
    offered: Bools
    popularity: Singles  # between -1 and 1
    cut: Bools
    ending: Singles  # from 0 to 1 over the last day of an auction
    age: Singles  # days


def make_world(
    seed: int,
    click_rate: float,
    auctions: float,
    price_changes: float,
    *,
    candidate_spread: float = 0.0,
    level_spread: float = 0.0,
    hidden_knowledge: float = 0.0,
) -> World:
    """The tables of a market; all options are those of `market`."""
    random = np.random.default_rng([seed, SLOTS])
    auction = random.random(SLOTS) < auctions
    life = np.where(auction, random.uniform(1.5, 4, SLOTS), random.lognormal(3.0, 0.6, SLOTS))
    cut = random.random(SLOTS) < price_changes
    match = random.standard_normal((SLOTS, MATCH), dtype=np.float32)
    item = random.standard_normal((SLOTS, ITEM), dtype=np.float32)
    normal = random.standard_normal(SLOTS, dtype=np.float32)
    match_worth = (
        0.5 * match[:, 0] + 0.5 * np.maximum(match[:, 3], 0) + 0.3 * match[:, 7] * match[:, 8]
    )
    item_worth = 0.4 * item[:, 0] + 0.5 * (item[:, 2] > 0.8) + 0.25 * item[:, 3] * item[:, 4]
    spread = match_worth + np.roll(item_worth, 1) + HIDDEN * np.roll(normal, 2)
    return World(
        life=np.maximum(life, 1.5),
        phase=random.uniform(0, 1000, SLOTS),
        speed=np.stack([random.uniform(0.3, 1.2, SLOTS), random.uniform(1.5, 4, SLOTS)]),
        start=random.random((2, SLOTS)),
        season_length=random.uniform(4, 10, SLOTS),
        season_start=random.random(SLOTS),
        auction=auction,
        log_price=random.normal(3.4, 0.9, SLOTS).astype(np.float32),
        cut_at=np.where(cut, random.uniform(0.1, 0.9, SLOTS), 2).astype(np.float32),
        match=match,
        item=item,
        normal=normal,
        match_worth=match_worth,
        item_worth=item_worth,
        base=_constant(spread.astype(float), click_rate),
        seed=seed,
        candidate_spread=candidate_spread,
        level_spread=level_spread,
        hidden_knowledge=hidden_knowledge,
    )


def _constant(spread: Floats, click_rate: float) -> float:
    """The a for which sigmoid(a + spread) has the mean `click_rate`, by halving."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        too_many = sigmoid(middle + spread).mean() > click_rate
        low, high = (low, middle) if too_many else (middle, high)
    return low


def open_day(world: World, day: date) -> Today:
    """What the slots are like on a day."""
    number = day.toordinal()
    lived = (number + world.phase) / world.life
    turn = np.floor(lived).astype(np.int64)
    # Which slots cut their price changes from day to day.
    cut_at = np.roll(world.cut_at, number * 7919 % SLOTS)
    return Today(
        share=(lived % 1).astype(np.float32),
        rate=(1 / world.life).astype(np.float32),
        place=((number * world.speed + world.start) % 1).astype(np.float32),
        speed=world.speed.astype(np.float32),
        season=_wave((number / world.season_length + world.season_start).astype(np.float32) % 1),
        cut_at=np.where(world.auction, np.float32(2), cut_at),
        listing=turn % LISTINGS,
        turn=turn,
    )


def stock_shelf(world: World, today: Today, query: Ints, moment: Singles, many: int) -> Shelf:
    """The first `many` candidates of each query (N,) at its moment (N,), a share of the day."""
    slot = ((SHARED * query)[:, None] + np.arange(many)).astype(np.uint16)
    now = moment[:, None]
    lived = today.share[slot] + now * today.rate[slot]
    over = lived >= 1
    lived -= over
    left = (OFFERED - lived) / today.rate[slot]
    popularity = _wave((today.place[0][slot] + now * today.speed[0][slot]) % 1)
    popularity += 0.7 * _wave((today.place[1][slot] + now * today.speed[1][slot]) % 1)
    found = np.arange(many) < _candidates(world, query)[:, None]
    return Shelf(
        slot=slot,
        listing=today.listing[slot] + over,
        offered=(lived < OFFERED) & found,
        popularity=popularity,
        cut=now >= today.cut_at[slot],
        ending=np.where(world.auction[slot], np.clip(1 - left, 0, 1), np.float32(0)),
        age=np.asarray(lived / today.rate[slot]),
    )


def _candidates(world: World, query: Ints) -> Ints:
    """(N,): how many slots each query finds: most for common words, few for rare ones."""
    share = np.exp(-world.candidate_spread * np.abs(_of_query(world, query, 1)))
    return np.maximum(np.round(CANDIDATES * share), FEWEST).astype(np.int64)


def _of_query(world: World, query: Ints, what: int) -> Singles:
    """(N,): a standard normal number of each query; what: which of them."""
    return world.normal[mix(mix(np.uint64(world.seed), np.array([what])), query).astype(np.uint16)]


def known_to_ranker(world: World, query: Ints, shelf: Shelf) -> Singles:
    """(N, M): what the ranker adds to its score because it knows what no feature tells."""
    doc = docs(query[:, None], np.arange(shelf.slot.shape[1]), shelf.listing)
    pair = mix(mix(np.uint64(world.seed), doc), query[:, None])
    unseen = world.normal[(pair >> np.uint64(16)).astype(np.uint16)]
    return np.float32(world.hidden_knowledge) * unseen


def docs(query: Ints, place: Ints, listing: Ints) -> Ints:
    """The doc that is the candidate of a query at a place."""
    return (SHARED * query + place) * LISTINGS + listing


def listed_and_sold(
    world: World, today: Today, slot: NDArray[np.uint16], listing: Ints
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(N,) each: the days, as ordinals, on which a listing was put up and on which it was sold."""
    life = world.life[slot]
    start = (today.turn[slot] + listing - today.listing[slot]) * life - world.phase[slot]
    return start.astype(np.int32), (start + OFFERED * life).astype(np.int32)


def log_place(many: int) -> Singles:
    """What the production ranker makes of a candidate by itself, best first."""
    return -np.log(np.arange(many, dtype=np.float32) + 3)


def score(today: Today, shelf: Shelf, taste: Singles) -> Singles:
    """The production ranker's score (N, M); -inf where nothing is on offer."""
    found = log_place(shelf.slot.shape[1]) + POPULARITY * shelf.popularity + TASTE * taste
    found += SEASON * today.season[shelf.slot] + CUT * shelf.cut + ENDING * shelf.ending
    return np.where(shelf.offered, found, np.float32(-np.inf))


def price(world: World, shelf: Shelf) -> Singles:
    """(N, M), in the currency of the place; a new listing has a price of its own."""
    own = world.normal[(shelf.slot + 31 * shelf.listing) % SLOTS]
    full = np.exp(world.log_price[shelf.slot] + 0.3 * own)
    return np.asarray(np.round(np.where(shelf.cut, np.float32(PRICE_CUT), 1) * full, 2))


@dataclass(frozen=True)
class Impressions:
    """What was shown, (N,) each: the query, the candidate's place (from 0), and its state then."""

    query: Ints
    place: Ints
    doc: Ints
    slot: NDArray[np.uint16]
    price: Singles
    popularity: Singles
    cut: Bools
    ending: Singles
    age: Singles


def relevance(world: World, today: Today, shown: Impressions) -> Singles:
    """z (N,), the chance of a click on a result that is looked at."""
    pair, doc = _rows_of(world, shown)
    logit = world.match_worth[pair[0]] + world.item_worth[doc] + HIDDEN * world.normal[pair[1]]
    logit += Z_SEASON * today.season[shown.slot] + Z_CUT * shown.cut + Z_ENDING * shown.ending
    places = log_place(CANDIDATES)
    logit += Z_PLACE * (places - places[0])[shown.place]
    return sigmoid(logit + np.float32(world.base))


def features(world: World, today: Today, shown: Impressions) -> list[Singles]:
    """FEATURES columns (N,): match, item, then price, popularity, age, season and query."""
    pair, doc = _rows_of(world, shown)
    places = log_place(CANDIDATES)
    quality = ((places - places.mean()) / places.std())[shown.place]
    quality = quality + np.float32(world.level_spread) * _of_query(world, shown.query, 2)
    match, item = world.match[pair[0]].T, world.item[doc].T
    loading = np.maximum(0.8 - 0.1 * np.arange(MATCH, dtype=np.float32), 0)
    columns = [a * quality + np.sqrt(1 - a * a) * x for a, x in zip(loading, match, strict=True)]
    columns += [np.ascontiguousarray(x) for x in item]
    columns += [
        np.log(shown.price),
        shown.popularity,
        np.log1p(shown.age),
        today.season[shown.slot],
        np.log1p(shown.query.astype(np.float32)),
    ]
    return columns


def _rows_of(
    world: World, shown: Impressions
) -> tuple[tuple[NDArray[np.uint16], NDArray[np.uint16]], NDArray[np.uint16]]:
    """Rows of the tables that the pair (two of them) and the doc draw."""
    doc = mix(np.uint64(world.seed), shown.doc)
    pair = mix(doc, shown.query)
    return (pair.astype(np.uint16), (pair >> np.uint64(16)).astype(np.uint16)), (
        doc >> np.uint64(32)
    ).astype(np.uint16)


def sigmoid(x: NDArray[np.floating]) -> NDArray[np.floating]:
    """The chance with these log odds."""
    return np.asarray(1 / (1 + np.exp(-x)))


def _wave(turns: Singles) -> Singles:
    """From -1 to 1 and back over one turn, in straight lines."""
    return np.abs(4 * turns - 2) - 1
