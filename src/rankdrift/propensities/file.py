"""Files of propensities: CSV is the table, JSON and Parquet hold what ratios need too.

| file | holds | read back |
|---|---|---|
| .json | a curve a segment; its covariance by `steps` | errors right within steps.TOLERANCE |
| .parquet | the same; its columns: the table, log_p, and the steps as deviations | so too |
| .json, full | all; some MB for two segments of 500 ranks | equal |
| .parquet, full | all, in a third of that; its columns: the table, log_p, deviations | equal |
| .csv | the table, nothing else | values and each rank's own error: see csv.py |

What was read and is written again is the same to the last byte: numbers that are shortened are
shortened before anything else is worked out from them.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.artefacts import COUNTS_KEY, PROPENSITIES_KEY, PROPENSITIES_KIND
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.digests import sealed, what_changed
from rankdrift.core.errors import BadOption, BadPropensities, RankdriftError, did_you_mean
from rankdrift.core.files import write_text
from rankdrift.core.plain import entries, entry, items, maybe, number, parsed, text, whole
from rankdrift.core.types import Floats, Segment
from rankdrift.core.words import many
from rankdrift.propensities.csv import read_csv, write_csv
from rankdrift.propensities.intervals import POSTERIOR, check_level
from rankdrift.propensities.propensities import Difference, Propensities
from rankdrift.propensities.steps import Steps, steps_of, unpack
from rankdrift.propensities.table import (
    FORMAT_FULL,
    FORMAT_TRUST,
    PLAIN,
    POOLINGS,
    TRUST,
    about_all,
    about_each,
    all_curves,
    check_curve,
    curve_columns,
    recommended,
    table_of,
)

ENDINGS = (".json", ".parquet", ".csv")
# Of propensities, from which their logarithms are read back; of what is worked out from them.
_DIGITS, _FEW_DIGITS = 12, 6


class NoPropensities(BadPropensities):
    """Nothing in a Parquet file says that it holds any."""


def save(
    p: Propensities,
    path: str | os.PathLike[str],
    level: float = 0.95,
    simultaneous: bool = False,
    full: bool = False,
) -> None:
    """Write one file, whole or not at all; its ending says which kind. Intervals are for each rank
    by itself, or for each curve as a whole."""
    check_level(level)
    ending = _ending(path)
    for _, _, curve in all_curves(p):
        check_curve(curve)
    if not full:
        p = _each(recommended(p), _rounded)
    if ending == ".csv":
        shown = p if full or simultaneous else _each(p, _pointwise)
        columns = table_of(shown, level, simultaneous, full)
        write_csv(
            columns if full else {n: _short(n, values) for n, values in columns.items()}, path
        )
        return
    steps: Sequence[Steps | None] | None = None
    shown = p
    if not full:
        p, steps = _in_steps(p)
    if not simultaneous:  # that band is drawn by chance: the one that was seen is kept
        shown = p
    write = _save_json if ending == ".json" else _save_parquet
    write(p, shown, path, level, simultaneous, steps)


def _each(p: Propensities, change: Callable[[Propensities], Propensities]) -> Propensities:
    """Every curve in it changed, in the order of `all_curves`."""
    whole = change(p)
    by_segment, shrunk = (
        {segment: change(curve) for segment, curve in curves.items()}
        for curves in (p.by_segment, p.shrunk)
    )
    return replace(whole, by_segment=by_segment, shrunk=shrunk)


def _rounded(curve: Propensities) -> Propensities:
    """With values as they are written."""
    log_p = np.log(_short("propensity", curve.values.tolist()))
    trust, error = (
        None if values is None else np.array(_short("trust", values.tolist()))
        for values in (curve.trust, curve.trust_error)
    )
    return replace(curve, log_p=log_p, trust=trust, trust_error=error)


def _pointwise(curve: Propensities) -> Propensities:
    """With errors as a table has them; draws tell more than that of their intervals."""
    if curve.errors == POSTERIOR:
        return curve
    return replace(curve, deviations=np.diag(_short("std_error", curve.std_error.tolist())))


def _short(name: str, values: list[Any]) -> list[Any]:
    """A column with as many digits as are of use."""
    digits = {"propensity": _DIGITS}.get(name, _FEW_DIGITS)
    return [float(f"{v:.{digits}g}") if isinstance(v, float) else v for v in values]


def _in_steps(p: Propensities) -> tuple[Propensities, list[Steps | None]]:
    """With the deviations that its steps give, so that what is written belongs together; None where
    steps say no less: errors of each rank by itself, or that are not known; or where each deviation
    is a draw."""
    found: list[Steps | None] = []

    def kept(curve: Propensities) -> Propensities:
        alone = (np.count_nonzero(curve.deviations, axis=0) <= 1).all()
        drawn = curve.errors == POSTERIOR
        if alone or drawn or np.isnan(curve.deviations).any():
            found.append(None)
            return curve
        steps = steps_of(curve.deviations)
        found.append(steps)
        place = int(np.searchsorted(curve.ranks, curve.reference))
        return replace(curve, deviations=steps.deviations(place))

    return _each(p, kept), found


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
            check_curve(curve)
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


_NO_NUMBERS = ("nan", "inf", "-inf")
"""Texts that stand for what JSON has not."""


def _ending(path: str | os.PathLike[str]) -> str:
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise BadOption(
            f"Propensities are not kept in files named {ending or 'without an ending'!r}."
            f"{did_you_mean(ending, ENDINGS)} Use .json or .parquet, which hold everything, or "
            ".csv, which holds the table."
        )
    return ending


def _check_meta(meta: Any) -> dict[str, Any]:
    if not isinstance(meta, dict) or meta.get("kind") != PROPENSITIES_KIND:
        raise BadPropensities("this is not a file of propensities. Give one that `save` wrote.")
    number = meta.get("format")
    if not isinstance(number, int) or number < 1:
        raise BadPropensities("it names no format. Estimate again.")
    if number > FORMAT_TRUST:
        raise BadPropensities(
            f"it has format {number}, written by rankdrift {meta.get('version')}; this rankdrift "
            f"reads up to format {FORMAT_TRUST}. Upgrade rankdrift."
        )
    return meta


def _assemble(meta: Mapping[str, Any], arrays: Iterable[Mapping[str, Any]]) -> Propensities:
    """The propensities of plain values `meta` and each curve's arrays."""
    try:
        _check_plain(meta)
    except ValueError as error:
        raise BadPropensities(f"{error}. Estimate again, or correct the file.") from error
    difference = None
    if meta["difference"]:
        left_out = {tuple(segment): why for segment, why in meta["difference"]["left_out"]}
        numbers: dict[str, Any] = {
            name: None if value is None else float(value)
            for name, value in meta["difference"].items()
            if name != "left_out"
        }
        difference = Difference(**numbers, left_out=left_out)
    curves: dict[str, dict[Segment, dict[str, Any]]] = {pooling: {} for pooling in POOLINGS}
    for about, columns in zip(meta["curves"], arrays, strict=True):
        curves[about["pooling"]][tuple(about["segment"])] = {
            **{name: about[name] for name in PLAIN},
            "df": np.inf if about["df"] is None else float(about["df"]),
            "gaps": {int(rank): str(why) for rank, why in about["gaps"].items()},
            "provenance": dict(about["provenance"]),
            **{n: np.array(about[n], dtype=np.float64) for n in TRUST if n in about},
            **_typed(columns),
        }
    return Propensities(
        **curves["all"][()],
        segment_columns=tuple(meta["segment_columns"]),
        by_segment={segment: Propensities(**c) for segment, c in curves["own"].items()},
        shrunk={segment: Propensities(**c) for segment, c in curves["leaning"].items()},
        difference=difference,
    )


