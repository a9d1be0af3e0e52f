"""Propensities as a table, and as files: CSV is the table, JSON and Parquet hold everything.

The table has a row for each rank of each curve: the pooled one (segment ""), then, if there are
segments, those of each segment by itself (pooling "own") and leaning on the pool ("leaning").

| file | holds | read back |
|---|---|---|
| .json | all; up to 5 MB for a direct curve of 500 ranks | equal |
| .parquet | all, in a third of that; the table, log_p and deviations are its columns | equal |
| .csv | the table, nothing else | values and each rank's own error: see propensities_csv |
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.errors import BadOption, BadPropensities, RankdriftError, did_you_mean
from rankdrift.files import cannot_write, replacing, write_text
from rankdrift.propensities import Floats, Propensities, Segment, all_curves, check_level
from rankdrift.propensities_csv import COLUMNS, label, read_csv, write_csv

FORMAT = 1
KIND = "rankdrift propensities"
KEY = "rankdrift_propensities"
ENDINGS = (".json", ".parquet", ".csv")
_PLAIN = ("reference", "method", "errors", "log_likelihood", "parameters")
_ARRAYS = ("ranks", "log_p", "deviations", "pairs", "clicks", "supported")


def table(p: Propensities, level: float = 0.95, simultaneous: bool = False) -> dict[str, list[Any]]:
    """Columns of plain values; low, high and std_error (of the log) are None without errors."""
    check_level(level)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    if _segmented(p):
        columns["pooling"] = []
    for pooling, segment, curve in all_curves(p):
        part = curve_columns(curve, level, simultaneous)
        part["segment"] = [label(segment)] * len(curve.ranks)
        part["pooling"] = [pooling] * len(curve.ranks)
        for name, values in columns.items():
            values += part[name]
    return columns


def save(p: Propensities, path: str | os.PathLike[str], level: float = 0.95) -> None:
    """Write one file, whole or not at all; its ending says which kind."""
    check_level(level)
    ending = _ending(path)
    for _, _, curve in all_curves(p):
        _check(curve)
    if ending == ".csv":
        write_csv(table(p, level), path)
    elif ending == ".json":
        _save_json(p, path, level)
    else:
        _save_parquet(p, path, level)


def load(path: str | os.PathLike[str]) -> Propensities:
    """Read what `save` wrote."""
    ending = _ending(path)
    file = Path(os.path.abspath(path))
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "does not exist"
        raise BadPropensities(f"{os.fspath(path)} {what}. Give a file of propensities.")
    read = {".csv": read_csv, ".json": _load_json, ".parquet": _load_parquet}[ending]
    try:
        p = read(file)
        for _, _, curve in all_curves(p):
            _check(curve)
        return p
    except RankdriftError as error:
        raise BadPropensities(f"{os.fspath(path)}: {error}") from error
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise BadPropensities(
            f"{os.fspath(path)} is damaged or was not written by rankdrift ({error!r}). Estimate "
            "again, or copy it again from where it came."
        ) from error
    except OSError as error:
        raise BadPropensities(f"Cannot read {os.fspath(path)}: {error.strerror}.") from error


def same(a: Propensities, b: Propensities) -> bool:
    """Whether every number and every word of both is the same."""
    return (
        _about(a, 0.5) == _about(b, 0.5)
        and _about_curves(a) == _about_curves(b)
        and all(
            np.array_equal(getattr(x, name), getattr(y, name), equal_nan=name == "deviations")
            for (_, _, x), (_, _, y) in zip(all_curves(a), all_curves(b), strict=True)
            for name in _ARRAYS
        )
    )


# -- what all forms share ----------------------------------------------------------------------


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise BadOption(
            f"Propensities are not kept in files named {ending or 'without an ending'!r}."
            f"{did_you_mean(ending, ENDINGS)} Use .json or .parquet, which hold everything, or "
            ".csv, which holds the table."
        )
    return ending


def _segmented(p: Propensities) -> bool:
    return bool(p.segment_columns or p.by_segment or p.leaning)


def curve_columns(
    curve: Propensities, level: float, simultaneous: bool = False
) -> dict[str, list[Any]]:
    error = curve.std_error
    low = high = curve.values
    if curve.errors != "none":
        with np.errstate(over="ignore"):  # the interval of a rank with next to no data
            low, high = curve.interval(level, simultaneous)
    known = np.isfinite(error) & (curve.errors != "none")
    spread = {
        name: [v if k else None for v, k in zip(values.tolist(), known.tolist(), strict=True)]
        for name, values in (("low", low), ("high", high), ("std_error", error))
    }
    return {
        "rank": curve.ranks.tolist(),
        "propensity": curve.values.tolist(),
        **spread,
        "pairs": curve.pairs.tolist(),
        "clicks": curve.clicks.tolist(),
        "supported": curve.supported.tolist(),
    }


def _about(p: Propensities, level: float) -> dict[str, Any]:
    """All of it that belongs to no one curve, as plain values."""
    from rankdrift import __version__

    difference = None
    if p.difference:
        left_out = [[list(segment), why] for segment, why in p.difference.left_out.items()]
        difference = {**_plain(vars(p.difference)), "left_out": left_out}
    return {
        "kind": KIND,
        "format": FORMAT,
        "version": __version__,
        "level": level,
        "segment_columns": list(p.segment_columns),
        "difference": difference,
    }


def _about_curves(p: Propensities) -> list[dict[str, Any]]:
    """All of each curve that is not an array, as plain values."""
    return [
        {
            "pooling": pooling,
            "segment": list(segment),
            **{name: _plain(getattr(curve, name)) for name in _PLAIN},
            "df": float(curve.df) if np.isfinite(curve.df) else None,
            "gaps": {str(rank): why for rank, why in curve.gaps.items()},
            "provenance": _plain(curve.provenance),
        }
        for pooling, segment, curve in all_curves(p)
    ]


def _plain(value: Any) -> Any:
    """What JSON gives back unchanged."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _assemble(meta: Mapping[str, Any], arrays: Iterable[Mapping[str, Any]]) -> Propensities:
    """The propensities of plain values `meta` and each curve's arrays."""
    from rankdrift.segments import Difference

    difference = None
    if meta["difference"]:
        left_out = {tuple(segment): why for segment, why in meta["difference"]["left_out"]}
        difference = Difference(**{**meta["difference"], "left_out": left_out})
    curves: dict[str, dict[Segment, dict[str, Any]]] = {"all": {}, "own": {}, "leaning": {}}
    for about, columns in zip(meta["curves"], arrays, strict=True):
        curves[about["pooling"]][tuple(about["segment"])] = {
            **{name: about[name] for name in _PLAIN},
            "df": np.inf if about["df"] is None else float(about["df"]),
            "gaps": {int(rank): str(why) for rank, why in about["gaps"].items()},
            "provenance": dict(about["provenance"]),
            **_typed(columns),
        }
    return Propensities(
        **curves["all"][()],
        segment_columns=tuple(meta["segment_columns"]),
        by_segment={segment: Propensities(**c) for segment, c in curves["own"].items()},
        leaning={segment: Propensities(**c) for segment, c in curves["leaning"].items()},
        difference=difference,
    )


