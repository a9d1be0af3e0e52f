"""Click models: from a Parquet file to the log-likelihood of what was held out, beside CLAX.

    python -m benchmarks clickmodels           all models, and CLAX's of three of them
    python -m benchmarks.clickmodels beside pbm    one of these three
    python -m benchmarks.clickmodels agree     a smaller log: do both find the same?
    python -m benchmarks.clickmodels lab       each model on clicks that each of them made
    python -m benchmarks.clickmodels judged    relevance by each, on clicks that it made

Users of the made-up log do what a DBN says. Every model is fitted in a process of its own on one
thread; seconds are those of the processor, so that other work on the machine matters less, and the
clock's stand beside them. CLAX has an environment of its own, made once; the seconds of its
compiling are told apart.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import logs, measure

PEER = ("clax-models==0.1.1", "jax==0.7.2", "flax<0.12", "torch==2.13.0", "pandas<3", "pyarrow")
PEER_AT = "RANKDRIFT_CLAX"  # a Python that has them, if there is one
SEARCHES, LENGTH, DAYS = 1_000_000, 10, 10
QUERIES, DOCS = 20_000, 30
SHARE = 0.8  # of searches to learn from: the first days
TIMES = {"pbm": 3.0, "ubm": 3.0, "dbn": 10.0}  # as fast as CLAX, at least
EPOCHS, RATE, BATCH = 3, 0.03, 4096  # of CLAX
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "PYTHONWARNINGS": "ignore",
}


def run(rows: int, *names: str) -> dict[str, Any]:
    """So many rows, ten million at most, of which eight are learnt from; all models, or these."""
    from rankdrift.clickmodels.models import MODELS

    searches = min(rows // LENGTH, SEARCHES)
    path = browsed(searches)
    ours = {name: _ours(path, name) for name in names or MODELS.names}
    title = f"Click models: {searches:,} searches of {LENGTH} results, {1 - SHARE:.0%} held out"
    table = []
    for name, one in ours.items():
        table.append([name, one["read"], one["fit"], one["seconds"], searches / one["seconds"]])
        table[-1] += [one["megabytes"], f"{one['ll']:.5f}"]
    measure.show(
        title,
        ("", "read", "fit", "seconds", "searches/s", "MB", "log-lik"),
        table,
        "Seconds of the processor, one thread, from the file to the log-likelihood held out.",
    )
    theirs = {n: _theirs(path, n, round(SHARE * searches)) for n in ours if n in TIMES}
    table, notes = [], []
    for name, other in theirs.items():
        one = ours[name]
        table.append([name, one["seconds"], other["seconds"], other["compile"], other["megabytes"]])
        table[-1] += [f"{other['ll']:.5f}", other["seconds"] / one["seconds"]]
        table[-1] += [other["wall"] / one["wall"]]
        ratio = one["seconds"] / other["seconds"]
        notes.append(f"{name}, rankdrift / CLAX: {measure.verdict(ratio, 1 / TIMES[name])}.")
    if table:
        measure.show(
            "The same by CLAX",
            ("", "ours", "CLAX", "compiling", "MB", "log-lik", "times", "by clock"),
            table,
            "Seconds up to the end of its best round.\n" + "\n".join(notes),
        )
    return {"ours": ours, "clax": theirs}


def browsed(searches: int, queries: int = QUERIES) -> str:
    """A log of users who read from the top until a click satisfies them or patience ends."""
    code = Path(__file__).read_text()
    recipe = code[code.index("def _make(") : code.index("# -- ours ---")]
    name = f"browsed-{searches}-{queries}"
    folder = logs.kept(name, recipe, lambda to: _make(to, searches, queries))
    return folder[0]


def _make(folder: Path, searches: int, queries: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    popular = 1 / np.arange(1, queries + 1) ** 0.9
    wanted = rng.beta(1, 6, (queries, DOCS))
    satisfies = rng.beta(2, 3, (queries, DOCS))
    query = rng.choice(queries, searches, p=popular / popular.sum())
    schema = pa.schema(
        {
            "search": pa.int64(),
            "query": pa.int64(),
            "doc": pa.int64(),
            "rank": pa.int16(),
            "click": pa.int8(),
            "day": pa.date32(),
        }
    )
    with pq.ParquetWriter(folder / "log.parquet", schema, compression="zstd") as file:
        for start in range(0, searches, 50_000):
            q = query[start : start + 50_000]
            score = 0.5 * np.log(wanted[q]) + 0.5 * rng.gumbel(size=(len(q), DOCS))
            docs = np.argsort(-score, axis=1)[:, :LENGTH]
            click = np.zeros(docs.shape, bool)
            here = np.ones(len(q), bool)
            for r in range(LENGTH):
                click[:, r] = here & (rng.random(len(q)) < wanted[q, docs[:, r]])
                content = click[:, r] & (rng.random(len(q)) < satisfies[q, docs[:, r]])
                here &= ~content & (rng.random(len(q)) < 0.9)
            number = start + np.arange(len(q))
            day = np.datetime64("2024-01-01") + number * DAYS // searches
            columns = [
                np.repeat(number, LENGTH),
                np.repeat(q, LENGTH),
                (q[:, None] * DOCS + docs).ravel(),
                np.tile(np.arange(1, LENGTH + 1, dtype=np.int16), len(q)),
                click.ravel().astype(np.int8),
                np.repeat(day, LENGTH),
            ]
            file.write_table(pa.table(columns, schema=schema))


# -- ours ------------------------------------------------------------------------------------------


def _ours(path: str, name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.clickmodels", "ours", path, name]
    return _told(command)


def _fit(path: str, name: str) -> dict[str, Any]:
    import duckdb  # noqa: F401  # imports are not counted, of CLAX neither

    from rankdrift.clickmodels.measures import buckets_of_queries, forecast
    from rankdrift.clickmodels.model import log_likelihood
    from rankdrift.clickmodels.models import MODELS
    from rankdrift.clickmodels.reading import read_searches
    from rankdrift.log.log import read_log

    began, wall = time.process_time(), time.perf_counter()
    read = read_searches(read_log(path, threads=1), split="time", held_out=1 - SHARE, searches=None)
    at = time.process_time()
    model = MODELS.get(name).fit(read.train)
    done = time.process_time()
    likely = log_likelihood(model.conditional_click_probabilities(read.test), read.test.click)
    found = {"ll": float(likely.mean()), "seconds": time.process_time() - began}
    found["wall"] = time.perf_counter() - wall
    whole = forecast(model, read.test, *buckets_of_queries(read.test))
    return found | {
        "read": at - began,
        "fit": done - at,
        "ppl": float(np.nanmean(whole.perplexity)),
        "cond_ppl": float(np.nanmean(whole.conditional_perplexity)),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "searches": [len(read.train), len(read.test)],
    }


# -- CLAX ------------------------------------------------------------------------------------------


def _theirs(path: str, name: str, train: int, epochs: int = EPOCHS, **more: Any) -> dict[str, Any]:
    script = Path(__file__).with_name("clax_peer.py")
    rate, batch = more.get("rate", RATE), more.get("batch", BATCH)
    command = [_peer(), str(script), path, name, str(train), str(epochs), str(rate), str(batch)]
    told = _told(command)
    best = max(told["rounds"], key=lambda one: one["ll"])
    each = np.diff([one["seconds"] for one in told["rounds"]])
    first = told["rounds"][0]["seconds"] - told["read"]
    compiling = max(first - float(np.median(each)), 0.0) if len(each) else 0.0
    return told | best | {"compile": compiling}


def _peer() -> str:
    given = os.environ.get(PEER_AT)
    if given:
        return given
    place = logs.DATA / "clax"
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PEER], check=True)
    return str(python)


def _told(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def agree(searches: int = 40_000, queries: int = 10, epochs: int = 10) -> None:
    """Few pairs shown often, so that no prior matters, and CLAX slowly: do both find the same?"""
    path = browsed(searches, queries)
    rows = []
    for name in ("pbm", "dbn", "ubm", "dcm", "ccm", "sdbn", "cm", "rctr", "dctr"):
        one = _ours(path, name)
        other = _theirs(path, name, round(SHARE * searches), epochs, rate=0.01, batch=512)
        gap = one["ll"] - other["ll"]
        rows.append([name, *(f"{x:.5f}" for x in (one["ll"], other["ll"], gap))])
        rows[-1] += [f"{x[k]:.4f}" for k in ("ppl", "cond_ppl") for x in (one, other)]
        print(*rows[-1], flush=True)
    measure.show(
        f"Held out of {searches:,} searches of {queries} queries",
        ("", "ours", "CLAX", "gap", "perplexity", "CLAX", "given clicks above", "CLAX"),
        rows,
        f"CLAX: the best of {epochs} rounds; perplexities after the last.",
    )


# -- lab -------------------------------------------------------------------------------------------

LAB_SEARCHES, LAB_QUERIES, LAB_DOCS = 30_000, 100, 15


def lab(seed: int = 1) -> dict[str, dict[str, float]]:
    """Each model on clicks that each of them made: log-likelihood held out, less the truth's."""
    from rankdrift.clickmodels.model import log_likelihood
    from rankdrift.clickmodels.models import MODELS

    rng = np.random.default_rng(seed)
    worlds = _worlds(rng)
    train, test = (_lists(worlds["pbm"][0], rng, LAB_SEARCHES) for _ in range(2))
    found: dict[str, dict[str, float]] = {}
    for world, numbers in worlds.items():
        truth = MODELS.get(world)(*numbers)
        learnt, held = truth.sample(train, rng), truth.sample(test, rng)

        def likely(model: Any, held: Any = held) -> float:
            given = model.conditional_click_probabilities(held)
            return float(log_likelihood(given, held.click).mean())

        top = likely(truth)
        found[world] = {kind.name: likely(kind.fit(learnt)) - top for kind in MODELS}
    rows = [[name, *(f"{1000 * found[w][name]:.1f}" for w in worlds)] for name in MODELS.names]
    measure.show(
        f"Clicks of each world, forecast by each model; {LAB_SEARCHES:,} searches",
        ("", *worlds),
        rows,
        "Log-likelihood of a result held out, less that of the truth, in thousandths.",
    )
    return found


