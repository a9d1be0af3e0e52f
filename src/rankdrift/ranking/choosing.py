"""Matrix -> Choice: how large trees may be and how hard a click may pull, by queries held out.

What propensities gain, trees that are too large for the clicks lose again, and large weights of few
clicks lose it too. So a few settings are tried, one of them without weights: each learns from two
thirds of the queries and orders the others, by turns, and is worth the DCG of the clicks it did not
see, each weighted by 1 / p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rankdrift.core.types import Bools, Floats
from rankdrift.core.words import many
from rankdrift.ranking.backends import Backend, EachTree, Settings
from rankdrift.ranking.gains import Shared, Weighting, ideal_dcg
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.measures import new_ranks

# Of what is tried: fewer than in the end, as trees that are too large show early.
TREES = 40
# Fewer of either, and nobody knows how much of a difference is luck: of 64 queries, three draws
# took three settings, from no weights to weights without a limit.
FEWEST_QUERIES, FEWEST_CLICKS = 100, 500
# To choose by; beyond, whole queries are left out, by lot. With few of them, trees that are right
# for all look too large.
MOST_ROWS = 1_000_000
# Of queries. Halves would make small trees look better than they are with all of them.
FOLDS = 3


UNWEIGHTED = 1.0
"""A clip that leaves no weights."""


@dataclass(frozen=True)
class Capacity:
    """What a ranker may do with few clicks: the options of `train` of these names.

    clip: None for no limit; at 1 every click counts the same.
    """

    leaves: int
    min_rows: int
    norm: bool
    clip: float | None

    def __str__(self) -> str:
        rows = f", {many(self.min_rows, 'row')} a leaf" if self.min_rows else ""
        clip = f", clip {self.clip:g}" if self.clip else ""
        clip = ", no weights" if self.clip == UNWEIGHTED else clip
        return f"{self.leaves} leaves{rows}{', norm' if self.norm else ''}{clip}"


PAPER = Capacity(31, 20, norm=False, clip=None)
"""The paper's trees: what `fixed` gives."""
SMALL = Capacity(8, 1000, norm=True, clip=3.0)
"""What few queries get, unasked."""
GRID = (
    replace(SMALL, clip=UNWEIGHTED),
    SMALL,
    Capacity(8, 1000, norm=True, clip=10.0),
    Capacity(8, 1000, norm=True, clip=None),
    Capacity(4, 200, norm=True, clip=None),
    Capacity(16, 1000, norm=True, clip=None),
    Capacity(31, 1000, norm=True, clip=None),
    PAPER,
)
"""What is tried, the tamest first: of those that held-out clicks do not tell from the best, the
first is taken."""
# A setting that is behind the best by no more than so many deviations is not told from it.
APART = 1.0
# One that is behind by more than so many, on the queries so far, is not tried on the others.
HOPELESS = 3.0
# A leaf of a small log may have this share of its rows, or no tree would have a second one.
SHARE_OF_ROWS = 0.02


@dataclass(frozen=True)
class Tried:
    """A setting: value is the share of the ideal DCG of held-out clicks; behind and sd how much
    that is below the best one's, relative, and the deviation of this by the luck of queries. Of a
    setting that was given up, all three are by the queries that it was tried on."""

    capacity: Capacity
    value: float
    behind: float
    sd: float
    given_up: bool = False


@dataclass(frozen=True)
class Choice:
    """The setting taken, and why.

    Parameters
    ----------
    capacity
        The one taken.
    reason
        How it came to be, in words.
    tried
        What there was to choose from, best first; nothing if there was no choice.
    weighted
        Whether held-out clicks were weighted by 1 / propensity.
    """

    capacity: Capacity
    reason: str
    tried: tuple[Tried, ...] = ()
    weighted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            **asdict(self.capacity),
            "reason": self.reason,
            "weighted": self.weighted,
            "tried": [
                {**asdict(t.capacity), **{k: v for k, v in vars(t).items() if k != "capacity"}}
                for t in self.tried
            ],
        }