def _typed(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays with their types; numbers that do not fit theirs are refused."""
    whole = {name: np.asarray(columns[name]) for name in ("ranks", "pairs", "clicks")}
    for name, values in whole.items():
        if values.dtype.kind not in "iu" or values.ndim != 1 or not len(values):
            raise BadPropensities(f"its {name} are not whole numbers. Estimate again.")
    if np.asarray(columns["supported"]).dtype != np.bool_:
        raise BadPropensities("its supported are not true or false. Estimate again.")
    return {
        "ranks": whole["ranks"].astype(np.int32),
        "pairs": whole["pairs"].astype(np.int64),
        "clicks": whole["clicks"].astype(np.int64),
        "supported": np.asarray(columns["supported"]),
        "log_p": np.array(columns["log_p"], dtype=np.float64),
        "deviations": np.array(columns["deviations"], dtype=np.float64),
    }


def _check(curve: Propensities) -> None:
    """Raise BadPropensities for a curve that cannot be one."""
    size = len(curve.ranks)
    wrong = None
    if any(len(getattr(curve, name)) != size for name in _ARRAYS) or curve.deviations.ndim != 2:
        wrong = f"its columns do not have {size} rows each"
    elif curve.ranks[0] < 1 or (np.diff(curve.ranks) <= 0).any():
        wrong = "its ranks do not ascend from 1 or more, each once"
    elif not np.isfinite(curve.log_p).all():
        wrong = "some propensities are not positive numbers"
    elif (curve.pairs < 0).any() or (curve.clicks < 0).any():
        wrong = "some pairs or clicks are negative"
    elif curve.reference not in curve.ranks:
        wrong = f"the reference rank {curve.reference} has no propensity"
    elif curve.log_p[curve.ranks == curve.reference] != 0:
        wrong = f"the propensity of the reference rank {curve.reference} is not 1"
    if wrong:
        raise BadPropensities(f"{wrong}. Estimate again, or correct the file.")


def _check_meta(meta: Any) -> dict[str, Any]:
    if not isinstance(meta, dict) or meta.get("kind") != KIND:
        raise BadPropensities("this is not a file of propensities. Give one that `save` wrote.")
    number = meta.get("format")
    if not isinstance(number, int) or number < 1:
        raise BadPropensities("it names no format. Estimate again.")
    if number > FORMAT:
        raise BadPropensities(
            f"it has format {number}, written by rankdrift {meta.get('version')}; this rankdrift "
            f"reads up to format {FORMAT}. Upgrade rankdrift."
        )
    return meta


# -- JSON --------------------------------------------------------------------------------------


def _json(value: Any, indent: str = "") -> str:
    """Entries of objects one a line, lists of numbers on one; numbers exact."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(key)}: {_json(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(inner + _json(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def _save_json(p: Propensities, path: str | os.PathLike[str], level: float) -> None:
    curves = []
    for about, (_, _, curve) in zip(_about_curves(p), all_curves(p), strict=True):
        columns = curve_columns(curve, level)
        columns["high"] = [v if v is None or np.isfinite(v) else None for v in columns["high"]]
        exact = {"log_p": curve.log_p.tolist(), "deviations": _by_column(curve.deviations)}
        curves.append({**about, **columns, **exact})
    write_text(path, _json({**_about(p, level), "curves": curves}) + "\n")


def _by_column(deviations: Floats) -> dict[str, Any]:
    """A matrix by columns, each [first row, values...] without the zeros at both ends."""
    columns = []
    for column in deviations.T:
        filled = np.flatnonzero(column)
        first, after = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
        values = column[first:after].tolist()
        columns.append([first, *(v if np.isfinite(v) else None for v in values)])
    return {"rows": len(deviations), "columns": columns}


def _from_columns(stored: Mapping[str, Any]) -> Floats:
    deviations = np.zeros((stored["rows"], len(stored["columns"])))
    for place, (first, *values) in enumerate(stored["columns"]):
        deviations[first : first + len(values), place] = np.array(values, dtype=np.float64)
    return deviations


def _load_json(file: Path) -> Propensities:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadPropensities(
            "it is not JSON, or cut short. Estimate again, or copy it again from where it came."
        ) from error
    meta = _check_meta(found)
    arrays = (
        {**c, "ranks": c["rank"], "deviations": _from_columns(c["deviations"])}
        for c in meta["curves"]
    )
    return _assemble(meta, arrays)


# -- Parquet -----------------------------------------------------------------------------------


def _save_parquet(p: Propensities, path: str | os.PathLike[str], level: float) -> None:
    import duckdb

    curves = [curve for _, _, curve in all_curves(p)]
    about = [{**a, "rows": len(c.ranks)} for a, c in zip(_about_curves(p), curves, strict=True)]
    meta = json.dumps({**_about(p, level), "curves": about}, allow_nan=False)
    columns: dict[str, NDArray[Any]] = {
        name: np.array([np.nan if v is None else v for v in values])
        if name in ("low", "high", "std_error")
        else np.array(values, dtype=object if name in ("segment", "pooling") else None)
        for name, values in table(p, level).items()
    }
    columns["log_p"] = np.concatenate([c.log_p for c in curves])
    picks = [f"if(isnan({n}), NULL, {n}) AS {n}" if v.dtype == float else n
             for n, v in columns.items()]  # fmt: skip
    start = np.cumsum([0, *(len(c.ranks) for c in curves)])
    cells = [np.indices(c.deviations.shape).reshape(2, -1) for c in curves]
    flat = {
        "row": np.concatenate([r + s for (r, _), s in zip(cells, start, strict=False)]),
        "place": np.concatenate([place for _, place in cells]),
        "value": np.concatenate([c.deviations.ravel() for c in curves]),
    }
    with replacing(path) as part, duckdb.connect(config={"threads": 1}) as con:
        con.register("rankdrift_rows", {**columns, "row": np.arange(start[-1])})
        con.register("rankdrift_cells", flat)
        query = f"""
            SELECT {", ".join(picks)}, coalesce(deviations, []) AS deviations FROM rankdrift_rows
            LEFT JOIN (
                SELECT row, list(coalesce(value, 'nan') ORDER BY place) AS deviations
                FROM rankdrift_cells GROUP BY row
            ) USING (row) ORDER BY row"""
        options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{KEY}: {_text(meta)}}}"
        try:
            con.execute(f"COPY ({query}) TO {_text(str(part))} ({options})")
        except duckdb.Error as error:
            raise cannot_write(path, error) from error


