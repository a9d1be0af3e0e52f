"""What each design would cost and how much it would tell, before anybody is shown anything.

With docs of rank o worth z_o a look, P(click) = p_s z_o where one is shown at rank s: Eq. (1),
prob-click, with a relevance for each rank before. An experiment of n searches shows docs of o at s
n A_os times, A the design's allocation, and with the relevances fitted the information on log p is

    L = diag(Σ_o W_os) - Σ_o W_o W_o' / Σ_s W_os, W_os = n A_os μ_os / (1 - μ_os), μ_os = p_s z_o.

The variance of log p_i - log p_j is read off L, and what is lost is Σ_o z_o (p_o - Σ_s A_os p_s).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief
from rankdrift.core.types import Floats
from rankdrift.core.words import many, named_ranks, percent
from rankdrift.counts.counts import Counts
from rankdrift.experiments.assigning import deepest
from rankdrift.experiments.designs import (
    MOST_SHUFFLED,
    Design,
    allocation,
    fairpairs,
    random_pair,
    shuffle,
    swap,
    swaps,
    touched,
)
from rankdrift.experiments.experiment import Experiment
from rankdrift.experiments.page import Page, page_of
from rankdrift.propensities.intervals import check_level
from rankdrift.propensities.propensities import Propensities

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

MOST = 0.95  # a chance of a click, and no more
# A swap is taken to cost this share of a search's clicks at least: less is not known.
LEAST_LOST = 0.001
_DEEPEST = 100


@dataclass(frozen=True)
class PlannedDesign:
    """A design and what it takes to know the ratio as well as was asked.

    Parameters
    ----------
    name, design
        What it is called, and how results are reordered.
    searches
        That must take part.
    clicks_lost, dcg_lost
        Shares of the clicks, and of the DCG, of the searches that take part.
    clicks_lost_in_all
        Clicks, over all those searches.
    long_enough
        The share of searches whose list reaches the deepest rank; None if that is not known.
    days
        That takes with the share of searches of the plan; None if traffic is not known.
    frontier
        Whether no other design needs both fewer searches and fewer clicks.
    """

    name: str
    design: Design
    searches: int
    clicks_lost: float
    dcg_lost: float
    clicks_lost_in_all: float
    long_enough: float | None = None
    days: float | None = None
    frontier: bool = False

    def at(self, within: float, planned: float) -> tuple[float, float]:
        """Searches and clicks lost for another precision than the one planned for."""
        more = (np.log1p(planned) / np.log1p(within)) ** 2
        return self.searches * more, self.clicks_lost_in_all * more


@dataclass(frozen=True, eq=False)
class Plan:
    """Designs that tell the ratio of two ranks' propensities, the cheapest first.

    Parameters
    ----------
    ratio, within, level
        Which ratio, how closely (0.1: ±10%), and with what probability.
    share
        Of searches that take part.
    designs
        Each with its price.
    left_out
        Design -> why it is none here.
    rates, p
        (R,): clicks per impression, and the propensities they were taken apart with.
    assumed
        What had to be assumed, in words.
    """

    ratio: tuple[int, int]
    within: float
    level: float
    share: float
    designs: tuple[PlannedDesign, ...]
    left_out: Mapping[str, str]
    rates: Floats
    p: Floats
    assumed: tuple[str, ...]

    @property
    def best(self) -> PlannedDesign:
        """The design that loses the fewest clicks: the least invasive."""
        return self.designs[0]

    def __repr__(self) -> str:
        i, j = self.ratio
        need = f"{many(self.best.searches, 'search', 'searches')}"
        return brief(
            self, f"p{i} / p{j} within {percent(self.within)}", f"{self.best.name}: {need}"
        )

    def experiment(self, name: str, design: str | None = None, **options: Any) -> Experiment:
        """The experiment to run.

        Parameters
        ----------
        name
            What it is called.
        design
            Which of the designs; by default the best.
        options
            `salt`, `unit`, `never` and `share` as for `Experiment`.
        """
        found = {each.name: each for each in self.designs}
        if design is not None and design not in found:
            why = self.left_out.get(design, "there is none of that name")
            raise BadOption(f"No design {design!r}: {why}. There are {', '.join(found)}.")
        chosen = found[design] if design else self.best
        about = {
            "plan": {
                "ratio": list(self.ratio),
                "within": self.within,
                "level": self.level,
                "design": chosen.name,
                "searches": chosen.searches,
            }
        }
        return Experiment(name, chosen.design, **{"share": self.share, **options}, about=about)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "ratio": list(self.ratio),
            "within": self.within,
            "level": self.level,
            "share": self.share,
            "designs": [
                {**{n: getattr(d, n) for n in PlannedDesign.__dataclass_fields__}}
                for d in self.designs
            ],
            "left_out": dict(self.left_out),
            "assumed": list(self.assumed),
        }

    def plot(self) -> Figure:
        """Draw what each design costs for how close a ratio."""
        from rankdrift.charts.plan import plan_chart
        from rankdrift.charts.style import Figure

        return Figure(plan_chart(self))


@names_checked
def plan(
    evidence: Counts | Mapping[int, float] | Sequence[float],
    *,
    propensities: Propensities | None = None,
    ratio: tuple[int, int] = (10, 1),
    within: float = 0.1,
    level: float = 0.95,
    share: float = 0.01,
    never: Sequence[int] = (),
    searches_a_day: float | None = None,
) -> Plan:
    """What it takes to know the ratio of two ranks' propensities, by design.

    Parameters
    ----------
    evidence
        Counts, or clicks per impression of ranks 1, 2, 3 … (or rank -> rate).
    propensities
        What is thought of them now, however doubtful: they tell how much of a rate is due to the
        docs. Without them the case is taken in which swaps cost most.
    ratio
        The two ranks.
    within
        How closely the ratio is to be known: 0.1 for a 95% interval of ±10%.
    level
        Of that interval.
    share
        Of searches that may take part.
    never
        Ranks that must stay as they are.
    searches_a_day
        The traffic; of counts it is known.

    Returns
    -------
    Plan
        The designs, the one that loses the fewest clicks first.

    Raises
    ------
    BadOption
        Ranks, shares or rates that make no sense.
    NotIdentified
        If no design can tell.
    """
    check_level(level)
    i, j = _checked(ratio, within, share, never)
    if searches_a_day is not None and not 0 < searches_a_day < math.inf:
        raise BadOption(f"searches_a_day is {searches_a_day}: use how many searches there are.")
    page = page_of(evidence, propensities, max(i, j), searches_a_day)
    found: list[PlannedDesign] = []
    left_out: dict[str, str] = {}
    for name, design in _designs(page, i, j, never).items():
        blocks = page.blocks if name == CONNECTING else None
        try:
            if isinstance(design, str):
                raise NotIdentified(design)
            hit = sorted(set(never) & set(touched(design)))
            if hit:
                raise NotIdentified(f"it moves docs of {named_ranks(hit)}, which must stay")
            spread = variance(design, page.p, page.z, i, j, blocks)
        except NotIdentified as error:
            left_out[name] = str(error)
            continue
        found.append(_price(name, design, page, spread, within, level, share))
    if not found:
        said = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise NotIdentified(f"No design tells ranks {i} and {j} apart ({said}).")
    found.sort(key=lambda each: (each.clicks_lost_in_all, each.searches))
    rates, p = page.rates, page.p
    return Plan(
        (i, j), within, level, share, _frontier(found), left_out, rates, p, tuple(page.assumed)
    )


def variance(
    design: Design,
    p: Floats,
    z: Floats,
    i: int,
    j: int,
    blocks: Sequence[Sequence[int]] | None = None,
) -> float:
    """Of log p_i - log p_j, from one search that takes part; n searches have an nth of it.

    Parameters
    ----------
    design
        How results are reordered.
    p, z
        (R,): propensities, and relevances by the rank before, in units in which p z is the chance
        of a click.
    i, j
        The two ranks.
    blocks
        Ranks whose ratios are known already, in groups.
    """
    chance = np.minimum(np.outer(z, p), MOST)
    weight = allocation(design, len(p)) * chance / (1 - chance)
    rows = weight.sum(axis=1, keepdims=True)
    information = np.diag(weight.sum(axis=0)) - weight.T @ (weight / rows)
    contrast = np.zeros(len(p))
    contrast[i - 1], contrast[j - 1] = 1.0, -1.0
    if blocks is not None:
        group = np.zeros((len(p), len(blocks)))
        for column, block in enumerate(blocks):
            group[np.asarray(block) - 1, column] = 1.0
        information, contrast = group.T @ information @ group, group.T @ contrast
    if not contrast.any():
        raise NotIdentified("the log tells the two ranks apart already")
    found = np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ contrast
    if not np.allclose(information @ found, contrast, atol=1e-6):
        raise NotIdentified("no chain of swapped ranks leads from the one to the other")
    return float(contrast @ found)


# -- designs ---------------------------------------------------------------------------------------

CHEAPEST, CONNECTING = "cheapest swaps", "connecting swaps"


def _designs(page: Page, i: int, j: int, never: Sequence[int]) -> dict[str, Design | str]:
    """By name; or why there is none."""
    top, last = min(i, j), max(i, j)
    first = next(rank for rank in range(1, last + 1) if rank not in never) if never else 1
    first = min(first, top)
    long = last - first + 1
    found: dict[str, Design | str] = {
        f"swap {top}-{last}": swap(top, last),
        "fairpairs": fairpairs(first, last),
        "random pair": random_pair(first, last),
        "shuffle": shuffle(first, last)
        if long <= MOST_SHUFFLED
        else f"{many(long, 'rank')} are more than {MOST_SHUFFLED}",
        CHEAPEST: _cheapest(page, i, j, never),
    }
    if page.blocks is not None and len(page.blocks) > 1:
        found[CONNECTING] = _connecting(page, never)
    return found


def _cheapest(page: Page, i: int, j: int, never: Sequence[int]) -> Design | str:
    """The chain of swaps from one rank to the other that loses the fewest clicks for what it tells.

    A chain whose swaps e lose l_e clicks a search and have variance v_e reaches a variance V with
    (Σ √(v_e l_e))² / V clicks lost, if swap e is drawn √(v_e / l_e) times as often: so the cheapest
    chain is the shortest path with lengths √(v l).
    """
    from scipy.sparse.csgraph import shortest_path

    spread, lost = _single_swaps(page, never)
    length = np.sqrt(spread * lost)
    _, before = shortest_path(
        np.where(np.isfinite(length), length, 0.0), directed=False, return_predecessors=True
    )
    chain, at = [], j - 1
    while at != i - 1:
        previous = int(before[i - 1, at])
        if previous < 0:
            return "no chain of swaps leads from the one rank to the other"
        chain.append((previous, at))
        at = previous
    return _drawn(chain, spread, lost)


def _connecting(page: Page, never: Sequence[int]) -> Design | str:
    """The cheapest swaps that join all ranks the log leaves apart: a spanning tree of the blocks
    with the lengths of `_cheapest`."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    assert page.blocks is not None
    spread, lost = _single_swaps(page, never)
    length = np.sqrt(spread * lost)
    size = len(page.blocks)
    between = np.zeros((size, size))
    best: dict[tuple[int, int], tuple[int, int]] = {}
    for a in range(size):
        for b in range(a + 1, size):
            block = np.ix_(np.array(page.blocks[a]) - 1, np.array(page.blocks[b]) - 1)
            lengths = length[block]
            if not np.isfinite(lengths).any():
                continue
            place = np.unravel_index(int(np.argmin(lengths)), lengths.shape)
            between[a, b] = lengths[place]
            best[a, b] = (
                page.blocks[a][int(place[0])] - 1,
                page.blocks[b][int(place[1])] - 1,
            )
    tree = minimum_spanning_tree(between).tocoo()
    if len(tree.row) < size - 1:
        return "some ranks cannot be joined by swaps of ranks that may be moved"
    edges = [
        best[min(int(a), int(b)), max(int(a), int(b))]
        for a, b in zip(tree.row, tree.col, strict=True)
    ]
    return _drawn(edges, spread, lost)


