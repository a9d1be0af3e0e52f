"""Judgments against known relevances: `python -m benchmarks.accuracy.judging [--plain]`.

Seven worlds, in all of which clicks follow the curve: P(click) = p_rank z. They differ in how
relevance is spread, and in whether the ranker that made the log knew it. Propensities are estimated
from the same log, so that their error is part of it. Beside ours stand raw click rates, clicks over
exposure, and COEC as OpenSearch's Search Relevance Workbench has it: clicks over the click rate of
the best rank that the pair was ever shown at, times its impressions, with three decimals. Where a
world's relevances follow a mixture, it also stands there as the prior, with the true curve: nobody
can know more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import rankdrift as rd
from rankdrift.core.types import Floats, Ints
from rankdrift.judging.judgments import Judgments, chance_above
from rankdrift.judging.shrinkage import Evidence, Posterior, Prior, posterior

SEEDS = (51, 52, 53, 54)
QUERIES, DOCS, RANKS, SEARCHES = 400, 30, 15, 40_000
SLOPE = 0.9  # p_rank = rank ** -SLOPE
BINS = ((0, 1), (1, 5), (5, 50), (50, np.inf))
LARGE = 0.05  # share of pairs judged most relevant, or that are, whose coverage is told apart
SURE = 0.95  # how likely one doc must be more relevant than another to be called so

Draw = Callable[[np.random.Generator], Floats]


def _expit(t: Floats) -> Floats:
    return 1 / (1 + np.exp(-t))


@dataclass(frozen=True)
class World:
    """relevance: draws z (QUERIES, DOCS); informed: how far the ranker's score follows it; prior:
    what all logits follow, if they follow one."""

    name: str
    relevance: Draw
    informed: float = 0.0
    prior: Prior | None = None


SHAPE = (QUERIES, DOCS)
WORLDS = (
    World(
        "logit-normal",
        lambda rng: _expit(rng.normal(-3.0, 1.3, SHAPE)),
        prior=Prior((1.0,), (-3.0,), (1.3,)),
    ),
    World("beta", lambda rng: np.clip(rng.beta(0.6, 6.0, SHAPE), 1e-6, 1)),
    World(
        "two kinds",
        lambda rng: np.where(
            rng.random(SHAPE) < 0.8, rng.uniform(0.005, 0.03, SHAPE), rng.uniform(0.1, 0.5, SHAPE)
        ),
    ),
    World(
        "queries differ",
        lambda rng: _expit(rng.normal(-3.0, 1.2, (QUERIES, 1)) + rng.normal(0, 0.8, SHAPE)),
    ),
    World("informed ranker", lambda rng: _expit(rng.normal(-3.0, 1.3, SHAPE)), informed=0.8),
    World(
        "mostly nothing",
        lambda rng: np.where(rng.random(SHAPE) < 0.6, 1e-9, _expit(rng.normal(-2.5, 1.0, SHAPE))),
    ),
    World("informed, beta", lambda rng: np.clip(rng.beta(0.6, 6.0, SHAPE), 1e-6, 1), informed=0.8),
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A log as a table, and the relevance (QUERIES, DOCS) behind its clicks."""

    table: pa.Table
    truth: Floats


def draw(world: World, seed: int) -> Drawn:
    """Searches of queries that are asked for unequally often; docs drift about their places. The
    log has the score of the ranker, and a feature that tells some of the relevance."""
    rng = np.random.default_rng(seed)
    z = world.relevance(rng)
    logit = np.log(z / (1 - np.minimum(z, 1 - 1e-9)))
    told = (logit - logit.mean()) / logit.std()
    score = world.informed * told + np.sqrt(1 - world.informed**2) * rng.normal(size=SHAPE)
    popular = rng.gamma(0.4, 1.0, QUERIES)
    query = rng.choice(QUERIES, SEARCHES, p=popular / popular.sum())
    order = np.argsort(-(score[query] + 0.5 * rng.normal(size=(SEARCHES, DOCS))), axis=1)
    doc = order[:, :RANKS].ravel()
    rank = np.tile(np.arange(1, RANKS + 1), SEARCHES)
    of = np.repeat(query, RANKS)
    click = rng.random(len(rank)) < rank**-SLOPE * z[of, doc]
    feature = 0.7 * told + np.sqrt(1 - 0.7**2) * rng.normal(size=SHAPE)
    columns = {
        "search": np.repeat(np.arange(SEARCHES), RANKS),
        "query": of,
        "doc": doc,
        "rank": rank,
        "click": click.astype(int),
        "old_score": score[of, doc],
        "f_feature": feature[of, doc],
    }
    return Drawn(pa.table(columns), z)


