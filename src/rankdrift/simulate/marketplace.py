"""A whole marketplace: a realistic impressions log, a Parquet file a day, with its truth beside it.

Clicks follow Eq. (1), prob-click: P(click) = p_rank * z. See market_world for what z and ranks
follow from, and market_visits for who searches.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.days import iso_day
from rankdrift.core.errors import BadOption
from rankdrift.core.files import folder_for, write_text
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats, Indices
from rankdrift.core.words import many
from rankdrift.log.sources import TRUTH
from rankdrift.simulate.days import Chunk, split_days, write_day
from rankdrift.simulate.market_visits import (
    PLATFORMS,
    SORTS,
    Visits,
    clock,
    popularity,
    visit,
)
from rankdrift.simulate.market_world import (
    CANDIDATES,
    FEATURES,
    Impressions,
    Shelf,
    Today,
    World,
    docs,
    features,
    known_to_ranker,
    listed_and_sold,
    make_world,
    open_day,
    price,
    relevance,
    score,
    stock_shelf,
)
from rankdrift.simulate.searches import CATEGORIES, query_text
from rankdrift.simulate.true_curves import TrueCurve, dipping, steady

DEPTH = 500  # no search logs more
SHALLOW, FEW = 100, 200  # a search of at most so many results looks at so many candidates only
SHUFFLED = 200  # the top of a randomised search, in random order
AT_ONCE = 2048  # searches made at a time; another number would make other files
LARGEST = 10  # of how queries may differ
BOT_CLICKS = 0.2  # a bot clicks so often, wherever
FLATTER = {"best_match": 1.0, "price": 0.6, "newest": 0.8, "ending_soonest": 0.5}
# Of the columns that are written: what makes a query, and rows in which a doc's relevance for it
# does not change within a day, nor with the sort.
MARKET_QUERY = ("keywords", "category", "aspects")
SAME_QUERY_SAME_RELEVANCE = "sort = 'best_match' AND NOT auction"
ASPECTS = (None, "size=M", "brand=Nordlys")  # queries of the same words differ in these


@dataclass(frozen=True)
class Options:
    """What a market is made from; written down beside it."""

    rows: int
    days: int
    queries: int
    users: int
    seed: int
    start: str
    click_rate: float
    auctions: float
    price_changes: float
    randomised: float
    bots: float
    duplicates: float
    features: bool
    labels: bool
    candidate_spread: float = 0.0
    level_spread: float = 0.0
    hidden_knowledge: float = 0.0


@dataclass(frozen=True)
class Market:
    """The files written, and the truth behind their clicks.

    propensities: for each platform (500,), of ranks 1 to 500 when sorted by best match.
    truth: the file that says the same for every sort, and how all was made.
    """

    paths: tuple[Path, ...]
    rows: int
    clicks: int
    propensities: Mapping[str, Floats]
    truth: Path

    def __repr__(self) -> str:
        rows = f"{many(self.rows, 'result')} shown, {self.clicks:,} of them clicked"
        return brief(self, rows, f"{many(len(self.paths), 'file')} in {self.paths[0].parent}")


def market(
    directory: str | os.PathLike[str],
    *,
    rows: int = 1_000_000,
    days: int = 4,
    queries: int = 500,
    users: int = 20_000,
    seed: int = 1,
    start: str = "2024-01-01",
    curves: Mapping[str, TrueCurve] | None = None,
    click_rate: float = 0.065,
    auctions: float = 0.12,
    price_changes: float = 0.05,
    randomised: float = 0.0,
    bots: float = 0.0,
    duplicates: float = 0.0,
    features: bool = True,
    labels: bool = False,
    candidate_spread: float = 0.0,
    level_spread: float = 0.0,
    hidden_knowledge: float = 0.0,
) -> Market:
    """Write the log of a whole marketplace, one Parquet file a day, with its truth beside it.

    Files are called `market-YYYY-MM-DD.parquet` and `truth.json`.
    A day's file depends on its date, the rows it has and the options, not on the days around it.
    The columns listed and sold are the days on which the doc was put up and on which it will be
    sold, or its auction end.

    Parameters
    ----------
    directory
        Where the files go.
    rows
        Results shown, in all.
    days
        A file each.
    queries
        To be searched for.
    users
        Who search.
    seed
        Another makes another log; the same, the same bytes.
    start
        The first day.
    curves
        The propensities of an array of ranks, for "web" and for "mobile".
    click_rate
        Mean chance of a click on a query's best item at a rank of propensity 1.
    auctions, price_changes
        Share of items that are auctions, and that cut their price on a day.
    randomised
        Share of best-match searches whose first 200 results are in random order.
    bots
        Share of sessions by bots.
    duplicates
        Share of rows logged twice, on top of `rows`.
    features
        Write the 25 columns f_01 to f_25.
    labels
        Write z as the column `relevance`.
    candidate_spread
        Of how many items queries find: each finds exp(-spread * |normal|) of the 700 that the
        most common words do, 20 at least. At 0 all find 700. Searches with few items show fewer
        results than were to be loaded, so that there are fewer than `rows`.
    level_spread
        Of the level of the features that tell how well an item matches, from query to query, in
        deviations of them within one; no relevance, rank or click changes. At 0 all have the
        same.
    hidden_knowledge
        How much the old ranker goes by what makes an item relevant and no feature tells: added
        to its score for each deviation, where popularity and taste have 0.35 each.

    Returns
    -------
    Market
        The files, and the truth behind their clicks.
    """
    options = Options(
        rows=rows,
        days=days,
        queries=queries,
        users=users,
        seed=seed,
        start=start,
        click_rate=click_rate,
        auctions=auctions,
        price_changes=price_changes,
        randomised=randomised,
        bots=bots,
        duplicates=duplicates,
        features=features,
        labels=labels,
        candidate_spread=candidate_spread,
        level_spread=level_spread,
        hidden_knowledge=hidden_knowledge,
    )
    _check(options)
    truth = _truth(curves or {"web": steady, "mobile": dipping})
    world = make_world(
        seed,
        click_rate,
        auctions,
        price_changes,
        candidate_spread=candidate_spread,
        level_spread=level_spread,
        hidden_knowledge=hidden_knowledge,
    )
    folder = folder_for(directory)
    paths, total, clicks = [], 0, 0
    for day, share in split_days(start, days, rows):
        path = folder / f"market-{day}.parquet"
        chunks = _chunks(world, day, share, truth, options)
        written = _write(path, day, chunks, options)
        paths.append(path)
        total, clicks = total + written[0], clicks + written[1]
    file = folder / TRUTH
    write_text(file, json.dumps(_truth_to_dict(truth, options), indent=1) + "\n")
    return Market(
        paths=tuple(paths),
        rows=total,
        clicks=clicks,
        propensities={name: truth[i, 0] for i, name in enumerate(PLATFORMS)},
        truth=file,
    )


def _truth(curves: Mapping[str, TrueCurve]) -> Floats:
    """(platforms, sorts, DEPTH): users who sorted by something else look further down."""
    missing = [name for name in PLATFORMS if name not in curves]
    if missing:
        raise BadOption(f"curves has none for {' and '.join(missing)}. Give one a platform.")
    ranks = np.arange(1.0, DEPTH + 1)
    best = np.stack([np.asarray(curves[name](ranks), float) for name in PLATFORMS])
    if not (np.isfinite(best).all() and best.min() > 0 and best.max() <= 1):
        raise BadOption("Propensities must lie above 0 and be at most 1. Give another curve.")
    return np.stack([best ** FLATTER[sort] for sort in SORTS], axis=1)


def _truth_to_dict(truth: Floats, options: Options) -> dict[str, Any]:
    return {
        "propensities": {
            platform: {sort: truth[i, j].round(6).tolist() for j, sort in enumerate(SORTS)}
            for i, platform in enumerate(PLATFORMS)
        },
        "randomised_ranks": SHUFFLED,
        "options": asdict(options),
    }


def _chunks(world: World, day: date, rows: int, truth: Floats, options: Options) -> Iterator[Chunk]:
    """One day's impressions, some searches at a time."""
    random = np.random.default_rng([options.seed, day.toordinal()])
    today = open_day(world, day)
    popular = popularity(options.queries)
    done, searches, sessions = 0, day.toordinal() * 10**8, day.toordinal() * 10**8
    while done < rows:
        visits = visit(
            random,
            AT_ONCE,
            popular=popular,
            users=options.users,
            depth=DEPTH,
            randomised=options.randomised,
            bots=options.bots,
        )
        ends = np.minimum(done + np.cumsum(visits.loaded), rows)
        begins = np.concatenate([[done], ends[:-1]])
        visits = replace(
            visits,
            loaded=ends - begins,
            session=visits.session + sessions,
            moment=clock(random, visits.session, begins / rows, ends / rows),
        )
        number = searches + np.arange(AT_ONCE)
        deep = (visits.loaded > SHALLOW) | visits.randomised
        for some, candidates in ((~deep, FEW), (deep, CANDIDATES)):
            some &= visits.loaded > 0
            if some.any():
                shown = _show(random, world, today, visits.take(some), candidates, truth, options)
                shown["search"] = number[some][shown.pop("at")]
                yield _logged_twice(random, shown, options.duplicates)
        done = int(ends[-1])
        searches, sessions = searches + AT_ONCE, int(visits.session[-1])


