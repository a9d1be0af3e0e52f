"""How many trees regression EM grows: `python -m benchmarks.rivals trees`.

That decides what it says. Its error by number of trees, beside how likely they make the clicks of
queries held out, by which one could choose without knowing the truth: in small worlds where its
features tell all that relevance and rank have in common, and in the simulated marketplace. There
they do not, however well relevance is learnt from them, as trees grown on the true relevance show.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from benchmarks.measure import show
from rankdrift import Matrix, read_log, read_matrix
from rankdrift.methods import em_features
from rankdrift.methods.em_features import regression_em
from rankdrift.methods.rank_times_stratum import solve_factor
from rankdrift.simulate import market
from rankdrift.simulate.marketplace import MARKET_QUERY, SAME_QUERY_SAME_RELEVANCE
from tests.support.method_world import made

TREES = (10, 20, 40, 80)
BLOCKS = ((1, 1), (2, 5), (6, 10), (11, 20), (21, 40), (41, 60))


def judge_trees() -> dict[str, Any]:
    """Errors of log p by number of trees, and what clicks held out say of each."""
    # Trees can tell relevance exactly.
    exact = made(0, hidden=0.0, queries=600, searches=20, levels=3, level=0.4)
    smooth = made(0, hidden=0.0, queries=300, searches=20)
    features = ["f_good", "f_place"]
    some, truth = _market()
    return {
        "few values": _by_trees(
            "Two features of few values tell all, learning rate 0.3",
            read_matrix(exact.log(threads=1), features=features),
            exact.log_p,
            learning_rate=0.3,
        ),
        "features tell all": _by_trees(
            "Two features tell all",
            read_matrix(smooth.log(threads=1), features=features),
            smooth.log_p,
        ),
        "market": _by_trees("The marketplace, web, 25 features", some, truth),
        "what features leave out": _left_out(some),
        "without chance": _without_chance(some, truth),
    }


def _market() -> tuple[Matrix, Any]:
    with tempfile.TemporaryDirectory() as folder:
        made_up = market(folder, rows=800_000, days=4, queries=1000, seed=1, labels=True)
        log = read_log(
            [str(path) for path in made_up.paths],
            query=MARKET_QUERY,
            same="price",
            day="day",
            time="time",
            search="search",
            max_rank=BLOCKS[-1][1],
            where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = 'web'",
        )
        matrix = read_matrix(log, features="f_*", relevance="relevance")
    log_p = np.log(made_up.propensities["web"][: BLOCKS[-1][1]])
    return matrix, log_p - log_p[0]


def _by_trees(title: str, matrix: Matrix, log_p: Any, **options: float) -> dict[str, Any]:
    rows = []
    for trees in TREES:
        curve = regression_em(matrix, trees=trees, bootstrap=0, threads=1, **options)
        off = curve.log_p - log_p[curve.ranks - 1]
        weight = curve.clicks * (curve.ranks > 1)
        rows.append(
            {
                "trees": trees,
                "rounds": curve.provenance["rounds"],
                "mean error": float(weight @ off / weight.sum()),
                "at rank 10": float(off[curve.ranks == 10][0]),
                "at the last ten": float(off[curve.ranks > len(log_p) - 10].mean()),
                "held out": _held_out(matrix, trees, **options),
            }
        )
    best = max(row["held out"] for row in rows)
    shown = ("mean error", "at rank 10", "at the last ten")
    show(
        f"{title}: {len(matrix):,} rows, {matrix.n_clicks:,} clicks, {len(log_p)} ranks",
        list(rows[0]),
        [
            [
                row["trees"],
                row["rounds"],
                *(f"{row[name]:+.2f}" for name in shown),
                f"{row['held out'] - best:+.1f}",
            ]
            for row in rows
        ],
        "Errors of log p, the mean weighted by clicks. Held out: log-likelihood of the clicks of a "
        "fifth of the queries, less the largest.",
    )
    return {"rows": rows}


def _held_out(matrix: Matrix, trees: int, **options: float) -> float:
    """Log-likelihood of the clicks of a fifth of the queries, p and z learnt from the others."""
    import lightgbm

    curve = regression_em(
        matrix.take(~_fifth(matrix)), trees=trees, bootstrap=0, threads=1, **options
    )
    matrix = matrix.take(np.isin(matrix.rank, curve.ranks))
    apart = _fifth(matrix)
    chosen = em_features.Options(trees=trees, threads=1, **options)  # type: ignore[arg-type]
    rows, _, _, _, inside = em_features._clicked_ranks(matrix, 1)
    data = em_features._dataset(lightgbm, matrix, inside, chosen)
    p, weight = np.exp(curve.log_p - curve.log_p.max()), (~apart).astype(np.float32)
    level = em_features._log_odds(float(weight @ rows.click) / float(weight @ p[rows.rank]))
    log_z = np.log(em_features._boost(lightgbm, data, rows, p, weight, level, chosen))
    clicks, misses = weight * rows.click, weight * ~rows.click
    log_p = np.minimum(solve_factor(rows.rank, rows.ranks, log_z, clicks, misses), 0)
    chance = np.exp(log_p[rows.rank] + log_z)[apart]
    return float(np.log(np.where(rows.click[apart], chance, 1 - chance)).sum())


def _fifth(matrix: Matrix) -> Any:
    return (matrix.query_keys % 5 == 0)[matrix.query]


def _left_out(matrix: Matrix) -> dict[str, float]:
    """Mean relevance over what trees make of the features, grown on the true relevance of the other
    half of the queries: by rank it would be the same if features told all."""
    import lightgbm

    half = np.random.default_rng(0).integers(0, 2, matrix.n_queries)[matrix.query] == 0
    learnt = np.empty(len(matrix))
    params = {"objective": "cross_entropy", "verbosity": -1, "num_threads": 1, "seed": 0}
    for part in (half, ~half):
        data = lightgbm.Dataset(matrix.x[~part], label=matrix.relevance[~part])
        learnt[part] = lightgbm.train(params, data, 300).predict(matrix.x[part])
    found = {}
    for first, last in BLOCKS:
        inside = (matrix.rank >= first) & (matrix.rank <= last)
        name = f"{first}-{last}" if last > first else str(first)
        found[name] = float(matrix.relevance[inside].mean() / learnt[inside].mean())
    show(
        "The marketplace: true relevance over what its features tell of it, by rank",
        list(found),
        [[f"{share:.2f}" for share in found.values()]],
        "300 trees, grown on the true relevance of other queries.",
    )
    return found


def _without_chance(matrix: Matrix, log_p: Any) -> dict[str, float]:
    """The mean error with every click replaced by its true chance: each row is there twice, clicked
    with that weight and missed with what is left of 1."""
    import lightgbm

    rank = (matrix.rank - 1).astype(np.intp)
    chance = np.exp(log_p[rank]) * matrix.relevance
    twice = np.concatenate([matrix.x, matrix.x])
    none = np.zeros(len(twice), np.intp)
    rows = em_features._Rows(np.tile(rank, 2), np.arange(len(twice)) < len(rank), none, len(log_p))
    weight = np.concatenate([chance, 1 - chance]).astype(np.float32)
    clicks, shown = (np.bincount(rank, w, len(log_p)) for w in (chance, np.ones(len(rank))))
    found = {}
    for trees in TREES:
        options = em_features.Options(trees=trees, threads=1)
        data = lightgbm.Dataset(twice, label=none.astype(np.float32), params=options.params())
        start = np.log(clicks / shown)
        fit = em_features._alternate(lightgbm, data.construct(), rows, start, weight, 0, options)
        off = fit.log_p - fit.log_p[0] - log_p
        found[str(trees)] = float(clicks[1:] @ off[1:] / clicks[1:].sum())
    show(
        "The marketplace, with the chance of a click instead of the click: mean error by trees",
        list(found),
        [[f"{error:+.2f}" for error in found.values()]],
        "Errors of log p, weighted by clicks, as above.",
    )
    return found
