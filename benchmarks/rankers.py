"""True NDCG of rankers: on later days of the market, and on real features with made-up clicks.

Sizes, seeds and models were fixed before there were results; what `train` chooses from, and how,
was fixed on seeds 1, 11 and 12, which are not among these. "As ours" has the leaves, rows a leaf,
norm and clip that ours chose, as far as the library knows them.

Each case and seed is a line of rankers.jsonl, so that hours of them need not be made at once.

    python -m benchmarks rankers                 what is not there yet, by and by, and the tables
    python -m benchmarks.rankers market 2000 31  one case and seed
    python -m benchmarks.rankers show            the tables of what is there

RANKDRIFT_DATA names a folder with `lambdarank`, LightGBM's example set; RANKDRIFT_MSLR the source
package of rankeval 0.8.2 (rankeval-0.8.2.tar.gz), which has a sample of MSLR-WEB10K.
"""

from __future__ import annotations

import argparse
import json
import os
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import measure
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.judging.shrinkage import Evidence, fit_prior, posterior
from rankdrift.log.log import Log, read_log
from rankdrift.methods.em_features import regression_em
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.gains import Weighting, keys_of_rows
from rankdrift.ranking.matrix import Matrix, key_of
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.measures import measures
from rankdrift.ranking.ranker import Ranker
from rankdrift.ranking.training import train
from rankdrift.reproduce import real_features
from rankdrift.reproduce.models import OURS, lightgbm_positions, xgboost_unbiased
from rankdrift.reproduce.real_features import Labelled
from rankdrift.simulate import market
from rankdrift.simulate.marketplace import MARKET_QUERY, SAME_QUERY_SAME_RELEVANCE

SIZES = (2_000, 8_000, 40_000)
SEEDS = (31, 32, 33, 34, 35)
TEST = 3_000  # searches
EM_SEARCHES = 8_000  # that EM learns from at most, clicked or not
EM_TOLERANCE = 0.02  # of log p: enough to weigh clicks with
ROWS_A_SEARCH = 400  # of all platforms and sorts, for a search with a click that can be used
TEST_ROWS = 900_000
SEARCHES_A_QUERY = 4
SHOWN = 40  # searches that show each query of a real set
DEPTH = 50  # results that such a search shows, at most
# Share of the queries of a real set that rankers are judged on, others for each seed.
APART = 0.25
MSLR_FILES = tuple(
    f"rankeval-0.8.2/rankeval/test/data/msn1.fold1.{part}.5k.txt" for part in ("train", "test")
)
MSLR_FEATURES = 136


KEPT = Path(__file__).with_suffix(".jsonl")


@dataclass(frozen=True)
class Case:
    """What rankers learn from, with EM's curve too, and how they are judged."""

    rows: Matrix
    curve: Propensities
    em: Propensities | None
    ndcg: Callable[[Ranker], float]


def run(rows: int) -> dict[str, Any]:
    """At sizes that need no more than `rows` results shown to learn from."""
    wanted = [("market", size) for size in SIZES if size * ROWS_A_SEARCH <= rows]
    sets = {"RANKDRIFT_DATA": "lightgbm", "RANKDRIFT_MSLR": "mslr"}
    wanted += [(case, SHOWN) for variable, case in sets.items() if variable in os.environ]
    there = {(line["case"], line["seed"]) for line in kept()}
    for seed in SEEDS:
        for case, size in wanted:
            if (f"{case} {size}", seed) not in there:
                make(case, size, seed)
    return show_all()


def make(case: str, size: int, seed: int, only: tuple[str, ...] = ()) -> None:
    """One case and seed, kept."""
    values, chosen = scores(CASES[case](size, seed), seed, only)
    line = {"case": f"{case} {size}", "seed": seed, "NDCG": values, "chosen": chosen}
    with KEPT.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def kept() -> list[dict[str, Any]]:
    """What was made so far."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []


def show_all() -> dict[str, Any]:
    """A table for each case."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(line["case"] for line in kept()):
        runs = [line["NDCG"] for line in kept() if line["case"] == name]
        every = [model for model in runs[0] if all(model in run for run in runs)]
        found[name] = {model: [run[model] for run in runs] for model in every}
        show(name, found[name])
    return found


def show(name: str, found: dict[str, list[float]]) -> None:
    """As a table, with 95% intervals over seeds."""
    ours = np.array(found[OURS])
    measure.show(
        f"Rankers: {name}",
        ("model", "true NDCG", "ours above", "±"),
        (
            (model, *(f"{n:.4f}" for n in (np.mean(v), (ours - v).mean(), half_width(ours - v))))
            for model, v in found.items()
        ),
        f"{len(ours)} seeds; ± is half of a 95% interval of the difference over seeds.",
    )


