"""Judgments in the forms that other tools read.

A form is one `JudgmentForm`, registered in `FORMS`; `export`, the help and the error for an unknown
form read FORMS. Pairs without enough data have no grade and are left out: to these tools a doc that
is not there was not judged. Queries and docs are texts typed by strangers: each form quotes them as
its readers unquote them. Files are written by DuckDB, a row at a time for it and none for Python.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.database import writing
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption
from rankdrift.core.files import together, write_text
from rankdrift.core.registry import Registry
from rankdrift.core.words import cell
from rankdrift.judging.grades import Grades, grade
from rankdrift.judging.judgments import Judgments, chance_above

SURE = 0.95
"""How likely a preference must be to be written."""
MOST_COMPARED = 50
"""Docs of a query that preferences are looked for among: those most is known of."""
_PLAIN_CSV = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01'"


@dataclass(frozen=True)
class JudgmentForm:
    """A form in which another tool takes judgments.

    Parameters
    ----------
    name
        What `export` calls it.
    files
        What is written, in words.
    use
        Which tool reads it.
    write
        (rows, path, options…) -> the files written.
    """

    name: str
    files: str
    use: str
    write: Callable[..., list[Path]]

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `export` that it takes."""
        parameters = signature(self.write).parameters.values()
        return tuple(p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY)


FORMS: Registry[JudgmentForm] = Registry("form")
"""The forms there are, in the order in which they are listed."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Judgments with their grades, and the SQL that the pairs of a file are read from."""

    judgments: Judgments
    grades: Grades

    def columns(self) -> dict[str, NDArray[Any]]:
        """Those of pairs with a grade, the best of each query first: query, text, doc, grade…"""
        j, order = self.judgments, self.judgments.best_first
        kept = order[self.grades.given[order]]
        x = {f"x{i + 1}": j.features[kept, i] for i in range(j.features.shape[1])}
        return {
            "place": np.arange(len(kept)),
            "query": j.query[kept],
            "text": j.texts[j.query[kept]],
            "doc": j.docs[j.doc[kept]],
            "grade": self.grades.grade[kept],
            "relevance": j.relevance[kept],
            **x,
        }


def export(
    judgments: Judgments,
    path: str | os.PathLike[str],
    form: str,
    *,
    grades: Grades | None = None,
    **options: Any,
) -> list[Path]:
    """Write judgments in the form that another tool reads.

    Parameters
    ----------
    judgments
        From `judge`.
    path
        Of the first file; others have its name and more.
    form
        One of FORMS.
    grades
        From `grade`; by default by quantile.
    options
        Those of the form: `index` and `field` of "elasticsearch", `index`, `id_field` and
        `template` of "rre", `name` and `rating` of "opensearch", `sure` of "preferences".

    Returns
    -------
    list of Path
        The files written, all of them or none.
    """
    chosen = FORMS.get(form)
    unknown = [name for name in options if name not in chosen.options]
    if unknown:
        takes = ", ".join(chosen.options) or "none"
        raise BadOption(f"The form {form!r} takes no option {unknown[0]!r}; it takes: {takes}.")
    rows = Rows(judgments, grade(judgments) if grades is None else grades)
    if not rows.grades.given.any():
        raise BadOption(
            "No pair has enough data for a grade, so there is nothing to write. Read more days, or "
            "ask for less certainty (--enough)."
        )
    with together():
        return chosen.write(rows, Path(path), **options)


def forms_in_words() -> str:
    """The forms there are, as the help of the command line lists them."""
    return ", ".join(FORMS.names)


# -- TREC ------------------------------------------------------------------------------------------


def _trec(rows: Rows, path: Path) -> list[Path]:
    """topic 0 doc grade. Fields end at blanks, so topics are numbers, and blanks in docs are
    written as in a URL."""
    doc = "regexp_replace(replace(doc, '%', '%25'), '\\s', '%20', 'g')"
    _copy(rows.columns(), path, f"(query + 1) || ' 0 ' || {doc} || ' ' || grade", _PLAIN_CSV)
    topics = path.with_name(f"{path.name}.queries.tsv")
    texts = rows.judgments.texts
    _copy(
        {"place": np.arange(len(texts)), "text": texts},
        topics,
        "place + 1 AS topic, text AS query",
        "FORMAT csv, HEADER true, DELIMITER '\t'",
    )
    return [path, topics]


# -- JSON ------------------------------------------------------------------------------------------


