"""From an estimate and how far it moves without each bucket of queries to Propensities."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import NotIdentified
from rankdrift.core.types import Floats
from rankdrift.core.version import __version__
from rankdrift.core.words import ranges
from rankdrift.propensities.propensities import ENOUGH_BUCKETS, ENOUGH_CLICKS, Propensities

ONE_BUCKET = "its clicks come from one bucket of queries, so its error cannot be told"


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is behind each rank: pairs (R,), and clicks (G, R) by bucket of queries."""

    pairs: NDArray[Any]
    clicks: NDArray[Any]

    def at(self, keep: NDArray[np.bool_]) -> "Evidence":
        return Evidence(self.pairs[keep], self.clicks[:, keep])

    @property
    def supported(self) -> NDArray[np.bool_]:
        buckets = min(ENOUGH_BUCKETS, len(self.clicks))
        spread = (self.clicks > 0).sum(axis=0)
        return np.asarray((self.clicks.sum(axis=0) >= ENOUGH_CLICKS) & (spread >= buckets))


@dataclass(frozen=True)
class About:
    """What else is to be told of an estimate."""

    method: str
    reference: int
    log_likelihood: float | None = None
    parameters: int | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


def assemble(
    ranks: NDArray[np.int32], log_p: Floats, moves: Floats, evidence: Evidence, about: About
) -> Propensities:
    """`moves` (G, R): how far log_p (R,) moves when a bucket is left out (the jackknife).

    Column g of the deviations belongs to bucket g, in every estimate made here: so the deviations
    of a difference of two estimates are the difference of their deviations.
    """
    place = place_of(about.reference, ranks, about.gaps)
    relative = moves - moves[:, [place]]
    used = np.asarray(evidence.clicks.any(axis=1))
    many = int(used.sum())
    if many < 2:
        raise NotIdentified(
            "All clicks that compare ranks come from one bucket of queries, so errors cannot be "
            "told. Add queries."
        )
    off = np.where(used[:, None], relative - relative[used].mean(axis=0), 0.0)
    return finish(
        ranks, log_p - log_p[place], np.sqrt((many - 1) / many) * off.T, evidence, about,
        errors="buckets", df=float(many - 1),
    )  # fmt: skip


def finish(
    ranks: NDArray[np.int32],
    log_p: Floats,
    deviations: Floats,
    evidence: Evidence,
    about: About,
    *,
    errors: str,
    df: float,
) -> Propensities:
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


def place_of(reference: int, ranks: NDArray[np.int32], gaps: Mapping[int, str]) -> int:
    """Where the reference rank is among `ranks`."""
    place = int(np.searchsorted(ranks, reference))
    if place == len(ranks) or ranks[place] != reference:
        why = f" ({gaps[reference]})" if reference in gaps else ""
        raise NotIdentified(
            f"Rank {reference}, the reference, has no estimate{why}. Ranks that have: "
            f"{ranges(ranks.tolist()) or 'none'}. Choose one of them as the reference."
        )
    return place
