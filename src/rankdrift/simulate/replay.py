"""Could my data recover this curve? One's own counts, with clicks made up anew.

The ranks at which pairs appeared, how many pairs there are and how often results are clicked stay
as they are; the clicks are drawn by Eq. (1), prob-click, with a given curve as the truth. What
the estimate makes of many such replays tells its bias, its error and how honest its intervals are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.errors import BadOption, NoUsablePairs, RankdriftError
from rankdrift.core.notebook import brief
from rankdrift.core.rank_blocks import DOUBLING
from rankdrift.core.types import Clicks, Errors, Floats, Indices, Ranks, SmallInts
from rankdrift.core.words import many
from rankdrift.counts.counts import UNIT, Counts, Overflow, Pairs, RankPairs
from rankdrift.counts.tables import stack
from rankdrift.estimation import estimate
from rankdrift.propensities.intervals import check_level
from rankdrift.propensities.propensities import Propensities
from rankdrift.simulate.clicks import draw_clicked, shown_codes

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

MOST = 0.95  # mean relevance of a pair
CLOSE, USEFUL = 0.1, 0.35  # root mean square error of log p: within about 10%, 40%
SURE = 3.0  # standard errors that make a bias or a lack of coverage real
BIASED = 0.05
SHORT = 0.05  # so much coverage less than promised matters


class Recovery(StrEnum):
    """How well a curve comes back, from the worst to the best."""

    FAILED = "failed"
    BIASED = "biased"
    SHORT = "short"
    NOISY = "noisy"
    USEFUL = "useful"
    CLOSE = "close"


VERDICTS = {
    Recovery.CLOSE: "comes back within about 10%",
    Recovery.USEFUL: "comes back within about 40%",
    Recovery.NOISY: "is mostly noise: add days, or use a curve with fewer parameters",
    Recovery.BIASED: "comes back biased: the curve is too stiff for the truth, or clicks are too"
    " many for --clicks single",
    Recovery.SHORT: "has intervals that are too short: use more buckets of queries, or"
    " --errors bootstrap",
    Recovery.FAILED: "could often not be estimated at all: see what the failed estimates said",
}


@dataclass(frozen=True)
class Block:
    """How well the ranks `first` to `last` came back, over all replays.

    bias, rmse: of log p relative to the reference rank; bias_error: the bias is known to this;
    predicted: mean standard error that the estimates claimed; coverage: share of intervals that
    cover the truth, of those that the estimate stands by (None of none), a share `supported`.
    """

    first: int
    last: int
    bias: float
    bias_error: float
    rmse: float
    predicted: float
    coverage: float | None
    supported: float
    verdict: Recovery


@dataclass(frozen=True)
class Replay:
    """What estimates made of counts whose clicks were drawn with a known curve, many times.

    truth: that curve; failed: what estimates that could not be made said, with how often;
    left_out: pairs not shown at two ranks that the truth has.
    """

    truth: Propensities
    blocks: tuple[Block, ...]
    replays: int
    level: float
    failed: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0

    @property
    def verdict(self) -> Recovery:
        """That of the worst block; failed if more than one in twenty estimates was."""
        if sum(self.failed.values()) > 0.05 * self.replays or not self.blocks:
            return Recovery.FAILED
        return min((block.verdict for block in self.blocks), key=list(Recovery).index)

    def __repr__(self) -> str:
        return brief(self, f"{self.verdict.value}", many(self.replays, "replay"), self.truth.method)

    def plot(self) -> Figure:
        """Errors by block of ranks; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.replay import replay_chart
        from rankdrift.charts.style import Figure

        blocks = self.to_dict()["blocks"]
        return Figure(replay_chart(blocks, VERDICTS[self.verdict], self.replays))

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "verdict": self.verdict.value,
            "replays": self.replays,
            "level": self.level,
            "reference": self.truth.reference,
            "method": self.truth.method,
            "failed": dict(self.failed),
            "left_out": self.left_out,
            "blocks": [{**vars(b), "verdict": b.verdict.value} for b in self.blocks],
        }


