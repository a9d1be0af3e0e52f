"""A world of the lab, drawn: its log, and the truth behind the clicks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import replacing
from rankdrift.core.types import Floats, Ints
from rankdrift.simulate.true_curves import TrueCurve
from rankdrift.simulate.worlds import WORLDS
from rankdrift.simulate.worlds.scene import (
    PLATFORMS,
    RANKERS,
    Change,
    Scene,
    WorldKind,
    candidates,
    make_scene,
    popularity,
)
from rankdrift.simulate.worlds.serving import Served, serve

START = np.datetime64("2024-01-01", "D")
COLUMNS = ("score", "ranker", "user", "outcome")
OPTIONAL = (*COLUMNS, "platform")
FEWEST_QUERIES = 12
MOST_USED = 0.5  # share of all pairs of all days that can be usable without endless searches
PILOT = 2_000  # usable pairs of a draw that is only counted
PILOTS = 3  # such draws, each at a better number of searches
GUESS = 20  # rows for each usable pair, to begin with


@dataclass(frozen=True, eq=False)
class LabWorld:
    """The log of a world, in memory, and the truth behind its clicks.

    Parameters
    ----------
    name, sentence
        Of the world, and what is going on in it.
    valid
        Whether the assumptions of the method hold.
    columns
        The log: arrays (rows,) by name, a row a result shown, in the order of time.
    truth
        (ranks,), the propensities of ranks 1, 2, 3 …, relative to the first.
    parts
        Curves (ranks,) behind the truth, by name, where there are several.
    """

    name: str
    sentence: str
    valid: bool
    columns: Mapping[str, NDArray[Any]]
    truth: Floats
    parts: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Results shown."""
        return len(self.columns["click"])

    @property
    def clicks(self) -> int:
        """On them."""
        return int(self.columns["click"].sum())

    def write(self, directory: str | os.PathLike[str], *, by_day: bool = True) -> tuple[Path, ...]:
        """Write the log as Parquet.

        Parameters
        ----------
        directory
            Where the files go.
        by_day
            One file a day, `world-YYYY-MM-DD.parquet`; or else one, `world.parquet`.

        Returns
        -------
        tuple of Path
            The files.
        """
        folder = Path(directory)
        days = np.unique(self.columns["day"]) if by_day else [None]
        named = ", ".join(DUCKDB.quote(name) for name in self.columns if name != "day")
        given = {name: values for name, values in self.columns.items() if name != "day"}
        paths = []
        with connect(threads=1) as database:
            database.register("log", given)
            for day in days:
                path = folder / ("world.parquet" if day is None else f"world-{day}.parquet")
                chosen = "" if day is None else f" WHERE time::DATE = DATE '{day}'"
                with replacing(path) as part:
                    database.execute(
                        f"COPY (SELECT time::DATE AS day, {named} FROM log{chosen})"
                        f" TO {DUCKDB.literal(str(part))} (FORMAT parquet, COMPRESSION zstd)"
                    )
                paths.append(path)
        return tuple(paths)


def world(
    name: str,
    *,
    pairs: int = 35_000,
    strength: float = 1.0,
    seed: int = 1,
    ranks: int = 40,
    days: int | None = None,
    queries: int | None = None,
    curve: TrueCurve | ArrayLike | None = None,
    columns: Sequence[str] = COLUMNS,
) -> LabWorld:
    """Draw a world of the lab: a log of searches, and the truth behind its clicks.

    Parameters
    ----------
    name
        Which one; `worlds.WORLDS` has them all.
    pairs
        Usable pairs that are to be expected: clicked, and at two or more ranks within a day.
    strength
        How much goes wrong: 0 nothing, 1 as much as it usually does there, 2 twice as much.
    seed
        Another makes another world; the same, the same arrays.
    ranks
        Results that a search shows.
    days
        Of the log; by default 6 in most worlds.
    queries
        To be searched for; by default so many that each gives some 30 usable pairs.
    curve
        The propensities of ranks 1 to `ranks`: a function of ranks, or an array.
    columns
        Which of "score" (what the ranker sorted by), "ranker" (A or B), "user", "outcome" (of a
        click, such as a purchase) and "platform" are logged besides search, day, time, query, doc,
        rank and click. Prices are logged where they change.

    Returns
    -------
    LabWorld
        The log, in memory, and its truth.

    Examples
    --------
    >>> made = world("price-cuts", pairs=2_000, columns=["score"])
    >>> made.valid, len(made.truth)
    (False, 40)
    """
    kind = WORLDS.get(name)
    days = kind.recipe.days if days is None else days
    if queries is None:
        queries = max(FEWEST_QUERIES, round(pairs / kind.recipe.pairs_a_query))
    _check(kind, pairs, strength, ranks, days, queries, columns)
    p = _propensities(kind.recipe.curve if curve is None else curve, ranks)
    share = popularity(kind.recipe, queries)
    searches = _searches(kind, p, share, pairs, days, strength, seed)
    scene, change, served = _draw(kind, p, share, searches, days, strength, (seed, 0))
    truth = p if served.looked.truth is None else served.looked.truth
    return LabWorld(
        name=kind.name,
        sentence=kind.sentence,
        valid=kind.valid or strength == 0,
        columns=_columns(scene, change, served, columns),
        truth=truth / truth[0],
        parts=served.looked.parts,
    )


