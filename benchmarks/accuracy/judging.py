"""Judgments against known relevances: `python -m benchmarks.accuracy.judging`.

Five worlds, in all of which clicks follow the curve: P(click) = p_rank z. They differ in how
relevance is spread, and in whether the ranker that made the log knew it. Propensities are estimated
from the same log, so that their error is part of it. Beside ours stand raw click rates, clicks over
exposure, and COEC as OpenSearch's Search Relevance Workbench has it: clicks over the click rate of
the pair's stored rank (here, the last it was shown at) times its impressions, with three decimals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import rankdrift as rd
from rankdrift.core.types import Floats, Ints
from rankdrift.judging.judgments import Judgments

SEEDS = (11, 12, 13)
QUERIES, DOCS, RANKS, SEARCHES = 400, 30, 15, 40_000
SLOPE = 0.9  # p_rank = rank ** -SLOPE
BINS = ((0, 1), (1, 5), (5, 50), (50, np.inf))
LARGE = 0.05  # share of pairs judged most relevant, whose coverage is told apart

Draw = Callable[[np.random.Generator], Floats]


def _expit(t: Floats) -> Floats:
    return 1 / (1 + np.exp(-t))


@dataclass(frozen=True)
class World:
    """relevance: draws z (QUERIES, DOCS); informed: how far the ranker's score follows it."""

    name: str
    relevance: Draw
    informed: float = 0.0


SHAPE = (QUERIES, DOCS)
WORLDS = (
    World("logit-normal", lambda rng: _expit(rng.normal(-3.0, 1.3, SHAPE))),
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


def ways(drawn: Drawn) -> Iterator[tuple[str, Ints, Ints, Floats, Judgments | None]]:
    """(name, query, doc, value, the judgments if it is ours) of each way to judge every pair."""
    log = rd.read_log(drawn.table, day="")
    p = rd.estimate(log, curve="loglog")
    found = {
        "ours": rd.judge(log, p, min_exposure=0),
        "ours, by query": rd.judge(log, p, by_query=True, min_exposure=0),
        "ours, old score": rd.judge(log, p, features="old_score", min_exposure=0),
        "ours, features": rd.judge(log, p, features=["old_score", "f_*"], min_exposure=0),
    }
    j = found["ours"]
    query, doc = j.queries[j.query, 0].astype(int), j.docs[j.doc].astype(int)
    yield "click rate", query, doc, j.clicks / j.appearances, None
    # COEC is 1 for what is expected, so it is set on the scale of relevances by their mean.
    yield "COEC, one rank", query, doc, coec(drawn.table, query, doc) * j.prior["mean"], None
    yield "clicks / exposure", query, doc, j.clicks / j.exposure, None
    for name, judged in found.items():
        yield name, query, doc, judged.relevance, judged


def coec(table: pa.Table, query: Ints, doc: Ints) -> Floats:
    """Clicks over those expected at the last rank that the pair was shown at."""
    rank, click = (np.asarray(table[name]) for name in ("rank", "click"))
    pair = np.asarray(table["query"]) * DOCS + np.asarray(table["doc"])
    shown = np.bincount(rank)
    rate = np.bincount(rank, click) / np.maximum(shown, 1)
    last = np.zeros(QUERIES * DOCS, int)
    last[pair] = rank  # rows are in the order of time: the last one stays
    expected = rate[last] * np.bincount(pair, minlength=QUERIES * DOCS)
    values = np.bincount(pair, click, QUERIES * DOCS) / np.maximum(expected, 1e-12)
    return np.round(np.where(expected > 0, values, 0.0), 3)[query * DOCS + doc]


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


@dataclass(frozen=True)
class Line:
    """How one way did in one world: rmse, ndcg, coverage by BINS and of LARGE."""

    rmse: float
    ndcg: float
    coverage: tuple[float, ...]


def score(drawn: Drawn, seed: int) -> dict[str, Line]:
    """Every way, against the truth."""
    lines = {}
    for name, query, doc, value, judged in ways(drawn):
        z = drawn.truth[query, doc]
        coverage = []
        if judged is not None:
            inside = (judged.low <= z) & (z <= judged.high)
            coverage = [
                float(inside[(judged.exposure >= low) & (judged.exposure < high)].mean())
                for low, high in BINS
            ]
            coverage.append(float(inside[value >= np.quantile(value, 1 - LARGE)].mean()))
        by = np.lexsort((doc, query))
        lines[name] = Line(
            float(np.sqrt(np.mean((value - z) ** 2))),
            ndcg(query[by], value[by], z[by], seed),
            tuple(coverage),
        )
    return lines


def run(worlds: tuple[World, ...] = WORLDS, seeds: tuple[int, ...] = SEEDS) -> str:
    """The table, as Markdown: means over seeds."""
    head = ["<1", "1–5", "5–50", ">50", "top 5%"]
    rows = [
        "| world | judged by | RMSE of z | NDCG@10 | covered: " + " | ".join(head) + " |",
        "|---|---|" + "---:|" * (2 + len(head)),
    ]
    for world in worlds:
        found = [score(draw(world, seed), seed) for seed in seeds]
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


if __name__ == "__main__":
    print(run())
