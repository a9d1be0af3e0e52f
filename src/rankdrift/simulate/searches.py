"""A made-up impressions log with known propensities, as large as asked and the same every time.

A search shows one query's items in an order that drifts: the item that belongs at rank i sorts by
a normal number around i with deviation i / 5, the drift of Appendix D. Clicks follow Eq. (1),
P(click) = p_rank * z, where z belongs to the pair (query, doc) as long as its price stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path

import numpy as np

from rankdrift.core.errors import BadOption
from rankdrift.core.files import folder_for
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats
from rankdrift.core.words import many
from rankdrift.simulate.days import Chunk, split_days, write_day
from rankdrift.simulate.hashing import uniform
from rankdrift.simulate.true_curves import TrueCurve, inverse_log

ITEMS = 700  # candidates of a query; a search shows the first of them
DRIFT = 0.2  # deviation of an item's place, as a share of the place
SETTLED = 0.5  # share of searches answered in the undisturbed order
PAGE = 50  # results come in pages; how many pages a search shows is geometric
ON_SALE = 0.03  # share of docs whose price falls at some time of a day
ZIPF = 0.8  # the k-th most popular query is searched k ** -ZIPF as often as the first
CHUNK = 512  # searches made at once; another number would make other files

THINGS = (  # the i-th is of category i modulo 5
    "shirt lamp tent camera ring dress chair bicycle radio puzzle jacket kettle hammock keyboard"
    " kite boots mug kayak speaker candle scarf rug helmet telescope guitar coat sofa rucksack"
    " printer vase socks desk stove monitor bracelet hat mirror lantern microphone umbrella"
).split()
CATEGORIES = ("clothing", "home", "outdoor", "electronics", None)
COLOURS = ("", *"red blue green black white grey yellow brown pink orange purple".split())
MATERIALS = ("", *"linen cotton leather wool steel oak glass ceramic silk bamboo".split())


@dataclass(frozen=True)
class Searches:
    """The files written, and the truth behind their clicks.

    propensities: for each segment an array (depth,), the propensities of ranks 1 to depth.
    """

    paths: tuple[Path, ...]
    rows: int
    clicks: int
    propensities: Mapping[str, Floats]

    def __repr__(self) -> str:
        rows = f"{many(self.rows, 'result')} shown, {self.clicks:,} of them clicked"
        return brief(self, rows, f"{many(len(self.paths), 'file')} in {self.paths[0].parent}")


def searches(
    directory: str | os.PathLike[str],
    *,
    rows: int = 1_000_000,
    days: int = 4,
    queries: int = 20_000,
    depth: int = 500,
    seed: int = 1,
    start: str = "2024-01-01",
    curve: TrueCurve | Mapping[str, TrueCurve] | None = None,
    click_rate: float = 0.05,
    segments: tuple[str, ...] = ("web", "mobile"),
) -> Searches:
    """Write a plain log, as large as asked: one Parquet file a day, `searches-YYYY-MM-DD.parquet`.

    A day's file depends on its date, the rows it has and the options, not on the days around it:
    any day can be made alone by starting there.

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
    depth
        The deepest rank, at most 700.
    seed
        Another makes another log; the same, the same bytes.
    start
        The first day.
    curve
        The propensities of an array of ranks, or such a function for each segment; by default
        those of Appendix D.
    click_rate
        Mean chance of a click on a query's best item at a rank of propensity 1.
    segments
        Values of the column `platform`.

    Returns
    -------
    Searches
        The files, and the truth behind their clicks.
    """
    if min(rows, days, queries, depth) < 1 or depth > ITEMS:
        raise BadOption(
            f"rows={rows}, days={days}, queries={queries}, depth={depth} cannot be simulated: "
            f"use at least 1 of each, and a depth of at most {ITEMS}."
        )
    ranks = np.arange(1.0, depth + 1)
    curves = curve if isinstance(curve, Mapping) else dict.fromkeys(segments, curve or inverse_log)
    propensities = {segment: np.asarray(curves[segment](ranks), float) for segment in segments}
    table = np.array([*propensities.values()])

    folder = folder_for(directory)
    paths, clicks = [], 0
    for day, share in split_days(start, days, rows):
        path = folder / f"searches-{day}.parquet"
        chunks = _chunks(day, share, queries, seed, click_rate, table)
        clicks += _write(path, day, chunks, queries, segments)
        paths.append(path)
    return Searches(tuple(paths), rows, clicks, propensities)


def query_text(number: int) -> str:
    """The words of a query, different for every number; popular queries are short."""
    number, thing = divmod(number, len(THINGS))
    number, colour = divmod(number, len(COLOURS))
    number, material = divmod(number, len(MATERIALS))
    size = str(35 + number) if number else ""
    return " ".join(filter(None, (COLOURS[colour], MATERIALS[material], THINGS[thing], size)))


def _chunks(
    day: date, rows: int, queries: int, seed: int, click_rate: float, propensities: Floats
) -> Iterator[Chunk]:
    """One day's impressions, some searches at a time; propensities is (segments, depth)."""
    random = np.random.default_rng([seed, day.toordinal()])
    depth = propensities.shape[1]
    popularity = np.cumsum(np.arange(1.0, queries + 1) ** -ZIPF)
    places = np.arange(1, ITEMS + 1, dtype=np.float32)
    quality = places.astype(float) ** -0.2  # better items belong higher
    catalogue = max(ITEMS, 50 * queries)  # queries of neighbouring numbers share docs
    done = 0
    for first in count(day.toordinal() * 10**8, CHUNK):
        query = np.searchsorted(popularity, random.random(CHUNK) * popularity[-1])
        platform = random.integers(len(propensities), size=CHUNK)
        drift = DRIFT * (random.random((CHUNK, 1), dtype=np.float32) >= SETTLED)
        noise = random.standard_normal((CHUNK, ITEMS), dtype=np.float32)
        order = np.argsort(places * (1 + drift * noise), axis=1)
        length = np.minimum(depth, PAGE * (1 + random.geometric(0.25, CHUNK)))
        length = np.diff(np.minimum(np.cumsum(length), rows - done), prepend=0)

        # From here on arrays have one element an impression.
        search, place = np.nonzero(np.arange(ITEMS) < length[:, None])
        item, query, platform = order[search, place], query[search], platform[search]
        doc = (50 * query + item) % catalogue
        hour = (done + np.arange(len(doc))) / rows
        on_sale = uniform(seed, day.toordinal(), doc) < ON_SALE * hour
        z = 2 * click_rate * quality[item] * uniform(seed, query, doc, on_sale)
        price = (5 + 200 * uniform(seed, doc)) * np.where(on_sale, 0.8, 1)
        yield {
            "search": first + search,
            "query": query,
            "doc": doc,
            "rank": place + 1,
            "click": random.random(len(doc)) < propensities[platform, place] * np.minimum(z, 1),
            "price": np.round(price, 2),
            "platform": platform,
        }
        done += len(doc)
        if done == rows:
            return


def _write(
    path: Path, day: date, chunks: Iterator[Chunk], queries: int, segments: tuple[str, ...]
) -> int:
    """Write a day; returns its clicks."""
    numbers = list(range(queries))
    _, clicks = write_day(
        path,
        chunks,
        columns="search BIGINT, query BIGINT, doc BIGINT, rank SMALLINT, click TINYINT,"
        " price DOUBLE, platform BIGINT",
        words={"number": numbers, "text": [query_text(number) for number in numbers]},
        select="SELECT search, text AS query, $1[query % len($1) + 1] AS category, doc, rank,"
        " click, price, $2[platform + 1] AS platform, $3::DATE AS day"
        " FROM shown JOIN words ON number = query",
        parameters=[CATEGORIES, segments, day],
        on_disk=True,
    )
    return clicks
