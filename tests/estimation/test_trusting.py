"""Clicks that need no relevance: planted ones are found, and exactly where chance has no part."""

from dataclasses import replace

import numpy as np
import pytest
from support.recovery_check import LEAST_COVERED, Case, check_recovery

from rankdrift import estimate, harvest, read_log
from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.rank_blocks import fine_blocks
from rankdrift.counts.tables import SPLITS, UNIT, Splits
from rankdrift.estimation.curves import hats
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.trusting import ALPHA_KNOTS, RHO_KNOTS, by_trust
from rankdrift.simulate import pairs, world

# Weights are whole numbers of 1/UNIT, and Newton stops at 1e-9.
EXACT = 1e-6
# One step of Newton without a bucket, against solving again: of the largest move.
ONE_STEP = 0.05


@pytest.fixture(scope="module")
def plain():
    """Counts of clicks as Eq. (1) has them, down to rank 40."""
    return pairs(1_500, ranks=40, seed=3).counts


def truth(counts, steep, trusted):
    """alpha and beta of ranks 1 to 40: of the shapes that are estimated, off the plain curve."""
    fitted = fit(counts, Options(curve="loglog"))
    logs = np.log(fitted.likelihood.ranks.astype(float))
    ends = [np.array([*(k for k in np.log(knots) if k < logs[-1] - 0.3), logs[-1]])
            for knots in (ALPHA_KNOTS, RHO_KNOTS)]  # fmt: skip
    log_alpha = fitted.fit.theta + hats(logs, ends[0]) @ np.array(steep)
    rho = hats(logs, ends[1]) @ np.array(trusted)
    alpha = np.exp(log_alpha - log_alpha[0])
    return alpha, alpha * rho


def expected(counts, alpha, beta, noise=0.0, seed=1):
    """With as many clicks as alpha and beta say, for docs of three kinds of relevance."""
    rng = np.random.default_rng(seed)
    ranks = np.arange(1, 41)
    blocks = fine_blocks(40)
    # The estimate takes a block for its middle.
    a, b = (x.ravel() for x in np.meshgrid(blocks, blocks, indexing="ij"))
    near = (a != b) & (np.abs(np.log(a / b)) < 1.0)
    a, b = a[near], b[near]
    lasts = np.append(blocks[1:] - 1, 40)
    middle = np.sqrt(blocks * lasts.astype(float))
    at = {r: np.log(m) for r, m in zip(blocks.tolist(), middle, strict=True)}
    alphas = {r: np.exp(np.interp(x, np.log(ranks), np.log(alpha))) for r, x in at.items()}
    rhos = {r: np.interp(x, np.log(ranks), beta / alpha) for r, x in at.items()}
    tables = []
    for bucket in range(counts.buckets):
        for group, z in ((13, 0.06), (16, 0.12), (20, 0.3)):
            shows = (
                40.0 * rng.integers(1, 5, len(blocks))[np.searchsorted(blocks, np.minimum(a, b))]
            )
            own = np.array([alphas[r] * (z + rhos[r]) for r in a.tolist()])
            weight = shows * own
            if noise:
                weight = weight * np.exp(noise * rng.normal(size=len(weight)))
            number = np.full(len(a), SPLITS.index("trust"))
            zero = np.zeros(len(a), int)
            tables.append((zero, number, zero + group, zero + bucket, a, b,
                           np.rint(weight * UNIT), zero, np.rint(shows * UNIT)))  # fmt: skip
    columns = [np.concatenate(parts).astype(np.int64) for parts in zip(*tables, strict=True)]
    kept = counts.splits.take(counts.splits.split != SPLITS.index("trust"))
    added = Splits(*columns)
    every = [np.concatenate(p) for p in zip(kept.columns(), added.columns(), strict=True)]
    return replace(counts, splits=Splits(*every))


