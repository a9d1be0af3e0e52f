"""What `max_shown` costs and buys: up to how many appearances a pair keeps the list of its ranks.

A pair with more enters as weighted comparisons of two ranks, which bounds the counts whatever the
size of the log and loses a little: python -m benchmarks max_shown
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks import logs, measure
from rankdrift import estimate, harvest, read_log

TRIED = (2, 4, 8, 12, 16)
RANKS = np.array([2, 3, 5, 8, 12, 20, 35, 50, 75, 100, 150, 200, 300])


def run(rows: int) -> dict[str, Any]:
    """Each day of the log is one trial: a single estimate's own error is too noisy to compare."""
    days = logs.drifting(rows)
    sums = {most: np.zeros(3) for most in TRIED}
    for day in days:
        log = read_log([day], **{column: column for column in logs.COLUMNS})
        for most in TRIED:
            start = time.process_time()
            counts = harvest(log, max_shown=most)
            seconds = time.process_time() - start
            curve = estimate(counts, curve="loglog")
            error = curve.std_error[np.searchsorted(curve.ranks, RANKS)]
            size = len(counts.pairs) + len(counts.rank_pairs)
            sums[most] += (size, seconds, (error**2).mean())
    means = {most: total / len(days) for most, total in sums.items()}
    best = means[max(TRIED)][2]
    found = {
        most: {"rows": size, "seconds": seconds, "efficiency": best / error}
        for most, (size, seconds, error) in means.items()
    }
    measure.show(
        f"max_shown on {len(days)} days of {rows // len(days):,} impressions",
        ("max_shown", "rows of counts", "CPU s", "efficiency"),
        ((most, *one.values()) for most, one in found.items()),
        "Means over the days. Efficiency: squared error of log p over ranks 2 to 300 with "
        f"max_shown {max(TRIED)}, over that with this one.",
    )
    return {str(most): one for most, one in found.items()}
