"""Models of the form P(click) = relevance of the pair × chance that its place is looked at.

A place is whatever the chance hangs on: a rank, or a rank and the last click above it. Results of
one pair at one place differ in nothing, so that all that is kept of them is how many were clicked
and how many were not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankdrift.clickmodels.climbing import Expected, Numbers, climb, shrunk
from rankdrift.clickmodels.ordering import changes
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import AnyInts, Floats, Indices, Ints

_WIDE = 8  # numbers for each key, up to which they are counted in a table
_AT_ONCE = 1 << 13  # cells, so that what is worked out of them stays in the cache


@dataclass(frozen=True, eq=False)
class Tallies:
    """What searches say of P pairs at L places.

    Parameters
    ----------
    pair, place
        (M,): of cells in which something was not clicked, in order of pairs.
    misses
        (M,): how often.
    clicks_of_pair
        (P,)
    clicks_of_place, shown_at_place
        (L,)
    """

    pair: Indices
    place: Indices
    misses: Floats
    clicks_of_pair: Floats
    clicks_of_place: Floats
    shown_at_place: Floats

    @property
    def rows(self) -> float:
        """T."""
        return float(self.shown_at_place.sum())


def tally(searches: Searches, place: AnyInts, places: int) -> Tallies:
    """Count results by pair and place.

    Parameters
    ----------
    searches
        Of T results.
    place
        (T,): from 0.
    places
        L.
    """
    clicks, shown = np.zeros(places), np.zeros(places)
    groups: list[list[tuple[Ints, Ints]]] = []  # of blocks that share pairs: those of one query
    top = -1
    for block in searches.lists.blocks:
        here, clicked = place[block.rows], searches.click[block.rows]
        shown += np.bincount(here, minlength=places)
        clicks += np.bincount(here[clicked], minlength=places)
        own = searches.pair[block.rows]
        low = int(own.min())
        keys = ((own - np.uint32(low)) * np.int64(places) + here)[~clicked]
        cell, misses = _counted(keys, (int(own.max()) - low + 1) * places)
        if low > top:
            groups.append([])
        groups[-1].append((cell + low * places, misses))
        top = max(top, int(own.max()))
    together = [_together(*zip(*group, strict=True)) for group in groups]
    cell, misses = (np.concatenate(each) for each in zip(*together, strict=True))
    pair = cell // places
    return Tallies(
        pair=pair,
        place=cell - pair * places,
        misses=misses.astype(float),
        clicks_of_pair=searches.by_pair[0],
        clicks_of_place=clicks,
        shown_at_place=shown,
    )


def _counted(keys: Ints, below: int) -> tuple[Ints, Ints]:
    """The keys there are, in order, and how often."""
    if below <= _WIDE * len(keys):
        counts = np.bincount(keys, minlength=1)
        found = np.flatnonzero(counts)
        return found, counts[found]
    keys = np.sort(keys)
    first = np.flatnonzero(changes(keys))
    return keys[first], np.diff(np.append(first, len(keys)))


def _together(cells: Sequence[Ints], misses: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Cells of some blocks, in order in each, once each and in order."""
    if len(cells) == 1:
        return cells[0], misses[0]
    cell = np.concatenate(cells)
    order = np.argsort(cell, kind="stable")  # merges what is in order already
    first = np.flatnonzero(changes(cell[order]))
    return cell[order[first]], np.add.reduceat(np.concatenate(misses)[order], first)


def fit_product(t: Tallies, strength: float, what: str) -> tuple[Floats, Floats]:
    """(P,) relevance and (L,) chances of being looked at.

    Parameters
    ----------
    t
        What was counted.
    strength
        Of the priors.
    what
        The model's name, for errors.
    """
    by_place = shrunk(t.clicks_of_place, t.shown_at_place, strength)
    # Only the product is known: to begin with, the place most looked at is nearly always.
    looks = 0.9 * by_place / by_place[t.shown_at_place > 0].max()
    relevance = np.full(len(t.clicks_of_pair), min(2 * t.clicks_of_place.sum() / t.rows, 0.5))
    blocks = _blocks(t)

    def expect(at: Numbers) -> Expected:
        z, p = at
        seen_of_pair, seen_at_place = np.zeros(len(z)), np.zeros(len(p))
        likely = float(t.clicks_of_pair @ np.log(z) + t.clicks_of_place @ np.log(p))
        for rows, low, high in blocks:
            pair, place, missed = t.pair[rows], t.place[rows], t.misses[rows]
            look = p[place]
            both = z[pair] * look
            none = 1.0 - both
            # Of those not clicked, so many were looked at and found not to be relevant.
            seen = missed * (look - both) / none
            seen_of_pair[low:high] += np.bincount(pair - low, seen, high - low)
            seen_at_place += np.bincount(place, seen, len(p))
            likely += float(missed @ np.log(none))
        return Expected(
            (t.clicks_of_pair, t.clicks_of_place + seen_at_place),
            (t.clicks_of_pair + seen_of_pair, t.shown_at_place),
            likely,
        )

    z, p = climb(expect, (relevance, looks), rows=t.rows, strength=strength, what=what)
    return z, p


def _blocks(t: Tallies) -> list[tuple[slice, int, int]]:
    """(cells, the first of their pairs, the one after the last)"""
    found = []
    for start in range(0, len(t.pair), _AT_ONCE):
        rows = slice(start, min(start + _AT_ONCE, len(t.pair)))
        found.append((rows, int(t.pair[rows.start]), int(t.pair[rows.stop - 1]) + 1))
    return found
