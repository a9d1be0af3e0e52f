"""ultr-bias-toolkit's AllPairs on a log, in an environment of its own (`benchmarks.rivals`).

    python rival_peer.py LOG.csv TIMES

prints what it found and how long it took at best, in all and without building its sets, as JSON.
"""

import json
import sys
import time

import pandas as pd
import torch
from ultr_bias_toolkit.bias.intervention_harvesting import AllPairsEstimator
from ultr_bias_toolkit.bias.intervention_harvesting.util import build_intervention_sets

if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = pd.read_csv(sys.argv[1])
    start = time.process_time()
    build_intervention_sets(rows, "query_id", "doc_id")
    sets = time.process_time() - start
    whole = float("inf")
    for _ in range(int(sys.argv[2])):
        torch.manual_seed(0)
        start = time.process_time()
        found = AllPairsEstimator()(rows)
        whole = min(whole, time.process_time() - start)
    told = {"whole": whole, "fit": whole - sets, "p": found["examination"].astype(float).tolist()}
    json.dump(told, sys.stdout)
