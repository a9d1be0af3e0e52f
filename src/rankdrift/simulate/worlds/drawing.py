"""A world of the lab, drawn: its log, and the truth behind the clicks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import replacing, write_text
from rankdrift.core.notebook import brief
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.core.words import many
from rankdrift.experiments.experiment import Experiment
from rankdrift.log.sources import TRUTH
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
)
from rankdrift.simulate.worlds.serving import Served, serve

START = np.datetime64("2024-01-01", "D")
COLUMNS = ("score", "ranker", "user", "outcome")
OPTIONAL = (*COLUMNS, "platform")
HARM = 0.05  # a smaller error of log p is no harm
MOST_USED = 0.5  # share of all pairs of all days that can be usable without endless searches
PILOT = 3_000  # usable pairs of a draw that is only counted
PILOTS = 3  # such draws, each at a better number of searches
GUESS = 20  # rows for each usable pair, to begin with
CONCAVE = 1.2  # usable pairs grow with the searches to the power of 1 over this, or about so


@dataclass(frozen=True, eq=False)
class LabWorld:
    """The log of a world, in memory, and the truth behind its clicks.

    Parameters
    ----------
    name, sentence
        Of the world, and what is going on in it.
    valid
        Whether the assumptions of the method hold.
    bias
        Mean error of log p to expect of the plain estimate, over ranks 2 to the last, relative to
        rank 1: as measured at strength 1, times the strength.
    columns
        The log: arrays (rows,) by name, a row a result shown, in the order of time.
    truth
        (ranks,), the propensities of ranks 1, 2, 3 …, relative to the first.
    parts
        Curves (ranks,) behind the truth, by name, where there are several.
    options
        What it was drawn with.
    """

    name: str
    sentence: str
    valid: bool
    bias: float
    columns: Mapping[str, NDArray[Any]]
    truth: Floats
    parts: Mapping[str, Floats]
    options: Mapping[str, Any]

    def __repr__(self) -> str:
        rows = len(next(iter(self.columns.values()), ()))
        return brief(self, self.name, self.sentence, f"{many(rows, 'result')} shown")

    @property
    def harmful(self) -> bool:
        """Whether the plain estimate is off by more than a twentieth, whatever the cause."""
        return abs(self.bias) > HARM

    @property
    def rows(self) -> int:
        """Results shown."""
        return len(self.columns["click"])

    @property
    def clicks(self) -> int:
        """On them."""
        return int(self.columns["click"].sum())

    def write(self, directory: str | os.PathLike[str], *, by_day: bool = True) -> tuple[Path, ...]:
        """Write the log as Parquet, and `truth.json` beside it.

        Parameters
        ----------
        directory
            Where the files go.
        by_day
            One file a day, `world-YYYY-MM-DD.parquet`; or else one, `world.parquet`.

        Returns
        -------
        tuple of Path
            The files of the log.
        """
        folder = Path(directory)
        # DuckDB takes no NumPy days; those of the times are the same.
        given = {name: values for name, values in self.columns.items() if name != "day"}
        files = {folder / "world.parquet": ""}
        if by_day:
            days = np.unique(self.columns["day"])
            files = {folder / f"world-{d}.parquet": f" WHERE time::DATE = '{d}'" for d in days}
        with connect(threads=1) as database:
            database.register("log", given)
            for path, chosen in files.items():
                with replacing(path) as part:
                    database.execute(
                        f"COPY (SELECT time::DATE AS day, * FROM log{chosen})"
                        f" TO {DUCKDB.literal(str(part))} (FORMAT parquet, COMPRESSION zstd)"
                    )
        write_text(folder / TRUTH, json.dumps(self._truth_to_dict(), indent=1) + "\n")
        return tuple(files)

    def _truth_to_dict(self) -> dict[str, Any]:
        return {
            "propensities": self.truth.round(6).tolist(),
            "parts": {name: curve.round(6).tolist() for name, curve in self.parts.items()},
            "world": self.name,
            "sentence": self.sentence,
            "valid": self.valid,
            "harmful": self.harmful,
            "options": dict(self.options),
        }


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
    experiment: Experiment | None = None,
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
    experiment
        That runs meanwhile: it reorders the results of the searches that take part, and the log
        has the columns `original_rank` and `randomised`.

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
    options = Options(
        pairs=pairs,
        strength=strength,
        seed=seed,
        ranks=ranks,
        days=kind.recipe.days if days is None else days,
        queries=kind.recipe.queries(pairs) if queries is None else queries,
        columns=(columns,) if isinstance(columns, str) else tuple(columns),
    )
    options.check(kind)
    p = _propensities(kind.recipe.curve if curve is None else curve, ranks)
    drawn = _draw(kind, options, p, experiment)
    truth = p if drawn.served.looked.truth is None else drawn.served.looked.truth
    return LabWorld(
        name=kind.name,
        sentence=kind.sentence,
        valid=kind.valid or strength == 0,
        bias=strength * kind.bias,
        columns=drawn.columns(options.columns),
        truth=truth / truth[0],
        parts=drawn.served.looked.parts,
        options=asdict(options),
    )


@dataclass(frozen=True)
class Options:
    """What a world was asked to be."""

    pairs: int
    strength: float
    seed: int
    ranks: int
    days: int
    queries: int
    columns: tuple[str, ...]

    def check(self, kind: WorldKind) -> None:
        """Raise BadOption for what cannot be drawn."""
        for name, least in (("pairs", 1), ("ranks", 2), ("days", 1), ("queries", 1), ("seed", 0)):
            if not getattr(self, name) >= least:
                raise BadOption(f"{name} is {getattr(self, name)}, but must be at least {least}.")
        if not 0 <= self.strength < np.inf:
            raise BadOption(
                f"strength is {self.strength}: use 0 (harmless), 1 (as it comes) or more."
            )
        if kind.happens is None and self.strength != 1:
            raise BadOption(
                f"The world {kind.name!r} has nothing that could be stronger or weaker. Leave "
                "strength out."
            )
        for name in self.columns:
            if name not in OPTIONAL:
                raise BadOption(
                    f"No column {name!r} to choose.{did_you_mean(name, OPTIONAL)} "
                    f"There are {', '.join(OPTIONAL)}; others are always logged."
                )
        most = self.queries * candidates(self.ranks) * self.days
        if self.pairs > MOST_USED * most:
            raise BadOption(
                f"{many(self.queries, 'query', 'queries')} on {many(self.days, 'day')} show "
                f"{many(most, 'pair')} at most, too "
                f"few for {self.pairs:,} that are clicked and move. Use fewer pairs, or "
                f"{self.pairs / MOST_USED / most:.1f} times as many queries or days."
            )


def _propensities(curve: TrueCurve | ArrayLike, ranks: int) -> Floats:
    """(R,): a curve's values, each above 0 and at most 1."""
    found = np.asarray(curve(np.arange(1.0, ranks + 1)) if callable(curve) else curve, dtype=float)
    if found.shape != (ranks,):
        raise BadOption(f"curve must have one number for each of {ranks} ranks.")
    if not (np.isfinite(found).all() and found.min() > 0 and found.max() <= 1):
        raise BadOption("curve must lie above 0 and be at most 1 at every rank.")
    return found


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was searched, what went on, and what came of it."""

    scene: Scene
    change: Change
    served: Served
    arranged: Arrangement | None = None

    @cached_property
    def doc(self) -> Ints:
        """(S, R), that at each rank."""
        doc: Ints = self.scene.query[:, None] * self.scene.shape[1] + self.served.item
        if self.change.listing is None:
            return doc
        listing = np.take_along_axis(self.change.listing, self.served.item, axis=1)
        return doc * (int(self.change.listing.max()) + 1) + listing

    def usable(self) -> Ints:
        """(Q,): pairs of a query and a day that were clicked, and shown at two ranks or more."""
        day, many = self.scene.day, self.doc.shape[1]
        pair = (self.doc * (day.max() + 1) + day[:, None]).ravel()
        order = np.argsort(pair)
        first = np.flatnonzero(np.diff(pair[order], prepend=-1))
        rank = order % many
        moved = np.minimum.reduceat(rank, first) < np.maximum.reduceat(rank, first)
        clicked = np.logical_or.reduceat(self.served.looked.click.ravel()[order], first)
        query = self.scene.query[order[first] // many]
        return np.bincount(query[moved & clicked], minlength=len(self.scene.log_z))

    def columns(self, more: Sequence[str]) -> dict[str, NDArray[Any]]:
        """The log: arrays (S * R,) by name, with those of `OPTIONAL` that are asked for."""
        scene, served = self.scene, self.served
        searches, ranks = served.item.shape
        day = START + scene.day
        since = (scene.moment.astype(float) * 86_400e6).astype("timedelta64[us]")

        def each(values: NDArray[Any]) -> NDArray[Any]:
            return np.repeat(values, ranks)

        found = {
            "search": each(np.arange(searches, dtype=np.int32)),
            "day": each(day),
            "time": each(day + since),
            "query": each(scene.query.astype(np.int32)),
            "doc": self.doc.astype(np.int32).ravel(),
            "rank": np.tile(np.arange(1, ranks + 1, dtype=np.int16), searches),
            "click": served.looked.click.astype(np.int8).ravel(),
        }
        if self.arranged is not None:
            found["original_rank"] = (self.arranged.order + 1).astype(np.int16).ravel()
            found["randomised"] = each(self.arranged.randomised)
        if self.change.price is not None:
            price = np.take_along_axis(self.change.price, served.item, axis=1)
            found["price"] = np.round(price.astype(float), 2).ravel()
        choices: dict[str, Callable[[], NDArray[Any]]] = {
            "score": served.score.ravel,
            "ranker": lambda: each(np.array(RANKERS)[scene.arm]),
            "user": lambda: each(scene.user.astype(np.int32)),
            "outcome": lambda: served.outcome.astype(np.int8).ravel(),
            "platform": lambda: each(np.array(PLATFORMS)[scene.platform]),
        }
        return found | {name: choices[name]() for name in more}


@dataclass(frozen=True, eq=False)
class Arrangement:
    """What an experiment did: order (S, R), at which place, from 0, the ranker has what is shown at
    each rank; randomised (S,), which searches took part."""

    order: Ints
    randomised: Bools


def _arrange(experiment: Experiment, scene: Scene) -> Arrangement:
    ranks = len(scene.p)
    ids = scene.user if experiment.unit == "user" else np.arange(len(scene.query))
    found = [experiment.assign(str(unit), ranks) for unit in ids.tolist()]
    usual = tuple(range(1, ranks + 1))
    order = np.array([usual if each is None else each for each in found]) - 1
    return Arrangement(order, np.array([each is not None for each in found]))


def _draw(
    kind: WorldKind, options: Options, p: Floats, experiment: Experiment | None = None
) -> Drawn:
    """As many searches as give the usable pairs asked for.

    To know how many, some of the queries are drawn a few times, each standing for those around it,
    which are about as popular.
    """

    def draw(
        stream: int, share: Floats, searches: float, experiment: Experiment | None = None
    ) -> Drawn:
        seed = options.seed, stream
        many = max(round(searches), 1)
        scene = make_scene(kind.recipe, p, share, options.days, many, (*seed, 0))
        change = kind.happens(scene, options.strength) if kind.happens else Change()
        arranged = _arrange(experiment, scene) if experiment else None
        order = arranged.order if arranged else None
        return Drawn(scene, change, serve(scene, change, (*seed, 1), order), arranged)

    share = kind.recipe.popularity(options.queries)
    many = -(-options.queries // max(1, round(options.pairs / PILOT)))
    middles = (np.arange(many) + 0.5) / many
    some, times = np.unique(np.searchsorted(np.cumsum(share), middles), return_counts=True)
    stands_for = times / many / share[some]
    searches = GUESS * options.pairs / options.ranks
    for pilot in range(1, PILOTS + 1):
        found = draw(pilot, share[some], searches * share[some].sum()).usable() @ stands_for
        searches *= (options.pairs / max(float(found), 1)) ** CONCAVE
    return draw(0, share, searches, experiment)