def test_planted_curves_are_found(plain):
    alpha, beta = truth(plain, [0, 0.1, 0.3, 0.5, 0.6], [0.09, 0.03, 0.01, 0.0])
    found = estimate(expected(plain, alpha, beta), curve="loglog", adjust="trust")
    np.testing.assert_allclose(found.values, alpha, rtol=EXACT)
    np.testing.assert_allclose(found.trust, beta, atol=EXACT)
    assert "for clicks that rank alone brings" in found.method
    same = estimate(expected(plain, alpha, beta), curve="loglog", adjust="trust", reference=5)
    np.testing.assert_allclose(same.trust, found.trust, atol=EXACT)  # a chance, whatever the unit
    np.testing.assert_allclose(same.values, found.values / found[5], rtol=EXACT)


def test_without_trust_there_is_none(plain):
    alpha, beta = truth(plain, np.zeros(5), np.zeros(4))
    found = estimate(expected(plain, alpha, beta), curve="loglog", adjust="trust")
    np.testing.assert_allclose(found.trust, 0.0, atol=EXACT)


def test_errors_are_those_of_leaving_buckets_out(plain):
    alpha, beta = truth(plain, [0, 0.1, 0.3, 0.5, 0.6], [0.09, 0.03, 0.01, 0.0])
    counts = expected(plain, alpha, beta, noise=0.3)
    whole = by_trust(counts, fit(counts, Options(curve="loglog")), 1)
    bucket = 7
    fewer = replace(
        counts,
        pairs=counts.pairs.take(counts.pairs.bucket != bucket),
        rank_pairs=counts.rank_pairs.take(counts.rank_pairs.bucket != bucket),
        splits=counts.splits.take(counts.splits.bucket != bucket),
        options={**counts.options, "restrict": {}},
    )
    without = by_trust(fewer, fit(fewer, Options(curve="loglog")), 1)
    for name in ("shift", "trust"):
        moved = getattr(whole, name) - getattr(without, name)
        told = getattr(whole, "influence" if name == "shift" else "trust_influence")[bucket]
        np.testing.assert_allclose(told, moved, atol=ONE_STEP * np.abs(moved).max())
        assert np.abs(moved).max() > 0


def test_what_cannot_be_told(plain):
    with pytest.raises(NotIdentified, match=r"Harvest several days at once with\s+--trust"):
        estimate(plain, adjust="trust")
    alpha, beta = truth(plain, np.zeros(5), np.zeros(4))
    counts = expected(plain, alpha, beta)
    table = counts.splits.of("trust")
    one = replace(counts, splits=table.take(table.group == 16))
    with pytest.raises(NotIdentified, match="cannot be adjusted for trust: all docs that moved"):
        estimate(one, adjust="trust")
    few = replace(counts, splits=table.take(slice(0, 5)))
    with pytest.raises(NotIdentified, match="Harvest more days"):
        estimate(few, adjust="trust")
    with pytest.raises(BadOption, match="one has too few clicks"):
        estimate(counts, adjust="trust", by="device")


@pytest.mark.slow
def test_worlds_of_trust_are_recovered(tmp_path):
    """In short what benchmarks/accuracy/trust.py does for many and larger ones."""
    cases, plain, held = [], [], []
    for seed in range(11, 17):
        made = world("trust", pairs=8_000, seed=seed, columns=())
        log = read_log(made.write(tmp_path / str(seed), by_day=False), time="time")
        counts = harvest(log, trust=True)
        found = estimate(counts, adjust="trust", reference=1)
        cases.append(Case(found, np.log(made.truth)))
        plain.append(Case(estimate(counts, reference=1), np.log(made.truth)))
        below, above = found.trust_interval(0.95)
        held.append(((below <= made.parts["beta"]) & (made.parts["beta"] <= above))[:-1])
    check_recovery(cases)
    assert np.mean(held) > LEAST_COVERED
    with pytest.raises(AssertionError, match="biased"):
        check_recovery(plain)