def _check_plain(meta: Mapping[str, Any]) -> None:
    """Raise ValueError, with its name, for a field that is not what it must be."""
    for column in items(entry(meta, "segment_columns"), "segment_columns"):
        text(column, "segment_columns")
    difference = maybe(entries, entry(meta, "difference"), "difference") or {}
    _check_segments(meta)
    for name in {"statistic", "df", "p_value", "spread"} & {*difference}:
        if difference[name] not in _NO_NUMBERS:
            number(difference[name], f"difference.{name}")
    maybe(number, difference.get("df_error"), "difference.df_error")
    for curve in items(entry(meta, "curves"), "curves"):
        entries(curve, "curves")
        for name in ("method", "errors"):
            text(entry(curve, name, "curves."), f"curves.{name}")
        whole(entry(curve, "reference", "curves."), "curves.reference", 1)
        maybe(number, entry(curve, "df", "curves."), "curves.df", 1.0)
        maybe(number, entry(curve, "log_likelihood", "curves."), "curves.log_likelihood")
        maybe(whole, entry(curve, "parameters", "curves."), "curves.parameters")
        for rank, why in entries(entry(curve, "gaps", "curves."), "curves.gaps").items():
            text(why, f"curves.gaps.{rank}")
        for name in {*TRUST} & {*curve}:
            for value in items(curve[name], f"curves.{name}"):
                number(value, f"curves.{name}", least=-1.0)
        provenance = entries(entry(curve, "provenance", "curves."), "curves.provenance")
        counted = entries(provenance.get("counts", {}), "curves.provenance.counts")
        options = entries(counted.get("options", {}), "curves.provenance.counts.options")
        for role in {"query", "doc", "rank", "click", "search"} & {*options}:
            named = options[role] or []
            for column in [named] if isinstance(named, str) else items(named, role):
                text(column, f"curves.provenance.counts.options.{role}")


