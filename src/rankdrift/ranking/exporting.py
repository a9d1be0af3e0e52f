"""The training data as files for people who train elsewhere, with gains of 1 / propensity in them.

FORMS says what each form writes. Every file is replaced whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.database import writing
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.errors import BadOption
from rankdrift.core.files import together, write_text
from rankdrift.core.naming import names_checked
from rankdrift.core.registry import Registry
from rankdrift.log.log import Log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import (
    LIGHTGBM,
    XGBOOST,
    category_places,
    plain_names,
    xgboost_types,
)
from rankdrift.ranking.gains import Beyond, Lists, Weighting, as_propensities, gain_table, labels
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.matrix_reading import Wanted
from rankdrift.ranking.training import rows_to_learn


@dataclass(frozen=True)
class Form:
    """A form of training data: the files it has, in words, and what writes them.

    as_trained: rows are in the order in which `train` takes them, not in that of the log. use: the
    tools that read it, where its name does not say.
    """

    name: str
    files: str
    write: Callable[[Lists, Path], list[Path]]
    as_trained: bool = True
    use: str = ""


FORMS: Registry[Form] = Registry("form")


def forms_in_words() -> str:
    """The forms there are, as the help of the command line lists them."""
    *others, last = (f"{form.name} ({form.use})" if form.use else form.name for form in FORMS)
    return f"{', '.join(others)}, or {last}."


@names_checked
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
    """Write what `train` would learn from, for other tools to train on.

    The same searches, rows and gains as in `train`, so that training on the files gives the same
    model.

    Parameters
    ----------
    data
        The results shown, clicked or not.
    path
        Of the first file; others have its name and more.
    form
        One of FORMS: "lightgbm", "xgboost", "svmlight" or "weights".
    propensities
        Those of `estimate`, or their file; None: every click is worth 1.
    features, categorical
        How to read a log, as in `read_matrix`; a Matrix has its own.
    clip
        The largest weight that a click may have.
    beyond
        A click at a rank without propensity is an error, or "clip" takes the propensity of
        the nearest rank.
    pool
        Use one curve for all, though the propensities have segments.
    say
        Called with remarks.

    Returns
    -------
    list of Path
        The files written.
    """
    chosen = FORMS.get(form)
    curve = as_propensities(propensities)
    trust = curve is not None and curve.trust is not None
    matrix = rows_to_learn(data, features, categorical, say or (lambda _: None), unclicked=trust)
    weighting = Weighting(curve, clip, beyond, pool)
    lists, gains = weighting.weigh(matrix.shuffled() if chosen.as_trained else matrix)
    if chosen.write is _weights:  # as they are: for whoever takes them, not for labels
        lists = replace(lists, gain=lists.gain - gains.raised)
    with together():
        return chosen.write(lists, Path(path))


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _lightgbm(lists: Lists, path: Path) -> list[Path]:
    table = gain_table(lists.gain)
    matrix = lists.matrix
    names = [DUCKDB.quote(name) for name in plain_names(matrix.features)]
    columns = {"label": labels(lists.gain, table)} | _numbered(matrix)
    values = ", ".join(
        f"CASE WHEN {_is_missing(x)} THEN 'nan' ELSE CAST({x} AS VARCHAR) END AS {name}"
        for x, name in zip(_numbered(matrix), names, strict=True)
    )
    _copy(columns, path, f"label, {values}", "FORMAT csv, DELIMITER '\t', HEADER true")
    conf = {
        "task": "train",
        "data": path.name,
        "header": "true",
        "label_column": "name:label",
        **{
            name: _conf(value) for name, value in LIGHTGBM.method_params(lists.sizes, table).items()
        },
        "metric": "ndcg",
        "num_iterations": "100",
        "learning_rate": "0.1",
    }
    categories = category_places(matrix.features)
    if categories:
        conf["categorical_feature"] = ",".join(map(str, categories))
    files = [path, _beside(path, ".query"), _beside(path, ".weight"), _beside(path, ".conf")]
    _numbers(files[1], lists.sizes)
    _numbers(files[2], lists.ideal[matrix.search])
    write_text(files[3], "".join(f"{k} = {v}\n" for k, v in conf.items()))
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
    described = {
        "params": XGBOOST.method_params(lists.sizes, gain_table(lists.gain))
        | {"learning_rate": 0.1},
        "trees": 100,
        "feature_names": plain_names(lists.matrix.features),
        "feature_types": xgboost_types(lists.matrix.features),
    }
    write_text(files[3], json.dumps(described, indent=1) + "\n")
    return files


def _svmlight(lists: Lists, path: Path) -> list[Path]:
    _sparse(lists, path, with_search=True)
    return [path]


def _weights(lists: Lists, path: Path) -> list[Path]:
    matrix = lists.matrix
    columns: dict[str, NDArray[Any]] = {
        "search": matrix.search,
        "rank": matrix.rank,
        "click": matrix.click.astype(np.int8),
        "weight": lists.gain,
    }
    if matrix.doc is not None:
        columns["doc"] = matrix.doc
    endings = {".csv": "FORMAT csv, HEADER true", ".parquet": "FORMAT parquet"}
    if path.suffix.lower() not in endings:
        raise BadOption(f"Weights are written as .csv or .parquet, not {path.suffix!r}.")
    _copy(columns, path, "*", endings[path.suffix.lower()])
    return [path]


def _numbered(matrix: Matrix) -> dict[str, NDArray[np.float32]]:
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
    every: dict[str, NDArray[Any]] = {"gain": lists.gain, "search": lists.matrix.search} | columns
    how = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '|'"
    _copy(every, path, " || ".join([head, *cells]), how)


def _copy(columns: dict[str, NDArray[Any]], path: Path, select: str, how: str) -> None:
    arrays = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    with writing(path) as (part, connection):
        connection.register("rd_rows", arrays)
        target = DUCKDB.literal(str(part))
        connection.execute(f"COPY (SELECT {select} FROM rd_rows) TO {target} ({how})")


def _numbers(path: Path, values: NDArray[np.float64 | np.int64]) -> None:
    write_text(path, "".join(f"{value!r}\n" for value in values.tolist()))


for _form in (
    Form(
        "lightgbm",
        "PATH (tab-separated), PATH.query, PATH.weight and PATH.conf for LightGBM's CLI",
        _lightgbm,
    ),
    Form(
        "xgboost",
        "PATH (LibSVM, gains as labels), PATH.group, PATH.weight and PATH.json (parameters)",
        _xgboost,
    ),
    Form(
        "svmlight",
        "PATH alone: gain qid:search 1:value …, as RankLib and others read it",
        _svmlight,
    ),
    Form(
        "weights",
        "PATH (.csv or .parquet): search, rank, click and weight of every row, in order",
        _weights,
        as_trained=False,
        use="for TF-Ranking and Rax",
    ),
):
    FORMS.register(_form)
