"""LambdaMART's first gradients, pair by pair, as the definition has them."""

from itertools import pairwise

import numpy as np


def lambdas(gain, starts, sigmoid=1.0):
    """(g, h) of each row when all scores are equal: pairs of a search in which one is worth more
    pull it up and the other down, by how much swapping them where they stand changes DCG."""
    g, h = np.zeros(len(gain)), np.zeros(len(gain))
    for first, end in pairwise(starts):
        for i in range(first, end):
            for j in range(first, end):
                if gain[i] <= gain[j]:
                    continue
                here, there = (1 / np.log2(k - first + 2) for k in (i, j))
                change = (gain[i] - gain[j]) * abs(here - there)
                rho = 0.5  # 1 / (1 + exp(sigmoid * (s_i - s_j)))
                g[i] -= sigmoid * rho * change
                g[j] += sigmoid * rho * change
                h[[i, j]] += sigmoid**2 * rho * (1 - rho) * change
    return g, h


def ideal(gain, starts):
    return np.array([
        sum(v / np.log2(k + 2) for k, v in enumerate(sorted(gain[a:b], reverse=True)))
        for a, b in pairwise(starts)
    ])  # fmt: skip
