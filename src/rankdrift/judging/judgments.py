"""Judgments: how relevant each doc is to each query, and how sure that is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.frames import Tabular
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.types import Floats, Indices, Ints
from rankdrift.core.version import __version__
from rankdrift.core.words import figure, many
from rankdrift.counts.funnel import Funnel

if TYPE_CHECKING:
    from pathlib import Path

    from rankdrift.judging.checking import Agreement
    from rankdrift.judging.grades import Grades

NUMBERS = (
    "relevance",
    "low",
    "high",
    "known",
    "clicks",
    "appearances",
    "exposure",
    "days",
    "logit",
    "logit_sd",
)
"""The numbers of a pair, in the order of tables and files."""
_SHOWN = 20  # pairs in a table for notebooks


@dataclass(frozen=True, eq=False)
class Judgments(Tabular):
    """How relevant each doc is to each query: the chance of a click, were it shown at the
    reference rank of the propensities, or, by a click model, at the top; with an interval.

    `judge` makes them. `save` and `load` keep them in a file, `grades` turns them into 0 to 4, and
    `export` writes what other tools read.

    Parameters
    ----------
    query_columns
        What makes a query.
    queries
        (Q, columns): the values of each query's columns, ascending, None (the last) where one is
        missing.
    docs
        (D,): the docs, each once, ascending.
    query, doc
        (N,): places in `queries` and `docs`; pairs are in their order.
    relevance, low, high
        (N,): the mean of what is known, and the ends of the shortest interval that holds it.
    known
        (N,), 0 to 1: the share of what was open about the pair that its own clicks settled. At 0
        the relevance is that of the prior.
    clicks, appearances, exposure
        (N,): of the pair; exposure is the sum of the propensities of the ranks it was shown at, or
        of a click model's chances that it was looked at.
    days
        (N,): on how many days it was shown; 0 where that is not known: if the log does not tell
        days, or a click model judged.
    logit, logit_sd
        (N,): mean and standard deviation of the logit of the relevance.
    prior
        `mean`, the clicks over the exposure of all pairs; `relevance`, that of a pair never shown;
        `shift` and `spread` in logits, and the `weights`, `middles` and `spreads` of its parts.
    rest
        `pairs`, `appearances` and `exposure` of pairs too little seen to be listed.
    level
        Of the intervals.
    features
        (N, F): the numbers that the prior was learnt from, if any.
    feature_names
        (F,).
    propensities
        The fingerprint of those that were used; None if a click model was.
    funnel
        What became of the log's rows.
    options, source
        How they were made, and of which log.
    remarks
        What to keep in mind.
    version
        Of rankdrift that made them.
    """

    query_columns: tuple[str, ...]
    queries: NDArray[Any]
    docs: NDArray[Any]
    query: Ints
    doc: Ints
    relevance: Floats
    low: Floats
    high: Floats
    known: Floats
    clicks: Floats
    appearances: Floats
    exposure: Floats
    days: Ints
    logit: Floats
    logit_sd: Floats
    prior: Mapping[str, Any]
    rest: Mapping[str, float]
    level: float
    features: Floats
    feature_names: tuple[str, ...] = ()
    propensities: str | None = None
    funnel: Funnel = field(default_factory=Funnel)
    options: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    version: str = __version__

    def __len__(self) -> int:
        return len(self.query)

    # -- look up -------------------------------------------------------------------------------

    @property
    def texts(self) -> NDArray[Any]:
        """(Q,): each query as one text; of several columns those that are there, with | between."""
        if self.queries.shape[1] == 1:
            return np.asarray(self.queries[:, 0])
        joined = [" | ".join(v for v in row if v is not None) for row in self.queries.tolist()]
        return np.array(joined, object)

    @property
    def starts(self) -> Ints:
        """(Q + 1,): pairs starts[q] to starts[q + 1] are those of query q."""
        return np.searchsorted(self.query, np.arange(len(self.queries) + 1))

    @property
    def best_first(self) -> Indices:
        """(N,): the pairs query by query, the most relevant doc of each first."""
        return np.lexsort((self.doc, -self.relevance, self.query))

    def of(self, query: str) -> dict[str, list[Any]]:
        """The docs of one query, the most relevant first: columns of plain values, as `table`."""
        texts = self.texts
        place = np.flatnonzero(texts == query)
        if not len(place):
            raise BadOption(
                f"No query {query!r} was judged.{did_you_mean(query, texts[:50_000])} There are "
                f"{many(len(texts), 'query', 'queries')}."
            )
        rows = self.best_first
        return self._columns(rows[self.query[rows] == place[0]])

    def better(self, query: str, doc: str, other: str) -> float:
        """The probability that one doc is more relevant to a query than another.

        Parameters
        ----------
        query
            Its text.
        doc, other
            Both judged for it.
        """
        found = self.of(query)
        for name in (doc, other):
            if name not in found["doc"]:
                near = did_you_mean(name, found["doc"])
                raise BadOption(f"No doc {name!r} was judged for {query!r}.{near}")
        a, b = (found["doc"].index(name) for name in (doc, other))
        away = found["logit"][a] - found["logit"][b]
        return float(chance_above(away, np.hypot(found["logit_sd"][a], found["logit_sd"][b])))

    def grades(self, **options: Any) -> Grades:
        """Grades 0 to 4, and "not enough data". Options: those of `judging.grades.grade`."""
        from rankdrift.judging.grades import grade

        return grade(self, **options)

    def check(self, labels: str | os.PathLike[str], level: float = 0.95) -> Agreement:
        """How they agree with a file of human labels, a row each: query, doc and label."""
        from rankdrift.judging.checking import check_judgments

        return check_judgments(self, labels, level)

    def worth_a_look(self, most: int = 20) -> dict[str, list[Any]]:
        """The pairs whose relevance is most worth knowing, for humans to label: columns."""
        from rankdrift.judging.checking import worth_a_look

        return worth_a_look(self, most)

    # -- write and show ------------------------------------------------------------------------

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values, a row for each pair: query, doc and the numbers."""
        return self._columns(slice(None))

    def _columns(self, rows: Any) -> dict[str, list[Any]]:
        named = self.queries[self.query[rows]]
        columns = {
            name: named[:, i].tolist() for i, name in enumerate(query_names(self.query_columns))
        }
        columns["doc"] = self.docs[self.doc[rows]].tolist()
        return columns | {name: getattr(self, name)[rows].tolist() for name in NUMBERS}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one Parquet file, a row for each pair, whole or not at all."""
        from rankdrift.judging.file import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Judgments:
        """Read what `save` wrote."""
        from rankdrift.judging.file import load

        return load(path)

    def export(self, path: str | os.PathLike[str], form: str, **options: Any) -> list[Path]:
        """Write grades in the form that another tool reads; the files written.

        Parameters
        ----------
        path
            Of the first file; others have its name and more.
        form
            One of `rankdrift.judging.exports.FORMS`, such as "trec", "opensearch" or "quepid".
        options
            `grades`, if other than by quantile, and those of the form.
        """
        from rankdrift.judging.exports import export

        return export(self, path, form, **options)

    def to_dict(self) -> dict[str, Any]:
        """What they are, in few plain values for JSON; without the pairs themselves."""
        return {
            "pairs": len(self),
            "queries": len(self.queries),
            "docs": len(self.docs),
            "clicks": float(self.clicks.sum()),
            "level": self.level,
            "prior": dict(self.prior),
            "rest": dict(self.rest),
            "propensities": self.propensities,
            "options": dict(self.options),
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        pairs = f"{many(len(self), 'pair')} of {many(len(self.queries), 'query', 'queries')}"
        prior = f"relevance {figure(self.prior['mean'])} on average"
        return brief(self, pairs, prior, many(round(self.clicks.sum()), "click"))

    def _repr_html_(self) -> str:
        most = np.lexsort((self.doc, self.query, -self.relevance))[:_SHOWN]
        heads = [*query_names(self.query_columns), "doc", "relevance", "interval", "clicks"]
        shown = self._columns(most)
        rows = [
            (
                *(shown[name][i] for name in heads[:-3]),
                figure(shown["relevance"][i]),
                f"{figure(shown['low'][i]) if shown['low'][i] else '0'} to "
                f"{figure(shown['high'][i])}",
                f"{shown['clicks'][i]:,.0f} of {shown['appearances'][i]:,.0f}",
            )
            for i in range(len(most))
        ]
        return html_table(heads, rows, repr(self)[1:-1])


def query_names(columns: Sequence[str]) -> list[str]:
    """What a query's columns are called in tables and files."""
    return ["query"] if len(columns) == 1 else [f"query_{name}" for name in columns]


def chance_above(away: Any, error: Any) -> Any:
    """How likely a normal number is above 0, by its mean and its standard deviation."""
    from scipy.special import ndtr

    return ndtr(np.asarray(away) / np.maximum(error, 1e-12))
