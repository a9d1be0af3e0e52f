"""Every reasonable estimate of one curve, from one log, side by side."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankdrift.core.errors import (
    BadOption,
    MissingColumns,
    NoUsablePairs,
    RankdriftError,
    did_you_mean,
)
from rankdrift.core.frames import Tabular
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.verdicts import Agreement
from rankdrift.counts.counts import Counts
from rankdrift.estimation.curves import curve as parse_curve
from rankdrift.harvesting.taking import take
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.methods.distance import Distance, measure
from rankdrift.methods.estimators import METHODS
from rankdrift.methods.estimators.drift import curve_method
from rankdrift.methods.method import Estimate, Inputs, Method
from rankdrift.propensities.intervals import check_level
from rankdrift.propensities.propensities import Propensities

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure


@dataclass(frozen=True, eq=False)
class MethodComparison(Tabular):
    """Curves of several methods from one log, and how far they are apart: what `compare` gives.

    Attributes
    ----------
    curves
        By method, in the order asked for.
    distances
        Of every two curves that have two ranks in common.
    left_out
        Methods that the log does not allow, each with the reason.
    level
        Of the intervals.
    """

    curves: Mapping[str, Propensities]
    distances: tuple[Distance, ...]
    left_out: Mapping[str, str]
    level: float

    def agreeing(self) -> tuple[tuple[str, str], ...]:
        """The methods that agree, two and two."""
        return tuple((d.first, d.second) for d in self.distances if d.verdict == Agreement.AGREE)

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values: a row for each rank, None where a method has no estimate.

        The columns of a method: its propensities, and with _low, _high and _supported after its
        name their intervals and whether enough clicks are behind them.
        """
        ranks = sorted({int(r) for curve in self.curves.values() for r in curve.ranks})
        columns: dict[str, list[Any]] = {"rank": ranks}
        for name, curve in self.curves.items():
            own = curve.table(self.level)
            for field in ("propensity", "low", "high", "supported"):
                by_rank = dict(zip(own["rank"], own[field], strict=True))
                label = name if field == "propensity" else f"{name}_{field}"
                columns[label] = [by_rank.get(rank) for rank in ranks]
        return columns

    def __repr__(self) -> str:
        agree = [f"{a} and {b}" for a, b in self.agreeing()]
        return brief(
            self,
            f"curves by {', '.join(self.curves)}",
            f"{', '.join(agree)} agree" if agree else "",
            f"left out: {', '.join(self.left_out)}" if self.left_out else "",
        )

    def _repr_html_(self) -> str:
        rows = [
            (f"{d.first} and {d.second}", d.verdict.value, f"{d.mean_percent:+.1f}%", d.meaning)
            for d in self.distances
        ]
        left_out = " ".join(f"{name} was left out: {why}" for name, why in self.left_out.items())
        note = f"Curves by {', '.join(self.curves)}. {left_out}"
        heads = ["", "verdict", "the first above the second", "what it usually means"]
        return html_table(heads, rows, note)

    def plot(self, **options: Any) -> Figure:
        """A chart of all curves; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.curves import curves_chart
        from rankdrift.charts.style import Figure

        return Figure(curves_chart(self.curves, level=self.level, **options))

    def to_dict(self) -> dict[str, Any]:
        """The table, a summary of each curve, the distances and what was left out, as plain values;
        `rankdrift compare --json` prints it."""
        return {
            "level": self.level,
            "table": self.table(),
            "summaries": {name: curve.summary(self.level) for name, curve in self.curves.items()},
            "distances": [distance.to_dict() for distance in self.distances],
            "left_out": dict(self.left_out),
        }


def __getattr__(name: str) -> type[MethodComparison]:
    if name == "CurveComparison":
        warnings.warn("CurveComparison is now MethodComparison", DeprecationWarning, stacklevel=2)
        return MethodComparison
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@names_checked
def compare(
    log: Log | Counts | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    methods: str | Sequence[str] | None = None,
    reference: int | None = None,
    features: str | Sequence[str] | None = None,
    randomised: str | None = None,
    original: str | None = None,
    bootstrap: int = 10,
    seed: int = 0,
    level: float = 0.95,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> MethodComparison:
    """Estimate the propensities of a log by several methods, and tell how far they are apart.

    Methods assume different things. Where such methods agree, believe them; where they differ, the
    difference says which assumption to doubt. `METHODS` in `rankdrift.methods.estimators` has of
    each what it assumes, what it needs and when it fails.

    Parameters
    ----------
    log
        From `read_log`, or a path of it, whose columns have usual names; or counts, or paths of
        them, for methods that need no rows ("ctr" then has intervals that are too narrow, as it
        takes impressions for independent).
    methods
        Names, or one; by default auto, direct, all-pairs and ctr, of counts without all-pairs.
        There are "auto", "direct", "loglog" or any other curve of `estimate` (rankdrift's own
        likelihood); "bayes" (its posterior); "ratio" (of two ranks at a time, Appendix C); "em",
        "em-pairs" and "dual"; "all-pairs", "pivot-one" and "adjacent-chain" (intervention
        harvesting, down to rank 50 or the log's max_rank); "ctr"; "experiment" and "swaps";
        "combined" (the experiment and the drift of all other rows).
    reference
        The rank whose propensity is 1 in every curve. By default rank 1, or where too few clicks
        were won or lost there and a method goes by the drift of pairs, the rank that has the most,
        with a remark.
    features
        Of "em" and "dual", which need it: columns or patterns, such as "f_*".
    randomised
        The column that tells the rows whose order was drawn at random, if the log does not name it;
        "experiment" and "combined" need it.
    original
        The column with the rank before a swap; "swaps" needs it.
    bootstrap
        How many refits give the intervals of "em" and "dual"; 0 gives none. All other intervals,
        and those of differences, come from leaving out buckets of queries, the same for every
        method.
    seed
        Of "em", "dual" and their bootstrap, and of "bayes".
    level
        Of all intervals.
    progress
        Called with the name of each step of counting and the share of it that is done.
    say
        Called with a line of text before each method, and by "em" as it goes on.

    Returns
    -------
    MethodComparison
        A method that this log does not allow is in its `left_out`, which says why.

    Raises
    ------
    BadOption, MissingColumns
        For a method that there is not, an option that one needs, or a column that the log has not.
    NoUsablePairs
        If no method gave a curve.

    Examples
    --------
    >>> log = rankdrift.read_log("logs/*.parquet", max_rank=20)  # doctest: +SKIP
    >>> found = rankdrift.compare(log, methods=["auto", "all-pairs", "ctr"])  # doctest: +SKIP
    >>> for d in found.distances:  # doctest: +SKIP
    ...     print(d.first, d.second, d.verdict, d.meaning)
    """
    check_level(level)
    source = take(log)
    chosen = _chosen(methods, source)
    if isinstance(source, Log):
        randomised = randomised or source.roles.randomised
    if reference is None and not any(method.kind.same_relevance for method in chosen):
        reference = 1  # pairs are not counted for these
    inputs = Inputs(
        source, reference, features, randomised, original, bootstrap, seed, progress, say
    )
    _check(chosen, inputs)
    made: dict[str, Estimate] = {}
    failed: dict[str, str] = {}
    # First those with options of their own: what is wrong with one ends it before the work.
    for method in sorted(chosen, key=lambda method: method.option is None):
        try:
            made[method.name] = method.estimate(inputs)
        except (BadOption, MissingColumns):
            raise
        except RankdriftError as error:
            failed[method.name] = str(error)
    left_out = {method.name: failed[method.name] for method in chosen if method.name in failed}
    if not made:
        reasons = " ".join(f"{name}: {why}" for name, why in left_out.items())
        raise NoUsablePairs(f"No method gave a curve. {reasons}")
    found = [made[method.name] for method in chosen if method.name in made]
    pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1 :]]
    distances = (measure(a, b, level) for a, b in pairs)
    return MethodComparison(
        {e.name: e.curve for e in found}, tuple(d for d in distances if d), left_out, level
    )


def _chosen(methods: str | Sequence[str] | None, source: Log | Counts) -> list[Method]:
    rows = isinstance(source, Log)
    if methods is None:
        return [method for method in METHODS if method.default and (rows or method.of_counts)]
    names = list(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    if not names:
        raise BadOption(f"No methods were named. There are {', '.join(METHODS.names)}.")
    chosen = [METHODS.get(name) if name in METHODS else _curve(name) for name in names]
    lacking = [method.name for method in chosen if not (rows or method.of_counts)]
    if lacking:
        enough = ", ".join(method.name for method in METHODS if method.of_counts)
        raise BadOption(
            f"{', '.join(lacking)}: {'this needs' if len(lacking) == 1 else 'these need'} the rows "
            f"of the log, and counts were given. Counts are enough for {enough}."
        )
    return chosen


def _curve(name: str) -> Method:
    try:
        parse_curve(name)
    except BadOption:
        known = str(METHODS.unknown(name)).removesuffix(".")
        raise BadOption(f"{known}, and curves such as 'loglog(1,2,5,10)'.") from None
    return curve_method(name)


def _check(chosen: Sequence[Method], inputs: Inputs) -> None:
    """Refuse at once what would fail after the work."""
    for method in chosen:
        option = method.option
        if option and not getattr(inputs, option.name):
            raise BadOption(f"The method {method.name!r} needs --{option.name}. {option.advice}")
    if not isinstance(inputs.source, Log):
        return
    columns = inputs.source.engine.columns
    for column in (inputs.randomised, inputs.original):
        if column and column not in columns:
            raise MissingColumns(
                f"The log has no column {column!r}.{did_you_mean(column, columns)}"
            )
