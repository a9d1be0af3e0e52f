"""Every reasonable estimate of one curve, from one log, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.errors import (
    BadOption,
    MissingColumns,
    NoUsablePairs,
    RankdriftError,
    did_you_mean,
)
from rankdrift.core.types import Floats
from rankdrift.counts.counts import Counts
from rankdrift.harvesting.counting import harvest
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.methods.distance import AGREE, Distance, Estimate, measure
from rankdrift.propensities.intervals import check_level
from rankdrift.propensities.propensities import Propensities

if TYPE_CHECKING:
    from rankdrift.charts.curve import Figure
    from rankdrift.methods.interventions import Interventions

# The ranks down to which interventional sets are collected.
SETS = 50
# What to tell the user of each method, and the option it cannot do without.
METHODS = {
    "loglog": ("drift", "rankdrift's default: a log-log curve", None),
    "direct": ("drift", "the same likelihood, a parameter for each rank", None),
    "auto": ("drift", "the same likelihood, the curve chosen by the data", None),
    "em": ("em", "regression EM, relevance from features", "features"),
    "em-pairs": ("em-pairs", "EM with a relevance for each pair", None),
    "all-pairs": ("all-pairs", "intervention harvesting, every two ranks", None),
    "pivot-one": ("pivot-one", "intervention harvesting, each rank with the reference", None),
    "adjacent-chain": ("adjacent-chain", "intervention harvesting, neighbours", None),
    "ctr": ("ctr", "clicks per impression, biased", None),
    "experiment": ("experiment", "clicks per impression of randomised rows", "randomised"),
    "swaps": ("experiment", "docs swapped between ranks at random", "original"),
}  # fmt: skip
DEFAULT = ("loglog", "direct", "all-pairs", "ctr")


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """curves by method, in the order asked for; the distance of every two; methods left out."""

    curves: Mapping[str, Propensities]
    distances: tuple[Distance, ...]
    left_out: Mapping[str, str]
    level: float

    def agreeing(self) -> tuple[tuple[str, str], ...]:
        """The methods that agree, two and two."""
        return tuple((d.first, d.second) for d in self.distances if d.verdict == AGREE)

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values: a row for each rank, None where a method has no estimate.

        The columns of a method: its propensities, and with _low, _high and _supported after its
        name their intervals and whether enough clicks are behind them.
        """
        ranks = sorted({int(r) for curve in self.curves.values() for r in curve.ranks})
        columns: dict[str, list[Any]] = {"rank": ranks}
        for name, curve in self.curves.items():
            told = curve.table(self.level)
            for field in ("propensity", "low", "high", "supported"):
                by_rank = dict(zip(told["rank"], told[field], strict=True))
                label = name if field == "propensity" else f"{name}_{field}"
                columns[label] = [by_rank.get(rank) for rank in ranks]
        return columns

    def plot(self, **options: Any) -> Figure:
        """A chart of all curves; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.curve import Figure
        from rankdrift.charts.curves import curves_chart

        return Figure(curves_chart(self.curves, level=self.level, **options))

    def to_dict(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "table": self.table(),
            "summaries": {name: curve.summary(self.level) for name, curve in self.curves.items()},
            "distances": [distance.to_dict() for distance in self.distances],
            "left_out": dict(self.left_out),
        }


def compare(
    log: Log,
    *,
    methods: str | Sequence[str] = DEFAULT,
    reference: int = 1,
    features: str | Sequence[str] | None = None,
    randomised: str | None = None,
    original: str | None = None,
    bootstrap: int = 10,
    seed: int = 0,
    level: float = 0.95,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> MethodComparison:
    """Estimate the propensities of `log` by several `methods`, and how far the curves are apart.

    Methods: see `METHODS`, or any curve of `estimate`. "em" needs `features` (columns or patterns),
    "experiment" the column `randomised` that tells the rows whose order was drawn at random,
    "swaps" the column `original` with the rank before a swap. `bootstrap` refits give the intervals
    of "em". Interventional sets go down to rank 50, or to the log's max_rank. All other intervals,
    and those of differences, come from leaving out buckets of queries, the same for every method.

    A method that this log does not allow is left out and says why.
    """
    check_level(level)
    names = _names(methods)
    _check(log, names, {"features": features, "randomised": randomised, "original": original})
    work = _Work(log, reference, features, randomised, original, bootstrap, seed, progress, say)
    made: dict[str, Estimate] = {}
    failed: dict[str, str] = {}
    # First those with options of their own: what is wrong with one ends it before the work.
    for name in sorted(names, key=lambda name: _needs(name) is None):
        try:
            made[name] = work.estimate(name)
        except (BadOption, MissingColumns):
            raise
        except RankdriftError as error:
            failed[name] = str(error)
    left_out = {name: failed[name] for name in names if name in failed}
    if not made:
        told = " ".join(f"{name}: {why}" for name, why in left_out.items())
        raise NoUsablePairs(f"No method gave a curve. {told}")
    found = [made[name] for name in names if name in made]
    pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1 :]]
    distances = (measure(a, b, level) for a, b in pairs)
    return MethodComparison(
        {e.name: e.curve for e in found}, tuple(d for d in distances if d), left_out, level
    )


def _names(methods: str | Sequence[str]) -> list[str]:
    from rankdrift.estimation.curves import curve

    names = list(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    if not names:
        raise BadOption(f"No methods were named. There are {', '.join(METHODS)}.")
    for name in names:
        if name not in METHODS:
            try:
                curve(name)
            except BadOption:
                raise BadOption(
                    f"No method {name!r}.{did_you_mean(name, METHODS)} There are "
                    f"{', '.join(METHODS)}, and curves such as 'loglog(1,2,5,10)'."
                ) from None
    return names


def _needs(name: str) -> str | None:
    """The option that a method cannot do without."""
    return METHODS[name][2] if name in METHODS else None


def _check(log: Log, names: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuse at once what would fail after the work."""
    for name in names:
        needed = _needs(name)
        if needed and not given[needed]:
            more = {
                "features": "Name columns or patterns, such as --features 'f_*', or use em-pairs, "
                "which needs none.",
                "randomised": "Name the column that tells which rows were in random order.",
                "original": "Name the column with the rank before the swap.",
            }[needed]
            raise BadOption(f"The method {name!r} needs {needed}. {more}")
    for column in (given["randomised"], given["original"]):
        if column and column not in log.engine.columns:
            raise MissingColumns(
                f"The log has no column {column!r}.{did_you_mean(column, log.engine.columns)}"
            )


