"""What is tried: each takes counts and returns ranks, log p, and bounds of its intervals."""

from dataclasses import dataclass

import numpy as np

from rankdrift.estimation import estimate


@dataclass(frozen=True)
class Found:
    """log_p of ranks; low and high of log p, both relative to rank 1; supported. Each (R,)."""

    ranks: np.ndarray
    log_p: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    supported: np.ndarray | None = None


def ours(curve: str, clicks: str = "every", errors: str = "buckets", by: str | None = None):
    """rankdrift itself; with `by`, of the segment named "flat"."""

    def run(world) -> Found:
        p = estimate(world.counts, curve=curve, clicks=clicks, errors=errors, by=by)
        if by:
            p = p.segment("flat", shrunk=False)
        low, high = (np.log(bound) for bound in p.interval())
        return Found(p.ranks, p.log_p, low, high, p.supported)

    return run


def choix(world) -> Found:
    """choix, by iterative Luce spectral ranking on pairs with one click: the paper's likelihood."""
    from choix import ilsr_pairwise_dense

    choices = world.counts.choices("single")
    two = (choices.shown > 0).sum(axis=1) == 2
    shown, won = choices.shown[two, :2], choices.clicked[two]
    lost = shown.sum(axis=1) - won
    wins = np.zeros((world.counts.max_rank,) * 2)
    np.add.at(wins, (won - 1, lost - 1), choices.weight[two])
    np.fill_diagonal(wins, 0.0)
    some = np.flatnonzero((wins.sum(axis=0) > 0) & (wins.sum(axis=1) > 0))
    log_p = ilsr_pairwise_dense(wins[np.ix_(some, some)], alpha=0.0, max_iter=500)
    return Found(some + 1, log_p)


def click_rates(world) -> Found:
    """Clicks per impression, taken for propensities."""
    seen = world.counts.pool().by_rank
    some = seen.clicks > 0
    return Found(seen.rank[some], np.log(seen.clicks[some] / seen.impressions[some]))


def all_pairs(world) -> Found:
    """rankdrift's AllPairs, to its maximum, on pairs shown at two ranks, once at each."""
    from rankdrift.methods.intervention_harvesting import all_pairs
    from rankdrift.methods.interventions import Interventions

    size, buckets = len(world.truth), 64
    here, there = world.rank.T - 1, world.rank.T[::-1] - 1  # each appearance, and its pair's other
    bucket = np.broadcast_to(np.arange(len(world.rank)) % buckets, here.shape)
    pairs, clicks = (np.zeros((buckets, size, size)) for _ in range(2))
    np.add.at(pairs, (bucket, here, there), 1)
    np.add.at(clicks, (bucket, here, there), world.click.T)
    alone = (sums.sum(axis=2).astype(int) for sums in (pairs, clicks))
    p = all_pairs(Interventions(clicks, pairs, *alone, unclicked=True))
    low, high = (np.log(bound) for bound in p.interval())
    return Found(p.ranks, p.log_p, low, high, p.supported)


ESTIMATORS = {
    "loglog": ours("loglog"),
    "loglog, single": ours("loglog", "single"),
    "direct": ours("direct"),
    "direct, single": ours("direct", "single"),
    "auto": ours("auto"),
    "loglog + periodic(40)": ours("loglog + periodic(40)"),
    "loglog + batch(40)": ours("loglog + batch(40)"),
    "loglog, by segment": ours("loglog", by="kind"),
    "auto, by segment": ours("auto", by="kind"),
    "choix": choix,
    "our AllPairs": all_pairs,
    "click rates": click_rates,
}
