"""From log p and its errors to Propensities: what every other estimator ends with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Bools, Floats, Ranks
from rankdrift.core.version import __version__
from rankdrift.core.words import ranges
from rankdrift.estimation.covariance import jackknife_root
from rankdrift.propensities.propensities import ENOUGH_BUCKETS, ENOUGH_CLICKS, Propensities

ONE_BUCKET = "its clicks come from one bucket of queries, so its error cannot be told"


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is behind each rank: pairs (R,), and clicks (G, R) by bucket of queries."""

    pairs: NDArray[Any]
    clicks: NDArray[Any]

    def at(self, keep: Bools) -> "Evidence":
        """Of some of the ranks, a mask (R,)."""
        return Evidence(self.pairs[keep], self.clicks[:, keep])

    @property
    def supported(self) -> Bools:
        """(R,): enough clicks, in enough buckets of queries."""
        buckets = min(ENOUGH_BUCKETS, len(self.clicks))
        spread = (self.clicks > 0).sum(axis=0)
        return np.asarray((self.clicks.sum(axis=0) >= ENOUGH_CLICKS) & (spread >= buckets))


@dataclass(frozen=True)
class About:
    """What else there is to say of an estimate; gaps: ranks without one, and why."""

    method: str
    reference: int
    log_likelihood: float | None = None
    parameters: int | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


def by_jackknife(
    ranks: Ranks, log_p: Floats, influence: Floats, evidence: Evidence, about: About
) -> Propensities:
    """Propensities with errors from leaving out each bucket of queries.

    Column g of the deviations belongs to bucket g, in every estimate made here: so the deviations
    of a difference of two estimates are the difference of their deviations.

    Parameters
    ----------
    ranks
        (R,)
    log_p
        (R,), relative to anything.
    influence
        (G, R), how far log_p moves when a bucket is left out.
    evidence
        What is behind each rank. Buckets without clicks do not count.
    about
        What else there is to say; its reference must be among the ranks.
    """
    place = place_of(about.reference, ranks, about.gaps)
    used = np.asarray(evidence.clicks.any(axis=1))
    many = int(used.sum())
    if many < 2:
        raise NotIdentified(
            "All clicks that compare ranks come from one bucket of queries, so errors cannot be "
            "told. Add queries."
        )
    return by_deviations(
        ranks,
        log_p - log_p[place],
        bucket_deviations(influence - influence[:, [place]], used),
        evidence,
        about,
        errors="buckets",
        df=float(many - 1),
    )


def bucket_deviations(influence: Floats, used: Bools) -> Floats:
    """(R, G): the jackknife's deviations from the influence (G, R) of the buckets that are `used`
    (G,); 0 for the others. Column g belongs to bucket g."""
    off = np.zeros_like(influence)
    off[used] = jackknife_root(influence[used]).T
    return off.T


def by_deviations(
    ranks: Ranks,
    log_p: Floats,
    deviations: Floats,
    evidence: Evidence,
    about: About,
    *,
    errors: str,
    df: float,
) -> Propensities:
    """Propensities from log_p (R,) relative to the reference and its deviations (R, N).

    `errors` says what the deviations come from, as in `Propensities`, and `df` their degrees of
    freedom.
    """
    clicks = np.rint(evidence.clicks.sum(axis=0)).astype(np.int64)
    return Propensities(
        ranks=ranks,
        log_p=log_p,
        deviations=deviations,
        pairs=np.rint(evidence.pairs).astype(np.int64),
        clicks=clicks,
        supported=evidence.supported,
        reference=about.reference,
        method=about.method,
        errors=errors,
        df=df,
        log_likelihood=about.log_likelihood,
        parameters=about.parameters,
        gaps=dict(about.gaps),
        provenance={"version": __version__, **about.provenance},
    )


def place_of(reference: int, ranks: Ranks, gaps: Mapping[int, str]) -> int:
    """Where the reference rank is among `ranks`."""
    place = int(np.searchsorted(ranks, reference))
    if place == len(ranks) or ranks[place] != reference:
        why = f" ({gaps[reference]})" if reference in gaps else ""
        raise NotIdentified(
            f"Rank {reference}, the reference, has no estimate{why}. Ranks that have: "
            f"{ranges(ranks.tolist()) or 'none'}. Choose one of them as the reference."
        )
    return place
