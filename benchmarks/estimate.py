"""How fast is an estimate, beside choix on the same comparisons?"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure
from rankdrift.counts.counts import Counts
from rankdrift.estimation import estimate
from rankdrift.estimation.covariance import bootstrap
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.likelihood import likelihood_of
from rankdrift.estimation.newton import Fit, maximise
from rankdrift.simulate.appendix_d import pairs

PAIRS, RANKS = 40_000, 500
ACCURACY = 1e-6  # of every log p, against the maximum itself: what each method must reach
TOLERANCES = 10.0 ** -np.arange(3, 13)
FASTER_DIRECT, FASTER_LOGLOG = 5, 50
MOST_FITS = 300  # that 1,000 bootstrap curves may take
MOST_MEMORY = 300
TIMES = 1_000
ROUNDS = 5
TURN = 0.2  # seconds of a turn, in which a fast task is timed several times

_BOOTSTRAP = """
import sys
from rankdrift.counts import Counts
from rankdrift.estimation import estimate
estimate(Counts.load(sys.argv[1]), curve=sys.argv[2], errors="bootstrap", samples=1000)
"""


def run(rows: int) -> dict[str, Any]:
    """The paper's size, whatever `rows`: counts do not grow with the log."""
    # What choix can take as well: two ranks, one click.
    counts = pairs(PAIRS, ranks=RANKS, relevance=0.05, seed=1).counts.restrict(strict=True)
    wins = _wins(counts)
    direct = Options(curve="direct", clicks="single")
    loglog = replace(direct, curve="loglog")
    exact = _exact(counts, direct)
    many = replace(
        counts,
        pairs=replace(counts.pairs, pairs=counts.pairs.pairs * TIMES),
        options={**counts.options, "times": TIMES},
    )
    rivals = _rivals(wins, exact)
    timed = _fastest(
        {
            "rankdrift, direct": lambda: fit(counts, direct),
            "rankdrift, loglog": lambda: fit(counts, loglog),
            f"rankdrift, loglog, {TIMES:,} times the pairs": lambda: fit(many, loglog),
            "rankdrift, direct, with errors": lambda: estimate(counts, curve="direct"),
            "rankdrift, loglog, with errors": lambda: estimate(counts, curve="loglog"),
            **_floors(counts, fit(counts, direct).fit, fit(counts, loglog).fit),
            **{name: call for name, (call, _) in rivals.items()},
        }
    )
    ours = _off(fit(counts, direct).fit.theta, exact)
    accuracy = {"rankdrift, direct": ours, **{name: off for name, (_, off) in rivals.items()}}
    faster = {
        name: (timed[name] / timed["rankdrift, direct"], timed[name] / timed["rankdrift, loglog"])
        for name in rivals
    }
    measure.show(
        f"The maximum from {len(wins):,} comparisons of {RANKS} ranks",
        ("", "milliseconds", "largest error of log p"),
        (
            (name, 1000 * seconds, f"{accuracy[name]:.1e}" if name in accuracy else None)
            for name, seconds in timed.items()
        ),
        "rankdrift starts from counts, with every pair in a bucket of queries; choix from the list "
        "of comparisons, one (winner, loser) each, of which ilsr_pairwise_dense first needs a "
        f"matrix made. Every method had to be within {ACCURACY:g} of the maximum in every log p; "
        "choix has the loosest tolerance that does it. Processor time on one thread, taking turns, "
        f"the best of {ROUNDS} turns. choix's other exact methods (opt_pairwise, mm_pairwise) "
        "took over 50 times as long as ilsr_pairwise when tried, and are left out. No fit can do "
        "without pooling the pairs and one slope, nor a direct one without a factorisation; one "
        "that is told its answer finds by one slope and one curvature that there is no more to "
        "gain.\n"
        + "\n".join(
            f"{name.split(',')[0]} / rankdrift: direct {direct_:.1f} (wanted {FASTER_DIRECT}), "
            f"loglog {loglog_:.1f} (wanted {FASTER_LOGLOG})."
            for name, (direct_, loglog_) in faster.items()
        ),
    )
    return {
        "seconds": timed,
        "errors of log p": accuracy,
        "times as fast as": {name: list(times) for name, times in faster.items()},
        "bootstrap": _bootstraps(counts, loglog, timed["rankdrift, loglog"]),
    }


