"""What curves of different forms have in common: a level, beside the detail that each has by itself.

The level of a curve is its log-log part, as far as the paper's knots can follow it. The rest is its
detail: the profile of a batch, a jump, a bend at a knot of its own. A batch is level at its first
place, so that the level of results that load in batches compares with that of results that do not.
"""

from dataclasses import dataclass, replace

import numpy as np

from rankdrift.core.types import Floats
from rankdrift.estimation.auto_curve import chance_of
from rankdrift.estimation.fitting import Fitted
from rankdrift.propensities.propensities import Propensities


@dataclass(frozen=True)
class Levelled:
    """A curve and its level.

    Attributes
    ----------
    curve
        Level and detail together.
    level
        (R,), of log p; 0 at the reference.
    deviations
        (R, N): those of the level, column by column as those of the curve are.
    """

    curve: Propensities
    level: Floats
    deviations: Floats

    @property
    def error(self) -> Floats:
        """(R,), of the level."""
        return np.asarray(np.sqrt((self.deviations**2).sum(axis=1)))

    @property
    def detail(self) -> Floats:
        """(R,), of log p."""
        return self.curve.log_p - self.level


def all_level(curve: Propensities) -> Levelled:
    """A curve without detail."""
    return Levelled(curve, curve.log_p, curve.deviations)


def level_of(curve: Propensities, fitted: Fitted) -> Levelled:
    """A curve that the data chose, apart from its detail."""
    if fitted.curve == fitted.plain.curve:
        return all_level(curve)
    inside, basis = len(fitted.likelihood.ranks), fitted.fit.basis
    values = np.column_stack([curve.log_p, curve.deviations])[:inside]
    phi = _phi(fitted, basis, values)
    phi[len(fitted.curve.parts[0].numbers) - 1 :] = 0.0  # the batch
    level = _straightened(curve, fitted, basis @ phi)
    return Levelled(curve, level[:, 0], level[:, 1:])


def with_detail_of(pool: Levelled, own: Levelled, fitted: Fitted, plain: Propensities) -> Levelled:
    """A segment's curve, averaged with one that has the pool's detail instead of its own, by the
    chance of either; `plain` is the segment's curve with the paper's knots alone."""
    at = np.searchsorted(pool.curve.ranks, own.curve.ranks)
    detail = pool.detail[at]
    if not detail.any():
        return own
    inside = len(fitted.likelihood.ranks)
    # As far as knots can follow the detail, the plain curve has it already.
    level = plain.log_p - _straightened(own.curve, fitted, detail[:inside, None])[:, 0]
    other = level + detail
    chance = chance_of(other[:inside], fitted.plain.fit, fitted.plain.curve, fitted.fit, fitted.curve)
    shared = pool.curve.deviations[at] - pool.deviations[at]
    doubt = np.sqrt(chance * (1 - chance)) * (other - own.curve.log_p)
    rest = own.curve.deviations - own.deviations
    return Levelled(
        replace(
            own.curve,
            log_p=own.curve.log_p + chance * (other - own.curve.log_p),
            deviations=np.column_stack(
                [own.deviations + (1 - chance) * rest, chance * shared, doubt]
            ),
        ),
        own.level + chance * (level - own.level),
        np.pad(own.deviations, ((0, 0), (0, shared.shape[1] + 1))),
    )


def _phi(fitted: Fitted, basis: Floats, values: Floats) -> Floats:
    """(K, N): the curve nearest to values (R, N), by the information on each rank."""
    across = basis.T @ fitted.likelihood.at(fitted.fit.theta).information()
    return np.asarray(np.linalg.solve(across @ basis, across @ values))


def _straightened(curve: Propensities, fitted: Fitted, values: Floats) -> Floats:
    """(R, N): values (R', N) at the ranks with data, as the plain curve can follow them, at all
    ranks of `curve`; 0 at its reference."""
    ranks, plain = fitted.likelihood.ranks, fitted.plain.curve
    basis = plain.basis(ranks)[:, 1:]
    phi = _phi(fitted, basis, values)
    deeper = curve.ranks[len(ranks) :]
    level = np.concatenate([basis, plain.beyond(deeper)[:, 1:]]) @ phi
    return np.asarray(level - level[np.searchsorted(curve.ranks, curve.reference)])