def candidates(
    given: dict[str, Any],
    *,
    rows: int,
    weighted: bool,
    counts_rows: bool,
    fixed: bool,
    largest: float = np.inf,
) -> tuple[Capacity, ...]:
    """What there is to try, without those that are the same once what is given is given.

    Parameters
    ----------
    given
        Fields of Capacity that are not to be chosen.
    rows
        How many there are to learn from.
    weighted
        Whether there are propensities: without them there is no weight to clip.
    counts_rows
        Whether the library heeds `min_rows`.
    fixed
        Whether what is not given is as in the paper.
    largest
        The largest weight of a click: a clip above it is none.
    """
    fields = dict(given) if weighted else {"clip": None, **given}
    if fixed:
        return (replace(PAPER, **fields),)
    most = max(1, int(SHARE_OF_ROWS * rows)) if counts_rows else 0
    tried = (
        replace(
            each,
            min_rows=min(each.min_rows, most),
            clip=each.clip if each.clip and each.clip < largest else None,
        )
        for each in GRID
    )
    return tuple(dict.fromkeys(replace(each, **fields) for each in tried))


def choose(
    matrix: Matrix,
    wanted: Sequence[Capacity],
    weighting: Weighting,
    settings: Settings,
    backend: Backend,
    *,
    each: EachTree | None,
    say: Callable[[str], None],
) -> Choice:
    """The best of some settings by the DCG of held-out clicks.

    Parameters
    ----------
    matrix
        The rows to learn from; those of a search in random order.
    wanted
        What there is to choose from; if there is too little to choose by, the first with weights.
    weighting
        How clicks are weighed, but for the clip.
    settings
        How trees are grown, but for the capacity.
    backend
        Whose trees.
    each
        Called with the number of each tree.
    say
        Called with what it will cost.
    """
    if len(wanted) == 1:
        return Choice(wanted[0], "as given")
    if matrix.n_queries < FEWEST_QUERIES or matrix.n_clicks < FEWEST_CLICKS:
        return Choice(
            next((one for one in wanted if one.clip != UNWEIGHTED), wanted[0]),
            f"{many(matrix.n_queries, 'query', 'queries')} with {many(matrix.n_clicks, 'click')} "
            f"are too few to choose by ({FEWEST_QUERIES:,} and {FEWEST_CLICKS:,} would do), and "
            "small trees are safe",
        )
    some = _part(matrix, settings.seed)
    part, weighting = (
        (matrix, weighting) if some is None else (matrix.take(some), weighting.take(some))
    )
    trees = min(TREES, settings.trees)
    cost = len(wanted) * (FOLDS - 1) * trees / settings.trees * len(part) / len(matrix)
    say(
        f"Choosing among {len(wanted)} settings by the clicks of queries held out, {trees} trees "
        f"each on {part.n_searches:,} {'of the ' if some is not None else ''}searches: up to "
        f"{cost:.1f} times the work of the training itself. --fixed does without."
    )
    few = replace(settings, trees=trees, early_stopping=None)
    # Whatever is learnt with, the judge has no clip: it would favour rankers that have it too.
    gain = replace(weighting, clip=None).by_clicks(part).gain
    found = _held_out_dcg(part, gain, wanted, weighting, few, backend, each)
    ideal = float(ideal_dcg(gain, part.search, part.n_searches).sum())
    return _best(wanted, found, ideal, weighted=weighting.propensities is not None)


def _behind(found: Floats) -> tuple[int, Floats, Floats]:
    """By the DCG (K, Q) of each setting and query, NaN where it was not tried: which one is the
    best, how far each is behind it, relative, and the deviation of that."""
    total = found.sum(axis=1)
    best = int(np.nanargmax(total))
    apart = found[best] - found
    tried = ~np.isnan(apart)
    there = (tried * found[best]).sum(axis=1)
    sd = np.sqrt(tried.sum(axis=1) * np.nanvar(apart, axis=1)) / there
    return best, np.nansum(apart, axis=1) / there, sd