def like(
    counts: Counts,
    *,
    truth: Propensities | None = None,
    curve: str = "loglog",
    clicks: Clicks = "every",
    errors: Errors = "buckets",
    replays: int = 100,
    level: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Ask whether data like this could recover a curve: draw its clicks anew, many times.

    The ranks at which pairs appeared and how often results are clicked stay as they are. Segments
    are pooled.

    Parameters
    ----------
    counts
        Of one's own log.
    truth
        The curve to draw clicks with; by default what `curve` makes of the counts themselves
        (of direct, loglog: the noise of a direct estimate is not to be taken for truth). Ranks that
        it does not have are left out.
    curve, clicks, errors
        As of `estimate`.
    replays
        How many times.
    level
        Of the intervals.
    seed
        Of the clicks.
    progress
        Called before each replay with its number, from 0, and how many there are.

    Returns
    -------
    Replay
        Bias, error and coverage by block of ranks.

    Raises
    ------
    NoUsablePairs
        If there is no pair to replay.
    """
    check_level(level)
    if not 2 <= replays <= 100_000:
        raise BadOption(f"replays is {replays}. Use from 2 to 100,000.")
    counts = counts.pool()
    if truth is None:
        smooth = "loglog" if curve.strip() == "direct" else curve
        truth = estimate(counts, curve=smooth, clicks=clicks, errors="model")
    design = Design.of(counts, truth)
    off, covered, claimed = (np.full((replays, len(truth.ranks)), np.nan) for _ in range(3))
    failed: dict[str, int] = {}
    for number in range(replays):
        if progress:
            progress(number, replays)
        try:
            found = estimate(
                design.draw([seed, number]),
                curve=curve,
                clicks=clicks,
                errors=errors,
                reference=truth.reference,
            )
        except RankdriftError as error:
            failed[str(error)] = failed.get(str(error), 0) + 1
            continue
        here = np.isin(found.ranks, truth.ranks)
        at = np.searchsorted(truth.ranks, found.ranks[here])
        low, high = (np.log(bound[here]) for bound in found.interval(level))
        true = truth.log_p[at]
        off[number, at] = found.log_p[here] - true
        inside = ((low <= true) & (true <= high)).astype(float)
        covered[number, at] = np.where(found.supported[here], inside, np.nan)
        claimed[number, at] = found.std_error[here]
    blocks = _blocks(truth, off, covered, claimed, level)
    left_out = counts.n_pairs - design.counts.n_pairs
    return Replay(truth, blocks, replays, level, failed, left_out)


@dataclass(frozen=True)
class Design:
    """What stays: one row per pair listed.

    rank (N, K), 0 where there is none; p (N, K), 0 there; mean_z (N,); row (N,) of Counts.pairs;
    cells: the comparisons with the clicked rank the smaller one, weight of both directions, and
    the chance (C,) that the smaller rank wins.
    """

    counts: Counts
    rank: SmallInts
    p: Floats
    mean_z: Floats
    row: Indices
    cells: RankPairs
    chance: Floats

    @staticmethod
    def of(counts: Counts, truth: Propensities) -> Design:
        """Of the ranks that the truth has."""
        if not counts.n_pairs:
            raise NoUsablePairs("The counts hold no usable pair, so there is nothing to replay.")
        counts = counts.only(truth.ranks)
        row = np.repeat(np.arange(len(counts.pairs)), counts.pairs.pairs)
        rank = counts.pairs.shown[row] >> 1
        p_of = np.zeros(int(truth.ranks[-1]) + 1)
        p_of[truth.ranks] = truth.values / truth.values.max()
        z_of = np.zeros(len(p_of))
        z_of[truth.ranks] = _click_rates(counts, truth.ranks) / p_of[truth.ranks]
        shown = rank > 0
        mean_z = np.where(shown, z_of[rank], 0).sum(axis=1) / shown.sum(axis=1)
        cells = _both_ways(counts.rank_pairs)
        up, down = p_of[cells.clicked], p_of[cells.other]
        return Design(
            counts=counts,
            rank=rank,
            p=np.where(shown, p_of[rank], 0.0),
            mean_z=np.clip(mean_z, 1e-6, MOST),
            row=row,
            cells=cells,
            chance=up / (up + down),
        )

    def draw(self, seed: list[int]) -> Counts:
        """The same pairs with other clicks, each with at least one.

        z is drawn given that its pair has a click: see `draw_clicked`. A cell
        of comparisons is drawn as if each unit of weight were a choice of its own, so what clicks
        its pairs would have by rank is not known.
        """
        random = np.random.default_rng(seed)
        click = np.zeros(self.rank.shape, bool)
        todo = np.arange(len(self.rank))
        while len(todo):
            found, kept = draw_clicked(random, self.p[todo], self.mean_z[todo])
            click[todo[kept]] = found[kept]
            todo = todo[~kept]
        code = shown_codes(self.rank, click)
        old = self.counts.pairs
        pairs = Pairs(
            old.segment[self.row],
            old.bucket[self.row],
            old.drift[self.row],
            code,
            np.ones(len(code), np.int64),
        ).collapse()
        return replace(
            self.counts,
            pairs=pairs,
            rank_pairs=self._compare(random),
            overflow=Overflow.empty(),
            options={**self.counts.options, "restrict": {"replay": seed}},
        )

    def _compare(self, random: np.random.Generator) -> RankPairs:
        cells = self.cells
        units = np.maximum(np.rint(cells.weight / UNIT), 1).astype(np.int64)
        won = random.binomial(units, self.chance) / units
        up = np.rint(won * cells.weight).astype(np.int64)
        back = replace(cells, clicked=cells.other, other=cells.clicked, weight=cells.weight - up)
        return stack([replace(cells, weight=up), back])


def _both_ways(comparisons: RankPairs) -> RankPairs:
    """a over b and b over a in one row, under the smaller rank."""
    swap = comparisons.clicked > comparisons.other
    a = np.where(swap, comparisons.other, comparisons.clicked)
    b = np.where(swap, comparisons.clicked, comparisons.other)
    return replace(comparisons, clicked=a, other=b).collapse()


def _click_rates(counts: Counts, ranks: Ranks) -> Floats:
    """Clicks per impression at each rank, smooth: pooled in bins that widen, then joined up in
    log-log space."""
    by_rank = counts.by_rank
    bins = np.floor(6 * np.log2(by_rank.rank)).astype(int)
    clicks, shown, place = (
        np.bincount(bins, weights=values)
        for values in (
            by_rank.clicks,
            by_rank.impressions,
            np.log(by_rank.rank) * by_rank.impressions,
        )
    )
    some = clicks > 0
    if not some.any():
        raise NoUsablePairs("No result at these ranks was clicked, so there are no click rates.")
    at = place[some] / shown[some]
    rate = np.exp(np.interp(np.log(ranks), at, np.log(clicks[some] / shown[some])))
    return np.asarray(rate)


def _blocks(
    truth: Propensities, off: Floats, covered: Floats, claimed: Floats, level: float
) -> tuple[Block, ...]:
    """From errors of log p, whether intervals cover the truth, and standard errors: (replays, R)
    each, NaN where there is none."""
    found = []
    for first, last in DOUBLING[1:]:
        inside = (truth.ranks >= first) & (truth.ranks <= last) & (truth.ranks != truth.reference)
        errors = off[:, inside]
        made = np.isfinite(errors)
        if not made.any():
            continue
        of_replay = np.nanmean(errors[made.any(axis=1)], axis=1)
        intervals = covered[:, inside]
        known = np.isfinite(intervals)
        shares = np.nanmean(intervals[known.any(axis=1)], axis=1)
        coverage = float(np.nanmean(intervals)) if known.any() else None
        bias, rmse = float(of_replay.mean()), float(np.sqrt(np.nanmean(errors**2)))
        bias_error, share_error = _standard_error(of_replay), _standard_error(shares)
        short = 0.0 if coverage is None else level - coverage
        ranks = truth.ranks[inside]
        found.append(
            Block(
                first=int(ranks[0]),
                last=int(ranks[-1]),
                bias=bias,
                bias_error=bias_error,
                rmse=rmse,
                predicted=float(np.nanmean(claimed[:, inside])),
                coverage=coverage,
                supported=float(known.sum() / made.sum()),
                verdict=_judge(bias, bias_error, rmse, short, share_error),
            )
        )
    return tuple(found)


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _judge(
    bias: float, bias_error: float, rmse: float, short: float, short_error: float
) -> Recovery:
    if abs(bias) > max(BIASED, SURE * bias_error, 0.5 * rmse):
        return Recovery.BIASED
    if short > max(SHORT, SURE * short_error):
        return Recovery.SHORT
    if rmse <= CLOSE:
        return Recovery.CLOSE
    return Recovery.USEFUL if rmse <= USEFUL else Recovery.NOISY