def _floors(counts: Counts, direct: Fit, loglog: Fit) -> dict[str, Callable[[], object]]:
    """What any fit by NumPy has to do at least once."""
    from scipy.linalg.lapack import dpotrf

    cells = likelihood_of(counts, "single")

    def told() -> Fit:
        return maximise(likelihood_of(counts, "single"), loglog.basis, loglog.phi)

    return {
        "pooling the pairs by ranks": lambda: likelihood_of(counts, "single").cells,
        "log L's slope, once": lambda: cells.at(np.zeros(RANKS)).gradient,
        "loglog, told its answer": told,
        "factorising the information, direct": lambda: dpotrf(direct.information.T, 1),
    }


def _fastest(tasks: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Processor seconds on one thread: what others do on the machine hardly matters then."""
    from threadpoolctl import threadpool_limits

    best = dict.fromkeys(tasks, float("inf"))
    with threadpool_limits(1):
        for _ in range(rounds):
            for name, task in tasks.items():
                turn = time.process_time() + TURN
                while (start := time.process_time()) < turn:
                    task()
                    best[name] = min(best[name], time.process_time() - start)
    return best


def _wins(counts: Counts) -> list[tuple[int, int]]:
    """(winner, loser) of each comparison."""
    choices = counts.choices("single")
    loser = choices.shown.sum(axis=1) - choices.clicked
    duels = np.stack([choices.clicked - 1, loser - 1], axis=1)
    return [tuple(row) for row in np.repeat(duels, choices.weight.astype(int), axis=0).tolist()]


def _exact(counts: Counts, options: Options) -> np.ndarray:
    """Newton's method, started again where it had ended."""
    found = fit(counts, options).fit
    again = maximise(found.likelihood, found.basis, found.phi)
    slope = np.abs(again.likelihood.at(again.theta).gradient).max()
    if slope > 1e-9:
        raise RuntimeError(f"This is not the maximum: the gradient is {slope:.1g}.")
    return again.theta


def _off(log_p: np.ndarray, exact: np.ndarray) -> float:
    off = log_p - exact
    return float(np.abs(off - off.mean()).max())


def _rivals(
    wins: list[tuple[int, int]], exact: np.ndarray
) -> dict[str, tuple[Callable[[], Any], float]]:
    """Each as a call with the loosest tolerance that is accurate enough, and its error."""
    import choix

    def from_list(tol: float) -> np.ndarray:
        return choix.ilsr_pairwise(RANKS, wins, tol=tol, max_iter=1000)

    def from_matrix(tol: float) -> np.ndarray:
        winner, loser = np.array(wins).T
        wins_over = np.bincount(winner * RANKS + loser, minlength=RANKS**2).astype(float)
        return choix.ilsr_pairwise_dense(wins_over.reshape(RANKS, RANKS), tol=tol, max_iter=1000)

    found: dict[str, tuple[Callable[[], Any], float]] = {}
    for name, solve in (("ilsr_pairwise", from_list), ("ilsr_pairwise_dense", from_matrix)):
        tol = next(tol for tol in TOLERANCES.tolist() if _off(solve(tol), exact) <= ACCURACY)
        call = lambda solve=solve, tol=tol: solve(tol)  # noqa: E731
        found[f"choix.{name}, tol={tol:.0e}"] = call, _off(call(), exact)
    return found


def _bootstraps(counts: Counts, loglog: Options, one_fit: float) -> dict[str, float]:
    fitted = fit(counts, loglog).fit
    seconds = _fastest({"": lambda: bootstrap(fitted, 1000, 0)}, rounds=3)[""]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes started here
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "counts.parquet"
        counts.save(file)
        runs = {
            curve: measure.run(sys.executable, "-c", _BOOTSTRAP, file, curve).require()
            for curve in ("loglog", "direct")
        }
    peak = max(done.megabytes for done in runs.values())
    measure.show(
        "estimate(errors='bootstrap') with 1,000 curves, in a process of its own",
        ("", "seconds", "peak MB"),
        ((curve, done.seconds, done.megabytes) for curve, done in runs.items()),
        f"1,000 loglog curves in the time of so many single fits: "
        f"{measure.verdict(seconds / one_fit, MOST_FITS)}.\n"
        f"Peak memory, MB: {measure.verdict(peak, MOST_MEMORY)}.",
    )
    return {
        "fits": seconds / one_fit,
        **{f"MB, {curve}": done.megabytes for curve, done in runs.items()},
    }


if __name__ == "__main__":
    run(0)
