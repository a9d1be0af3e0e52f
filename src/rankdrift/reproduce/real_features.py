"""Real features and labels, made-up clicks: rankers judged by labels that people gave.

A ranking set in SVMlight's form (LightGBM's example has 201 training and 50 test queries). A weak
ranker, learnt from a few labelled queries, shows each query's docs many times in an order that
drifts; clicks follow Eq. (1), prob-click, with propensity 1 / rank and relevance from the label.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.database import connect
from rankdrift.core.errors import BadLog, BadOption
from rankdrift.core.types import Bools, Floats, Ints
from rankdrift.core.words import many
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.measures import measures
from rankdrift.ranking.training import train
from rankdrift.reproduce.models import (
    EM,
    MODELS,
    NORMED,
    ORACLE,
    OURS,
    trained,
    true_curve,
)

DAYS, A_DAY = 10, 4  # searches of a query are spread over so many days, or so many are on one
KNOWN = 0.05  # share of training queries whose labels the weak ranker knows
DRIFT = 0.5  # deviation of its score from search to search, in deviations of the score
NOISE = 0.1  # chance of a click on what is irrelevant, once seen
BEST = 4  # the highest label
FEWEST = 2  # queries: the weak ranker is to know some, and not all


@dataclass(frozen=True)
class Labelled:
    """x (N, F); label (N,) 0 to 4; query (N,) from 0, rows of a query together."""

    x: NDArray[np.float32]
    label: Ints
    query: Ints

    @property
    def gain(self) -> Floats:
        """(N,): 2 ** label - 1, as NDCG counts labels."""
        return np.exp2(self.label.astype(np.float64)) - 1

    @property
    def relevance(self) -> Floats:
        """P(click | seen)."""
        return NOISE + (1 - NOISE) * self.gain / (2.0**BEST - 1)


def read_svmlight(path: str | os.PathLike[str], features: int | None = None) -> Labelled:
    """A file of `label index:value …`, with the sizes of queries in a `.query` beside it."""
    file = Path(path)
    beside = file.with_name(file.name.removesuffix(".gz") + ".query")
    try:
        text = file.read_bytes()
        text = gzip.decompress(text) if file.suffix == ".gz" else text
        rows = [line.split() for line in text.decode().splitlines() if line.strip()]
        sizes = [int(line) for line in beside.read_text().split()]
        cells = [cell.split(":") for row in rows for cell in row[1:]]
        columns = np.array([int(column) for column, _ in cells], np.int64)
        values = np.array([float(value) for _, value in cells])
        label = np.array([int(float(row[0])) for row in rows], np.int64)
    except (OSError, EOFError, zlib.error) as error:
        raise BadLog(f"Cannot read the ranking set {str(file)!r}: {error}.") from None
    except ValueError as error:
        raise BadLog(
            f"{file.name} is no ranking set: rows are `label index:value …`, and {beside.name} has "
            f"the sizes of queries, a number a line ({error})."
        ) from None
    if sum(sizes) != len(rows):
        raise BadLog(f"{file.name} has {many(len(rows), 'row')}, but its queries {sum(sizes):,}.")
    if len(sizes) < FEWEST or not len(cells) or columns.min() < 0:
        raise BadLog(
            f"{file.name} has {many(len(sizes), 'query', 'queries')} and "
            f"{many(len(cells), 'value')} of features, which "
            f"count from 0. Give {FEWEST} queries or more."
        )
    if label.min() < 0 or label.max() > BEST:
        raise BadLog(
            f"{file.name} has labels from {label.min()} to {label.max()}; they must be from 0 to "
            f"{BEST}."
        )
    lines = np.repeat(np.arange(len(rows)), [len(row) - 1 for row in rows])
    x = np.zeros((len(rows), features or int(columns.max()) + 1), np.float32)
    inside = columns < x.shape[1]
    x[lines[inside], columns[inside]] = values[inside]
    return Labelled(x, label, np.repeat(np.arange(len(sizes)), sizes))


def reproduce_real(
    train_file: str | os.PathLike[str],
    test_file: str | os.PathLike[str],
    *,
    seeds: Sequence[int] = (1, 2, 3),
    models: Sequence[str] = MODELS,
    trees: int = 100,
    searches: int = 40,
    threads: int | None = None,
    say: Callable[[str], None] | None = None,
) -> dict[str, list[float]]:
    """Train rankers on made-up clicks on real features, and judge them by the labels.

    Parameters
    ----------
    train_file, test_file
        Ranking sets as `read_svmlight` reads them.
    seeds
        Of all that is random, once for each.
    models
        Some of MODELS.
    trees
        Of each.
    searches
        That show each training query.
    threads
        Of the trees; None: all cores.
    say
        Called with what is being done.

    Returns
    -------
    dict
        By model the NDCG of the test queries, a value for each seed. "labels" is a ranker that
        learnt from the labels themselves, "shown" the weak ranker.
    """
    if searches < 1 or not seeds:
        raise BadOption(
            f"Show each query once or more, with one seed or more, not {searches} times with "
            f"{len(seeds)}."
        )
    learn = read_svmlight(train_file)
    test = read_svmlight(test_file, learn.x.shape[1])
    found: dict[str, list[float]] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        weak = _weak_ranker(learn, rng)
        found.setdefault("shown", []).append(judge(test, test.x @ weak))
        rows, curves = _clicks(learn, weak, searches, rng, EM in models, threads)
        options: dict[str, Any] = {"trees": trees, "seed": seed, "threads": threads}
        for model in models:
            if say:
                say(f"Seed {seed}: training {model}.")
            made = trained(model, rows.only_clicked(), curves.get(model), options)
            found.setdefault(model, []).append(judge(test, made.predict(test.x)))
        best = train(_every_label(learn), name="labels", fixed=True, **options)
        found.setdefault("labels", []).append(judge(test, best.predict(test.x)))
    return found


def as_text(found: Mapping[str, Sequence[float]]) -> str:
    """Mean and deviation over seeds."""
    lines = [f"{'model':<20}{'NDCG by labels':>18}"]
    for model, values in found.items():
        spread = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
        lines.append(f"{model:<20}{f'{np.mean(values):.4f}{spread}':>18}")
    return "\n".join(lines) + "\n"


def judge(data: Labelled, score: Floats) -> float:
    """NDCG by the labels."""
    n = len(data.label)
    matrix = Matrix.from_arrays(
        data.x, rank=np.ones(n), click=np.zeros(n), query=data.query, relevance=data.gain
    )
    return measures(matrix, score, None)["true NDCG"].value


def _every_label(data: Labelled) -> Matrix:
    """As many clicks as there are relevant docs, without position bias: one list for each level
    of label, in which all docs of that level or above are clicked."""
    levels = range(1, BEST + 1)
    queries = data.query[-1] + 1
    return Matrix.from_arrays(
        np.tile(data.x, (BEST, 1)),
        rank=np.ones(BEST * len(data.label)),
        click=np.concatenate([data.label >= level for level in levels]),
        query=np.tile(data.query, BEST),
        search=np.concatenate([data.query + level * queries for level in levels]),
    )


def _weak_ranker(data: Labelled, rng: np.random.Generator) -> Floats:
    """Ridge regression of the gain on the features, from a few queries."""
    queries = data.query[-1] + 1
    known = np.isin(data.query, rng.choice(queries, max(2, round(KNOWN * queries)), replace=False))
    x, y = data.x[known].astype(float), data.gain[known]
    x, y = x - x.mean(axis=0), y - y.mean()
    return np.asarray(np.linalg.solve(x.T @ x + len(y) * np.eye(x.shape[1]), x.T @ y))


def _clicks(
    data: Labelled,
    weak: Floats,
    searches: int,
    rng: np.random.Generator,
    with_em: bool,
    threads: int | None,
    depth: int | None = None,
) -> tuple[Matrix, dict[str, Propensities]]:
    """The rows shown with their clicks, and the propensities that each model is to use; depth: how
    many results a search shows, None for all."""
    rows = np.tile(np.arange(len(data.label)), searches)
    search = np.repeat(np.arange(searches), len(data.label)) * (data.query[-1] + 1)
    search += data.query[rows]
    score = data.x @ weak
    noisy = score[rows] / score.std() + DRIFT * rng.normal(size=len(rows))
    order = np.lexsort((-noisy, search))
    rows, search = rows[order], search[order]
    starts = np.searchsorted(search, search)
    rank = np.arange(len(rows)) - starts + 1
    if depth is not None:
        shown = rank <= depth
        rows, search, rank = rows[shown], search[shown], rank[shown]
    click = rng.random(len(rows)) < data.relevance[rows] / rank
    matrix = Matrix.from_arrays(
        data.x[rows], rank=rank, click=click, query=data.query[rows], search=search
    )
    ours = _estimated(data.query[rows], rows, search, rank, click)
    curves = {
        OURS: ours,
        NORMED: ours,
        ORACLE: true_curve(1 / np.arange(1.0, rank.max() + 1)),
    }
    if with_em:
        from rankdrift.methods.em_features import regression_em

        curves[EM] = regression_em(matrix, bootstrap=0, threads=threads)
    return matrix, curves


def _estimated(query: Ints, doc: Ints, search: Ints, rank: Ints, click: Bools) -> Propensities:
    """By the usual way: a log, counted, and the curve that its counts tell."""
    nth = search // (query.max() + 1)
    day = 20240101 + nth % min(DAYS, max(1, (nth.max() + 1) // A_DAY))
    columns = {
        "query": query,
        "doc": doc,
        "search": search,
        "rank": rank,
        "click": click,
        "day": day,
    }
    with tempfile.TemporaryDirectory(prefix="rankdrift-real-") as folder:
        path = f"{folder}/log.parquet"
        with connect() as connection:
            connection.register("rows", {k: np.asarray(v, np.int64) for k, v in columns.items()})
            connection.execute(f"COPY (FROM rows) TO '{path}' (FORMAT parquet)")
        return estimate(harvest(read_log(path)), curve="loglog", errors="model")