def _show(
    random: np.random.Generator,
    world: World,
    today: Today,
    visits: Visits,
    many: int,
    truth: Floats,
    options: Options,
) -> dict[str, NDArray[Any]]:
    """The impressions of some searches that look at `many` candidates."""
    shelf = stock_shelf(world, today, visits.query, visits.moment, many)
    order = _order(random, world, today, visits, shelf)
    offered = shelf.offered.sum(axis=1)
    at, rank = np.nonzero(np.arange(many) < np.minimum(visits.loaded, offered)[:, None])
    place = order[at, rank]
    query, slot, listing = visits.query[at], shelf.slot[at, place], shelf.listing[at, place]
    listed, sold = listed_and_sold(world, today, slot, listing)
    shown = Impressions(
        query=query,
        place=place,
        doc=docs(query, place, listing),
        slot=slot,
        price=price(world, _only(shelf, at, place)),
        popularity=shelf.popularity[at, place],
        cut=shelf.cut[at, place],
        ending=shelf.ending[at, place],
        age=shelf.age[at, place],
    )
    z = relevance(world, today, shown)
    chance = truth[visits.platform[at], visits.sort[at], rank] * z
    chance[visits.bot[at]] = BOT_CLICKS
    found: dict[str, NDArray[Any]] = {
        "at": at,
        "user": visits.user[at],
        "session": visits.session[at],
        "moment": (visits.moment[at].astype(float) * 86_400e6).astype(np.int64),
        "query": query,
        "platform": visits.platform[at],
        "sort": visits.sort[at],
        "randomised": visits.randomised[at],
        "doc": shown.doc,
        "rank": rank + 1,
        "click": random.random(len(rank)) < chance,
        "price": shown.price,
        "auction": world.auction[slot],
        "listed": listed,
        "sold": sold,
    }
    if options.features:
        found |= dict(zip(NAMES, features(world, today, shown), strict=True))
    if options.labels:
        found["relevance"] = z
    return found