@dataclass(frozen=True, eq=False)
class Way:
    """How every pair was judged: query, doc, value and exposure (N,); what is known of it, if that
    is told."""

    name: str
    query: Ints
    doc: Ints
    value: Floats
    exposure: Floats
    known: Judgments | Posterior | None = None


def ways(drawn: Drawn, world: World, plain: bool = False) -> Iterator[Way]:
    """Each way to judge every pair; plain: ours alone, without features."""
    log = rd.read_log(drawn.table, day="")
    p = rd.estimate(log, curve="loglog")
    j = rd.judge(log, p, min_exposure=0)
    pairs = (j.queries[j.query, 0].astype(int), j.docs[j.doc].astype(int))
    if plain:
        yield Way("ours", *pairs, j.relevance, j.exposure, j)
        return
    found = {
        "ours": j,
        "ours, by query": rd.judge(log, p, by_query=True, min_exposure=0),
        "ours, old score": rd.judge(log, p, features="old_score", min_exposure=0),
        "ours, features": rd.judge(log, p, features=["old_score", "f_*"], min_exposure=0),
    }
    yield Way("click rate", *pairs, j.clicks / j.appearances, j.exposure)
    # COEC is 1 for what is expected, so it is set on the scale of relevances by their mean.
    scaled = coec(drawn.table, *pairs) * j.prior["mean"]
    yield Way("COEC, best rank", *pairs, scaled, j.exposure)
    yield Way("clicks / exposure", *pairs, j.clicks / j.exposure, j.exposure)
    for name, judged in found.items():
        yield Way(name, *pairs, judged.relevance, j.exposure, judged)
    if world.prior:
        known = posterior(evidence(drawn.table, *pairs), np.zeros(len(j)), world.prior)
        yield Way("the world's prior", *pairs, known.mean, j.exposure, known)


def _columns(table: pa.Table) -> tuple[Ints, Ints, Ints]:
    """rank, click and the number of the pair, a row each."""
    query, doc, rank, click = (np.asarray(table[n]) for n in ("query", "doc", "rank", "click"))
    return rank, click, query * DOCS + doc


def coec(table: pa.Table, query: Ints, doc: Ints) -> Floats:
    """Clicks over those expected at the best rank that the pair was shown at."""
    rank, click, pair = _columns(table)
    shown = np.bincount(rank)
    rate = np.bincount(rank, click) / np.maximum(shown, 1)
    best = np.full(QUERIES * DOCS, RANKS)
    np.minimum.at(best, pair, rank)
    expected = rate[best] * np.bincount(pair, minlength=QUERIES * DOCS)
    values = np.bincount(pair, click, QUERIES * DOCS) / np.maximum(expected, 1e-12)
    return np.round(np.where(expected > 0, values, 0.0), 3)[query * DOCS + doc]


def evidence(table: pa.Table, query: Ints, doc: Ints) -> Evidence:
    """What the clicks say under the true curve."""
    rank, click, pair = _columns(table)
    p = rank**-SLOPE
    sums = (np.bincount(pair, of, QUERIES * DOCS)[query * DOCS + doc] for of in (click, p, p**2))
    return Evidence(*sums, np.ones(len(query)))


