"""Is the posterior right, what do pairs at one rank buy, and what does it cost?

    python -m benchmarks.accuracy.posterior calibration [--worlds 200] [--first 0]
    python -m benchmarks.accuracy.posterior returns [--worlds 1000] [--first 0]
    python -m benchmarks.accuracy.posterior lengths [--worlds 20] [--first 0]
    python -m benchmarks.accuracy.posterior curves [--worlds 10] [--first 0]
    python -m benchmarks.accuracy.posterior singles [--worlds 10] [--first 0] [--estimator NAME]
    python -m benchmarks.accuracy.posterior speed [--pairs 1000000]

Calibration (Talts et al., 2018): parameters drawn from the prior, clicks from the parameters, and
the posterior from the clicks: the rank of what was drawn among the draws is uniform if all of it is
right. Results are added to benchmarks/accuracy/posterior.json.

Returns (after Geweke, 2004): what was drawn is itself a draw of the posterior of its clicks. Moved
on by the sampler from there it still is one, so that on average over worlds nothing moves. That
takes no warm-up and hence little time a world. Lengths: are chains as short as calibration's where
long ones are?
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from rankdrift import estimate
from rankdrift.core.files import write_text
from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.estimation.bayes.estimating import evidence_of
from rankdrift.estimation.bayes.model import Layout
from rankdrift.estimation.bayes.sampling import Mode, Sampler, find_mode
from rankdrift.simulate import pairs
from rankdrift.simulate.counting import count_pairs

RESULTS = Path(__file__).with_name("posterior.json")
DRAWS = 120  # of a chain, after as many to warm up
KEPT = 99  # draws that a truth is ranked among
BINS = 20


# -- calibration -----------------------------------------------------------------------------------


def drawn_world(seed: int, many: int = 200, singles: int = 200):
    """Counts, the Layout that the truth is of, and the truth: all from the prior.

    Pairs that moved are drawn given that they were clicked, as the posterior takes them: that so
    many others were not would tell of the truth as well, and is not in counts.
    """
    rng = np.random.default_rng(seed)
    first = rng.integers(1, 9, many)
    moved = np.stack([first, (first + rng.integers(0, 7, many)) % 8 + 1, first], axis=1)
    moved[rng.random(many) < 0.5, 2] = 0
    alone = np.repeat(rng.integers(1, 9, singles)[:, None], 4, axis=1)
    alone *= np.arange(4) < rng.integers(1, 5, singles)[:, None]
    rank = np.concatenate([np.pad(moved, ((0, 0), (0, 1))), alone])
    known = rng.integers(1, 4, len(rank))
    options = {"buckets": 1, "max_rank": 8, "known": known}
    none = np.zeros(len(rank), int)
    layout = evidence_of(count_pairs(rank, rank > 0, none, **options), "column").layout()
    truth = layout.draw_prior(rng)
    relevance = layout.relevance(truth[None], layout.log_p(truth)[None])
    a, b = relevance.a[0], relevance.b[0]
    blocks, group = np.unique(usual_block_of(rank[:many]), return_inverse=True)
    group = np.concatenate([group, len(blocks) + known[many:] - 1])
    p = np.where(rank > 0, np.exp(layout.log_p(truth))[rank - 1], 0.0)
    click = np.zeros(rank.shape, bool)
    click[:many] = clicked_given_one(rng, p[:many], a[group[:many]], b[group[:many]])
    z = rng.beta(a[group[many:]], b[group[many:]])
    click[many:] = rng.random(alone.shape) < p[many:] * z[:, None]
    return count_pairs(rank, click, none, **options), layout, truth


def clicked_given_one(rng, p, a, b):
    """(N, K) clicks of pairs shown with chances p (N, K) to be seen, given that there is one."""
    z, todo = np.empty(len(p)), np.arange(len(p))
    while len(todo):  # in proportion to z, then thinned to the chance of a click
        drawn = rng.beta(a[todo] + 1, b[todo])
        any_click = -np.expm1(np.log1p(-p[todo] * drawn[:, None]).sum(axis=1))
        take = rng.random(len(todo)) < any_click / (drawn * p[todo].sum(axis=1))
        z[todo[take]], todo = drawn[take], todo[~take]
    chance = p * z[:, None]
    before = np.cumprod(np.column_stack([np.ones(len(p)), 1 - chance[:, :-1]]), axis=1)
    first = (chance * before).cumsum(axis=1)
    place = (rng.random(len(p))[:, None] * first[:, -1:] >= first).sum(axis=1)[:, None]
    later = (np.arange(p.shape[1]) > place) & (rng.random(p.shape) < chance)
    return later | (np.arange(p.shape[1]) == place)


def usual_block_of(rank):
    """Of pairs by hand, as `usual_block` of counts."""
    logs = np.where(rank > 0, np.log(np.maximum(rank, 1)), 0.0).sum(axis=1) / (rank > 0).sum(axis=1)
    return half_octave_of(np.rint(np.exp(logs)).astype(int))


def quantities(layout: Layout, x: np.ndarray) -> np.ndarray:
    """(S, 7) of parameters (S, d): log p at ranks 2, 3, 5 and 8 relative to rank 1, the logit of
    the mean relevance of the last group, and log a of moved pairs and of others."""
    log_p = layout.log_p(x)
    found = layout.relevance(x, log_p)
    curve = log_p[:, [1, 2, 4, 7]] - log_p[:, [0]]
    logit = np.log(found.a[:, -1]) - np.log(found.b[:, -1])
    return np.column_stack([curve, logit, x[:, layout.concentrations]])


NAMES = ("p2/p1", "p3/p1", "p5/p1", "p8/p1", "mean relevance", "a, moved", "a, others")


def ranked(seed: int) -> np.ndarray:
    """(7,): how many of KEPT draws are below the truth, 0 to KEPT."""
    counts, layout, truth = drawn_world(seed)
    drawn = drawn_from(counts, seed, 8, DRAWS, DRAWS).transpose(1, 0, 2).reshape(-1, layout.size)
    kept = drawn[np.linspace(0, len(drawn) - 1, KEPT).round().astype(int)]
    return (quantities(layout, kept) < quantities(layout, truth[None])).sum(axis=0)


def drawn_from(counts, seed: int, chains: int, warm_up: int, draws: int) -> np.ndarray:
    """(S, C, d): draws of the posterior."""
    evidence = evidence_of(counts, "column")
    posterior = evidence.posterior()
    mode = find_mode(posterior, evidence.start(posterior.layout))
    sampler = Sampler(posterior, mode, chains=chains, seed=seed)
    sampler.warm_up(warm_up)
    return sampler.draw(draws)


def flatness(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of ranks (W, Q): p-values of uniformity (Q,), and histograms (Q, bins)."""
    bins = BINS if len(ranks) >= 200 else 10
    found = np.stack([np.bincount(r * bins // (KEPT + 1), minlength=bins) for r in ranks.T])
    wanted = len(ranks) / bins
    return chi2.sf(((found - wanted) ** 2 / wanted).sum(axis=1), bins - 1), found


def calibration(worlds: int, first: int) -> None:
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    by_seed = stored.setdefault("calibration", {})
    start = time.process_time()
    for seed in range(first, first + worlds):
        by_seed[str(seed)] = ranked(seed).tolist()
        write_text(RESULTS, json.dumps(stored) + "\n")
    ranks = np.array(list(by_seed.values()))
    p_values, found = flatness(ranks)
    error = np.sqrt(((KEPT + 1) ** 2 - 1) / 12 / len(ranks))
    print(f"{len(by_seed)} worlds; {time.process_time() - start:.0f} s CPU for {worlds}")
    print(f"right is a mean of {KEPT / 2}, with a standard error of {error:.2f}")
    means = ranks.mean(axis=0)
    for name, p_value, mean, histogram in zip(NAMES, p_values, means, found, strict=True):
        print(f"{name:15} p = {p_value:.3f}  mean {mean:.1f}  {' '.join(map(str, histogram))}")


def returns(worlds: int, first: int, pairs: int = 60, moves: int = 12) -> None:
    """How far what was drawn from the prior is moved on by the sampler, in the mean over worlds."""
    metrics: dict[int, np.ndarray] = {}
    moved = []
    start = time.process_time()
    for seed in range(first, first + worlds):
        counts, layout, truth = drawn_world(seed, pairs, pairs)
        if layout.size not in metrics:
            metrics[layout.size] = metric_of(layout.size, pairs)
        mode = Mode(truth, metrics[layout.size])
        posterior = evidence_of(counts, "column").posterior()
        sampler = Sampler(posterior, mode, chains=2, seed=seed, apart=0.0)
        end = quantities(layout, sampler.draw(moves)[-1]).mean(axis=0)
        moved.append(end - quantities(layout, truth[None])[0])
    spread = np.std(moved, axis=0)
    print(f"{worlds} worlds; {time.process_time() - start:.0f} s CPU")
    for name, mean, unit in zip(NAMES, np.mean(moved, axis=0), spread, strict=True):
        told = f"{mean / unit:+.3f} ± {worlds**-0.5:.3f} of the spread of moves"
        print(f"{name:15} {mean:+.4f}  {told}")


def metric_of(size: int, pairs: int) -> np.ndarray:
    """Of another world with as many parameters: it must not hang on the clicks it is used for."""
    for seed in range(10**7, 10**8):
        counts, layout, _ = drawn_world(seed, pairs, pairs)
        if layout.size == size:
            evidence = evidence_of(counts, "column")
            return 0.45 * find_mode(evidence.posterior(), evidence.start(layout)).root
    raise AssertionError(size)


def lengths(worlds: int, first: int) -> None:
    """Means of calibration's chains less those of long ones, in deviations of these."""
    apart = []
    for seed in range(first, first + worlds):
        counts, layout, _ = drawn_world(seed)
        short = drawn_from(counts, seed, 8, DRAWS, DRAWS)
        long = drawn_from(counts, seed + 10**6, 16, 300, 700)
        few, many = (quantities(layout, x.reshape(-1, layout.size)) for x in (short, long))
        apart.append((few.mean(axis=0) - many.mean(axis=0)) / many.std(axis=0))
    errors = np.std(apart, axis=0) / np.sqrt(worlds)
    for name, mean, error in zip(NAMES, np.mean(apart, axis=0), errors, strict=True):
        print(f"{name:15} {mean:+.3f} ± {error:.3f}")


# -- whose curve it finds --------------------------------------------------------------------------


def _fold(ranks):
    return ranks**-0.5 * np.where(ranks > 8, 0.5, 1.0)


TRUTHS = {
    "straight": lambda ranks: ranks**-0.7,
    "the paper's": lambda ranks: np.minimum(1 / np.log(np.maximum(ranks, 1.1)), 1.0),
    "a fold after rank 8": _fold,
    "zigzag": lambda ranks: ranks ** (-0.7 * (1 + 0.15 * np.cos(ranks - 1))),
}
BESIDE = {"auto": {}, "direct": {"curve": "direct"}, "bayes": {"method": "bayes"}}


def curves(worlds: int, first: int) -> None:
    """Pairs that moved alone, 20 ranks, beside the plain curves: a truth after the other."""
    for truth, function in TRUTHS.items():
        p = function(np.arange(1.0, 21.0))
        made = [
            pairs(3_000, ranks=20, relevance=0.3, propensities=p, seed=seed).counts
            for seed in range(first, first + worlds)
        ]
        for name, options in BESIDE.items():
            told(truth, name, [tried(counts, np.log(p / p[0]), **options) for counts in made])


def told(world: str, name: str, found: list[tuple[float, ...]]) -> list[float]:
    """Print means over worlds; and give them."""
    bias, rmse, claimed, held = np.mean(found, axis=0).tolist()
    print(
        f"{world:20} {name:14} bias {bias:+.3f}  error {rmse:.3f}  claimed {claimed:.3f}"
        f"  covered {held:.1%}",
        flush=True,
    )
    return [bias, rmse, claimed, held]


# -- what pairs at one rank buy --------------------------------------------------------------------


def scored_world(seed: int, kind: str, many: int = 60_000, moving: float = 0.02, size: int = 20):
    """Counts and true log p: docs with a score of five groups, of which most stay where they are.

    told: given its score, a doc's rank has nothing to do with its relevance, so that the score
    tells all; straight: the same, with a curve that has no zigzag; hidden: the ranker knows as
    much again, which the score does not tell.
    """
    rng = np.random.default_rng(seed)
    zigzag = 0.15 * (kind != "straight")
    log_p = -0.7 * np.log(np.arange(1, size + 1)) * (1 + zigzag * np.cos(np.arange(size)))
    log_p -= log_p[0]
    known = rng.integers(1, 6, many)
    mean = 0.03 * 2.0 ** (known - 1)
    z = rng.beta(1.5, 1.5 * (1 - mean) / mean)
    place = np.log(z / mean) * (kind == "hidden") + 0.7 * (known - 3) + rng.normal(0, 1.5, many)
    order = np.argsort(np.argsort(-place)) / many
    usual = np.minimum(np.exp(order * np.log(size + 1)).astype(int), size)
    shown = rng.integers(2, 5, many)
    rank = np.repeat(usual[:, None], 4, axis=1)
    moves = rng.random(many) < moving
    shift = np.rint(usual[:, None] * np.exp(rng.normal(0, 0.5, rank.shape))).astype(int)
    rank = np.where(moves[:, None], np.clip(shift, 1, size), rank)
    rank *= np.arange(4) < shown[:, None]
    click = rng.random(rank.shape) < np.where(rank > 0, np.exp(log_p)[rank - 1], 0) * z[:, None]
    bucket = rng.integers(0, 64, many)
    return count_pairs(rank, click, bucket, buckets=64, max_rank=size, known=known), log_p


ESTIMATORS = {
    "likelihood": {},
    "bayes, rank": {"method": "bayes", "relevance": "rank"},
    "bayes, column": {"method": "bayes", "relevance": "column"},
    "bayes, same": {"method": "bayes", "relevance": "same"},
}


def tried(counts, log_p, **options) -> tuple[float, float, float, float]:
    """Mean and root mean square error of log p, mean standard error, share of 95% intervals that
    hold the truth."""
    found = estimate(counts, reference=1, **options)
    low, high = (np.log(bound)[1:] for bound in found.interval())
    off = (found.log_p - log_p[found.ranks - 1])[1:]
    held = (low <= log_p[found.ranks[1:] - 1]) & (log_p[found.ranks[1:] - 1] <= high)
    return off.mean(), np.sqrt((off**2).mean()), found.std_error[1:].mean(), held.mean()


def singles(worlds: int, first: int, only: str | None = None) -> None:
    for kind in ("told", "straight", "hidden"):
        made = [scored_world(seed, kind) for seed in range(first, first + worlds)]
        moved = np.mean([c.n_pairs for c, _ in made])
        alone = np.mean([c.singles.pairs.sum() for c, _ in made])
        print(f"{kind}: {moved:.0f} pairs moved and were clicked, {alone:.0f} at one rank")
        for name, options in ESTIMATORS.items():
            if only in (None, name):
                told(kind, name, [tried(*world, **options) for world in made])


# -- speed -----------------------------------------------------------------------------------------


def speed(pairs: int) -> None:
    counts, _ = scored_world(1, "told", pairs, moving=0.5, size=50)
    for relevance in ("rank", "column"):
        start, used = time.perf_counter(), time.process_time()
        found = estimate(counts, reference=1, method="bayes", relevance=relevance)
        spent = time.perf_counter() - start, time.process_time() - used
        about = found.provenance
        cells = evidence_of(counts, relevance).posterior().cells
        print(
            f"{relevance}: {counts.n_pairs:,} pairs moved and were clicked, "
            f"{about['pairs_at_one_rank']:,} at one rank, {cells:,} cells, {found.parameters} "
            f"parameters: {about['draws']:,} draws in {spent[0]:.0f} s ({spent[1]:.0f} s CPU), "
            f"R-hat {about['r_hat']:.4f}, ESS {about['ess_bulk']:.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    tests = {
        "calibration": (calibration, 200),
        "returns": (returns, 1000),
        "lengths": (lengths, 20),
        "curves": (curves, 10),
    }
    parser.add_argument("what", choices=[*tests, "singles", "speed"])
    parser.add_argument("--worlds", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--estimator", choices=ESTIMATORS)
    asked = parser.parse_args()
    if asked.what == "speed":
        speed(asked.pairs)
    elif asked.what == "singles":
        singles(asked.worlds or 10, asked.first, asked.estimator)
    else:
        test, worlds = tests[asked.what]
        test(worlds if asked.worlds is None else asked.worlds, asked.first)


if __name__ == "__main__":
    main()