def _opensearch(
    rows: Rows, path: Path, *, name: str = "rankdrift", rating: str = "grade"
) -> list[Path]:
    """The body of PUT _plugins/_search_relevance/judgments, with ratings as text."""
    if rating not in ("grade", "relevance"):
        raise BadOption(f"rating is 'grade' or 'relevance', not {rating!r}.")
    value = f"printf('%.{3 if rating == 'grade' else 6}f', CAST({rating} AS DOUBLE))"
    each = _by_query(
        rows,
        f"to_json({{'query': text, 'ratings': list({{'docId': doc, 'rating': {value}}} "
        "ORDER BY place)})",
    )
    head = {
        "name": name,
        "description": "Relevance of queries and docs from clicks, by rankdrift",
        "type": "IMPORT_JUDGMENT",
    }
    return _document(path, head, "judgmentRatings", each)


def _elasticsearch(
    rows: Rows, path: Path, *, index: str = "index", field: str = "text"
) -> list[Path]:
    """The body of POST INDEX/_rank_eval: a match query a request, to be replaced by yours."""
    of_index, of_field = DUCKDB.literal(index), DUCKDB.literal(field)
    asked = f"json_object('query', json_object('match', json_object({of_field}, text)))"
    each = _by_query(
        rows,
        f"json_object('id', CAST(query + 1 AS VARCHAR) || ' ' || text, 'request', {asked}, "
        f"'ratings', list({{'_index': {of_index}, '_id': doc, 'rating': grade}} ORDER BY place))",
    )
    tail = {"metric": {"dcg": {"k": 10, "normalize": True}}}
    return _document(path, {}, "requests", each, tail)


def _rre(
    rows: Rows,
    path: Path,
    *,
    index: str = "index",
    id_field: str = "id",
    template: str = "template.json",
) -> list[Path]:
    """A file of ratings: docs by gain; those of gain 0 are not relevant and are left out."""
    gains = "list(struct_pack(g := grade, d := doc) ORDER BY place) FILTER (grade > 0)"
    listed = ", ".join(
        f"'{g}', list_transform(list_filter(found, lambda v: v.g = {g}), lambda v: v.d)"
        for g in range(1, 5)
    )
    each = _by_query(
        rows,
        "json_object('name', text, 'queries', [json_object('template', "
        f"{DUCKDB.literal(template)}, 'placeholders', json_object('$query', text))], "
        f"'relevant_documents', json_object({listed}))",
        f"coalesce({gains}, [])",
    )
    return _document(path, {"id_field": id_field, "index": index}, "query_groups", each)


def _by_query(rows: Rows, sql: str, found: str | None = None) -> list[str]:
    """One JSON text a query; `found`, if any, is worked out first."""
    from rankdrift.core.database import connect

    with connect(threads=1) as con:
        con.register("rd_rows", rows.columns())
        if found is None:
            select = f"SELECT {sql} FROM rd_rows GROUP BY query, text ORDER BY query"
        else:
            inner = f"SELECT query, text, {found} AS found FROM rd_rows GROUP BY query, text"
            select = f"SELECT {sql} FROM ({inner}) ORDER BY query"
        return [text for (text,) in con.execute(select).fetchall()]


def _document(
    path: Path,
    head: dict[str, Any],
    name: str,
    each: Sequence[str],
    tail: dict[str, Any] | None = None,
) -> list[Path]:
    """A JSON object with one long list in it."""
    before = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    after = "".join(
        f",\n {json.dumps(key)}: {json.dumps(value)}" for key, value in (tail or {}).items()
    )
    lines = ",\n  ".join(each)
    write_text(path, f"{{\n{before} {json.dumps(name)}: [\n  {lines}\n ]{after}\n}}\n")
    return [path]


# -- tables ----------------------------------------------------------------------------------------


def _quepid(rows: Rows, path: Path) -> list[Path]:
    _copy(
        rows.columns(),
        path,
        "text AS query, doc AS docid, grade AS rating",
        "FORMAT csv, HEADER true",
    )
    return [path]