def ndcg(query: Ints, value: Floats, truth: Floats, seed: int) -> float:
    """NDCG@10 with the relevance as gain, mean over queries; ties in random order."""
    chance = np.random.default_rng(seed).random(len(query))

    def dcg(by: Floats) -> Floats:
        order = np.lexsort((chance, -by, query))
        starts = np.searchsorted(query[order], query[order])
        place = np.arange(len(order)) - starts
        kept = place < 10
        worth = truth[order][kept] / np.log2(place[kept] + 2)
        return np.bincount(query[order][kept], worth, QUERIES)

    best = dcg(truth)
    return float((dcg(value)[best > 0] / best[best > 0]).mean())


def coverage(way: Way, z: Floats) -> list[float]:
    """By BINS, of those judged LARGE, of those that are; and how many of the docs that are SURE to
    be more relevant than another of their query are."""
    known = way.known
    if known is None:
        return []
    inside = (known.low <= z) & (z <= known.high)
    shares = [inside[(way.exposure >= low) & (way.exposure < high)] for low, high in BINS]
    shares += [inside[by >= np.quantile(by, 1 - LARGE)] for by in (way.value, z)]
    logit, sd, truth = (np.full(SHAPE, np.nan) for _ in range(3))
    for grid, values in ((logit, known.logit), (sd, known.logit_sd), (truth, z)):
        grid[way.query, way.doc] = values
    away = logit[:, :, None] - logit[:, None, :]
    with np.errstate(invalid="ignore"):
        sure = chance_above(away, np.hypot(sd[:, :, None], sd[:, None, :])) >= SURE
        shares.append((truth[:, :, None] > truth[:, None, :])[sure])
    return [float(share.mean()) for share in shares]


@dataclass(frozen=True)
class Line:
    """How one way did in one world: rmse, ndcg and what `coverage` tells."""

    rmse: float
    ndcg: float
    coverage: tuple[float, ...]


def score(drawn: Drawn, world: World, seed: int, plain: bool = False) -> dict[str, Line]:
    """Every way, against the truth."""
    lines = {}
    for way in ways(drawn, world, plain):
        z = drawn.truth[way.query, way.doc]
        by = np.lexsort((way.doc, way.query))
        lines[way.name] = Line(
            float(np.sqrt(np.mean((way.value - z) ** 2))),
            ndcg(way.query[by], way.value[by], z[by], seed),
            tuple(coverage(way, z)),
        )
    return lines


def run(worlds: Sequence[World] = WORLDS, seeds: Sequence[int] = SEEDS, plain: bool = False) -> str:
    """The table, as Markdown: means over seeds."""
    head = ["<1", "1–5", "5–50", ">50", "judged top 5%", "true top 5%", "sure and right"]
    rows = [
        "| world | judged by | RMSE of z | NDCG@10 | covered: " + " | ".join(head) + " |",
        "|---|---|" + "---:|" * (2 + len(head)),
    ]
    for world in worlds:
        found = [score(draw(world, seed), world, seed, plain) for seed in seeds]
        for name in found[0]:
            lines = [one[name] for one in found]
            numbers = [
                np.mean([line.rmse for line in lines]),
                np.mean([line.ndcg for line in lines]),
            ]
            cells = [f"{number:.3f}" for number in numbers]
            covered = np.mean([line.coverage for line in lines], axis=0)
            cells += [f"{share:.3f}" for share in covered] or [""] * len(head)
            rows.append(f"| {world.name} | {name} | {' | '.join(cells)} |")
        print("\n".join(rows[-len(found[0]) :]), file=sys.stderr, flush=True)
    return "\n".join(rows)


def main() -> None:
    """The whole table, or a part of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.judging")
    names = [world.name for world in WORLDS]
    parser.add_argument("--world", action="append", choices=names, help="as often as you like")
    parser.add_argument("--plain", action="store_true", help="ours alone, without features")
    asked = parser.parse_args()
    print(run([w for w in WORLDS if w.name in (asked.world or names)], plain=asked.plain))


if __name__ == "__main__":
    main()