NAMES = tuple(f"f_{number:02}" for number in range(1, FEATURES + 1))


def _order(
    random: np.random.Generator, world: World, today: Today, visits: Visits, shelf: Shelf
) -> Indices:
    """Candidates of each search, the one at rank 1 first; those not on offer last."""
    taste = random.standard_normal(shelf.slot.shape, dtype=np.float32)
    by_score = -score(today, shelf, taste)
    if world.hidden_knowledge:
        by_score -= known_to_ranker(world, visits.query, shelf)
    for sort, name in enumerate(SORTS[1:], start=1):
        rows = np.flatnonzero(visits.sort == sort)
        by = _by(name, world, Shelf(*(values[rows] for values in vars(shelf).values())))
        by_score[rows] = np.where(shelf.offered[rows], by, np.inf)
    order = np.argsort(by_score, axis=1)
    mixed = np.flatnonzero(visits.randomised)
    top = np.minimum(SHUFFLED, shelf.offered[mixed].sum(axis=1))[:, None]
    key = random.random((len(mixed), order.shape[1]))
    key[np.arange(order.shape[1]) >= top] = 2
    order[mixed] = np.take_along_axis(order[mixed], np.argsort(key, axis=1, kind="stable"), axis=1)
    return order


def _by(name: str, world: World, shelf: Shelf) -> NDArray[np.float32]:
    """What the other sorts go by."""
    if name == "price":
        return price(world, shelf)
    return shelf.age if name == "newest" else -shelf.ending


