"""CLAX's click models on a log, in an environment of its own (`benchmarks.clickmodels`).

    python clax_peer.py LOG.parquet MODEL TRAIN EPOCHS RATE [BATCH]

reads searches of ten results, in order; learns from the first TRAIN of them with Adam at learning
rate RATE, and after each of EPOCHS rounds tells the log-likelihood of the others. Prints it as
JSON, with the seconds of the processor up to then. Its own trainer does the same, but takes rows
from a loader of PyTorch's; arrays in memory are what it can do at best.
"""

import json
import resource
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow.compute as pc
import pyarrow.parquet as pq
from clax import (
    CascadeModel,
    ClickChainModel,
    DependentClickModel,
    DocumentCTRModel,
    DynamicBayesianNetwork,
    PositionBasedModel,
    RankCTRModel,
    UserBrowsingModel,
)
from clax.metrics import ConditionalPerplexity, LogLikelihood, MultiMetric, Perplexity
from flax import nnx

LENGTH = 10


def make(name, pairs):
    rngs = nnx.Rngs(0)
    both = {"positions": LENGTH + 1, "query_doc_pairs": pairs}
    return {
        "rctr": lambda: RankCTRModel(positions=LENGTH + 1, rngs=rngs),
        "dctr": lambda: DocumentCTRModel(query_doc_pairs=pairs, rngs=rngs),
        "pbm": lambda: PositionBasedModel(**both, rngs=rngs),
        "ubm": lambda: UserBrowsingModel(**both, rngs=rngs),
        "cm": lambda: CascadeModel(query_doc_pairs=pairs, rngs=rngs),
        "dcm": lambda: DependentClickModel(**both, rngs=rngs),
        "ccm": lambda: ClickChainModel(query_doc_pairs=pairs, rngs=rngs),
        "sdbn": lambda: DynamicBayesianNetwork(
            query_doc_pairs=pairs, fix_continuation=True, rngs=rngs
        ),
        "dbn": lambda: DynamicBayesianNetwork(query_doc_pairs=pairs, rngs=rngs),
    }[name]()


def read(path):
    table = pq.read_table(path, columns=["query", "doc", "click"], use_threads=False)
    # One key for a query and a doc, both below 2**31; Arrow numbers the keys by hashing.
    key = pc.add(pc.multiply(table["query"].cast("int64"), 1 << 31), table["doc"].cast("int64"))
    coded = key.combine_chunks().dictionary_encode()
    pair = coded.indices.to_numpy().reshape(-1, LENGTH)
    click = table["click"].to_numpy().reshape(-1, LENGTH)
    return pair.astype(np.int32), click.astype(np.int8), len(coded.dictionary)


def main(path, name, train, epochs, rate, batch):
    began, wall = time.process_time(), time.perf_counter()
    pair, click, pairs = read(path)
    told = {"read": time.process_time() - began, "pairs": pairs, "rounds": []}
    model = make(name, pairs + 1)
    optimizer = nnx.ModelAndOptimizer(model, optax.adam(rate))
    positions = np.tile(np.arange(1, LENGTH + 1, dtype=np.int32), (batch, 1))

    def batch_of(rows):
        n = len(rows)
        return {
            "query_doc_ids": jnp.asarray(pair[rows]),
            "clicks": jnp.asarray(click[rows].astype(np.float32)),
            "positions": jnp.asarray(positions[:n]),
            "mask": jnp.ones((n, LENGTH), bool),
        }

    @nnx.jit
    def step(model, optimizer, data):
        grads = nnx.grad(lambda m: m.compute_loss(data).mean())(model)
        optimizer.update(grads)

    @nnx.jit
    def look(model, metrics, data):
        metrics.update(
            log_probs=model.predict_clicks(data),
            cond_log_probs=model.predict_conditional_clicks(data),
            clicks=data["clicks"],
            where=data["mask"],
        )

    @nnx.jit
    def look_at_likelihood(model, metrics, data):
        metrics.update(
            cond_log_probs=model.predict_conditional_clicks(data),
            clicks=data["clicks"],
            where=data["mask"],
        )

    rng = np.random.default_rng(0)
    held = np.arange(train, len(pair))
    for _ in range(epochs):
        order = rng.permutation(train)
        for start in range(0, train - batch + 1, batch):
            step(model, optimizer, batch_of(order[start : start + batch]))
        metrics = MultiMetric({"ll": LogLikelihood(LENGTH)})
        for start in range(0, len(held), batch):
            look_at_likelihood(model, metrics, batch_of(held[start : start + batch]))
        found = float(metrics.compute()["ll"])
        seconds, clock = time.process_time() - began, time.perf_counter() - wall
        told["rounds"].append({"seconds": seconds, "wall": clock, "ll": found})
    whole = MultiMetric({"ppl": Perplexity(LENGTH), "cond_ppl": ConditionalPerplexity(LENGTH)})
    for start in range(0, len(held), batch):
        look(model, whole, batch_of(held[start : start + batch]))
    told |= {key: float(value) for key, value in whole.compute().items()}
    told["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    path, name, train, epochs, rate, *rest = sys.argv[1:]
    main(path, name, int(train), int(epochs), float(rate), int(rest[0]) if rest else 1024)
