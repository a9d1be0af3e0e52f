"""Judgments beside human labels, and which pairs a human had better look at."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption, MissingColumns, did_you_mean
from rankdrift.core.frames import Tabular
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.types import Floats, Indices, Ints
from rankdrift.core.words import many
from rankdrift.judging.judgments import Judgments, query_names
from rankdrift.propensities.intervals import Interval, t_quantile

LABELS = ("label", "rating", "grade", "relevance", "gain")
"""What the column of human labels may be called."""
LOOK_AT = 20
"""Pairs that a list of those worth a human look has."""
_FEWEST = 3  # queries, for an interval


@dataclass(frozen=True, eq=False)
class Agreement(Tabular):
    """How judgments agree with human labels, by query and on average.

    Parameters
    ----------
    queries
        (Q,) text: those with two docs whose labels differ.
    kendall
        (Q,): Kendall's tau-b of relevance and label in each.
    auc
        (Q,): how often the doc with the higher label is judged more relevant; 0.5 is chance.
    docs
        (Q,): labelled docs of each.
    labelled, matched
        How many labels there were, and how many of them are of pairs that were judged.
    level
        Of the intervals.
    """

    queries: Any
    kendall: Floats
    auc: Floats
    docs: Ints
    labelled: int
    matched: int
    level: float

    @property
    def mean_kendall(self) -> Interval:
        """Over queries, with its interval."""
        return _mean(self.kendall, self.level)

    @property
    def mean_auc(self) -> Interval:
        """Over queries, with its interval."""
        return _mean(self.auc, self.level)

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values, a row for each query; those that agree least first."""
        order = np.lexsort((self.queries, self.kendall))
        columns = {
            "query": self.queries,
            "docs": self.docs,
            "kendall": self.kendall,
            "auc": self.auc,
        }
        return {name: values[order].tolist() for name, values in columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON, without the queries."""
        means = {"kendall": self.mean_kendall, "auc": self.mean_auc}
        return {
            "labelled": self.labelled,
            "matched": self.matched,
            "queries": len(self.queries),
            "level": self.level,
            **{
                name: {
                    "value": mean.value,
                    "low": mean.low if np.isfinite(mean.low) else None,
                    "high": mean.high if np.isfinite(mean.high) else None,
                }
                for name, mean in means.items()
            },
        }

    def __repr__(self) -> str:
        seen = f"{self.matched:,} of {self.labelled:,} labels judged"
        return brief(self, seen, f"Kendall {self.mean_kendall}", f"AUC {self.mean_auc}")

    def _repr_html_(self) -> str:
        columns = {name: values[:20] for name, values in self.table().items()}
        rows = zip(*columns.values(), strict=True)
        return html_table(list(columns), ([f"{v:.3f}" if isinstance(v, float) else v for v in row]
                                          for row in rows), repr(self)[1:-1])  # fmt: skip


def check_judgments(
    judgments: Judgments, labels: str | os.PathLike[str], level: float = 0.95
) -> Agreement:
    """Hold judgments against a file of human labels.

    Parameters
    ----------
    judgments
        From `judge`.
    labels
        A CSV, TSV, JSON or Parquet file with the columns of the query, `doc` (or docid) and the
        label (or rating, grade, relevance), the higher the better.
    level
        Of the intervals, which are over queries.
    """
    import duckdb

    from rankdrift.core.database import connect, first_line

    file = Path(labels)
    if not file.is_file():
        raise BadOption(f"There is no file of labels {os.fspath(labels)!r}.")
    with connect() as con:
        try:
            source = DUCKDB.literal(glob.escape(str(file)))
            reader = {".parquet": "read_parquet", ".json": "read_json", ".jsonl": "read_json"}
            read = reader.get(file.suffix.lower(), "read_csv")
            more = ", all_varchar = true" if read == "read_csv" else ""
            con.execute(f"CREATE VIEW rd_labels AS FROM {read}({source}{more})")
            return _agreement(con, judgments, level)
        except duckdb.Error as error:
            raise BadOption(
                f"{os.fspath(labels)} cannot be read as a table of labels: {first_line(error)}"
            ) from error


def _agreement(con: Any, j: Judgments, level: float) -> Agreement:
    columns = [name for name, *_ in con.execute("FROM rd_labels LIMIT 0").description]
    queries = query_names(j.query_columns)
    alone = j.query_columns if len(queries) > 1 else ("query", *j.query_columns)
    asked = (
        [_column(columns, (name, own)) for name, own in zip(queries, j.query_columns, strict=True)]
        if len(queries) > 1
        else [_column(columns, alone)]
    )
    doc = _column(columns, ("doc", "docid", "doc_id"))
    label = _column(columns, LABELS)
    con.register("rd_queries", {"query": np.arange(len(j.queries)), "text": j.texts}
                 | {f"q{i}": j.queries[:, i] for i in range(len(queries))})  # fmt: skip
    con.register("rd_docs", {"place": np.arange(len(j.docs)), "doc": j.docs})
    con.register("rd_pairs", {"query": j.query, "doc": j.doc, "relevance": j.relevance})
    same = " AND ".join(
        f"q.q{i} IS NOT DISTINCT FROM CAST(l.{DUCKDB.quote(name)} AS VARCHAR)"
        for i, name in enumerate(asked)
    )
    value = f"TRY_CAST(l.{DUCKDB.quote(label)} AS DOUBLE)"  # what is missing may be written nan
    con.execute(
        "CREATE TEMP TABLE rd_seen AS SELECT q.query, q.text, p.relevance, "
        f"max({value}) FILTER (isfinite({value})) AS label, p.doc FROM rd_labels AS l "
        f"JOIN rd_queries AS q ON {same} "
        f"JOIN rd_docs AS d ON d.doc = CAST(l.{DUCKDB.quote(doc)} AS VARCHAR) "
        "JOIN rd_pairs AS p ON p.query = q.query AND p.doc = d.place "
        "GROUP BY ALL HAVING label IS NOT NULL"
    )
    [(labelled,)] = con.execute("SELECT count(*) FROM rd_labels").fetchall()
    [(matched,)] = con.execute("SELECT count(*) FROM rd_seen").fetchall()
    # Of every two docs of a query: do relevance and label say the same?
    found = con.execute(
        "SELECT a.text AS text,"
        " sum(sign(a.relevance - b.relevance) * sign(a.label - b.label)) AS s,"
        " sum(abs(sign(a.label - b.label))) AS apart,"
        " sum(abs(sign(a.relevance - b.relevance))) AS told, any_value(n) AS n"
        " FROM rd_seen AS a JOIN rd_seen AS b ON a.query = b.query AND a.doc < b.doc"
        " JOIN (SELECT query, count(*) AS n FROM rd_seen GROUP BY query) AS c ON c.query = a.query"
        " GROUP BY a.query, a.text HAVING apart > 0 ORDER BY a.query"
    ).fetchnumpy()
    if not len(found["text"]):
        raise BadOption(
            f"Of {many(int(labelled), 'label')}, {matched:,} are of pairs that were judged, and no "
            "query has two docs whose labels differ, so there is nothing to compare. Check that "
            "queries and docs are written as in the log, or judge with --min-exposure 0."
        )
    s, apart, told = (np.ma.getdata(found[name]).astype(float) for name in ("s", "apart", "told"))
    return Agreement(
        queries=np.ma.getdata(found["text"]),
        kendall=s / np.sqrt(apart * np.maximum(told, 1)),
        auc=(s / apart + 1) / 2,
        docs=np.ma.getdata(found["n"]).astype(np.int64),
        labelled=int(labelled),
        matched=int(matched),
        level=level,
    )


def _column(columns: list[str], names: tuple[str, ...]) -> str:
    by_name = {column.casefold(): column for column in reversed(columns)}
    for name in names:
        if name.casefold() in by_name:
            return by_name[name.casefold()]
    raise MissingColumns(
        f"The labels have no column {' or '.join(map(repr, dict.fromkeys(names)))}."
        f"{did_you_mean(names[0], columns)} They have {', '.join(columns[:20])}."
    )


def _mean(values: Floats, level: float) -> Interval:
    mean = float(values.mean())
    if len(values) < _FEWEST:
        return Interval(mean, -np.inf, np.inf, level)
    reach = t_quantile(level, len(values) - 1) * float(values.std(ddof=1)) / np.sqrt(len(values))
    return Interval(mean, mean - reach, mean + reach, level)


def expected_gain(judgments: Judgments) -> Floats:
    """(N,): clicks at the reference rank that knowing a pair's relevance would be worth, were each
    query's doc judged best shown there, over as many showings as there were.

    Of a doc that is not judged best: how much better than the best it may turn out to be, on
    average. Of the best: how much worse than the second. Times how often the query's docs were
    looked at.
    """
    from scipy.special import ndtr

    j = judgments
    order = j.best_first
    first = j.starts[:-1]
    best = j.relevance[order[first]]
    second = np.where(
        np.diff(j.starts) > 1, j.relevance[order[np.minimum(first + 1, len(order) - 1)]], np.nan
    )
    is_best = np.zeros(len(j), bool)
    is_best[order[first]] = True
    other = np.where(is_best, second[j.query], best[j.query])
    away = np.where(is_best, 1, -1) * (j.relevance - other)  # how far the order is settled
    sd = np.maximum(j.logit_sd * j.relevance * (1 - j.relevance), 1e-12)
    density = np.exp(-0.5 * (away / sd) ** 2) / np.sqrt(2 * np.pi)
    improves = sd * density - away * ndtr(-away / sd)
    looks = np.bincount(j.query, j.exposure, minlength=len(j.queries))
    return np.asarray(np.nan_to_num(np.maximum(improves, 0.0)) * looks[j.query])


def worth_a_look(judgments: Judgments, most: int = LOOK_AT) -> dict[str, list[Any]]:
    """The pairs whose relevance is most worth knowing: columns of plain values, largest first.

    Parameters
    ----------
    judgments
        From `judge`.
    most
        How many.
    """
    gain = expected_gain(judgments)
    rows: Indices = np.lexsort((judgments.doc, judgments.query, -gain))[:most]
    texts = judgments.texts[judgments.query[rows]]
    return {
        "query": texts.tolist(),
        "doc": judgments.docs[judgments.doc[rows]].tolist(),
        "relevance": judgments.relevance[rows].tolist(),
        "low": judgments.low[rows].tolist(),
        "high": judgments.high[rows].tolist(),
        "expected_gain": gain[rows].tolist(),
    }