def _only(shelf: Shelf, at: Indices, place: Indices) -> Shelf:
    return Shelf(*(values[at, place] for values in vars(shelf).values()))


def _logged_twice(random: np.random.Generator, chunk: Chunk, share: float) -> Chunk:
    if not share:
        return chunk
    times = 1 + (random.random(len(chunk["rank"])) < share)
    return {name: np.repeat(values, times) for name, values in chunk.items()}


def _write(path: Path, day: date, chunks: Iterator[Chunk], options: Options) -> tuple[int, int]:
    """Write a day; returns its rows and clicks."""
    numbers = list(range(options.queries))
    more = [*(NAMES if options.features else ()), *(["relevance"] if options.labels else [])]
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return write_day(
        path,
        chunks,
        columns="search BIGINT, user BIGINT, session BIGINT, moment BIGINT, query BIGINT,"
        " platform UTINYINT, sort UTINYINT, randomised BOOLEAN, doc BIGINT, rank SMALLINT,"
        " click UTINYINT, price FLOAT, auction BOOLEAN, listed INTEGER, sold INTEGER"
        + "".join(f", {name} FLOAT" for name in more),
        words={
            "number": numbers,
            "keywords": [query_text(number // len(ASPECTS)) for number in numbers],
            "category": [
                CATEGORIES[number // len(ASPECTS) % len(CATEGORIES)] for number in numbers
            ],
            "aspects": [ASPECTS[number % len(ASPECTS)] for number in numbers],
        },
        select="SELECT search, user, session, make_timestamp($1 + moment) AS time,"
        f" $2::DATE AS day, keywords, category, aspects, {_named('platform', PLATFORMS)},"
        f" {_named('sort', SORTS)}, randomised, doc, rank, click::TINYINT AS click,"
        f" round(price::DOUBLE, 2) AS price, auction, {_dated('listed')}, {_dated('sold')}"
        f"{''.join(f', {name}' for name in more)}"
        " FROM shown JOIN words ON number = query",
        parameters=[int(midnight.timestamp()) * 10**6, day],
    )


def _dated(column: str) -> str:
    """SQL for the day behind an ordinal, which counts from the first day of the year 1 on."""
    return f"DATE '0001-01-01' + ({column} - 1) AS {column}"


def _named(column: str, names: tuple[str, ...]) -> str:
    """SQL for the name behind an index; a list would be indexed anew for every row."""
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names))
    return f"CASE {column} {cases} END AS {column}"


def _check(options: Options) -> None:
    for name in ("rows", "days", "queries", "users"):
        value = getattr(options, name)
        if not (isinstance(value, int) and value >= 1):
            raise BadOption(f"{name} is {value!r}, but there must be at least 1.")
    for name in ("auctions", "price_changes", "randomised", "bots", "duplicates"):
        if not 0 <= getattr(options, name) <= 1:
            raise BadOption(f"{name} is a share, from 0 to 1, not {getattr(options, name)}.")
    for name in ("candidate_spread", "level_spread", "hidden_knowledge"):
        if not 0 <= getattr(options, name) <= LARGEST:
            raise BadOption(f"{name} is from 0 to {LARGEST}, not {getattr(options, name)}.")
    if not 0 < options.click_rate < 1:
        raise BadOption(f"click_rate lies between 0 and 1, not {options.click_rate}.")
    iso_day("start", options.start)
