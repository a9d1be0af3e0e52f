"""Comparison: how models did, by how much one beats another, and whether that is more than luck."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankdrift.core.digests import sealed
from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import write_text
from rankdrift.core.frames import Tabular
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.version import __version__
from rankdrift.core.words import cell

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

# A smaller p-value is called a difference.
SIGNIFICANT = 0.05
TWO_SIDED = 1.96  # standard deviations on either side, for 95%
# Rankers that differ by no more than this are as good as each other.
WORTH_HAVING = 0.01
TRUE_NDCG = "true NDCG"
"""The measure that a verdict rests on where the true relevance is known."""
WEIGHTED_DCG = "weighted DCG"
"""The one that it rests on where propensities with errors are."""
ROBUST_DCG = "robust DCG"
"""The same, with clicks of small weight and what features expect for the rest."""
# A true difference of so many deviations is seen four times out of five.
SEEN = 2.8

# Of `Comparison.table`.
COLUMNS = (
    "measure",
    "rank",
    "rows",
    "clicks",
    "model",
    "value",
    "baseline",
    "improvement",
    "sd",
    "p_value",
    "note",
)
ENDINGS = (".csv", ".json", ".tex", ".png", ".svg", ".html")

Pair = tuple[str, str]
"""(model, baseline)"""
Row = tuple[Any, ...]
"""Values of COLUMNS."""


@dataclass(frozen=True)
class Improvement:
    """By how much one model is better than another, relative: 0.03 is 3% better.

    mean, sd: mean and standard deviation over samples of queries; p_value: two-sided; samples:
    how many there were to go by.
    """

    mean: float
    sd: float
    p_value: float
    samples: int

    @classmethod
    def by_normal(cls, mean: float, sd: float) -> Improvement:
        """Without samples: as if what queries do were normal."""
        p_value = math.erfc(abs(mean) / sd / 2**0.5) if sd else float(mean == 0)
        return cls(mean, sd, p_value, samples=0)

    @property
    def is_more_than_luck(self) -> bool:
        """Whether the p-value is small enough to speak of a difference; of few samples, whether it
        is as small as they allow and the difference far from 0."""
        if self.p_value < SIGNIFICANT:
            return True
        least = 2 / (self.samples + 1)
        return self.p_value <= least and abs(self.mean) > TWO_SIDED * self.sd


@dataclass(frozen=True)
class AtRank:
    """How models did among the results shown at one rank.

    rows, clicks: how many; gap: why there is nothing to say, if so; auc: by model.
    """

    rank: int
    rows: int
    clicks: int
    gap: str | None
    auc: Mapping[str, float]
    improvements: Mapping[Pair, Improvement]


@dataclass(frozen=True)
class Measure:
    """How models did by a measure of whole lists, such as DCG; value: by model.

    An improvement is positive when the model is better.
    """

    name: str
    value: Mapping[str, float]
    improvements: Mapping[Pair, Improvement]
    less_is_better: bool = False


@dataclass(frozen=True)
class Comparison(Tabular):
    """How models did, by how much each beats each baseline, and whether that is more than luck.

    `evaluate` makes one.

    Parameters
    ----------
    models, baselines
        Their names; a baseline is one of the models.
    at_rank
        AUC among results shown at one rank, for each rank.
    overall
        Improvement of the mean AUC over ranks, weighted by their clicks.
    measures
        Of whole lists, where propensities or true relevance were given.
    bootstrap, seed
        Samples of queries, and what they were drawn with; 0: deviations without samples.
    queries
        How many there were.
    data
        The rows, as `Matrix.describe` has them.
    propensities
        The fingerprint of those that weighted measures use.
    with_curve_errors
        Whether the deviations of weighted measures have the errors of the propensities in them.
    remarks
        What to keep in mind.
    by_steepness
        Improvement of weighted DCG by model and baseline, were the log of the propensities
        multiplied by so much: 0 is a flat curve, 1 the one given.
    """

    models: tuple[str, ...]
    baselines: tuple[str, ...]
    at_rank: tuple[AtRank, ...]
    overall: Mapping[Pair, Improvement]
    measures: tuple[Measure, ...]
    bootstrap: int
    seed: int
    queries: int
    data: Mapping[str, Any] = field(default_factory=dict)
    propensities: str | None = None
    with_curve_errors: bool = False
    remarks: tuple[str, ...] = ()
    by_steepness: Mapping[Pair, Mapping[float, Improvement]] = field(default_factory=dict)

    @property
    def pairs(self) -> list[Pair]:
        """Every model with every baseline but itself."""
        return [(m, b) for b in self.baselines for m in self.models if m != b]

    @property
    def spread(self) -> str:
        """What the deviations are of, in words."""
        if not self.bootstrap:
            return f"{self.queries:,} queries, by DeLong's way, without samples"
        return f"{self.bootstrap:,} samples of {self.queries:,} queries"

    def improvement(self, model: str, baseline: str, rank: int | None = None) -> Improvement | None:
        """How much better a model is than a baseline, at one rank or over all.

        Parameters
        ----------
        model, baseline
            Names of rankers.
        rank
            The rank at which results were shown; None for all ranks together.

        Returns
        -------
        Improvement or None
            None where too few rows tell.
        """
        if rank is None:
            return self.overall.get((model, baseline))
        return next(at for at in self.at_rank if at.rank == rank).improvements.get(
            (model, baseline)
        )

    def verdict(self, model: str, baseline: str) -> str:
        """Whether a model is better than a baseline, in a line, by what is to be believed here:
        see `judge`."""
        pair = model, baseline
        by, words = self._judge()
        found = self._by(by, pair)
        if found is None:
            return f"{model} and {baseline} cannot be compared: no rank has clicks to judge by."
        if found.is_more_than_luck:
            how = "better" if found.mean > 0 else "worse"
            numbers = f"{percent(found)} in {words}, p = {found.p_value:.2g}"
            but = self._but(by, pair) + self._hangs(by, pair)
            return f"{model} is {how} than {baseline} ({numbers}).{but}"
        low, high = found.mean - TWO_SIDED * found.sd, found.mean + TWO_SIDED * found.sd
        between = f"between {100 * low:+.1f} and {100 * high:+.1f}% in {words}"
        if max(-low, high) <= WORTH_HAVING:
            return (
                f"No difference worth having between {model} and {baseline} (95%: {between}; less "
                f"than {WORTH_HAVING:.0%} either way)."
            )
        return (
            f"Cannot tell whether {model} or {baseline} is better (95%: {between}): a difference "
            f"of {SEEN * found.sd:.1%} would be seen here four times out of five. More queries to "
            "judge by would show smaller ones."
        )

    @property
    def judge(self) -> str:
        """What the verdicts rest on, and why, in a line."""
        by, words = self._judge()
        if by == TRUE_NDCG:
            return f"Believe {words}: it is the order that is wanted, without clicks between."
        if by == WEIGHTED_DCG:
            return (
                f"Believe {words}: it judges the order within a search, with the errors of the "
                "propensities in its deviation. AUC at fixed ranks also asks whether scores of "
                "different queries compare, which a ranker of lists does not promise."
                + self._robust_says()
            )
        why = (
            "the propensities come without errors, so that how far off weighted measures are is "
            "not known"
            if self.propensities
            else "it needs no propensities; with them (--propensities) the order within a search "
            "could be judged, which is what a ranker is for"
        )
        return f"Believe {words}: {why}."

    def _robust_says(self) -> str:
        """Whether robust DCG agrees, if there is one."""
        signs = [
            (self._by(ROBUST_DCG, pair), self._by(WEIGHTED_DCG, pair))
            for pair in self.pairs
            if ROBUST_DCG in [measure.name for measure in self.measures]
        ]
        told = [(a, b) for a, b in signs if a and b and a.is_more_than_luck]
        if not signs:
            return ""
        if any(b.is_more_than_luck and a.mean * b.mean < 0 for a, b in told):
            return (
                " Robust DCG says the contrary: what features expect and what clicks at deep "
                "ranks say differ, so that the curve may be wrong there."
            )
        if any(not b.is_more_than_luck for _, b in told):
            return (
                " Robust DCG, which is calmer, tells a difference where that does not: believe it "
                "if features tell relevance well."
            )
        return ""

    def _judge(self) -> tuple[str | None, str]:
        """The measure that verdicts rest on, None for AUC, and what it is called in words."""
        names = [measure.name for measure in self.measures]
        if TRUE_NDCG in names:
            return TRUE_NDCG, "NDCG by true relevance"
        if WEIGHTED_DCG in names and self.with_curve_errors:
            return WEIGHTED_DCG, "DCG weighted by 1 / propensity"
        return None, "AUC at fixed ranks"

    def _by(self, measure: str | None, pair: Pair) -> Improvement | None:
        if measure is None:
            return self.overall.get(pair)
        return next(m for m in self.measures if m.name == measure).improvements.get(pair)

    def _but(self, measure: str | None, pair: Pair) -> str:
        """That fixed ranks say the contrary, if propensities decide and they do."""
        decided, other = self._by(measure, pair), self.overall.get(pair)
        if measure != WEIGHTED_DCG or decided is None or other is None:
            return ""
        if not other.is_more_than_luck or other.mean * decided.mean > 0:
            return ""
        return (
            f" AUC at fixed ranks says the contrary ({percent(other)}): either scores of different "
            "queries do not compare, or the propensities are wrong. Judge on searches in random "
            "order if there are any."
        )

    def _hangs(self, measure: str | None, pair: Pair) -> str:
        """Whether another would be ahead by a curve that is flatter or steeper, if that was
        asked."""
        found = self.by_steepness.get(pair, {})
        if measure != WEIGHTED_DCG or 1.0 not in found:
            return ""
        turned = [s for s, one in found.items() if one.mean * found[1.0].mean < 0]
        if not turned:
            least, most = min(found), max(found)
            return f" The same is ahead {_steep(least)} and {_steep(most)}."
        near = min(turned, key=lambda s: abs(s - 1))
        other = pair[1] if found[1.0].mean > 0 else pair[0]
        if near == 0.0:
            return f" Only {_steep(near)}, {other} would be ahead."
        return f" That hangs on the propensities: {_steep(near)}, {other} would be ahead."

    @property
    def verdicts(self) -> list[str]:
        """One of each of `pairs`."""
        return [self.verdict(*pair) for pair in self.pairs]

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values: a row for each measure, model and baseline."""
        rows = list(self._rows())
        return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}

    def _rows(self) -> Iterator[Row]:
        for at in self.at_rank:
            about = ("AUC", at.rank, at.rows, at.clicks)
            yield from self._rows_of(about, at.auc, at.improvements, at.gap)
        yield from self._rows_of(("AUC, all ranks", None, None, None), {}, self.overall)
        for measure in self.measures:
            whole = (measure.name, None, None, None)
            yield from self._rows_of(whole, measure.value, measure.improvements)

    def _rows_of(
        self,
        first: tuple[str, int | None, int | None, int | None],
        value: Mapping[str, float],
        improvements: Mapping[Pair, Improvement],
        gap: str | None = None,
    ) -> Iterator[Row]:
        """A row for each model and baseline; `first` are the columns before the model."""
        for model in self.models:
            others = [base for base in self.baselines if base != model]
            for base in others or [""]:
                found = improvements.get((model, base))
                numbers = (found.mean, found.sd, found.p_value) if found else (None, None, None)
                if value or found or gap:
                    yield (*first, model, value.get(model), base or None, *numbers, gap)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "rankdrift": __version__,
            "models": list(self.models),
            "baselines": list(self.baselines),
            "verdicts": self.verdicts,
            "bootstrap": self.bootstrap,
            "seed": self.seed,
            "queries": self.queries,
            "propensities": self.propensities,
            "with_curve_errors": self.with_curve_errors,
            "judge": self.judge,
            "by_steepness": [
                {"model": m, "baseline": b, "steepness": s, "improvement": i.mean, "sd": i.sd}
                for (m, b), found in self.by_steepness.items()
                for s, i in found.items()
            ],
            "remarks": list(self.remarks),
            "data": dict(self.data),
            "table": [dict(zip(COLUMNS, row, strict=True)) for row in self._rows()],
        }

    def to_latex(self) -> str:
        """A table as in the paper: ranks down, baselines across."""
        head = ["Rank", *(f"{_tex(model)} over {_tex(base)}" for model, base in self.pairs)]
        ranks = [
            [f"${at.rank}$", *(_tex_cell(at.improvements.get(pair)) for pair in self.pairs)]
            for at in self.at_rank
        ]
        overall = ["all", *(_tex_cell(self.overall.get(pair)) for pair in self.pairs)]
        return tabular(head, ranks, [overall])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write .csv, .json or .tex, or a chart as .png, .svg or .html."""
        ending = check_ending(path)
        if ending == ".csv":
            write_text(path, _csv(self._rows()))
        elif ending == ".json":
            plain = json.loads(json.dumps(self.to_dict(), allow_nan=False))
            write_text(path, json.dumps(sealed(plain), indent=1) + "\n")
        elif ending == ".tex":
            write_text(path, self.to_latex())
        else:
            self.plot().save(path)

    def plot(self) -> Figure:
        """Improvement by rank with its spread; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.comparison import comparison_chart
        from rankdrift.charts.style import Figure

        return Figure(comparison_chart(self))

    def __repr__(self) -> str:
        return brief(self, f"of {', '.join(self.models)}", *self.verdicts[:1])

    def __str__(self) -> str:
        return "\n".join(self.verdicts or [f"AUC at fixed ranks of {self.models[0]}"])

    def _repr_html_(self) -> str:
        heads = [
            "rank",
            "clicks",
            *(f"AUC, {model}" for model in self.models),
            *(f"{model} over {base}" for model, base in self.pairs),
        ]
        rows = []
        for at in self.at_rank:
            cells = [str(at.rank), f"{at.clicks:,} of {at.rows:,}"]
            if at.gap:
                rows.append([*cells, at.gap])
                continue
            cells += [f"{at.auc[model]:.4f}" for model in self.models]
            rows.append(cells + [percent(at.improvements.get(pair)) for pair in self.pairs])
        blank = ["all", "", *("" for _ in self.models)]
        rows.append(blank + [percent(self.overall.get(pair)) for pair in self.pairs])
        for measure in self.measures:
            cells = [measure.name, "", *(f"{measure.value[model]:.4f}" for model in self.models)]
            rows.append(cells + [percent(measure.improvements.get(pair)) for pair in self.pairs])
        words = "<br>".join(map(escape, [*self.verdicts, *self.remarks]))
        return f"<p>{words}</p>{html_table(heads, rows)}"


