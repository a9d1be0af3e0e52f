"""Sums over cells against matrices written out."""

import numpy as np
import pytest

from rankdrift.estimation.laplacian import (
    Cells,
    both_halves,
    grounded,
    pool,
    projected,
    same_ranks,
    ungrounded,
)

SIZE = 5
ROUNDING = 1e-12


def random_cells(appearances, seed=0, many=40):
    """Rows of ascending ranks with clicks, some ranks shown twice where there is room."""
    rng = np.random.default_rng(seed)
    shown = np.sort(rng.integers(0, SIZE, (appearances, many)), axis=0)
    shown = shown[:, shown[0] != shown[-1]]
    return Cells(SIZE, shown, rng.integers(0, 4, shown.shape).astype(float))


def written_out(cells, share):
    """Σ over cells of clicks · (diag π − π πᵀ), with π added up by rank."""
    total = np.zeros((SIZE, SIZE))
    for column, weight in enumerate(cells.weight):
        p = np.bincount(cells.shown[:, column], share[:, column], SIZE)
        total += weight * (np.diag(p) - np.outer(p, p))
    return total


@pytest.mark.parametrize("at_once", [1, 80, 20_000])
@pytest.mark.parametrize("appearances", [2, 3, 4])
def test_the_laplacian_is_the_information_of_choices(appearances, at_once, monkeypatch):
    monkeypatch.setattr("rankdrift.estimation.laplacian.AT_ONCE", at_once)
    cells = random_cells(appearances)
    share = np.random.default_rng(1).dirichlet(np.ones(appearances), cells.shown.shape[1]).T
    wanted = written_out(cells, share)

    def edges():
        return cells.edges(share, cells.weight)

    np.testing.assert_allclose(ungrounded(edges(), SIZE), wanted, atol=ROUNDING * wanted.max())
    lower = grounded(edges(), SIZE)
    np.testing.assert_allclose(both_halves(lower), wanted[1:, 1:], atol=ROUNDING * wanted.max())
    basis = np.random.default_rng(2).normal(size=(SIZE, 3))
    np.testing.assert_allclose(projected(edges(), basis), basis.T @ wanted @ basis)


def test_rows_of_the_laplacian_sum_to_nothing():
    cells = random_cells(2)
    share = np.full(cells.shown.shape, 0.5)
    found = ungrounded(cells.edges(share, cells.weight), SIZE)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=ROUNDING * found.max())
    np.testing.assert_allclose(found, found.T)


@pytest.mark.parametrize("appearances", [2, 3])
def test_unexpected_clicks_are_those_won_less_those_expected(appearances):
    cells = random_cells(appearances)
    share = np.random.default_rng(1).dirichlet(np.ones(appearances), cells.shown.shape[1]).T
    wanted = np.zeros(SIZE)
    np.add.at(wanted, cells.shown, cells.won - cells.weight * share)
    np.testing.assert_allclose(cells.unexpected(share), wanted, atol=ROUNDING * cells.won.sum())


def test_cells_of_the_same_two_ranks_are_one():
    shown = np.array([[0, 1, 0, 0], [2, 2, 2, 1]])
    won = np.array([[1.0, 2, 3, 4], [10, 20, 30, 40]])
    rows, same = same_ranks(shown, SIZE)
    assert len(rows) == 3
    assert same[0] == same[2]
    pooled = pool(shown, won, SIZE)
    found = {tuple(ranks): tuple(w) for ranks, w in zip(pooled.shown.T, pooled.won.T, strict=True)}
    assert found == {(0, 2): (4, 40), (1, 2): (2, 20), (0, 1): (4, 40)}