def half_width(differences: np.ndarray) -> float:
    """Of the 95% interval of their mean, by Student's t."""
    from scipy.stats import t

    n = len(differences)
    return float(t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def scores(
    case: Case, seed: int, only: tuple[str, ...] = ()
) -> tuple[dict[str, float], dict[str, Any]]:
    """NDCG of each model on a case, or of ours and those named only; and what ours chose."""
    rows, common = case.rows.only_clicked(), {"seed": seed, "threads": 1}
    weighed: dict[str, Any] = {"propensities": case.curve, "beyond": "clip", **common}
    ours = train(rows, **weighed)
    same = {name: ours.options[name] for name in ("leaves", "min_rows")}
    own: dict[str, Any] = {**same, "fixed": True}
    norm = {"norm": ours.options["norm"]}
    limit = ours.options["clip"] or np.inf
    models: dict[str, Callable[[], Ranker]] = {
        OURS: lambda: ours,
        "ours, --fixed": lambda: train(rows, fixed=True, **weighed),
        "ours, dr": lambda: train(rows, gains="dr", **own, **norm, **weighed),
        "ours, poisson": lambda: train(rows, gains="poisson", **own, **weighed),
        "ours, judgments": lambda: train(
            rows, gains=judgments(case.rows, case.curve), **own, **norm, **weighed
        ),
        "biased": lambda: train(rows, **common),
        "biased, as ours": lambda: train(rows, **own, **norm, **common),
        "LightGBM positions, as ours": lambda: lightgbm_positions(rows, **same, **common),
        "dual learning, as ours": lambda: train(
            rows, **own, clip=limit, propensities="dual", **common
        ),
        "XGBoost unbiased, as ours": lambda: xgboost_unbiased(
            rows, leaves=same["leaves"], **common
        ),
    }
    if case.em is not None:
        models["EM, as ours"] = lambda: train(
            rows, **own, **norm, clip=limit, **{**weighed, "propensities": case.em}
        )
    wanted = {n: grow for n, grow in models.items() if not only or n == OURS or n in only}
    return {name: case.ndcg(grow()) for name, grow in wanted.items()}, {
        name: ours.options[name] for name in ("leaves", "min_rows", "norm", "clip")
    }


def judgments(matrix: Matrix, curve: Propensities) -> Any:
    """Empirical-Bayes relevance of each query and doc of a matrix, as `judge` gives it of a log."""
    assert matrix.doc is not None
    p = Weighting(curve, None, "clip", False).looked_at(matrix)
    docs, doc = np.unique(matrix.doc.astype(str), return_inverse=True)
    pairs, of_row = np.unique(matrix.query * len(docs) + doc, return_inverse=True)
    clicks, exposure, squares = (np.bincount(of_row, v) for v in (matrix.click, p, p**2))
    evidence = Evidence(clicks, exposure, squares, np.ones(len(pairs)))
    location = np.full(len(pairs), np.log(clicks.sum() / exposure.sum()))
    prior = fit_prior(evidence, location)
    known = posterior(evidence, location, prior)
    return SimpleNamespace(
        queries=np.array([[text] for text in matrix.source["texts"]]), docs=docs,
        query=pairs // len(docs), doc=pairs % len(docs), relevance=known.mean,
        prior={"relevance": float(known.mean.mean())},
    )  # fmt: skip


# -- cases -----------------------------------------------------------------------------------------


def market_case(size: int, seed: int) -> Case:
    """So many searches with a click of the market, judged on later days."""
    with tempfile.TemporaryDirectory(prefix="rankdrift-rankers-") as folder:
        options: dict[str, Any] = {
            "queries": max(size // SEARCHES_A_QUERY, 300), "seed": seed, "days": 4, "labels": True,
        }  # fmt: skip
        made = market(Path(folder) / "a", rows=size * ROWS_A_SEARCH, start="2024-01-01", **options)
        later = market(Path(folder) / "b", rows=TEST_ROWS, start="2024-01-05", **options)
        log = _log(made.paths)
        rows = _some(read_matrix(log, searches="clicked", docs=True), size)
        curve = estimate(harvest(log), curve="loglog", errors="model")
        every = _some(read_matrix(log), min(size, EM_SEARCHES))
        em = regression_em(every, bootstrap=0, seed=seed, threads=1, tolerance=EM_TOLERANCE)
        del every
        test = _some(read_matrix(_log(later.paths), relevance="relevance"), TEST)
    return Case(_named(rows), curve, em, _later(test))


def _later(test: Matrix) -> Callable[[Ranker], float]:
    return lambda ranker: measures(test, ranker.predict(test), None)["true NDCG"].value


def _named(rows: Matrix) -> Matrix:
    """Queries called by numbers, so that judgments made here know them again."""
    texts = [str(number) for number in range(rows.n_queries)]
    keys = np.array([key_of(text) for text in texts], np.uint64)
    return replace(rows, query_keys=keys, source={**rows.source, "texts": texts})


def _log(paths: Any) -> Log:
    return read_log(
        paths, query=MARKET_QUERY, doc="doc", rank="rank", click="click", same="price", day="day",
        time="time", search="search", max_rank=100,
        where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = 'web'",
    )  # fmt: skip


def _some(matrix: Matrix, searches: int) -> Matrix:
    """So many searches, by lot."""
    kept = np.zeros(matrix.n_searches, bool)
    kept[np.random.default_rng(0).permutation(matrix.n_searches)[:searches]] = True
    return matrix.take(kept[matrix.search])


def real_case(data: Labelled, shown: int, seed: int) -> Case:
    """Made-up clicks on some of the queries, judged by the labels of the others."""
    queries = int(data.query.max()) + 1
    apart = np.random.default_rng([seed, 7]).permutation(queries) < round(APART * queries)
    learn, test = (_part(data, apart[data.query] == out) for out in (False, True))
    rng = np.random.default_rng(seed)
    weak = real_features._weak_ranker(learn, rng)
    rows, curves = real_features._clicks(learn, weak, shown, rng, False, 1, DEPTH)
    doc = keys_of_rows(rows)
    return Case(
        _named(replace(rows, doc=doc.astype(str))), curves[OURS], None,
        lambda ranker: real_features.judge(test, ranker.predict(test.x)),
    )  # fmt: skip


def _part(data: Labelled, mask: np.ndarray) -> Labelled:
    query = np.unique(data.query[mask], return_inverse=True)[1]
    return Labelled(data.x[mask], data.label[mask], query)


def lightgbm_example() -> Labelled:
    """Both parts of LightGBM's example set: 251 queries, 300 features."""
    folder = Path(os.environ["RANKDRIFT_DATA"]) / "lambdarank"
    learn = real_features.read_svmlight(folder / "rank.train.gz")
    test = real_features.read_svmlight(folder / "rank.test.gz", learn.x.shape[1])
    return Labelled(
        np.concatenate([learn.x, test.x]), np.concatenate([learn.label, test.label]),
        np.concatenate([learn.query, test.query + learn.query.max() + 1]),
    )  # fmt: skip


def mslr_sample() -> Labelled:
    """The sample of MSLR-WEB10K in rankeval's source package: 86 queries, 10,000 docs."""
    lines = []
    with tarfile.open(os.environ["RANKDRIFT_MSLR"]) as package:
        for name in MSLR_FILES:
            part = package.extractfile(name)
            assert part is not None
            cells = (line.split() for line in part.read().decode().splitlines())
            lines += [(f"{name} {c[1]}", c) for c in cells]
    x = np.array([[float(v.split(":")[1]) for v in c[2 : 2 + MSLR_FEATURES]] for _, c in lines])
    # The weak ranker is linear: logs and deviations, for the range of these features is huge.
    x = np.sign(x) * np.log1p(np.abs(x))
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-6)
    query = np.unique([text for text, _ in lines], return_inverse=True)[1]
    order = np.argsort(query, kind="stable")
    label = np.array([int(c[0]) for _, c in lines])
    return Labelled(x[order].astype(np.float32), label[order], query[order])


# -- one case at a time ----------------------------------------------------------------------------

CASES: dict[str, Callable[[int, int], Case]] = {
    "market": market_case,
    "lightgbm": lambda shown, seed: real_case(lightgbm_example(), shown, seed),
    "mslr": lambda shown, seed: real_case(mslr_sample(), shown, seed),
}


def main() -> None:
    """One case and seed, or what there is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rankers")
    parser.add_argument("case", choices=(*CASES, "show"))
    parser.add_argument("size", type=int, nargs="?", help="searches, or how often a query is shown")
    parser.add_argument("seed", type=int, nargs="?")
    parser.add_argument("--models", default="", help="beside ours, with ; between; default: all")
    given = parser.parse_args()
    if given.case == "show":
        show_all()
    elif given.seed is None:
        parser.error("say how large, and which seed")
    else:
        make(given.case, given.size, given.seed, tuple(filter(None, given.models.split(";"))))


if __name__ == "__main__":
    main()