def _drawn(edges: Sequence[tuple[int, int]], spread: Floats, lost: Floats) -> Design:
    """The swaps of these places, each as often as makes the whole cheapest."""
    often = np.array([np.sqrt(spread[edge] / lost[edge]) for edge in edges])
    return swaps([(a + 1, b + 1) for a, b in edges], often / often.sum())


def _single_swaps(page: Page, never: Sequence[int]) -> tuple[Floats, Floats]:
    """(R, R) of every swap of two ranks: the variance of their log ratio from one search, and the
    clicks that it loses; infinite where a rank must stay."""
    p, z = page.p, page.z
    chance = np.minimum(np.outer(z, p), MOST)
    rate = (1 - chance) / chance  # the variance of a log rate, from one impression
    own = np.diag(rate)
    # Half of the searches show each order: two impressions' worth for each of the four rates.
    first = 2 * (own[:, None] + rate)  # docs of i, at i and at j
    second = 2 * (rate.T + own[None, :])
    spread = 1 / (1 / first + 1 / second)
    lost = (p[:, None] - p[None, :]) * (z[:, None] - z[None, :]) / 2
    lost = np.maximum(lost, LEAST_LOST * page.clicks)
    bad = np.isin(np.arange(1, len(p) + 1), list(never))
    bad = bad[:, None] | bad[None, :] | np.eye(len(p), dtype=bool)
    return np.where(bad, np.inf, spread), lost