def _best(wanted: Sequence[Capacity], found: Floats, ideal: float, *, weighted: bool) -> Choice:
    """By the DCG (K, Q) of each setting and query: the first that is not told from the best."""
    best, behind, sd = _behind(found)
    whole = np.asarray(np.isfinite(found).all(axis=1))  # what was given up is not to be had
    taken = int(np.argmax(whole & (behind <= APART * sd)))
    value = float(found[best].sum() / ideal)
    tried = [
        Tried(one, value * (1 - float(behind[i])), float(behind[i]), float(sd[i]), not whole[i])
        for i, one in enumerate(wanted)
    ]
    by = "weighted by 1 / propensity" if weighted else "as they are, position bias and all"
    how = "the best" if taken == best else "not told from the best, and tamer,"
    return Choice(
        wanted[taken],
        f"{how} by DCG of held-out clicks, {by}{_why_unweighted(wanted, behind, sd, taken)}",
        tuple(sorted(tried, key=lambda each: each.behind)),
        weighted,
    )


def _why_unweighted(wanted: Sequence[Capacity], behind: Floats, sd: Floats, taken: int) -> str:
    """What there is to say if clicks are not to be weighted, though they could be."""
    others = [i for i, one in enumerate(wanted) if one.clip != UNWEIGHTED]
    if wanted[taken].clip != UNWEIGHTED or not others:
        return ""
    ahead = (
        f"the best setting with weights is ahead by {behind[taken]:.1%} ± {sd[taken]:.1%}, no more "
        "than luck"
        if behind[taken] > 0
        else f"the best setting with weights is behind by {min(behind[others]):.1%}"
    )
    return (
        f". So weights do not pay here ({ahead}): every click counts the same, as without "
        "propensities; --clip 3 would have weights up to 3"
    )


def _part(matrix: Matrix, seed: int) -> Bools | None:
    """The rows of as many whole queries as have MOST_ROWS, by lot; None: all."""
    if len(matrix) <= MOST_ROWS:
        return None
    order = np.random.default_rng(seed).permutation(matrix.n_queries)
    rows = np.bincount(matrix.query, minlength=matrix.n_queries)[order]
    kept = np.zeros(matrix.n_queries, bool)
    kept[order[np.cumsum(rows) <= MOST_ROWS]] = True
    return kept[matrix.query]


def _held_out_dcg(
    matrix: Matrix,
    gain: Floats,
    wanted: Sequence[Capacity],
    weighting: Weighting,
    settings: Settings,
    backend: Backend,
    each: EachTree | None,
) -> Floats:
    """(K, Q): the DCG of each query's clicks in the order of trees of each setting that did not
    see the query; NaN from where the setting was given up."""
    fold = np.random.default_rng(settings.seed).permutation(matrix.n_queries) % FOLDS
    found = np.full((len(wanted), matrix.n_queries), np.nan)
    left = list(range(len(wanted)))
    for out in range(FOLDS):
        apart = fold[matrix.query] == out
        others, judged = matrix.take(~apart), matrix.take(apart)
        weighs, shared = weighting.take(~apart), Shared()
        for i in left:
            one = wanted[i]
            own = replace(settings, leaves=one.leaves, min_rows=one.min_rows, norm=one.norm)
            lists = replace(weighs, clip=one.clip).weigh(others)[0]
            grown = backend.grow(replace(lists, shared=shared).together(), None, own, each)
            score = backend.predict(
                backend.open(grown.text), judged.x, judged.features, grown.trees
            )
            discount = 1 / np.log2(new_ranks(judged, score, settings.seed) + 1)
            found[i, fold == out] = np.bincount(judged.query, gain[apart] * discount)
        behind, sd = _behind(found[left][:, fold <= out])[1:]
        left = [i for i, far in zip(left, behind > HOPELESS * sd, strict=True) if not far]
    return found