@dataclass(frozen=True, eq=False)
class _Work:
    """What several methods share is read once."""

    log: Log
    reference: int
    features: str | Sequence[str] | None
    randomised: str | None
    original: str | None
    bootstrap: int
    seed: int
    progress: Progress | None
    say: Callable[[str], None] | None

    @cached_property
    def counts(self) -> Counts:
        return harvest(self.log, progress=self.progress).pool()

    @cached_property
    def interventions(self) -> Interventions:
        from rankdrift.methods.interventions import find_interventions

        return find_interventions(self.log, max_rank=min(SETS, self.log.rules.max_rank))

    def estimate(self, name: str) -> Estimate:
        if self.say:
            self.say(f"{name}: {METHODS[name][1] if name in METHODS else 'a curve'} …")
        kind = METHODS[name][0] if name in METHODS else "drift"
        if kind == "drift":
            return self._drift(name)
        if name == "em":
            return self._em()
        curve = self._baseline(name)
        return Estimate(name, kind, curve, by_bucket=curve.deviations)

    def _drift(self, name: str) -> Estimate:
        from rankdrift.estimation import estimate

        curve = estimate(self.counts, curve=name, reference=self.reference)
        return Estimate(name, "drift", curve, by_bucket=_jackknife(self.counts, curve))

    def _em(self) -> Estimate:
        from rankdrift.methods.em_features import bucket_weights, regression_em
        from rankdrift.ranking.matrix_reading import read_matrix

        assert self.features is not None
        matrix = read_matrix(self.log, features=self.features, say=self.say)
        curve = regression_em(
            matrix, reference=self.reference, bootstrap=self.bootstrap, seed=self.seed,
            say=self.say,
        )  # fmt: skip
        if not self.bootstrap:
            return Estimate("em", "em", curve)
        weights = bucket_weights(self.bootstrap, self.counts.buckets, self.seed)
        return Estimate("em", "em", curve, drawn=curve.deviations, weights=weights)

    def _baseline(self, name: str) -> Propensities:
        from rankdrift.methods import click_rates, collected, em_pairs, experiments
        from rankdrift.methods import intervention_harvesting as harvested

        if name == "ctr":
            return click_rates.ctr(collected.tally(self.log), reference=self.reference)
        if name == "experiment":
            rows = collected.tally(self.log, randomised=self.randomised)
            return experiments.experiment(rows, reference=self.reference)
        if name == "swaps":
            assert self.original is not None
            return experiments.swaps(
                self.log, original=self.original, randomised=self.randomised,
                reference=self.reference,
            )  # fmt: skip
        if name == "em-pairs":
            pairs = collected.clicked_pairs(self.log, max_rank=self.log.rules.max_rank)
            return em_pairs.em(pairs, reference=self.reference)
        method = {
            "all-pairs": harvested.all_pairs,
            "pivot-one": harvested.pivot_one,
            "adjacent-chain": harvested.adjacent_chain,
        }[name]
        return method(self.interventions, reference=self.reference)


def _jackknife(counts: Counts, whole: Propensities) -> Floats | None:
    """(R, G): deviations by bucket, from estimates without each; None where one has no estimate."""
    from rankdrift.estimation import estimate

    moves = np.zeros((counts.buckets, len(whole.ranks)))
    held = np.concatenate([counts.pairs.bucket, counts.rank_pairs.bucket])
    used = np.unique(held)
    for bucket in used.tolist():
        rest = replace(
            counts,
            pairs=counts.pairs.take(counts.pairs.bucket != bucket),
            rank_pairs=counts.rank_pairs.take(counts.rank_pairs.bucket != bucket),
            options={**counts.options, "restrict": {"without_bucket": bucket}},
        )
        try:
            curve = estimate(
                rest, curve=str(whole.provenance["curve"]), reference=whole.reference,
                errors="model",
            )  # fmt: skip
        except RankdriftError:
            return None
        shared = np.isin(whole.ranks, curve.ranks)
        there = np.searchsorted(curve.ranks, whole.ranks[shared])
        moves[bucket, shared] = curve.log_p[there] - whole.log_p[shared]
    n = len(used)
    off = np.zeros_like(moves)
    off[used] = moves[used] - moves[used].mean(axis=0)
    return np.asarray(np.sqrt((n - 1) / n) * off.T)