# -- prices ----------------------------------------------------------------------------------------


def _price(
    name: str,
    design: Design,
    page: Page,
    spread: float,
    within: float,
    level: float,
    share: float,
) -> PlannedDesign:
    from scipy.special import ndtri

    reach = float(ndtri(0.5 + level / 2))
    searches = int(np.ceil(spread * (reach / np.log1p(within)) ** 2))
    moved = allocation(design, len(page.p))
    clicks = float(page.z @ page.p - page.z @ moved @ page.p)
    discount = 1 / np.log2(np.arange(len(page.p)) + 2)
    dcg = float(page.z @ discount - page.z @ moved @ discount)
    long_enough = page.reach[deepest(design) - 1] if page.reach is not None else None
    days = None
    if page.searches_a_day:
        days = searches / (page.searches_a_day * share * (long_enough or 1.0))
    return PlannedDesign(
        name,
        design,
        searches,
        clicks / page.clicks,
        dcg / page.dcg,
        searches * clicks,
        None if long_enough is None else float(long_enough),
        days,
    )


def _frontier(found: Sequence[PlannedDesign]) -> tuple[PlannedDesign, ...]:
    """Those, in order of clicks lost, with a mark on the ones that nothing beats in both ways."""
    fewest, marked = np.inf, []
    for each in found:
        marked.append(replace(each, frontier=each.searches < fewest))
        fewest = min(fewest, each.searches)
    return tuple(marked)


def _checked(
    ratio: tuple[int, int], within: float, share: float, never: Sequence[int]
) -> tuple[int, int]:
    i, j = (int(rank) for rank in ratio)
    if i == j or min(i, j) < 1 or max(i, j) > _DEEPEST:
        raise BadOption(
            f"ratio takes two different ranks from 1 to {_DEEPEST}, not {ratio[0]} and {ratio[1]}."
        )
    if not 0.001 <= within <= 10:
        raise BadOption(f"within is {within}: use 0.1 for ±10%, from 0.001 to 10.")
    if not 0 < share <= 1:
        raise BadOption(f"share is {share}: use a share of searches, above 0 and up to 1.")
    fixed = sorted({i, j} & set(never))
    if fixed:
        raise BadOption(
            f"{named_ranks(fixed).capitalize()} must stay, so no experiment can compare "
            f"{'it' if len(fixed) == 1 else 'them'}. Choose another ratio."
        )
    return i, j
