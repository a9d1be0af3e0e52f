"""The training data as files for people who train elsewhere, with gains of 1 / propensity in them.

FORMS says what each form writes. Every file is replaced whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankdrift.core.database import connect
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import replacing, write_text
from rankdrift.core.types import Floats
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import Lists, labels, lightgbm_params, xgboost_params
from rankdrift.ranking.gains import Beyond, as_propensities, weigh
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.matrix_reading import Wanted
from rankdrift.ranking.ranker import plain_names
from rankdrift.ranking.training import rows_to_learn

FORMS = {
    "lightgbm": "PATH (tab-separated), PATH.query, PATH.weight and PATH.conf for LightGBM's CLI",
    "xgboost": "PATH (LibSVM, gains as labels), PATH.group, PATH.weight and PATH.json (parameters)",
    "svmlight": "PATH alone: gain qid:search 1:value …, as RankLib and others read it",
    "weights": "PATH (.csv or .parquet): search, rank, click and weight of every row, in order",
}


def export_training(
    data: Log | Matrix,
    path: str | os.PathLike[str],
    *,
    form: str = "lightgbm",
    propensities: Propensities | str | os.PathLike[str] | None = None,
    features: Wanted = ("f_*",),
    categorical: str | Sequence[str] = (),
    clip: float | None = None,
    beyond: Beyond = "error",
    pool: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write what `train` would learn from, in one of FORMS; returns the files written.

    The same searches, rows and gains as in `train`, so that training on the files gives the same
    model.
    """
    if form not in FORMS:
        raise BadOption(
            f"No form {form!r}.{did_you_mean(form, FORMS)} There are {', '.join(FORMS)}."
        )
    matrix = rows_to_learn(data, features, categorical, say or (lambda _: None))
    curve = as_propensities(propensities)
    gains = weigh(matrix, curve, clip=clip, beyond=beyond, pool=pool)
    if form != "weights":
        shuffled = matrix.shuffled()  # as in `train`
        gains, matrix = weigh(shuffled, curve, clip=clip, beyond=beyond, pool=pool), shuffled
    write = {
        "lightgbm": _lightgbm, "xgboost": _xgboost, "svmlight": _svmlight, "weights": _weights,
    }[form]  # fmt: skip
    return write(Lists(matrix, gains.gain), Path(path))


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _lightgbm(lists: Lists, path: Path) -> list[Path]:
    table = np.unique(np.concatenate([[0.0], lists.gain]))
    matrix = lists.matrix
    names = [DUCKDB.quote(name) for name in plain_names(matrix.features)]
    columns = {"label": labels(lists.gain, table)} | _numbered(matrix)
    values = ", ".join(
        f"CASE WHEN {_is_missing(x)} THEN 'nan' ELSE CAST({x} AS VARCHAR) END AS {name}"
        for x, name in zip(_numbered(matrix), names, strict=True)
    )
    _copy(columns, path, f"label, {values}", "FORMAT csv, DELIMITER '\t', HEADER true")
    params = lightgbm_params(lists.sizes, table)
    told = {
        "task": "train", "data": path.name, "header": "true", "label_column": "name:label",
        **{k: _conf(v) for k, v in params.items()},
        "metric": "ndcg", "num_iterations": "100", "learning_rate": "0.1",
    }  # fmt: skip
    words = [i for i, f in enumerate(matrix.features) if f.is_category]
    if words:
        told["categorical_feature"] = ",".join(map(str, words))
    files = [path, _beside(path, ".query"), _beside(path, ".weight"), _beside(path, ".conf")]
    _numbers(files[1], lists.sizes)
    _numbers(files[2], lists.ideal[matrix.search])
    write_text(files[3], "".join(f"{k} = {v}\n" for k, v in told.items()))
    return files


def _conf(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _xgboost(lists: Lists, path: Path) -> list[Path]:
    _sparse(lists, path, with_search=False)
    files = [path, _beside(path, ".group"), _beside(path, ".weight"), _beside(path, ".json")]
    _numbers(files[1], lists.sizes)
    _numbers(files[2], lists.ideal)
    told = {
        "params": xgboost_params(lists.sizes) | {"learning_rate": 0.1},
        "trees": 100,
        "feature_names": plain_names(lists.matrix.features),
        "feature_types": ["c" if f.is_category else "q" for f in lists.matrix.features],
    }
    write_text(files[3], json.dumps(told, indent=1) + "\n")
    return files


def _svmlight(lists: Lists, path: Path) -> list[Path]:
    _sparse(lists, path, with_search=True)
    return [path]


def _weights(lists: Lists, path: Path) -> list[Path]:
    matrix = lists.matrix
    columns = {"search": matrix.search, "rank": matrix.rank, "click": matrix.click.astype(np.int8),
               "weight": lists.gain}  # fmt: skip
    if matrix.doc is not None:
        columns["doc"] = matrix.doc
    endings = {".csv": "FORMAT csv, HEADER true", ".parquet": "FORMAT parquet"}
    if path.suffix.lower() not in endings:
        raise BadOption(f"Weights are written as .csv or .parquet, not {path.suffix!r}.")
    _copy(columns, path, "*", endings[path.suffix.lower()])
    return [path]


def _numbered(matrix: Matrix) -> dict[str, Any]:
    return {f"x{i + 1}": column for i, column in enumerate(matrix.x.T)}


def _is_missing(column: str) -> str:
    return f"{column} IS NULL OR isnan({column})"  # DuckDB may read an array's NaN as NULL


def _sparse(lists: Lists, path: Path, with_search: bool) -> None:
    """label [qid:search] 1:value 2:value …; what is missing is left out."""
    columns = _numbered(lists.matrix)
    cells = [
        f"CASE WHEN {_is_missing(f'x{i + 1}')} THEN '' ELSE ' {i + 1}:' || x{i + 1} END"
        for i in range(len(columns))
    ]
    head = "gain || ' qid:' || search" if with_search else "gain || ''"
    every: dict[str, Any] = {"gain": lists.gain, "search": lists.matrix.search} | columns
    _copy(every, path, " || ".join([head, *cells]),
          "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '|'")  # fmt: skip


def _copy(columns: dict[str, Any], path: Path, select: str, how: str) -> None:
    arrays = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    with replacing(path) as part, connect(threads=1) as connection:
        connection.register("rd_rows", arrays)
        target = DUCKDB.literal(str(part))
        connection.execute(f"COPY (SELECT {select} FROM rd_rows) TO {target} ({how})")


def _numbers(path: Path, values: Floats) -> None:
    write_text(path, "".join(f"{value!r}\n" for value in values.tolist()))
