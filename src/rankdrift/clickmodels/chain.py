"""Models in which users go down the list, result by result, until they stop.

A result that is reached is clicked if it is relevant, z. From there users go on with a chance that
hangs on whether they clicked: `after_none`, or `after_click`, which a model may have by pair or by
rank. What is above the last click was reached for sure. All that is hidden is how far users went
below it, so rounds of EM go through those results alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankdrift.clickmodels.lists import Block, Lists, last_marked
from rankdrift.clickmodels.model import ClickModel
from rankdrift.clickmodels.searches import Searches
from rankdrift.core.types import AnyInts, Bools, Floats, Indices, Ints


@dataclass(frozen=True, eq=False)
class Tails:
    """What searches say of P pairs, if users go down the list.

    A tail is what comes after a search's last click, of a search without clicks all of it. There
    are N tails with T results.

    Parameters
    ----------
    lists
        How tails are laid out.
    pair
        (T,): less the first pair of the block it is in.
    spans
        Of each block: its first pair, and the one after its last.
    click_pair, click_rank
        (N,): of the last click; P and 0 where there was none.
    clicks, reached
        (P,): clicks, and results that were reached for sure.
    went_on_pair, went_on_rank
        (P,), (ranks + 1,): clicks with another below.
    left_pair, left_rank
        (P,), (ranks + 1,): last clicks with results below.
    passed
        Results not clicked from which users went on for sure.
    rows
        Of all searches.
    """

    lists: Lists
    pair: Indices
    spans: tuple[tuple[int, int], ...]
    click_pair: Indices
    click_rank: Indices
    clicks: Floats
    reached: Floats
    went_on_pair: Floats
    went_on_rank: Floats
    left_pair: Floats
    left_rank: Floats
    passed: float
    rows: int

    def sure(self, z: Floats) -> float:
        """The log-likelihood of the clicks, and of what was reached and not clicked."""
        return float(self.clicks @ np.log(z) + (self.reached - self.clicks) @ np.log(1.0 - z))

    def went_on_after_click(self, first: Floats) -> Floats:
        """(P,): clicks after which users went on, given whether tails were reached (N,)."""
        pairs = len(self.clicks)
        return self.went_on_pair + np.bincount(self.click_pair, first, pairs + 1)[:pairs]


class Reached(NamedTuple):
    """Tails, given the numbers of a model: how often pairs were reached (P,), whether the first
    result was (N,), from how many results users went on, and from how many they might have; the
    log-likelihood of all tails."""

    of_pair: Floats
    first: Floats
    went_on: float
    might_have: float
    likely: float


def find_tails(searches: Searches) -> Tails:
    """What is known for sure, and the lists of results of which it is not."""
    s, pairs = searches, searches.pairs
    clicks, shown = s.by_pair
    last, length = last_marked(s.lists, s.click)
    clicked = last >= 0
    click_pair = np.where(clicked, s.pair[last], pairs).astype(np.intp)
    click_rank = np.where(clicked, s.rank[last], 0).astype(np.intp)
    lists, order, pair, spans = _lay_out_tails(s, length)
    below = np.zeros(pairs)
    for block, (low, high) in zip(lists.blocks, spans, strict=True):
        below[low:high] += np.bincount(pair[block.rows], minlength=high - low)
    left = last[clicked & (length > 0)]
    return Tails(
        lists=lists,
        pair=pair,
        spans=spans,
        click_pair=click_pair[order],
        click_rank=click_rank[order],
        clicks=clicks,
        reached=shown - below,
        went_on_pair=clicks - _count(click_pair[clicked], pairs),
        went_on_rank=s.by_rank[0] - _count(click_rank[clicked], s.ranks + 1),
        left_pair=_count(s.pair[left], pairs),
        left_rank=_count(s.rank[left], s.ranks + 1),
        passed=float((shown - below - clicks).sum()),
        rows=s.rows,
    )


def _lay_out_tails(
    s: Searches, length: Ints
) -> tuple[Lists, Indices, Indices, tuple[tuple[int, int], ...]]:
    """The last so many results (N,) of each search, a block of them for each block of searches:
    lists, which search stands where, and pairs and spans as of `Tails`."""
    order = np.empty(int((length > 0).sum()), np.intp)
    pair = np.empty(int(length.sum()), np.intp)
    blocks, spans = [], []
    done = at = 0
    for block in s.lists.blocks:
        tail = length[block.lists]
        own = np.argsort(-tail, kind="stable")[: int((tail > 0).sum())]
        if not len(own):
            continue
        size = tail[own]
        place = s.lists.lengths[block.lists][own] - size  # that the tail begins at
        counts = np.searchsorted(-size, -np.arange(int(size[0])), side="left").tolist()
        starts, of, stop = block.starts, s.pair[block.rows], done + int(size.sum())
        found = pair[done:stop]
        end = 0
        for k, count in enumerate(counts):
            found[end : end + count] = of[starts[place[:count] + k] + own[:count]]
            end += count
        low, high = int(found.min()), int(found.max()) + 1
        found -= low
        order[at : at + len(own)] = block.lists.start + own
        blocks.append(Block(slice(at, at + len(own)), slice(done, stop), tuple(counts)))
        spans.append((low, high))
        done, at = stop, at + len(own)
    return Lists(length[order], tuple(blocks)), order, pair, tuple(spans)


def _count(of: AnyInts, n: int) -> Floats:
    return np.bincount(of, minlength=n).astype(float)


def reach(t: Tails, z: Floats, after_click: Floats, after_none: float) -> Reached:
    """How far users went below their last clicks, to be expected of the numbers.

    Parameters
    ----------
    t
        Of N tails.
    z
        (P,): relevance.
    after_click
        (N,): the chance of going on after the last click; 1 where there was none.
    after_none
        The chance of going on after a result that was not clicked.
    """
    not_z = 1.0 - z
    of_pair = np.zeros(len(z))
    first = np.empty(len(t.lists))
    went_on = might_have = likely = 0.0
    for block, (low, high) in zip(t.lists.blocks, t.spans, strict=True):
        pair = t.pair[block.rows]
        go = after_click[block.lists]
        pass_on = not_z[low:high].take(pair, mode="clip")  # of which none is clipped
        # quiet: no click from here on, if this result is reached.
        quiet = pass_on * (1.0 - after_none)
        pass_on *= after_none
        below = np.ones(len(go))
        places = list(block.places())
        for count, place in reversed(places):
            own, here = below[:count], quiet[place]
            own *= pass_on[place]
            own += here
            here[:] = own
        happened = 1.0 - go + go * below
        likely += float(np.log(happened).sum())
        # reached: having come so far, and what happened then, given all that happened.
        come = go / happened
        for count, place in places:
            own = come[:count]
            quiet[place] *= own
            own *= pass_on[place]
        first[block.lists] = reached = quiet[: len(go)]
        total = float(quiet.sum())
        went_on += total - float(reached.sum())
        # What has come through a whole list has come to its last result, too.
        might_have += total - float(come.sum()) / after_none
        of_pair[low:high] += np.bincount(pair, quiet, high - low)
    return Reached(of_pair, first, went_on, might_have, likely)


def go_down(
    searches: Searches,
    z: Floats,
    after_click: Floats,
    after_none: float,
    chance: Floats | None = None,
) -> tuple[Floats, Bools]:
    """(T,): how likely each result is clicked, given the clicks above it; and the clicks.

    Parameters
    ----------
    searches
        Of T results.
    z, after_click
        (T,): the relevance of each result, and the chance of going on once it is clicked.
    after_none
        The chance of going on if it is not.
    chance
        (T,), even between 0 and 1: clicks are drawn by these, instead of those of the searches.
    """
    found, clicks = np.empty(searches.rows), searches.click
    if chance is not None:
        clicks = np.empty(searches.rows, bool)
    for block in searches.lists.blocks:
        click, z_of, go_of, out = (x[block.rows] for x in (clicks, z, after_click, found))
        reached = np.ones(block.lists.stop - block.lists.start)
        for count, place in block.places():
            here = reached[:count]
            likely = here * z_of[place]
            out[place] = likely
            if chance is not None:
                click[place] = chance[block.rows][place] < likely
            passed = after_none * (here - likely) / np.maximum(1.0 - likely, 1e-300)
            reached = np.where(click[place], go_of[place], passed)
    return found, clicks


def without_clicks(searches: Searches, z: Floats, after_click: Floats, after_none: float) -> Floats:
    """(T,): how likely each result is clicked, whatever is clicked above it. See `go_down`."""
    found = np.empty(searches.rows)
    for block in searches.lists.blocks:
        z_of, go_of, out = (x[block.rows] for x in (z, after_click, found))
        reached = np.ones(block.lists.stop - block.lists.start)
        for count, place in block.places():
            likely = reached[:count] * z_of[place]
            out[place] = likely
            reached = likely * go_of[place] + after_none * (reached[:count] - likely)
    return found


def looked_below(searches: Searches, z: Floats, after_click: Floats, after_none: float) -> Floats:
    """(T,): how likely each result that was not clicked was reached, given all clicks of its search
    and were it not relevant; 1 above a click. See `go_down`.
    """
    _, length = last_marked(searches.lists, searches.click)
    sure = searches.lists.lengths - length  # results down to the last click
    found = np.ones(searches.rows)
    stop = 1.0 - after_none
    for block in searches.lists.blocks:
        z_of, go_of, out = (x[block.rows] for x in (z, after_click, found))
        down_to = sure[block.lists]
        places = list(block.places())
        # quiet: no click below, if users came here.
        quiet = np.empty(len(z_of))
        below = np.ones(block.counts[-1])
        for count, place in reversed(places):
            below = np.append(below, np.ones(count - len(below)))
            quiet[place] = stop + after_none * below
            below = (1.0 - z_of[place]) * quiet[place]
        # come: users came here, with no click since the last; happened: that there was none.
        come = np.ones(block.counts[0])
        happened = np.ones(block.counts[0])
        begins = np.ones(block.counts[0], bool)  # of what is below the last click
        for k, (count, place) in enumerate(places):
            come, here, pass_by = come[:count], k >= down_to[:count], 1.0 - z_of[place]
            passed = come * pass_by * quiet[place]
            happened = np.where(begins[:count], 1.0 - come + passed, happened[:count])
            quietly = come * quiet[place]
            likely = quietly / np.maximum(happened - passed + quietly, 1e-300)
            out[place] = np.where(here, likely, 1.0)
            come = np.where(here, come * pass_by * after_none, go_of[place])
            begins = ~here
    return found


class ChainModel(ClickModel):
    """A model in which users go down the list until they stop: says with which chances."""

    @abstractmethod
    def chances(self, searches: Searches) -> tuple[Floats, Floats, float]:
        """(T,) relevance, (T,) the chance of going on after a click, and that after none."""

    @abstractmethod
    def going_on(self) -> tuple[float, float]:
        """The mean chance of going on after a click, and that after none."""

    def conditional_click_probabilities(self, searches: Searches) -> Floats:
        """See `ClickModel`."""
        return go_down(searches, *self.chances(searches))[0]

    def click_probabilities(self, searches: Searches) -> Floats:
        """See `ClickModel`."""
        return without_clicks(searches, *self.chances(searches))

    def looked_at(self, searches: Searches) -> Floats:
        """See `ClickModel`. What going on after a click tells of its relevance is left out."""
        z, after_click, after_none = self.chances(searches)
        forward = go_down(searches, z, after_click, after_none)[0] / z
        given_all = looked_below(searches, z, after_click, after_none)
        return np.where(searches.click, forward, given_all)

    def draw(self, searches: Searches, chance: Floats) -> Bools:
        """See `ClickModel`."""
        return go_down(searches, *self.chances(searches), chance)[1]
