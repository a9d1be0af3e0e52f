"""Tiny and odd counts: a verdict or a RankdriftError, no NaN in what is told, and nothing else."""

import math
import random
import warnings
from numbers import Real

import pytest
from support.worlds import listed

from rankdrift.core.errors import RankdriftError
from rankdrift.diagnosis.diagnosing import diagnose
from rankdrift.estimation.estimating import estimate

CASES = {
    "few": {},
    "two ranks": {"ranks": 2},
    "three ranks": {"ranks": 3},
    "one bucket": {"buckets": 1},
    "two buckets": {"buckets": 2},
    "all clicked": {"rate": 1.0},
    "deep": {"ranks": 400},
    "much shown": {"shown": 12},
    "segments": {"names": ("app", "tv", "web")},
    "segments of two ranks": {"names": ("app", "tv", "web"), "ranks": 2},
    "counted over and over": {"times": 10_000},
}
SIZES = (1, 2, 3, 5, 6, 8, 11, 14, 20)
SEEDS = 2


def tiny(size, seed, *, ranks=6, buckets=64, rate=0.5, shown=3, names=(), times=1):
    """Counts of so many pairs, by chance."""
    rng = random.Random(1000 * size + seed)
    pairs = []
    for _ in range(size):
        at = [rng.randint(1, ranks) for _ in range(rng.randint(2, shown))]
        clicks = [(rank, rng.random() < rate) for rank in at]
        pairs.append(
            (
                tuple(clicks),
                rng.randrange(buckets),
                rng.randint(1, times),
                rng.randrange(max(len(names), 1)),
            )
        )
    return listed(pairs, buckets=buckets, names=names)


@pytest.mark.parametrize("curve", ["free", "loglog", "loglog(1,4)"])
@pytest.mark.parametrize("case", CASES)
def test_tiny_counts_have_a_verdict_or_an_error(case, curve):
    failures = {}
    for size in SIZES:
        for seed in range(SEEDS):
            counts = tiny(size, seed, **CASES[case])
            for step in (diagnosed, estimated):
                failure = problem(step, counts, curve)
                if failure:
                    failures.setdefault(failure, (size, seed, step.__name__))
    assert not failures


def diagnosed(counts, curve):
    return diagnose(counts, curve=curve).to_dict()


def estimated(counts, curve):
    by = "device" if len(counts.segments) > 1 else None
    found = estimate(counts, curve=curve, by=by)
    return found.summary(), found.values.tolist(), found.std_error.tolist()


def problem(step, counts, curve):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            told = step(counts, curve)
        except RankdriftError:
            return None
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    where = not_a_number(told)
    return where and f"NaN at {where}"


def not_a_number(value, at=""):
    """Where a number that is told is NaN or infinite."""
    if isinstance(value, dict):
        value = list(value.items())
        return next((w for k, v in value if (w := not_a_number(v, f"{at}/{k}"))), None)
    if isinstance(value, list | tuple):
        return next((w for v in value if (w := not_a_number(v, f"{at}/*"))), None)
    if isinstance(value, Real) and not math.isfinite(float(value)):
        return at
    return None
