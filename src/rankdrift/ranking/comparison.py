"""Comparison: how models did, by how much one beats another, and whether that is more than luck."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankdrift.charts.curve import Figure

# A smaller p-value is called a difference.
SIGNIFICANT = 0.05

Pair = tuple[str, str]  # (model, baseline)


@dataclass(frozen=True)
class Improvement:
    """Relative, over samples of queries: 0.03 is 3% better."""

    mean: float
    sd: float
    p_value: float
    samples: int

    @property
    def is_more_than_luck(self) -> bool:
        return self.p_value < SIGNIFICANT


@dataclass(frozen=True)
class AtRank:
    """Results shown at one rank; `gap` says why there is nothing to say, if so."""

    rank: int
    rows: int
    clicks: int
    gap: str | None
    auc: Mapping[str, float]
    improvements: Mapping[Pair, Improvement]


@dataclass(frozen=True)
class Measure:
    """Of whole lists. An improvement is positive when the model is better."""

    name: str
    value: Mapping[str, float]
    improvements: Mapping[Pair, Improvement]
    less_is_better: bool = False


@dataclass(frozen=True)
class Comparison:
    models: tuple[str, ...]
    baselines: tuple[str, ...]
    at_rank: tuple[AtRank, ...]
    # Of the mean AUC over ranks, weighted by their clicks.
    overall: Mapping[Pair, Improvement]
    measures: tuple[Measure, ...]
    bootstrap: int
    seed: int
    queries: int
    data: Mapping[str, Any] = field(default_factory=dict)
    propensities: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[Pair]:
        return [(m, b) for b in self.baselines for m in self.models if m != b]

    def improvement(self, model: str, baseline: str, rank: int | None = None) -> Improvement | None:
        """At one rank, or over all; None where there is a gap."""
        if rank is None:
            return self.overall.get((model, baseline))
        return next(at for at in self.at_rank if at.rank == rank).improvements.get(
            (model, baseline)
        )

    def verdict(self, model: str, baseline: str) -> str:
        """In one line."""
        found = self.overall.get((model, baseline))
        if found is None:
            return f"{model} and {baseline} cannot be compared: no rank has clicks to judge by."
        told = f"{percent(found)} in AUC at fixed ranks, p = {found.p_value:.2g}"
        if not found.is_more_than_luck:
            return f"No difference here between {model} and {baseline} ({told})."
        how = "better" if found.mean > 0 else "worse"
        return f"{model} is {how} than {baseline} ({told})."

    @property
    def verdicts(self) -> list[str]:
        return [self.verdict(*pair) for pair in self.pairs]

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values: a row for each measure, model and baseline."""
        from rankdrift.ranking.comparison_table import table

        return table(self)

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        from rankdrift.ranking.comparison_table import to_dict

        return to_dict(self)

    def to_latex(self) -> str:
        """A table as in the paper: ranks down, baselines across."""
        from rankdrift.ranking.comparison_table import to_latex

        return to_latex(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write .csv, .json or .tex, or a chart as .png, .svg or .html."""
        from rankdrift.ranking.comparison_table import save

        save(self, path)

    def plot(self) -> Figure:
        """Improvement by rank with its spread; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.comparison import comparison_chart
        from rankdrift.charts.curve import Figure

        return Figure(comparison_chart(self))

    def __str__(self) -> str:
        return "\n".join(self.verdicts or [f"AUC at fixed ranks of {self.models[0]}"])

    def _repr_html_(self) -> str:
        from rankdrift.ranking.comparison_table import to_html

        return to_html(self)


def percent(found: Improvement | None) -> str:
    """+3.4 ± 1.0%"""
    return "" if found is None else f"{100 * found.mean:+.1f} ± {100 * found.sd:.1f}%"