def _check_segments(meta: Mapping[str, Any]) -> None:
    """Raise ValueError unless each curve is there once, of a segment that can be."""
    columns = items(entry(meta, "segment_columns"), "segment_columns")
    if len({*columns}) < len(columns):
        raise ValueError(f"segment_columns is {columns!r}, where a name is there twice")
    found: set[tuple[str, Segment]] = set()
    for curve in items(entry(meta, "curves"), "curves"):
        entries(curve, "curves")
        pooling = text(entry(curve, "pooling", "curves."), "curves.pooling")
        values = items(entry(curve, "segment", "curves."), "curves.segment")
        segment = tuple(maybe(text, value, "curves.segment") for value in values)
        if pooling not in POOLINGS:
            raise ValueError(f"curves.pooling is {pooling!r}, not all, own or leaning")
        if len(segment) != (0 if pooling == "all" else len(columns)):
            raise ValueError(
                f"a curve of pooling {pooling!r} has the segment {values!r}, where "
                f"segment_columns is {columns!r}"
            )
        if (pooling, segment) in found:
            raise ValueError(
                f"the curve of pooling {pooling!r}, segment {values!r}, is there twice"
            )
        found.add((pooling, segment))
    if ("all", ()) not in found:
        raise ValueError("there is no curve of pooling 'all'")


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


def _save_json(
    p: Propensities,
    shown: Propensities,
    path: str | os.PathLike[str],
    level: float,
    simultaneous: bool,
    steps: Sequence[Steps | None] | None,
) -> None:
    """`shown` gives the intervals; `steps` of each curve its errors, None where its deviations are
    to be kept, or all numbers of all."""
    curves = []
    each = zip(about_each(p), all_curves(p), all_curves(shown), strict=True)
    for i, (about, (_, _, curve), (_, _, seen)) in enumerate(each):
        columns = curve_columns(seen, level, simultaneous)
        columns["high"] = [v if v is None or np.isfinite(v) else None for v in columns["high"]]
        kept = steps[i] if steps else None
        if steps:
            columns = {name: _short(name, values) for name, values in columns.items()}
        else:
            columns["log_p"] = curve.log_p.tolist()
        errors = {"steps": kept.pack()} if kept else {"deviations": _by_column(curve.deviations)}
        curves.append({**about, **columns, **errors})
    document = {**about_all(p, level, simultaneous), "curves": curves}
    if not steps:
        document |= _in_full(p)
    write_text(path, _json(sealed(json.loads(json.dumps(document)))) + "\n")