def judged(seeds: int = 4, searches: int = 20_000) -> None:
    """Relevance by each model on clicks that it made, beside click rates and the truth."""
    import pyarrow as pa

    from rankdrift.clickmodels.models import MODELS
    from rankdrift.judging.judging import judge

    rows = []
    for name in _worlds(np.random.default_rng(0)):
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            numbers = _worlds(rng)[name]
            data = MODELS.get(name)(*numbers).sample(_lists(numbers[0], rng, searches), rng)
            log = {
                "search": data.lists.list_of_rows(),
                "query": data.query_of_pair[data.pair],
                "doc": data.pair,
                "rank": data.rank,
                "click": data.click,
            }
            top = {"pbm": lambda x: x[1][1], "ubm": lambda x: x[1][1, 0]}.get(name, lambda x: 1.0)
            made = judge(pa.table(log), model=name, min_exposure=0)
            found.append(_told_of(made, numbers[0] * top(numbers)))
        rows.append([name, *(f"{x:.3f}" for x in np.nanmean(found, axis=0))])
    measure.show(
        f"Relevance by each model, of {searches:,} searches that it made; means of {seeds} seeds",
        ("", "RMSE of the click rate", "of ours", "its rank correlation", "ours",
         "covered: exposure <5", "5-50", ">50"),
        rows,
        "All pairs. Intervals are those of 95%.",
    )  # fmt: skip