def _preferences(rows: Rows, path: Path, *, sure: float = SURE) -> list[Path]:
    """query, better, worse, probability: among the docs of each query that most is known of. What
    would be a formula has a backslash before it: this is a table for people."""
    if not 0.5 <= sure < 1:
        raise BadOption(f"sure is a probability from 0.5 to below 1, not {sure!r}.")
    from scipy.special import ndtri

    j = rows.judgments
    surest = np.lexsort((j.doc, -j.known, j.query))
    at = np.arange(len(j)) - j.starts[j.query]  # each query's pairs are together
    kept = surest[(at < MOST_COMPARED) & rows.grades.given[surest]]
    columns = {
        "pair": kept,
        "query": j.query[kept],
        "logit": j.logit[kept],
        "sd": j.logit_sd[kept],
    }
    from rankdrift.core.database import connect

    with connect(threads=1) as con:
        con.register("rd_rows", columns)
        found = con.execute(
            "SELECT a.pair AS better, b.pair AS worse, a.logit - b.logit AS away,"
            " sqrt(a.sd * a.sd + b.sd * b.sd) AS error"
            " FROM rd_rows AS a JOIN rd_rows AS b ON a.query = b.query AND a.logit > b.logit"
            f" WHERE away >= {float(ndtri(sure))!r} * error"
        ).fetchnumpy()
    plain = {name: np.ma.getdata(values) for name, values in found.items()}
    better, worse = (plain[name].astype(np.int64) for name in ("better", "worse"))
    chance = chance_above(plain["away"], plain["error"])
    order = np.lexsort((worse, better, -chance, j.query[better]))
    docs = _cells(j.docs)
    _copy(
        {
            "place": np.arange(len(order)),
            "query": _cells(j.texts)[j.query[better[order]]],
            "better": docs[j.doc[better[order]]],
            "worse": docs[j.doc[worse[order]]],
            "probability": np.round(chance[order], 4),
        },
        path,
        "query, better, worse, probability",
        "FORMAT csv, HEADER true",
    )
    return [path]


def _cells(texts: NDArray[Any]) -> NDArray[Any]:
    return np.array([cell(text) for text in texts], dtype=object)


# -- with features ---------------------------------------------------------------------------------


def _svmlight(rows: Rows, path: Path) -> list[Path]:
    _sparse(rows, path, "grade || ' qid:' || (query + 1)")
    return [path]


def _xgboost(rows: Rows, path: Path) -> list[Path]:
    _sparse(rows, path, "CAST(grade AS VARCHAR)")
    return [path, _sizes(rows, path, ".group")]


def _lightgbm(rows: Rows, path: Path) -> list[Path]:
    names = _features(rows)
    cells = ", ".join(
        f"CASE WHEN {_missing(f'x{i + 1}')} THEN 'nan' ELSE CAST(x{i + 1} AS VARCHAR) END AS "
        f"{DUCKDB.quote(name)}"
        for i, name in enumerate(names)
    )
    how = "FORMAT csv, HEADER true, DELIMITER '\t'"
    _copy(rows.columns(), path, f"grade AS label, {cells}", how)
    return [path, _sizes(rows, path, ".query")]


def _sparse(rows: Rows, path: Path, head: str) -> None:
    """What comes first, then 1:value 2:value …; what is missing is left out."""
    cells = [
        f"CASE WHEN {_missing(f'x{i + 1}')} THEN '' ELSE ' {i + 1}:' || x{i + 1} END"
        for i in range(len(_features(rows)))
    ]
    _copy(rows.columns(), path, " || ".join([head, *cells]), _PLAIN_CSV)


def _missing(column: str) -> str:
    return f"{column} IS NULL OR isnan({column})"


def _features(rows: Rows) -> tuple[str, ...]:
    names = rows.judgments.feature_names
    if not names:
        raise BadOption(
            "This form has features in it, and the judgments were made without. Judge with "
            "--features, or take another form."
        )
    return names


def _sizes(rows: Rows, path: Path, ending: str) -> Path:
    """How many pairs each query has, a line each."""
    target = path.with_name(path.name + ending)
    _, sizes = np.unique(rows.columns()["query"], return_counts=True)
    write_text(target, "".join(f"{size}\n" for size in sizes.tolist()))
    return target


def _copy(columns: dict[str, NDArray[Any]], path: Path, select: str, how: str) -> None:
    arrays = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    with writing(path) as (part, connection):
        connection.register("rd_rows", arrays)
        target = DUCKDB.literal(str(part))
        connection.execute(
            f"COPY (SELECT {select} FROM rd_rows ORDER BY place) TO {target} ({how})"
        )


for _form in (
    JudgmentForm("trec", "PATH (topic 0 doc grade), PATH.queries.tsv", "TREC qrels", _trec),
    JudgmentForm("opensearch", "PATH", "Search Relevance Workbench, IMPORT_JUDGMENT", _opensearch),
    JudgmentForm("quepid", "PATH (query,docid,rating)", "Quepid's CSV", _quepid),
    JudgmentForm("elasticsearch", "PATH", "ranking evaluation API", _elasticsearch),
    JudgmentForm("rre", "PATH", "Rated Ranking Evaluator", _rre),
    JudgmentForm("svmlight", "PATH (grade qid:1 1:value …)", "RankLib and others", _svmlight),
    JudgmentForm("lightgbm", "PATH (tab-separated), PATH.query", "LightGBM", _lightgbm),
    JudgmentForm("xgboost", "PATH (LibSVM), PATH.group", "XGBoost", _xgboost),
    JudgmentForm(
        "preferences", "PATH (query, better, worse, probability)", "pairs of docs", _preferences
    ),
):
    FORMS.register(_form)
