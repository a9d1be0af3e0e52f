"""A made-up log of hotel searches: few repeats of a search within a day, many across days."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet

FIRST = np.datetime64("2024-01-01T00:00:00")
SLOPE = 0.7  # of the true propensities: rank to the power of minus this


def hotel_table(seed=0, searches=400, cities=120, hotels=40, shown=25, days=120, random=0.0):
    """Searches for cities, some much more than others; a share of them in random order."""
    rng = np.random.default_rng(seed)
    asked_for = np.arange(1, cities + 1) ** -0.3
    city = rng.choice(cities, searches, p=asked_for / asked_for.sum())
    worth = rng.normal(size=(cities, hotels))
    score = worth[city] + rng.normal(0, 0.7, (searches, hotels))
    drawn = rng.random(searches) < random
    score[drawn] = rng.random((int(drawn.sum()), hotels))
    order = np.argsort(-score, axis=1)[:, :shown]
    rank = np.tile(np.arange(1, shown + 1), (searches, 1))
    relevance = 0.5 / (1 + np.exp(2.2 - 0.8 * np.take_along_axis(worth[city], order, 1)))
    click = rng.random(rank.shape) < rank**-SLOPE * relevance
    second = rng.integers(0, days * 86_400, searches).astype("timedelta64[s]")

    def each(values):
        return np.repeat(values, shown)

    columns = {
        "srch_id": each(np.arange(searches)), "date_time": each(FIRST + second),
        "srch_destination_id": each(city), "prop_id": (city[:, None] * 1000 + order).ravel(),
        "position": rank.ravel(), "click_bool": click.ravel().astype(np.int8),
        "random_bool": each(drawn.astype(np.int8)),
        "price_usd": np.round(80 + 20 * rng.normal(size=rank.size), -1),
        **{f"f{i}": rng.normal(size=rank.size).astype(np.float32) for i in range(1, 26)},
        "comp_rate": pa.nulls(rank.size, pa.float64()),
    }  # fmt: skip
    return pa.table(columns)


def write_hotel_log(path, **options):
    """As one Parquet file."""
    pa.parquet.write_table(hotel_table(**options), path)
    return path


def long_table(rows):
    """(query, doc, rank, click, day) of each result shown, days counted from 2024."""
    names = ("query", "doc", "rank", "click", "day")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    first = datetime.date(2024, 1, 1)
    columns["day"] = [first + datetime.timedelta(days=day) for day in columns["day"]]
    return pa.table(columns)