def _told_of(made: Any, truth: Any) -> list[float]:
    from scipy.stats import spearmanr

    z = truth[made.docs[made.doc].astype(int)]
    rate = made.clicks / made.appearances
    inside = (made.low <= z) & (z <= made.high)
    bins = [(0, 5), (5, 50), (50, np.inf)]
    return [
        *(float(np.sqrt(((x - z) ** 2).mean())) for x in (rate, made.relevance)),
        *(float(spearmanr(x, z)[0]) for x in (rate, made.relevance)),
        *(
            float(inside[(made.exposure >= low) & (made.exposure < high)].mean())
            for low, high in bins
        ),
    ]


def _worlds(rng: np.random.Generator) -> dict[str, tuple[Any, ...]]:
    """The numbers of each model, relevance first."""
    pairs = LAB_QUERIES * LAB_DOCS
    z, satisfies = rng.beta(1, 4, pairs), rng.beta(2, 3, pairs)
    looks = np.append(0.5, 0.95 / np.arange(1, LENGTH + 1) ** 0.7)
    after = np.outer(looks, np.append(1.0, np.full(LENGTH, 0.6)))
    return {
        "pbm": (z, looks),
        "cm": (z,),
        "dcm": (z, np.append(0.5, np.linspace(0.4, 0.8, LENGTH))),
        "ccm": (z, 0.9, 0.8, 0.2),
        "ubm": (z, after),
        "sdbn": (z, satisfies),
        "dbn": (z, satisfies, 0.85),
    }


def _lists(z: Any, rng: np.random.Generator, searches: int) -> Any:
    """Lists of a ranker that knows half of what is relevant."""
    from rankdrift.clickmodels.searches import make_searches

    query = rng.choice(LAB_QUERIES, searches, p=_popular(LAB_QUERIES))
    doc = np.argsort(-_scores(z, query, rng), axis=1)[:, :LENGTH]
    return make_searches(
        np.full(searches, LENGTH),
        (query[:, None] * LAB_DOCS + doc).ravel(),
        np.tile(np.arange(1, LENGTH + 1), searches),
        np.zeros(searches * LENGTH, bool),
        np.repeat(np.arange(LAB_QUERIES), LAB_DOCS),
    )


def _popular(queries: int) -> Any:
    weight = 1 / np.arange(1, queries + 1) ** 0.7
    return weight / weight.sum()


def _scores(z: Any, query: Any, rng: np.random.Generator) -> Any:
    known = 0.5 * np.log(z.reshape(-1, LAB_DOCS)[query])
    return known + 0.5 * rng.gumbel(size=known.shape)


if __name__ == "__main__":
    if sys.argv[1] == "ours":
        print(json.dumps(_fit(*sys.argv[2:])))
    elif sys.argv[1] == "beside":
        run(LENGTH * SEARCHES, *sys.argv[2:])
    elif sys.argv[1] == "lab":
        lab(*map(int, sys.argv[2:]))
    elif sys.argv[1] == "judged":
        judged(*map(int, sys.argv[2:]))
    else:
        agree(*map(int, sys.argv[2:]))
