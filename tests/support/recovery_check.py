"""The one check: simulate, estimate, and the truth lies where the estimate says it does."""

from dataclasses import dataclass

import numpy as np

BLOCKS = ((2, 5), (6, 20), (21, 1000))
# A bias is real at this many standard errors: of about 60 that are looked at, none by chance.
SURE = 4.0
# 95% intervals of 16 worlds: errors at the ranks of one go together, so that the share
# that holds the truth has a deviation of about 3%.
LEAST_COVERED = 0.85
# Mean square error over mean squared standard error claimed; its deviation is about 0.3.
HONEST = (0.35, 2.0)
# An interval as wide as the world would hold the truth too.
TELLING = 0.8


@dataclass(frozen=True, eq=False)
class Case:
    """What an estimator made of one world, and the truth: log p (R,) of ranks 1 to R."""

    found: object
    truth: np.ndarray


def check_recovery(cases: list[Case]) -> None:
    """`cases`: the same kind of world with different seeds."""
    size = len(cases[0].truth)
    off, held, claimed = (np.full((len(cases), size), np.nan) for _ in range(3))
    for row, case in enumerate(cases):
        found, truth = case.found, case.truth - case.truth[case.found.reference - 1]
        sure = found.supported & (found.ranks != found.reference)
        at = found.ranks[sure] - 1
        low, high = (np.log(bound[sure]) for bound in found.interval(0.95))
        off[row, at] = found.log_p[sure] - truth[at]
        held[row, at] = (low <= truth[at]) & (truth[at] <= high)
        claimed[row, at] = found.std_error[sure]
    ranks = np.arange(1, size + 1)
    for first, last in BLOCKS:
        inside = (ranks >= first) & (ranks <= last)
        part = off[:, inside]
        if not np.isfinite(part).any():
            continue
        means = np.nanmean(part[np.isfinite(part).any(axis=1)], axis=1)
        error = means.std(ddof=1) / np.sqrt(len(means))
        assert abs(means.mean()) < SURE * error, f"biased at ranks {first}-{last}: {means.mean()}"
    covered = np.nanmean(held)
    assert covered > LEAST_COVERED, f"95% intervals hold the truth in {covered:.0%}"
    honest = np.nanmean(off**2) / np.nanmean(claimed**2)
    assert HONEST[0] < honest < HONEST[1], f"errors are {honest:.2f} of those claimed, squared"
    assert np.nanmedian(claimed) < TELLING
    assert np.isfinite(off).mean() > 0.5