def _propensities(curve: TrueCurve | ArrayLike, ranks: int) -> Floats:
    """(R,): a curve's values, each above 0 and at most 1."""
    found = np.asarray(curve(np.arange(1.0, ranks + 1)) if callable(curve) else curve, dtype=float)
    if found.shape != (ranks,):
        raise BadOption(f"curve must have one number for each of {ranks} ranks.")
    if not (np.isfinite(found).all() and found.min() > 0 and found.max() <= 1):
        raise BadOption("curve must lie above 0 and be at most 1 at every rank.")
    return found


def _check(
    kind: WorldKind,
    pairs: int,
    strength: float,
    ranks: int,
    days: int,
    queries: int,
    columns: Sequence[str],
) -> None:
    for thing, value, least in (
        ("pairs", pairs, 1),
        ("ranks", ranks, 2),
        ("days", days, 1),
        ("queries", queries, 1),
    ):
        if not value >= least:
            raise BadOption(f"There must be at least {least} {thing}, not {value}.")
    if not 0 <= strength < np.inf:
        raise BadOption(f"strength is {strength}: use 0 (harmless), 1 (as it comes) or more.")
    if kind.happens is None and strength != 1:
        raise BadOption(
            f"The world {kind.name!r} has nothing that could be stronger or weaker. Leave strength "
            "out."
        )
    for name in columns:
        if name not in OPTIONAL:
            raise BadOption(
                f"No column {name!r} to choose.{did_you_mean(name, OPTIONAL)} "
                f"There are {', '.join(OPTIONAL)}; others are always logged."
            )
    all_pairs = queries * candidates(ranks) * days
    if pairs > MOST_USED * all_pairs:
        raise BadOption(
            f"{queries:,} queries on {days} days show {all_pairs:,} pairs at most, too few for "
            f"{pairs:,} that are clicked and move. Use {pairs / MOST_USED / all_pairs:.1f} times as "
            "many queries or days, or fewer pairs."
        )


def _draw(
    kind: WorldKind,
    p: Floats,
    share: Floats,
    searches: int,
    days: int,
    strength: float,
    seed: tuple[int, ...],
) -> tuple[Scene, Change, Served]:
    """Queries as popular as `share` (Q,) says, searched so often."""
    scene = make_scene(kind.recipe, p, share, days=days, searches=searches, seed=(*seed, 0))
    change = kind.happens(scene, strength) if kind.happens else Change()
    return scene, change, serve(scene, change, (*seed, 1))


def _searches(
    kind: WorldKind, p: Floats, share: Floats, pairs: int, days: int, strength: float, seed: int
) -> int:
    """How many searches give so many usable pairs: a part of the queries is drawn a few times,
    each drawn query standing for those around it that are as popular."""
    step = max(1, round(pairs / PILOT))
    stratum = np.add.reduceat(share, np.arange(0, len(share), step))
    some = share[np.minimum(np.arange(len(stratum)) * step + step // 2, len(share) - 1)]
    searches = GUESS * pairs / len(p)
    for pilot in range(PILOTS):
        many = max(round(searches * some.sum()), 1)
        drawn = _draw(kind, p, some, many, days, strength, (seed, 1 + pilot))
        searches *= pairs / max(float(usable(*drawn) @ (stratum / some)), 1)
    return round(searches)


def usable(scene: Scene, change: Change, served: Served) -> Ints:
    """(Q,): pairs of a query and a day that were clicked, and shown at two ranks or more."""
    doc = _docs(scene, change, served)
    pair = (doc * (scene.day.max() + 1) + scene.day[:, None]).ravel()
    order = np.argsort(pair)
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    rank = np.tile(np.arange(doc.shape[1], dtype=np.int16), len(doc))[order]
    moved = np.minimum.reduceat(rank, first) < np.maximum.reduceat(rank, first)
    clicked = np.logical_or.reduceat(served.looked.click.ravel()[order], first)
    query = scene.query[order[first] // doc.shape[1]]
    return np.bincount(query[moved & clicked], minlength=len(scene.log_z))


def _docs(scene: Scene, change: Change, served: Served) -> Ints:
    """(S, R), the doc at each rank."""
    doc = scene.query[:, None] * scene.shape[1] + served.item
    if change.listing is None:
        return doc
    listing = np.take_along_axis(change.listing, served.item, axis=1)
    return doc * (int(change.listing.max()) + 1) + listing


def _columns(
    scene: Scene, change: Change, served: Served, wanted: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """The log: by name (S * R,)."""
    shape = served.item.shape
    day = START + scene.day
    time = day.astype("datetime64[us]") + (scene.moment.astype(float) * 86_400e6).astype(np.int64)

    def each(values: NDArray[Any]) -> NDArray[Any]:
        return np.repeat(values, shape[1])

    found = {
        "search": each(np.arange(shape[0], dtype=np.int32)),
        "day": each(day),
        "time": each(time),
        "query": each(scene.query.astype(np.int32)),
        "doc": _docs(scene, change, served).astype(np.int32).ravel(),
        "rank": np.tile(np.arange(1, shape[1] + 1, dtype=np.int16), shape[0]),
        "click": served.looked.click.ravel().astype(np.int8),
    }
    if change.price is not None:
        price = np.take_along_axis(change.price, served.item, axis=1)
        found["price"] = np.round(price.astype(float), 2).ravel()
    more = {
        "score": lambda: served.score.ravel(),
        "ranker": lambda: each(np.array(RANKERS)[scene.arm]),
        "user": lambda: each(scene.user.astype(np.int32)),
        "outcome": lambda: served.outcome.ravel().astype(np.int8),
        "platform": lambda: each(np.array(PLATFORMS)[scene.platform]),
    }
    return found | {name: more[name]() for name in wanted}