def _steep(factor: float) -> str:
    """With a curve so steep, in words."""
    words = {0.0: "if all ranks were looked at alike", 0.5: "were the curve half as steep"}
    return words.get(factor, f"were it {factor:g} times as steep")


def percent(found: Improvement | None) -> str:
    """+3.4 ± 1.0%"""
    return "" if found is None else f"{100 * found.mean:+.1f} ± {100 * found.sd:.1f}%"


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file, if a comparison can be written as such; BadOption if not."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise BadOption(
            f"A comparison cannot be written as {ending or 'a file without an ending'!r}."
            f"{did_you_mean(ending, ENDINGS)} Use {', '.join(ENDINGS)}."
        )
    return ending


def tabular(head: Sequence[str], *blocks: Sequence[Sequence[str]]) -> str:
    """LaTeX for a table aligned to the right, with a line after the head and each block of rows."""
    lines = [rf"\begin{{tabular}}{{{'r' * len(head)}}}", r"\hline"]
    for block in ([head], *blocks):
        lines += [" & ".join(row) + r" \\" for row in block]
        lines.append(r"\hline")
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def _tex_cell(found: Improvement | None) -> str:
    return "--" if found is None else rf"${100 * found.mean:.1f}\pm{100 * found.sd:.1f}\%$"


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)


def _csv(rows: Iterator[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([cell(v) if isinstance(v, str) else v for v in row] for row in rows)
    return text.getvalue()
