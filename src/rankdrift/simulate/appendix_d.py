"""Pairs as in the paper's Appendix D: as a log, or straight to Counts.

A pair's mean rank is uniform on 1 to `ranks`; its ranks are normal around it with a fifth of it as
standard deviation; its relevance z is drawn so that click-through rates by rank follow a given
curve; clicks follow Eq. (1), prob-click. Usable are pairs at two ranks or more with a click.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import ArrayLike

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption
from rankdrift.core.files import replacing
from rankdrift.core.notebook import brief
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.counts.counts import BUCKETS, MAX_SHOWN, Counts
from rankdrift.simulate.clicks import draw_clicked
from rankdrift.simulate.counting import count_pairs
from rankdrift.simulate.true_curves import TrueCurve, inverse_log

Curve = TrueCurve | ArrayLike
"""A value for each rank from 1 on: a function of ranks, or an array."""

FEWEST, MOST_AT_ONCE = 20_000, 250_000  # pairs drawn at a time; others would draw others
MOST = 0.95  # mean z of a pair
RELEVANCE = 0.1  # mean z at the top; deeper down it falls to half of that
START = date(2024, 1, 1)


@dataclass(frozen=True)
class World:
    """counts, and the truth behind them: propensities (R,) of ranks 1 to R."""

    counts: Counts
    propensities: Floats

    def __repr__(self) -> str:
        return brief(self, f"ranks 1 to {len(self.propensities)}", repr(self.counts)[1:-1])


@dataclass(frozen=True)
class Drawn:
    """Pairs: query (N,), rank (N, m), click (N, m)."""

    query: Ints
    rank: Ints
    click: Bools


def pairs(
    n: int = 40_000,
    *,
    ranks: int = 500,
    propensities: Curve | None = None,
    ctr: Curve | None = None,
    relevance: float = RELEVANCE,
    appearances: int = 2,
    spread: float = 0.2,
    queries: int = 5_000,
    query_effect: float = 0.0,
    buckets: int = BUCKETS,
    max_shown: int = MAX_SHOWN,
    seed: int = 0,
) -> World:
    """Draw pairs as in the paper's Appendix D, straight to Counts.

    Of pairs without a click only the appearances by rank are made up, at their expected numbers:
    nothing else of them is ever counted.

    Parameters
    ----------
    n
        Usable pairs.
    ranks
        The deepest.
    propensities
        P of ranks 1 to `ranks`, an array or a function of ranks; by default the
        paper's min(1 / log i, 1).
    ctr
        The click-through rates to follow, the same way; by default p times a relevance that is
        `relevance` at the top and half of it at the bottom.
    relevance
        See `ctr`.
    appearances
        Of each pair.
    spread
        Standard deviation of a pair's ranks, as a share of its mean rank.
    queries
        Of the pairs.
    query_effect
        Standard deviation of log z between queries, so that clicks of one query go
        together.
    buckets, max_shown
        As of a harvest.
    seed
        Another makes other pairs.

    Returns
    -------
    World
        The counts, and the propensities behind them.
    """
    recipe = Recipe.make(
        n=n,
        ranks=ranks,
        propensities=propensities,
        ctr=ctr,
        relevance=relevance,
        appearances=appearances,
        spread=spread,
        queries=queries,
        query_effect=query_effect,
        seed=seed,
    )
    bucket_of = np.random.default_rng([seed, queries]).integers(0, buckets, queries)
    drawn, unclicked = recipe.clicked()
    counts = count_pairs(
        drawn.rank,
        drawn.click,
        bucket_of[drawn.query],
        buckets=buckets,
        max_rank=ranks,
        max_shown=max_shown,
        unclicked=unclicked,
        options={"simulated": "pairs", "seed": seed},
    )
    return World(counts, recipe.p)


def pairs_log(
    path: str | os.PathLike[str],
    n: int = 40_000,
    *,
    ranks: int = 500,
    propensities: Curve | None = None,
    ctr: Curve | None = None,
    relevance: float = RELEVANCE,
    appearances: int = 2,
    spread: float = 0.2,
    queries: int = 5_000,
    query_effect: float = 0.0,
    days: int = 4,
    seed: int = 0,
) -> Floats:
    """Write the same pairs, clicked or not, as one Parquet log: query, doc, day, rank, click.

    Parameters
    ----------
    path
        Of the file.
    n, ranks, propensities, ctr, relevance, appearances, spread, queries, query_effect, seed :
        as of `pairs`.
    days
        Of the log; a pair's appearances are on one day.

    Returns
    -------
    array (R,)
        The true propensities.
    """
    recipe = Recipe.make(
        n=n,
        ranks=ranks,
        propensities=propensities,
        ctr=ctr,
        relevance=relevance,
        appearances=appearances,
        spread=spread,
        queries=queries,
        query_effect=query_effect,
        seed=seed,
    )
    if not days >= 1:
        raise BadOption(f"days is {days}, but there must be at least 1.")
    with replacing(path) as part, connect(threads=1) as database:
        database.execute(
            "CREATE TABLE log (query BIGINT, doc BIGINT, day INTEGER, rank SMALLINT, click TINYINT)"
        )
        first = 0
        for drawn in recipe.batches():
            doc = first + np.arange(len(drawn.query))
            first += len(doc)
            many = drawn.rank.shape[1]
            rows = {
                "query": np.repeat(drawn.query, many),
                "doc": np.repeat(doc, many),
                "day": np.repeat(doc % days, many),
                "rank": drawn.rank.ravel(),
                "click": drawn.click.ravel(),
            }
            database.register("rows", rows)
            database.execute("INSERT INTO log BY NAME FROM rows")
        database.execute(
            "COPY (SELECT query, doc, $1::DATE + day AS day, rank, click FROM log ORDER BY day,"
            f" doc) TO {DUCKDB.literal(str(part))} (FORMAT parquet, COMPRESSION zstd)",
            [START],
        )
    return recipe.p


@dataclass(frozen=True)
class Recipe:
    """What pairs are drawn from; `make` works it out from the options of `pairs`."""

    n: int
    batch: int  # pairs drawn at a time
    p: Floats
    level: Floats  # (R,) mean z of pairs whose mean rank is this
    appearances: int
    spread: float
    effect: Floats  # (Q,) of log z
    seed: int

    @staticmethod
    def make(
        *,
        n: int,
        ranks: int,
        propensities: Curve | None,
        ctr: Curve | None,
        relevance: float,
        appearances: int,
        spread: float,
        queries: int,
        query_effect: float,
        seed: int,
    ) -> Recipe:
        """Work it out; BadOption where that cannot be drawn."""
        for name, value, least in (
            ("pairs", n, 1),
            ("ranks", ranks, 2),
            ("queries", queries, 1),
            ("appearances", appearances, 2),
        ):
            if not value >= least:
                raise BadOption(f"There must be at least {least} {name}, not {value}.")
        if not 0 < spread < np.inf or not 0 <= query_effect < np.inf:
            raise BadOption("spread must be above 0, and query_effect 0 or more, both finite.")
        p = _values("propensities", inverse_log if propensities is None else propensities, ranks)
        place = np.arange(1.0, ranks + 1)
        if ctr is None:
            level = relevance / (1 + np.log(place) / np.log(ranks))
        else:
            level = _values("ctr", ctr, ranks) / p
        if not (level.min() > 0 and level.max() < 1):
            raise BadOption(
                f"Mean relevance would reach {level.max():.3g} at rank {level.argmax() + 1}, but "
                "it is a chance below 1: click-through rates must be below the propensities."
            )
        effect = np.random.default_rng([seed, 1]).normal(0.0, query_effect, queries)
        batch = min(max(10 * n, FEWEST), MOST_AT_ONCE)
        return Recipe(n, batch, p, level, appearances, spread, effect, seed)

    def batches(self) -> Iterator[Drawn]:
        """Until there are n usable pairs; the last batch ends with the last of them."""
        random = np.random.default_rng([self.seed, 0])
        have = tried = 0
        while have < self.n:
            query, rank, level = self.appear(random)
            # Beta(1, 1 / level - 1), whose mean is level, by its inverse.
            z = 1 - random.random(self.batch) ** (level / (1 - level))
            click = random.random(rank.shape) < self.p[rank - 1] * z[:, None]
            usable = np.flatnonzero(click.any(axis=1) & (rank.min(axis=1) < rank.max(axis=1)))
            tried += self.batch
            self.give_up(have + len(usable), tried)
            end = int(usable[self.n - have - 1]) + 1 if have + len(usable) >= self.n else self.batch
            have += int((usable < end).sum())
            yield Drawn(query[:end], rank[:end], click[:end])

    def clicked(self) -> tuple[Drawn, Ints]:
        """Pairs with a click only, n of them usable; and by rank, from 0 on, how often pairs
        without a click appear beside them.

        Ranks are taken with chance E[z] Σ p_k / most, and clicks drawn as `draw_clicked` says.
        """
        random = np.random.default_rng([self.seed, 0])
        top = min(float(self.level.max() * np.exp(self.effect.max())), MOST)
        most = top * self.appearances * float(self.p.max())
        batches: list[Drawn] = []
        appeared = np.zeros(len(self.p) + 1)
        have = tried = 0
        while have < self.n:
            query, rank, level = self.appear(random)
            p = self.p[rank - 1]
            taken = np.flatnonzero(random.random(self.batch) * most < level * p.sum(axis=1))
            click, kept = draw_clicked(random, p[taken], level[taken])
            taken, click = taken[kept], click[kept]
            usable = rank[taken].min(axis=1) < rank[taken].max(axis=1)
            place = np.flatnonzero(usable)
            tried += self.batch
            self.give_up(have + len(place), tried)
            end = len(taken)
            if have + len(place) >= self.n:
                end = int(place[self.n - have - 1]) + 1
            upto_end = self.batch if end == len(taken) else int(taken[end - 1]) + 1
            appeared += np.bincount(rank[:upto_end].ravel(), minlength=len(appeared))
            have += int((place < end).sum())
            batches.append(Drawn(query[taken[:end]], rank[taken[:end]], click[:end]))
        drawn = Drawn(
            np.concatenate([batch.query for batch in batches]),
            np.concatenate([batch.rank for batch in batches]),
            np.concatenate([batch.click for batch in batches]),
        )
        own = np.bincount(drawn.rank.ravel(), minlength=len(appeared))
        # A draw here stands for 1 / most draws of pairs clicked or not.
        return drawn, np.maximum(np.rint(appeared / most).astype(np.int64) - own, 0)

    def appear(self, random: np.random.Generator) -> tuple[Ints, Ints, Floats]:
        """query (B,), rank (B, m) and mean z (B,) of a batch of pairs."""
        ranks = len(self.p)
        query = random.integers(0, len(self.effect), self.batch)
        mean = random.uniform(1, ranks, self.batch)
        each = np.repeat(mean, self.appearances)
        rank = np.rint(each * (1 + self.spread * random.standard_normal(len(each))))
        outside = np.flatnonzero((rank < 1) | (rank > ranks))
        while len(outside):  # drawn again: the normal distribution, cut off at both ends
            again = random.standard_normal(len(outside))
            rank[outside] = np.rint(each[outside] * (1 + self.spread * again))
            outside = outside[(rank[outside] < 1) | (rank[outside] > ranks)]
        level = np.interp(mean, np.arange(1.0, ranks + 1), self.level)
        if self.effect.any():
            level = np.minimum(level * np.exp(self.effect[query]), MOST)
        return query, rank.astype(np.int64).reshape(self.batch, -1), level

    def give_up(self, usable: int, tried: int) -> None:
        """BadOption if so few of the pairs tried are usable that there is no end to it."""
        if tried >= 2_000_000 and usable / tried < 1e-5:
            raise BadOption(
                f"Only {usable:,} of {tried:,} pairs drawn are usable, so {self.n:,} would take "
                "too long. Use higher click rates or a wider spread."
            )


def _values(name: str, curve: Curve, ranks: int) -> Floats:
    """(R,): a curve's values, each above 0 and at most 1."""
    place = np.arange(1.0, ranks + 1)
    found = np.asarray(curve(place) if callable(curve) else curve, dtype=float)
    if found.shape != (ranks,):
        raise BadOption(f"{name} must have one number for each of {ranks} ranks.")
    if not (np.isfinite(found).all() and found.min() > 0 and found.max() <= 1):
        raise BadOption(f"{name} must lie above 0 and be at most 1 at every rank.")
    return found
