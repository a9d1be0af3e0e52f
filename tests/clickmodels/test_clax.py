"""Click models are those of CLAX, on the same searches and up to what its optimiser leaves.

`RANKDRIFT_CLAX` names a Python that has it (clax-models 0.1.1 with jax 0.7.2); without it these are
skipped.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdrift import read_log
from rankdrift.clickmodels.model import log_likelihood
from rankdrift.clickmodels.models import MODELS
from rankdrift.clickmodels.reading import read_searches

PEER = Path(__file__).parents[2] / "benchmarks" / "clax_peer.py"
SEARCHES, QUERIES, DOCS, LENGTH, TRAIN = 6_000, 4, 14, 10, 0.8
# Of the mean log-likelihood held out: Adam with small batches ends nowhere in particular, and left
# 1.2e-4 of it on the log of this seed.
WANDERS = 5e-4

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("RANKDRIFT_CLAX" not in os.environ, reason="no Python with CLAX is named"),
]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Users who read down to a click that satisfies them; few pairs, each shown often."""
    rng = np.random.default_rng(1)
    query = rng.integers(QUERIES, size=SEARCHES)
    wanted, enough = (rng.beta(*at, (QUERIES, DOCS)) for at in ((1, 5), (2, 3)))
    score = 0.5 * np.log(wanted[query]) + 0.5 * rng.gumbel(size=(SEARCHES, DOCS))
    doc = np.argsort(-score, axis=1)[:, :LENGTH]
    click, here = np.zeros(doc.shape, bool), np.ones(SEARCHES, bool)
    for r in range(LENGTH):
        click[:, r] = here & (rng.random(SEARCHES) < wanted[query, doc[:, r]])
        satisfied = click[:, r] & (rng.random(SEARCHES) < enough[query, doc[:, r]])
        here &= ~satisfied & (rng.random(SEARCHES) < 0.9)
    number = np.arange(SEARCHES)
    path = tmp_path_factory.mktemp("clax") / "log.parquet"
    columns = {
        "search": np.repeat(number, LENGTH),
        "query": np.repeat(query, LENGTH),
        "doc": (query[:, None] * DOCS + doc).ravel(),
        "rank": np.tile(np.arange(1, LENGTH + 1), SEARCHES),
        "click": click.ravel().astype(np.int8),
        "day": np.repeat(np.datetime64("2024-01-01") + number * 10 // SEARCHES, LENGTH),
    }
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_held_out_likelihoods_agree(log, name="pbm"):
    """Of the others `python -m benchmarks.clickmodels agree` tells the same, in some minutes."""
    read = read_searches(read_log(log), split="time", held_out=1 - TRAIN, searches=None)
    assert len(read.train) == TRAIN * SEARCHES
    model = MODELS.get(name).fit(read.train)
    given = model.conditional_click_probabilities(read.test)
    ours = float(log_likelihood(given, read.test.click).mean())
    numbers = (round(TRAIN * SEARCHES), 80, 0.03, 400)
    command = [os.environ["RANKDRIFT_CLAX"], str(PEER), log, name, *map(str, numbers)]
    env = os.environ | {"PYTHONWARNINGS": "ignore"}
    env.pop("PYTHONPATH", None)
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert told.returncode == 0, told.stderr[-2000:]
    theirs = max(one["ll"] for one in json.loads(told.stdout.splitlines()[-1])["rounds"])
    assert ours == pytest.approx(theirs, abs=WANDERS)
