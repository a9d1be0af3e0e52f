"""What curves of different forms have in common: a level, beside the detail of each.

The level of a curve is its log-log part, as far as the paper's knots can follow it. The rest is its
detail: the profile of a batch, a jump, a bend at a knot of its own. A batch has no detail at its
first place, so that the level of results that load in batches is that of results that do not.
"""

from dataclasses import dataclass, replace

import numpy as np

from rankdrift.core.types import Floats
from rankdrift.estimation.auto_curve import criterion_of
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
    def detail(self) -> Floats:
        """(R,), of log p."""
        return self.curve.log_p - self.level

    @property
    def error(self) -> Floats:
        """(R,), of the level."""
        return np.asarray(np.sqrt((self.deviations**2).sum(axis=1)))

    def sharing(self, pool: "Levelled", fitted: Fitted, plain: Propensities) -> "Levelled":
        """The average of this curve, of a segment, and of one with the pool's detail instead of its
        own, by the chance of either.

        A thin segment cannot show a detail, and may have the pool's all the same.

        Parameters
        ----------
        pool
            Has all ranks of this curve.
        fitted
            The fit of this curve, which the data chose.
        plain
            The curve that choosing began with.
        """
        assert fitted.began
        at = np.searchsorted(pool.curve.ranks, self.curve.ranks)
        detail, inside = pool.detail[at], fitted.likelihood.size
        # The plain curve follows the detail as far as it can: that much of it is there already.
        straight = _straightened(self.curve, fitted, _information(fitted), detail[:inside, None])
        level = plain.log_p - straight[:, 0]
        off = level + detail - self.curve.log_p
        chance = _chance((level + detail)[:inside], fitted.began, fitted)
        shared = pool.curve.deviations[at] - pool.deviations[at]
        own = self.deviations + (1 - chance) * (self.curve.deviations - self.deviations)
        doubt = np.sqrt(chance * (1 - chance)) * off
        return Levelled(
            replace(
                self.curve,
                log_p=self.curve.log_p + chance * off,
                deviations=np.column_stack([own, chance * shared, doubt]),
            ),
            self.level + chance * (level - self.level),
            np.pad(self.deviations, ((0, 0), (0, shared.shape[1] + 1))),
        )


def level_of(curve: Propensities, fitted: Fitted) -> Levelled:
    """A curve apart from its detail, which it has if the data chose it."""
    if fitted.began is None or fitted.curve == fitted.began.curve:
        return Levelled(curve, curve.log_p, curve.deviations)
    inside, basis = fitted.likelihood.size, fitted.fit.basis
    values = np.column_stack([curve.log_p, curve.deviations])[:inside]
    information = _information(fitted)
    phi = _phi(information, basis, values)
    phi[len(fitted.curve.parts[0].numbers) - 1 :] = 0.0  # the batch
    level = _straightened(curve, fitted, information, basis @ phi)
    return Levelled(curve, level[:, 0], level[:, 1:])


def _chance(theta: Floats, began: Fitted, chosen: Fitted) -> float:
    """The chance that log p is `theta` (R,), which has no more parameters than the curve that
    choosing began with, and not the curve that was chosen."""
    criterion = criterion_of(began.fit, began.curve)
    worse = criterion.fixed(began.curve) - criterion.fixed(chosen.curve)
    gain = chosen.fit.log_likelihood - began.likelihood.at(theta).value
    return float(1 / (1 + np.exp(min(worse / 2 + gain / criterion.scale, 700.0))))


def _information(fitted: Fitted) -> Floats:
    """(R, R): on log p of each rank."""
    return fitted.likelihood.at(fitted.fit.theta).information()


def _phi(information: Floats, basis: Floats, values: Floats) -> Floats:
    """(K, N): the curve nearest to values (R, N), by the information on each rank."""
    across = basis.T @ information
    return np.asarray(np.linalg.solve(across @ basis, across @ values))


def _straightened(
    curve: Propensities, fitted: Fitted, information: Floats, values: Floats
) -> Floats:
    """(R, N): values (R', N) at the ranks with data, as the plain curve can follow them, at all
    ranks of `curve`; 0 at its reference."""
    assert fitted.began
    plain, basis = fitted.began.curve, fitted.began.fit.basis
    drawn_on = np.concatenate([basis, plain.beyond(curve.ranks[len(basis) :])[:, 1:]])
    level = drawn_on @ _phi(information, basis, values)
    return np.asarray(level - level[np.searchsorted(curve.ranks, curve.reference)])