def _load_parquet(file: Path) -> Propensities:
    import duckdb

    name = _text(glob.escape(str(file)))
    try:
        with duckdb.connect(config={"threads": 1}) as con:
            stored = con.sql(f"SELECT key, value FROM parquet_kv_metadata({name})").fetchall()
            texts = {bytes(key).decode(): value for key, value in stored}
            if KEY not in texts:
                what = "counts: estimate from them" if "rankdrift" in texts else "something else"
                raise BadPropensities(f"this Parquet file holds no propensities but {what}.")
            meta = _check_meta(json.loads(texts[KEY]))
            found = con.sql(f"""
                SELECT rank AS ranks, log_p, deviations, pairs, clicks, supported
                FROM read_parquet({name}, hive_partitioning = false)""").fetchnumpy()
    except duckdb.Error as error:
        raise BadPropensities(
            "it cannot be read as a Parquet file: it is cut short or of another kind. Copy it "
            f"again from where it came. (DuckDB says: {str(error).splitlines()[0]})"
        ) from error
    columns = {n: np.ma.getdata(values) for n, values in found.items()}
    ends = np.cumsum([about["rows"] for about in meta["curves"]])
    if ends[-1] != len(columns["ranks"]):
        raise BadPropensities(f"it has {len(columns['ranks'])} rows, not {ends[-1]}.")
    parts = {n: np.split(values, ends[:-1]) for n, values in columns.items()}
    parts["deviations"] = [np.stack(list(rows)) for rows in parts["deviations"]]
    return _assemble(meta, ({n: parts[n][i] for n in parts} for i in range(len(ends))))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
