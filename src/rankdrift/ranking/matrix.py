"""Matrix: results shown as rows of numbers, which is what rankers learn from and are judged on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.types import Bools, Floats, Indices, Ints, Ranks, Segment, SmallInts
from rankdrift.counts.funnel import Funnel

# More values than this in a text feature, and it is an id rather than a category.
MOST_CATEGORIES = 10_000
# Beyond this a 32-bit number ends; such a value, NaN and infinity count as missing.
LARGEST = 3.4e38

_SHOWN = 20  # features in a table for notebooks


@dataclass(frozen=True)
class Feature:
    """A column of the matrix: a number, or the code of one of `categories`."""

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def is_category(self) -> bool:
        """Whether it is words, not a number."""
        return self.categories is not None


@dataclass(frozen=True, eq=False)
class Matrix:
    """N results shown, those of one search together, in an order that never changes.

    `read_matrix` reads one from a log; `Matrix.from_arrays` makes one from what you have.

    Parameters
    ----------
    x
        (N, F) float32; missing values are NaN, categories codes from 0.
    features
        (F,), what the columns of x are.
    rank
        (N,) from 1, the top.
    click
        (N,) bool.
    query, search
        (N,) numbers from 0; a search is one list of results.
    query_keys
        (Q,) a hash of each query that is the same everywhere.
    segment
        (N,) index into `segments`.
    segment_columns
        What the values of a segment are.
    segments
        The values of each.
    relevance
        (N,) true relevance, or None.
    doc
        (N,), or None.
    funnel
        What became of the log's rows, if there was a log.
    remarks
        What is odd about the rows.
    source
        The log and how it was read.
    """

    x: NDArray[np.float32]
    features: tuple[Feature, ...]
    rank: Ranks
    click: Bools
    query: Ints
    search: Ints
    query_keys: NDArray[np.uint64]
    segment: SmallInts
    segment_columns: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ((),)
    relevance: Floats | None = None
    doc: NDArray[Any] | None = None
    funnel: Funnel | None = None
    remarks: tuple[str, ...] = ()
    source: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def starts(self) -> Ints:
        """(S + 1,): rows starts[s] to starts[s + 1] are those of search s."""
        return np.searchsorted(self.search, np.arange(self.n_searches + 1))

    @property
    def n_searches(self) -> int:
        """How many searches there are."""
        return int(self.search[-1]) + 1 if len(self) else 0

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.query_keys)

    @property
    def n_clicks(self) -> int:
        """How many rows were clicked."""
        return int(self.click.sum())

    def take(self, keep: ArrayLike) -> Matrix:
        """Some of the rows: a mask (N,). Numbers of queries and searches start from 0 again."""
        mask = np.asarray(keep, dtype=bool)
        if mask.shape != self.rank.shape:
            raise BadOption(
                f"The mask must have one value a row ({len(self):,}), not {mask.shape}."
            )
        kept = self._at(mask)
        known, query = np.unique(kept.query, return_inverse=True)
        return replace(
            kept,
            query=query.astype(np.int64),
            search=_from_zero(kept.search),
            query_keys=self.query_keys[known],
        )

    def shuffled(self, seed: int = 0) -> Matrix:
        """The rows of each search in random order."""
        key = np.random.default_rng(seed).random(len(self))
        return self._at(np.lexsort((key, self.search)))

    def _at(self, rows: Bools | Indices) -> Matrix:
        """These rows, with the numbers of query and search that they have."""
        return replace(
            self,
            x=self.x[rows],
            rank=self.rank[rows],
            click=self.click[rows],
            query=self.query[rows],
            search=self.search[rows],
            segment=self.segment[rows],
            relevance=None if self.relevance is None else self.relevance[rows],
            doc=None if self.doc is None else self.doc[rows],
        )

    def only_clicked(self) -> Matrix:
        """The searches with a click: the others teach a ranker nothing."""
        clicked = np.zeros(self.n_searches, bool)
        clicked[self.search[self.click]] = True
        return self if clicked.all() else self.take(clicked[self.search])

    def split(self, share: float, seed: int = 0) -> tuple[Matrix, Matrix]:
        """(the rest, about `share` of the queries), at random: no query is in both."""
        if not 0 < share < 1:
            raise BadOption(
                f"The share of queries to set apart must be between 0 and 1, not {share}."
            )
        apart = np.random.default_rng(seed).random(self.n_queries) < share
        chosen = apart[self.query]
        if not chosen.any() or chosen.all():
            raise BadOption(
                f"{self.n_queries:,} queries are too few to set {share:.0%} of them apart."
            )
        return self.take(~chosen), self.take(chosen)

    def with_features(self, wanted: Sequence[Feature]) -> Matrix:
        """The same rows with exactly these features, in this order: what a model asks for.

        Categories get the codes they have in `wanted`; those not in it become missing.
        """
        if tuple(wanted) == self.features:
            return self
        at = {feature.name: i for i, feature in enumerate(self.features)}
        missing = [f.name for f in wanted if f.name not in at]
        if missing:
            hints = did_you_mean(missing[0], at)
            raise BadOption(
                f"The model needs {len(wanted)} features, and {len(missing)} of them are not here: "
                f"{', '.join(missing[:5])}{', …' if len(missing) > 5 else ''}.{hints} Here are: "
                f"{', '.join(list(at)[:20])}{', …' if len(at) > 20 else ''}. Read the log with the "
                "features that the model was trained on."
            )
        columns, unseen = [], []
        for feature in wanted:
            column = self.x[:, at[feature.name]]
            here = self.features[at[feature.name]]
            if feature.is_category != here.is_category:
                is_, was = ("words", "a number") if here.is_category else ("a number", "words")
                raise BadOption(
                    f"The feature {feature.name!r} is {is_} here, but was {was} when the model was "
                    "trained. Read it the same way."
                )
            if feature.categories is not None and here.categories is not None:
                column, lost = _recode(column, here.categories, feature.categories)
                if lost:
                    unseen.append(f"{feature.name} ({lost:,} rows)")
            columns.append(column)
        remarks = self.remarks
        if unseen:
            remarks += (f"Values that the model never saw count as missing: {', '.join(unseen)}.",)
        x = np.stack(columns, axis=1) if columns else self.x[:, :0]
        return replace(self, x=x, features=tuple(wanted), remarks=remarks)

    def fingerprint(self) -> str:
        """Changes when anything in the rows does."""
        digest = hashlib.sha256("\0".join(self.names).encode())
        query = self.query_keys[self.query]
        for array in (self.x, self.rank, self.click, query, self.search, self.segment):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def describe(self) -> dict[str, Any]:
        """What the rows are, in few plain values."""
        return {
            "rows": len(self),
            "searches": self.n_searches,
            "queries": self.n_queries,
            "clicks": self.n_clicks,
            "features": list(self.names),
            "fingerprint": self.fingerprint(),
            **self.source,
        }

    def __repr__(self) -> str:
        shown = f"{len(self):,} results shown in {self.n_searches:,} searches"
        clicks = f"{self.n_queries:,} queries, {self.n_clicks:,} clicks"
        return brief(self, shown, clicks, f"{len(self.features)} features")

    def _repr_html_(self) -> str:
        return html_table(["feature"], [(name,) for name in self.names[:_SHOWN]], repr(self)[1:-1])

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        *,
        rank: ArrayLike,
        click: ArrayLike,
        query: ArrayLike,
        search: ArrayLike | None = None,
        segment: ArrayLike | None = None,
        segment_column: str = "segment",
        relevance: ArrayLike | None = None,
        doc: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Matrix:
        """A matrix from what you have in memory.

        Parameters
        ----------
        x
            Features, a row each: a 2-D array, or a pandas or Polars frame. Columns of text become
            categories.
        rank, click, query
            One value a row: whole numbers from 1; 0 or 1; anything.
        search
            Which list of results a row belongs to. Rows of a search must be together. Without
            it, all rows of a query are one list.
        segment, segment_column
            A value a row, and what it is called.
        relevance
            The true relevance of each row, 0 or more.
        doc
            The result shown.
        names
            Of the features; of a frame, those of its columns to use.
        """
        columns, labels = _columns(x, names)
        ranks = np.asarray(rank)
        n = len(ranks)
        given = {
            "click": click,
            "query": query,
            "search": search,
            "segment": segment,
            "relevance": relevance,
            "doc": doc,
        }
        lengths = {"x": len(columns[0]) if columns else n}
        lengths |= {name: len(np.asarray(v)) for name, v in given.items() if v is not None}
        odd = [f"{name} has {length:,}" for name, length in lengths.items() if length != n]
        if odd:
            raise BadOption(
                f"rank has {n:,} rows, but {', '.join(odd)}. They must be equally long."
            )
        if not n:
            raise BadOption("The matrix has no rows.")
        if (
            ranks.dtype.kind not in "iuf"
            or not np.isfinite(ranks).all()
            or (ranks < 1).any()
            or (ranks != np.floor(ranks)).any()
        ):
            raise BadOption("rank must be whole numbers from 1, and never missing.")
        clicks = np.asarray(click)
        if clicks.dtype.kind not in "biuf" or not (np.isin(clicks, (0, 1))).all():
            raise BadOption("click must be 0 or 1 (or False and True) in every row.")
        if relevance is not None and not (np.asarray(relevance, float) >= 0).all():
            raise BadOption("relevance must be 0 or more in every row, and never missing.")
        queries, query_id = np.unique(_plain(query), return_inverse=True)
        segments, segment_id = _segments(segment, n)
        read = [_feature(name, column) for name, column in zip(labels, columns, strict=True)]
        return cls(
            x=np.stack([values for _, values in read], axis=1) if read else np.empty((n, 0), "f4"),
            features=tuple(feature for feature, _ in read),
            rank=ranks.astype(np.int32),
            click=clicks.astype(bool),
            query=query_id.astype(np.int64),
            search=_together(_plain(query if search is None else search)),
            query_keys=np.array([key_of(str(q)) for q in queries], np.uint64),
            segment=segment_id,
            segment_columns=(segment_column,) if segment is not None else (),
            segments=segments,
            relevance=None if relevance is None else np.asarray(relevance, float),
            doc=None if doc is None else np.asarray(doc),
        )


def key_of(query: str) -> np.uint64:
    """What tells one query from another, the same in every run and every log."""
    return np.uint64(int(hashlib.md5(query.encode(), usedforsecurity=False).hexdigest()[:16], 16))


def _columns(x: Any, names: Sequence[str] | None) -> tuple[list[NDArray[Any]], list[str]]:
    if hasattr(x, "columns"):
        labels = list(x.columns)
        chosen = labels if names is None else list(names)
        for name in chosen:
            if name not in labels:
                raise BadOption(f"The frame has no column {name!r}.{did_you_mean(name, labels)}")
        return [np.asarray(x[name]) for name in chosen], [str(name) for name in chosen]
    table = np.asarray(x)
    if table.ndim != 2:
        raise BadOption(f"x must have rows and columns, but its shape is {table.shape}.")
    labels = [f"f{i + 1}" for i in range(table.shape[1])] if names is None else list(names)
    if len(labels) != table.shape[1] or len(set(labels)) != len(labels):
        raise BadOption(
            f"x has {table.shape[1]} columns, but names has {len(labels)} "
            f"({len(set(labels))} different). Give each column a name of its own."
        )
    return list(table.T), labels


def _feature(name: str, column: NDArray[Any]) -> tuple[Feature, NDArray[np.float32]]:
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64)
        values[~(np.abs(values) <= LARGEST)] = np.nan
        return Feature(name), values.astype(np.float32)
    if column.dtype.kind not in "OUST":
        raise BadOption(
            f"The feature {name!r} is neither number nor text ({column.dtype}). Turn it into one."
        )
    there = np.array([value is not None and value == value for value in column.tolist()], bool)
    texts = column[there].astype(str)
    known, codes = np.unique(texts, return_inverse=True)
    refuse_ids(name, len(known))
    coded = np.full(len(column), np.nan, np.float32)
    coded[there] = codes
    return Feature(name, tuple(known.tolist())), coded


def refuse_ids(name: str, values: int) -> None:
    """BadOption if a text feature has so many values that they are not categories."""
    if values > MOST_CATEGORIES:
        raise BadOption(
            f"The text feature {name!r} has more than {MOST_CATEGORIES:,} different values, which "
            "makes it an id rather than a category. Leave it out, or turn it into a number."
        )


def _plain(values: ArrayLike) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim != 1:
        raise BadOption(f"query, search and segment have one value a row, not shape {found.shape}.")
    return found.astype(str) if found.dtype.kind == "O" else found


def _segments(segment: ArrayLike | None, n: int) -> tuple[tuple[Segment, ...], SmallInts]:
    if segment is None:
        return ((),), np.zeros(n, np.int32)
    labels, index = np.unique(_plain(segment).astype(str), return_inverse=True)
    return tuple((str(label),) for label in labels), index.astype(np.int32)


def _from_zero(ids: NDArray[Any]) -> Ints:
    """Ascending numbers without gaps, in the order they come."""
    if not len(ids):
        return ids
    return np.concatenate([[0], np.cumsum(ids[1:] != ids[:-1])]).astype(np.int64)


def _together(search: NDArray[Any]) -> Ints:
    """Numbers of searches, whose rows must be together."""
    runs = _from_zero(search)
    if len(np.unique(search)) != runs[-1] + 1:
        raise BadOption(
            f"The rows of a search must be together: {len(np.unique(search)):,} searches come in "
            f"{runs[-1] + 1:,} pieces. Sort the rows by search first (all arrays alike)."
        )
    return runs


def _recode(
    codes: NDArray[np.float32], here: Sequence[str], wanted: Sequence[str]
) -> tuple[NDArray[np.float32], int]:
    """Codes of `here` as codes of `wanted`, and how many rows have a value unknown there."""
    at = {value: i for i, value in enumerate(wanted)}
    table = np.array([at.get(value, np.nan) for value in here] + [np.nan], np.float32)
    there = ~np.isnan(codes)
    found = table[np.where(there, codes, len(here)).astype(np.int64)]
    return found, int((there & np.isnan(found)).sum())
