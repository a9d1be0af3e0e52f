"""How fast is an estimate, beside choix on the same comparisons? One run, best of several.

python -m benchmarks.estimate
"""

import resource
import time
from collections.abc import Callable

import numpy as np

from rankdrift.estimation import Options, fit
from rankdrift.simulate.pairs import pairs
from rankdrift.uncertainty import bootstrap


def best_of(times: int, run: Callable[[], object]) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    import choix

    world = pairs(40_000, relevance=0.05, seed=1)
    counts = world.counts.restrict(strict=True)  # what choix can take: two ranks, one click
    choices = counts.choices("single")
    other = np.where(
        choices.shown[:, 0] == choices.clicked, choices.shown[:, 1], choices.shown[:, 0]
    )
    data = np.repeat(
        np.stack([choices.clicked - 1, other - 1], axis=1), choices.weight.astype(int), axis=0
    )
    wins = [tuple(row) for row in data.tolist()]
    single = Options(clicks="single")
    direct = best_of(3, lambda: fit(counts, Options(curve="direct", clicks="single")))
    loglog = best_of(5, lambda: fit(counts, single))
    rivals = {
        "choix.opt_pairwise": lambda: choix.opt_pairwise(500, wins, method="Newton-CG"),
        "choix.opt_pairwise (BFGS)": lambda: choix.opt_pairwise(500, wins, method="BFGS"),
        "choix.ilsr_pairwise": lambda: choix.ilsr_pairwise(500, wins, max_iter=1000),
        "choix.mm_pairwise": lambda: choix.mm_pairwise(500, wins, max_iter=100_000, tol=1e-8),
    }
    print(f"{len(wins):,} comparisons of 500 ranks")
    print(f"{'rankdrift direct':28}{direct:9.3f} s")
    print(f"{'rankdrift loglog':28}{loglog:9.3f} s")
    fastest = np.inf
    for name, run in rivals.items():
        try:
            took = best_of(1, run)
        except RuntimeError as error:
            print(f"{name:28} did not converge ({error})")
            continue
        fastest = min(fastest, took)
        print(
            f"{name:28}{took:9.3f} s  {took / direct:8.1f} x direct {took / loglog:8.1f} x loglog"
        )
    print(
        f"fastest exact rival: {fastest / direct:.1f} x direct (wanted 5), "
        f"{fastest / loglog:.1f} x loglog (wanted 50)"
    )
    fitted = fit(counts, single)
    took = best_of(1, lambda: bootstrap(fitted.fit, fitted.likelihood, 1000, 0))
    print(f"1,000 bootstrap curves (loglog): {took:.2f} s = {took / loglog:.0f} fits (at most 300)")
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB "
        f"(at most 300)"
    )


if __name__ == "__main__":
    main()