def _in_full(p: Propensities) -> dict[str, Any]:
    """What says that every number is as it is."""
    return {"format": FORMAT_FULL} if p.trust is None else {"full": True}


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
        found = parsed(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadPropensities(
            "it is not JSON, or cut short. Estimate again, or copy it again from where it came."
        ) from error
    meta = _check_meta(found)
    changed = what_changed(meta)
    if changed:
        raise BadPropensities(changed)
    exact = meta["format"] == FORMAT_FULL or bool(meta.get("full"))
    return _assemble(meta, (_of_json(curve, exact) for curve in meta["curves"]))


def _of_json(curve: Mapping[str, Any], exact: bool) -> dict[str, Any]:
    """The arrays of a curve."""
    if exact:
        log_p = curve["log_p"]
    else:
        with np.errstate(divide="ignore", invalid="ignore"):  # `check_curve` refuses what follows
            log_p = np.log(np.array(curve["propensity"], dtype=np.float64))
    if "steps" in curve:
        deviations = unpack(curve["steps"]).deviations(curve["rank"].index(curve["reference"]))
    else:
        deviations = _from_columns(curve["deviations"])
    return {**curve, "ranks": curve["rank"], "log_p": log_p, "deviations": deviations}


# -- Parquet -----------------------------------------------------------------------------------


def _save_parquet(
    p: Propensities,
    shown: Propensities,
    path: str | os.PathLike[str],
    level: float,
    simultaneous: bool,
    steps: Sequence[Steps | None] | None,
) -> None:
    """`shown` and `steps` as for JSON; a row has its deviations, or the step to it from the rank
    before."""
    from rankdrift.core.database import writing

    curves = [curve for _, _, curve in all_curves(p)]
    about = [{**a, "rows": len(c.ranks)} for a, c in zip(about_each(p), curves, strict=True)]
    about_file = about_all(p, level, simultaneous)
    kept = [c.deviations for c in curves]
    if not steps:
        about_file |= _in_full(p)
    for i, in_steps in enumerate(steps or ()):
        about[i]["steps"] = in_steps is not None
        if in_steps:
            rows = np.column_stack([in_steps.causes, in_steps.own])
            kept[i] = np.pad(rows, ((1, 0), (0, 0)))
    plain = json.dumps({**about_file, "curves": about}, allow_nan=False)
    meta = json.dumps(sealed(json.loads(plain), _arrays(curves)))
    columns: dict[str, NDArray[Any]] = {
        name: np.array([np.nan if v is None else v for v in values])
        if name in ("low", "high", "std_error", "df")
        else np.array(values, dtype=object if name in ("segment", "pooling") else None)
        for name, values in table_of(shown, level, simultaneous, full=True).items()
    }
    columns["log_p"] = np.concatenate([c.log_p for c in curves])
    picks = [
        f"if(isnan({n}), NULL, {n}) AS {n}" if v.dtype == float else n for n, v in columns.items()
    ]
    start = np.cumsum([0, *(len(c.ranks) for c in curves)])
    cells = [np.indices(k.shape).reshape(2, -1) for k in kept]
    flat = {
        "row": np.concatenate([r + s for (r, _), s in zip(cells, start, strict=False)]),
        "place": np.concatenate([place for _, place in cells]),
        "value": np.concatenate([k.ravel() for k in kept]),
    }
    with writing(path) as (part, con):
        con.register("rankdrift_rows", {**columns, "row": np.arange(start[-1])})
        con.register("rankdrift_cells", flat)
        query = f"""
            SELECT {", ".join(picks)}, coalesce(deviations, []) AS deviations FROM rankdrift_rows
            LEFT JOIN (
                SELECT row, list(coalesce(value, 'nan') ORDER BY place) AS deviations
                FROM rankdrift_cells GROUP BY row
            ) USING (row) ORDER BY row"""
        marked = f"KV_METADATA {{{PROPENSITIES_KEY}: {DUCKDB.literal(meta)}}}"
        options = f"FORMAT parquet, COMPRESSION zstd, {marked}"
        con.execute(f"COPY ({query}) TO {DUCKDB.literal(str(part))} ({options})")


def _load_parquet(file: Path) -> Propensities:
    import duckdb

    from rankdrift.core.database import connect, first_line, interrupted

    name = DUCKDB.literal(glob.escape(str(file)))
    meta: dict[str, Any] = {}
    try:
        with connect(threads=1) as con:
            stored = con.sql(f"SELECT key, value FROM parquet_kv_metadata({name})").fetchall()
            texts = {bytes(key).decode(): value for key, value in stored}
            if PROPENSITIES_KEY not in texts:
                what = "counts: estimate from them" if COUNTS_KEY in texts else "something else"
                raise NoPropensities(f"this Parquet file holds no propensities but {what}.")
            meta = _check_meta(parsed(texts[PROPENSITIES_KEY]))
            found = con.sql(f"""
                SELECT rank AS ranks, log_p, deviations, pairs, clicks, supported
                FROM read_parquet({name}, hive_partitioning = false)""").fetchnumpy()
    except duckdb.Error as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        raise (BadPropensities if meta else NoPropensities)(
            "it cannot be read as a Parquet file: it is cut short or of another kind. Copy it "
            f"again from where it came. (DuckDB says: {first_line(error)})"
        ) from error
    columns = {n: np.ma.getdata(values) for n, values in found.items()}
    ends = np.cumsum([about["rows"] for about in meta["curves"]])
    if ends[-1] != len(columns["ranks"]):
        raise BadPropensities(f"it has {many(len(columns['ranks']), 'row')}, not {ends[-1]:,}.")
    parts = {n: np.split(values, ends[:-1]) for n, values in columns.items()}
    parts["deviations"] = [np.stack(list(rows)) for rows in parts["deviations"]]
    for i, about in enumerate(meta["curves"]):
        if about.get("steps"):
            place = int(np.searchsorted(parts["ranks"][i], about["reference"]))
            rows = parts["deviations"][i][1:]
            parts["deviations"][i] = Steps(rows[:, :-1], rows[:, -1], 0).deviations(place)
    found_p = _assemble(meta, ({n: parts[n][i] for n in parts} for i in range(len(ends))))
    curves = [curve for _, _, curve in all_curves(found_p)]
    changed = what_changed(meta, _arrays(curves), by_hand=False)
    if changed:
        raise BadPropensities(changed)
    return found_p


def _arrays(curves: Iterable[Propensities]) -> Iterator[NDArray[Any]]:
    """What the columns of a Parquet file hold of these curves."""
    for curve in curves:
        yield from (curve.ranks, curve.log_p, curve.deviations, curve.pairs, curve.clicks)
        yield curve.supported
