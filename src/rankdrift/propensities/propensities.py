"""Propensities: how likely a result at each rank is looked at, relative to the reference rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.frames import Tabular
from rankdrift.core.moved import warn_renamed
from rankdrift.core.notebook import brief
from rankdrift.core.types import Bools, Floats, Indices, Ints, Ranks, Segment
from rankdrift.core.words import chance_words, many, named_ranks, off_by, verb
from rankdrift.propensities.exports import save_export
from rankdrift.propensities.intervals import (
    POSTERIOR,
    Interval,
    check_level,
    credible,
    credible_band,
    simultaneous_quantile,
    t_quantile,
)
from rankdrift.propensities.summary import distance, html, one_line, summarise
from rankdrift.propensities.table import same, table_of

if TYPE_CHECKING:
    import os

    from rankdrift.charts.style import Figure


# Fewer clicks won or lost at a rank than this, or in fewer buckets, and the interval of that
# rank by itself is not to be taken at its word.
ENOUGH_CLICKS = 10
ENOUGH_BUCKETS = 8


@dataclass(frozen=True, eq=False)
class Propensities(Tabular):
    """How likely a result at each rank is looked at, relative to the reference rank, with errors.

    A click at rank r is worth 1 / p_r of one at the reference: that is what `weights` gives, and
    what a ranker is trained with. Every estimator returns exactly this; one that did not converge
    does not exist. `save` and `load` keep it in a file; `table`, `summary` and `plot` show it.

    ranks (R,) ascending; log_p (R,), 0 at `reference`; deviations (R, F), whose rows' products are
    the covariance of log_p: covariance = deviations @ deviations.T;
    pairs, clicks (R,), how many of the pairs used were shown at a rank and how many clicks they got
    there;
    supported (R,), False where the data are too thin for the interval to be taken at its word.
    trust (R,), where it was asked for: the chance of a click that needs no relevance, as the doc
    stands where it stands, with its standard error. A click then says (click - trust) / p of
    relevance, and so does its absence: see `gains`.
    """

    ranks: Ranks
    log_p: Floats
    deviations: Floats
    pairs: Ints
    clicks: Ints
    supported: Bools
    reference: int
    method: str
    # How the deviations were made: "buckets", "model", "bootstrap", "none", or "pointwise": each
    # rank's own error is known, but not how those of two ranks go together (read from CSV); or
    # "posterior": each column is a draw, and intervals are credible ones.
    errors: str
    df: float = np.inf  # degrees of freedom of t
    log_likelihood: float | None = None
    parameters: int | None = None
    # Ranks that were shown but have no estimate, and why.
    gaps: Mapping[int, str] = field(default_factory=dict)
    segment_columns: tuple[str, ...] = ()
    by_segment: Mapping[Segment, Propensities] = field(default_factory=dict)
    # The same segments, shrunk towards the pool as far as the data say (partial pooling).
    shrunk: Mapping[Segment, Propensities] = field(default_factory=dict)
    difference: Difference | None = None
    trust: Floats | None = None
    trust_error: Floats | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def segments(self) -> Mapping[Segment, Propensities]:
        """The recommended curve of each segment: shrunk towards the pool, where there are such."""
        return self.shrunk or self.by_segment

    @property
    def leaning(self) -> Mapping[Segment, Propensities]:
        """Old name of `shrunk`."""
        warn_renamed("leaning", "shrunk")
        return self.shrunk

    # -- look up -------------------------------------------------------------------------------

    @property
    def values(self) -> Floats:
        """Propensities of `ranks`, (R,); 1 at the reference rank."""
        return np.exp(self.log_p)

    @property
    def std_error(self) -> Floats:
        """Of log_p; 0 at the reference rank, which has no error by definition."""
        return np.asarray(np.sqrt((self.deviations**2).sum(axis=1)))

    @property
    def covariance(self) -> Floats:
        """(R, R), of log_p."""
        return self.deviations @ self.deviations.T

    @property
    def draws(self) -> Floats:
        """(S, R): draws of log_p from its posterior, of which log_p is the mean; of a curve by
        `estimate(..., method="bayes")`."""
        if self.errors != POSTERIOR:
            raise NotIdentified(
                f"This curve has no draws: its errors are {self.errors!r}, not of a posterior. "
                'Estimate with method="bayes".'
            )
        return np.asarray(self.log_p + np.sqrt(self.deviations.shape[1]) * self.deviations.T)

    def __getitem__(self, rank: int) -> float:
        return float(self.at(rank))

    def at(self, ranks: ArrayLike) -> Floats:
        """Propensities of these ranks, of any shape; a rank without estimate is an error."""
        wanted = np.asarray(ranks)
        found: Floats = self.values[self._places(wanted)]
        return found

    def _places(self, wanted: NDArray[Any]) -> Indices:
        place = np.minimum(np.searchsorted(self.ranks, wanted), len(self.ranks) - 1)
        missing = np.unique(wanted[self.ranks[place] != wanted])
        if len(missing):
            raise NotIdentified(
                f"There is no propensity for {named_ranks(missing.tolist())}; the curve covers "
                f"{named_ranks(self.ranks.tolist())}. Leave such rows out, or estimate with a "
                "loglog curve, a larger max_rank or extrapolate_to=."
            )
        return place

    def ratio(self, i: int, j: int, level: float = 0.95) -> Interval:
        """How much likelier rank `i` is looked at than rank `j`, with its interval.

        Parameters
        ----------
        i, j
            Ranks that have an estimate.
        level
            Of the interval, 0.95 for 95%.

        Returns
        -------
        Interval
            p_i / p_j, and between what it lies.
        """
        self._refuse_without_errors()
        if self.errors == "pointwise" and i != j and self.reference not in (i, j):
            raise self._only_pointwise(f"the ratio of ranks {i} and {j}")
        a, b = self._places(np.array([i, j]))
        log = float(self.log_p[a] - self.log_p[b])
        if self.errors == POSTERIOR:
            low, high = credible(self.draws[:, a] - self.draws[:, b], level)
            return Interval(float(np.exp(log)), float(np.exp(low)), float(np.exp(high)), level)
        error = float(np.sqrt(((self.deviations[a] - self.deviations[b]) ** 2).sum()))
        reach = t_quantile(level, self.df) * error
        return Interval(
            float(np.exp(log)), float(np.exp(log - reach)), float(np.exp(log + reach)), level
        )

    def _refuse_without_errors(self) -> None:
        if self.errors == "none":
            raise NotIdentified(
                "This curve came without errors, so it has no interval: how sure it is, is not "
                "known. Its values are in `values` and `at`; for intervals, estimate from counts."
            )

    def _only_pointwise(self, what: str) -> BadOption:
        return BadOption(
            f"The error of each rank relative to rank {self.reference} is known, but not how the "
            f"errors of two ranks go together, so {what} has no error. A CSV file does not hold "
            "that: save as .json or .parquet, and load that."
        )

    def interval(self, level: float = 0.95, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """How sure the curve is: (low, high), each (R,).

        For each rank by itself or, if `simultaneous`, for the whole curve at once: then all ranks
        together are inside with probability `level`. With errors "pointwise" that band
        is wider than it need be. With errors "posterior" intervals are credible ones: quantiles of
        the draws.
        """
        check_level(level)
        self._refuse_without_errors()
        if self.errors == POSTERIOR:
            low, high = (credible_band if simultaneous else credible)(self.draws, level)
            return np.exp(low), np.exp(high)
        error = self.std_error
        reach = t_quantile(level, self.df)
        if simultaneous and error.any():
            reach = simultaneous_quantile(self.deviations, error, level, self.df)
        return np.exp(self.log_p - reach * error), np.exp(self.log_p + reach * error)

    def trust_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """(low, high), each (R,), of `trust`, each rank by itself; BadOption without it."""
        check_level(level)
        if self.trust is None or self.trust_error is None:
            raise BadOption(
                "This curve has no trust: what a click says is 1 / p. Estimate with --adjust trust "
                "to have it."
            )
        reach = t_quantile(level, self.df) * self.trust_error
        return self.trust - reach, self.trust + reach

    # -- change --------------------------------------------------------------------------------

    def relative_to(self, reference: int) -> Propensities:
        """The same curve with another rank as the unit."""
        if self.errors == "pointwise" and reference != self.reference:
            raise self._only_pointwise(f"a curve relative to rank {reference}")
        place = self._places(np.array([reference]))[0]
        return replace(
            self,
            log_p=self.log_p - self.log_p[place],
            deviations=self.deviations - self.deviations[place],
            reference=reference,
            by_segment={k: v.relative_to(reference) for k, v in self.by_segment.items()},
            shrunk={k: v.relative_to(reference) for k, v in self.shrunk.items()},
        )

    def segment(
        self, *values: str | None, shrunk: bool = True, leaning: bool | None = None
    ) -> Propensities:
        """The curve of one segment, shrunk towards the pool unless told otherwise.

        Parameters
        ----------
        values
            Of the segment columns, in their order; None where a value is missing.
        shrunk
            The curve by partial pooling, which leans on the pool the more, the less data the
            segment has; False for the segment's data alone.
        leaning
            Old name of `shrunk`.
        """
        if leaning is not None:
            warn_renamed("leaning=", "shrunk=")
            shrunk = leaning
        curves = self.segments if shrunk else self.own_curves()
        if values not in curves:
            known = ", ".join("/".join(map(str, s)) for s in curves) or "none"
            raise BadOption(f"No segment {'/'.join(map(str, values))!r}. There are: {known}.")
        return curves[values]

    def own_curves(self) -> Mapping[Segment, Propensities]:
        """`by_segment`, each segment by its own data alone; an error where a file left them out."""
        if self.shrunk and not self.by_segment:
            raise BadOption(
                "Each segment's curve by its own data alone was not kept: by default files hold "
                "the recommended one, shrunk towards the pool. Estimate again, and save with "
                "full=True (rankdrift estimate --full)."
            )
        return self.by_segment

    # -- use -----------------------------------------------------------------------------------

    def weights(
        self, ranks: ArrayLike, clip: float | None = None, segments: ArrayLike | None = None
    ) -> Floats:
        """What clicks at these ranks are worth: 1 / p, at most `clip`.

        Parameters
        ----------
        ranks
            Of the clicks, of any shape.
        clip
            The largest weight allowed.
        segments
            The segment of each of `ranks` (N,), which takes the propensities of its own curve as
            `segment` gives it: (N,) values of the segment column, or (N, columns) of several. By
            default all take the pooled curve.

        Examples
        --------
        The gain of each row to train on, and of each search the DCG of its best order, which
        LightGBM and XGBoost want too; docs/using-the-weights.md goes on from here::

            gain = np.zeros(len(rank))
            gain[click] = p.weights(rank[click], clip=50, segments=segment[click])
            search = np.repeat(np.arange(len(sizes)), sizes)
            best = gain[np.lexsort((-gain, search))]  # of each search, in the best order
            place = np.arange(len(gain)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            ideal = np.bincount(search, best / np.log2(place + 2))  # the DCG that order has
        """
        if segments is None:
            weights = 1 / self.at(ranks)
        else:
            weights = self._weights_by_segment(np.asarray(ranks), np.asarray(segments, object))
        if clip is not None:
            if not clip >= 1:
                raise BadOption(
                    f"clip is the largest weight allowed and must be 1 or more, not {clip}."
                )
            weights = np.minimum(weights, clip)
        return weights

    def gains(self, ranks: ArrayLike, clicks: ArrayLike, clip: float | None = None) -> Floats:
        """What results say of their relevance: click / p, and with trust (click - trust) / p, which
        is below 0 for results that were not clicked.

        Parameters
        ----------
        ranks
            Of all results shown, clicked or not, of any shape.
        clicks
            Of the same shape, true or 1 for those clicked.
        clip
            The largest 1 / p allowed.
        """
        wanted, clicked = np.asarray(ranks), np.asarray(clicks)
        if wanted.shape != clicked.shape:
            raise BadOption(
                f"ranks have the shape {wanted.shape} and clicks {clicked.shape}. Give one click "
                "(true or false) for each rank."
            )
        if self.trust is None:
            return np.where(clicked, self.weights(wanted, clip), 0.0)
        trust = self.trust[self._places(wanted)]
        return np.asarray((clicked.astype(float) - trust) * self.weights(wanted, clip))

    def _weights_by_segment(self, ranks: NDArray[Any], segments: NDArray[Any]) -> Floats:
        columns = segments[:, None] if segments.ndim == 1 else segments
        if not self.segments or columns.shape != (*ranks.shape, len(self.segment_columns)):
            wanted = many(len(self.segment_columns), "value")
            wanted += f" (the {', '.join(self.segment_columns)})"
            raise BadOption(
                f"segments has the shape {segments.shape} for {many(len(ranks), 'rank')}. Give "
                "each rank "
                f"{wanted if self.segments else 'none: these propensities have no segments'}."
            )
        missing = (columns == None) | (columns != columns)  # noqa: E711  # of every element
        text = columns.astype(str)
        weights = np.full(len(ranks), np.nan)
        known = np.zeros(len(ranks), bool)
        for segment, curve in self.segments.items():
            same = [
                missing[:, i] if value is None else ~missing[:, i] & (text[:, i] == value)
                for i, value in enumerate(segment)
            ]
            rows = np.all(same, axis=0)
            weights[rows] = 1 / curve.at(ranks[rows])
            known |= rows
        if not known.all():
            unknown, first = int((~known).sum()), "/".join(map(str, columns[~known][0]))
            raise NotIdentified(
                f"{unknown:,} of {many(len(ranks), 'click')} {verb(unknown, 'is', 'are')} of "
                f"segments without a curve, for example {first!r}. Estimate with these too, or "
                "leave such rows out."
            )
        return weights

    def effective_sample_size(
        self, clicks: ArrayLike | None = None, clips: Sequence[float] = (1, 2, 5, 10, 20, 50, 100)
    ) -> dict[float | None, float]:
        """How many equally weighted clicks the weighted ones are worth, by clip (None: no clip).

        `clicks` (R,) by rank; by default `self.clicks`.
        """
        n = np.asarray(self.clicks if clicks is None else clicks, dtype=float)
        if n.shape != self.ranks.shape:
            raise BadOption(
                f"clicks must have one number a rank ({len(self.ranks)}), not {n.shape}."
            )
        sizes: dict[float | None, float] = {}
        for clip in (*clips, None):
            w = self.weights(self.ranks, clip)
            total = float((n * w**2).sum())
            sizes[clip] = float((n * w).sum()) ** 2 / total if total else 0.0
        return sizes

    # -- write and show ------------------------------------------------------------------------

    def table(
        self, level: float = 0.95, simultaneous: bool = False, full: bool = False
    ) -> dict[str, list[Any]]:
        """Columns of plain values, a row for each segment and rank; the segment of the pooled curve
        is "".

        Parameters
        ----------
        level
            Of the intervals, `low` to `high`.
        simultaneous
            Intervals for each curve as a whole.
        full
            Each segment's curve by its own data alone too; `pooling` tells which row is of which.

        Returns
        -------
        dict
            Column -> values: segment, rank, propensity, low, high, std_error (of the log), pairs,
            clicks, supported and df (of t, None if normal); and pooling if there are segments; and
            trust with trust_low, trust_high and trust_error if there is trust. What is not known is
            None.
        """
        return table_of(self, level, simultaneous, full)

    def save(
        self,
        path: str | os.PathLike[str],
        level: float = 0.95,
        simultaneous: bool = False,
        full: bool = False,
    ) -> None:
        """Write .json or .parquet, which ratios can be asked of, or .csv, the table: a row for each
        segment and rank.

        Of each segment the recommended curve is kept, as `segment` gives it. Standard errors of all
        ratios are right within half a percent, and saving what was loaded gives the same file.

        Parameters
        ----------
        path
            Its ending says which; the file appears whole or not at all.
        level
            Of the intervals in the file.
        simultaneous
            Intervals for each curve as a whole.
        full
            Keep every number as it is, and each segment's curve by its own data alone too: many
            times as large, and smallest as .parquet.
        """
        from rankdrift.propensities.file import save

        save(self, path, level, simultaneous, full)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Propensities:
        """Read what `save` wrote."""
        from rankdrift.propensities.file import load

        return load(path)

    def export(self, path: str | os.PathLike[str], form: str, **options: Any) -> None:
        """Write the weights of clicks in the form that another tool reads.

        Parameters
        ----------
        path
            The file, which appears whole or not at all.
        form
            One of `rankdrift.propensities.exports.FORMATS`: "ultra", "lightgbm" or "sql".
        options
            `clip`, the largest weight; for "sql" also those of `sql_case`.
        """
        save_export(self, path, form, **options)

    def plot(self, **options: Any) -> Figure:
        """A chart; its `save` writes .png, .svg or .html. Options: those of `curve_chart`."""
        from rankdrift.charts.curve import curve_chart
        from rankdrift.charts.style import Figure

        return Figure(curve_chart(self, **options))

    def equals(self, other: Propensities) -> bool:
        """Whether every number and every word of both is the same."""
        return same(self, other)

    def distance_to(self, other: Propensities) -> dict[str, Any]:
        """How far another curve is from this one, in percent, as plain values for JSON.

        Both are taken relative to the same rank, at the ranks both have. It has no interval, which
        needs both curves estimated from the same counts: see `rankdrift.compare`.
        """
        return distance(self, other)

    def compare(self, other: Propensities) -> dict[str, Any]:
        """Old name of `distance_to`."""
        warn_renamed("compare", "distance_to")
        return self.distance_to(other)

    def summary(self, level: float = 0.95, simultaneous: bool = False) -> dict[str, Any]:
        """The curve in few plain values for JSON: some ranks with intervals, and what is thin."""
        return summarise(self, level, simultaneous)

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return html(self)


@dataclass(frozen=True)
class Difference:
    """Do segments differ? `statistic` is F with `df` and `df_error` if they do not.

    Where there are more segments than a quarter of the query buckets, the test is of those with
    the most clicks. `spread` is the standard deviation of log p between segments, over and above
    noise, at a typical rank; `left_out` are segments without an estimate of their own, with the
    reason.
    """

    statistic: float
    df: float
    p_value: float
    spread: float
    left_out: dict[Segment, str]
    df_error: float | None = None

    def __repr__(self) -> str:
        differ = f"F = {self.statistic:.3g}, {chance_words(self.p_value)}"
        spread = f"segments spread by {off_by(float(np.expm1(self.spread)))}"
        return brief(
            self, differ, spread, f"{len(self.left_out)} left out" if self.left_out else ""
        )
