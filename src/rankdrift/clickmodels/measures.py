"""How well models forecast clicks that they have not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdrift.clickmodels.model import ClickModel, log_likelihood
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import Floats, Ints

DRAWS = 1_000  # of the bootstrap
_BUCKETS = 2_000  # that queries are dealt into, where there are more


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a model says of searches held out, added up.

    Parameters
    ----------
    by_bucket
        (B,): the log-likelihood of all results, by buckets of queries.
    given, alone
        (ranks + 1,): the mean log-likelihood of a result at each rank, given the clicks above it
        and whatever they are; NaN at ranks that were not shown.
    """

    by_bucket: Floats
    given: Floats
    alone: Floats

    @property
    def conditional_perplexity(self) -> Floats:
        """(ranks + 1,): 2 to the power of bits a result costs, given the clicks above it."""
        return np.asarray(np.exp(-self.given))

    @property
    def perplexity(self) -> Floats:
        """(ranks + 1,): the same, whatever the clicks above it."""
        return np.asarray(np.exp(-self.alone))


def buckets_of_queries(searches: Searches) -> tuple[Ints, int]:
    """(P,) the bucket of each pair's query, and how many there are."""
    query = searches.query_of_pair.astype(np.uint64)
    queries = int(query.max()) + 1
    if queries <= _BUCKETS:
        return query.astype(np.int64), queries
    # Neighbours are dealt apart (Fibonacci hashing).
    mixed = (query * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return (mixed % np.uint64(_BUCKETS)).astype(np.int64), _BUCKETS


def forecast(model: ClickModel, searches: Searches, bucket: Ints, buckets: int) -> Forecast:
    """Let a model say how likely what happened was.

    Parameters
    ----------
    model
        Fitted to other searches.
    searches
        Held out.
    bucket, buckets
        From `buckets_of_queries`.
    """
    given = log_likelihood(model.conditional_click_probabilities(searches), searches.click)
    alone = log_likelihood(model.click_probabilities(searches), searches.click)
    return Forecast(
        np.bincount(bucket[searches.pair], given, buckets).astype(float),
        _by_rank(given, searches),
        _by_rank(alone, searches),
    )


def _by_rank(values: Floats, searches: Searches) -> Floats:
    shown = searches.by_rank[1]
    total = np.bincount(searches.rank, values, len(shown))
    mean: Floats = np.divide(total, shown, out=np.full(len(shown), np.nan), where=shown > 0)
    return mean


def drawn_weights(buckets: int, seed: int) -> Floats:
    """(DRAWS, B): how often each bucket is drawn, in each draw of as many as there are."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(buckets, np.full(buckets, 1 / buckets), DRAWS).astype(float)
