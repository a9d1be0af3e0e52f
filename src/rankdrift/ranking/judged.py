"""Judgments in place of clicks: how relevant each row's doc was judged to be for its query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption
from rankdrift.core.types import Floats, Ints
from rankdrift.ranking.matrix import Matrix, key_of

MISSING = "~"  # what a query's text has in place of a column that is missing


class Judged(Protocol):
    """What `judge` makes, as far as a ranker learns from it; `Judgments` tells what each is."""

    @property
    def queries(self) -> NDArray[Any]:
        """(Q, columns): the values of each query's columns."""
        ...

    @property
    def docs(self) -> NDArray[Any]:
        """(D,): the docs, each once."""
        ...

    @property
    def query(self) -> Ints:
        """(N,): places in `queries`."""
        ...

    @property
    def doc(self) -> Ints:
        """(N,): places in `docs`."""
        ...

    @property
    def relevance(self) -> Floats:
        """(N,): of each pair."""
        ...

    @property
    def prior(self) -> Mapping[str, float]:
        """`relevance`: of a pair that was never shown."""
        ...


def judged_relevance(matrix: Matrix, judgments: Judged) -> tuple[Floats, int]:
    """(N,): the relevance of every row's doc to its query, and how many rows were judged.

    A pair that was too little seen to be judged has the relevance that is expected of such.

    Parameters
    ----------
    matrix
        The rows, with their docs.
    judgments
        Of the same queries and docs.
    """
    if matrix.doc is None:
        raise BadOption(
            "Judgments are of docs, and the matrix does not tell which doc a row is: give the log "
            "itself, or read the matrix with docs=True."
        )
    keys = np.array(
        [key_of("|".join(MISSING if v is None else str(v) for v in row)) for row in
         judgments.queries.tolist()], np.uint64,
    )  # fmt: skip
    names = np.asarray(judgments.docs).astype(str)
    here, of_row = np.unique(np.asarray(matrix.doc).astype(str), return_inverse=True)
    place = np.searchsorted(here, names)
    place = np.where(here[np.minimum(place, len(here) - 1)] == names, place, -1)
    order = np.argsort(matrix.query_keys)
    at = np.searchsorted(matrix.query_keys[order], keys)
    at = order[np.minimum(at, len(order) - 1)]
    at = np.where(matrix.query_keys[at] == keys, at, -1)
    query, doc = at[judgments.query], place[judgments.doc]
    known = (query >= 0) & (doc >= 0)
    pair = query[known] * len(here) + doc[known]
    sorted_ = np.argsort(pair)
    pair, relevance = pair[sorted_], np.asarray(judgments.relevance)[known][sorted_]
    wanted = matrix.query * len(here) + of_row
    if not len(pair):
        raise BadOption(
            "None of the rows' queries and docs was judged. Are the judgments of this log, with "
            "the same columns for the query (--query) and the doc (--doc)?"
        )
    found = np.minimum(np.searchsorted(pair, wanted), len(pair) - 1)
    judged = pair[found] == wanted
    return np.where(judged, relevance[found], judgments.prior["relevance"]), int(judged.sum())
