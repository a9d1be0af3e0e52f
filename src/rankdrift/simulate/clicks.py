"""Clicks of pairs in memory: drawn given that there is one, and coded as counts have them."""

from __future__ import annotations

import numpy as np

from rankdrift.core.types import AnyInts, Bools, Floats, SmallInts

_LAST = np.iinfo(np.int32).max


def draw_clicked(random: np.random.Generator, p: Floats, mean_z: Floats) -> tuple[Bools, Bools]:
    """Clicks (N, K) of pairs that have one, by Eq. (1), prob-click; and which of them to keep (N,).

    A pair with propensities p (N, K), 0 where it was not shown, has a click with probability
    E[1 − Π (1 − p_k z)], and z has a Beta distribution with mean `mean_z` (N,). To draw such pairs
    and no others: draw z from its law times z, one clicked appearance in proportion to p, the
    others by Eq. (1); and keep that with chance 1 over its number of clicks. What is kept has the
    law of z and clicks given the ranks and given that there is a click, if pairs are taken with
    chance in proportion to E[z] Σ p_k, or each is drawn until one is kept.
    """
    z = random.beta(2, 1 / mean_z - 1)[:, None]
    click = random.random(p.shape) < p * z
    upto = np.cumsum(p, axis=1)
    first = (random.random((len(p), 1)) * upto[:, -1:] >= upto).sum(axis=1)
    click[np.arange(len(p)), first] = True
    return click, random.random(len(p)) * click.sum(axis=1) < 1


def shown_codes(rank: AnyInts, click: Bools) -> SmallInts:
    """2 * rank + click of each appearance (N, K), ascending; 0, where rank is 0, at the end."""
    code = np.sort(np.where(rank > 0, 2 * rank + click, _LAST), axis=1).astype(np.int32)
    code[code == _LAST] = 0
    return code
