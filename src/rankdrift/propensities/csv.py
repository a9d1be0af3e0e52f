"""Propensities as CSV: the table, for spreadsheets and for curves that come from elsewhere.

Any CSV file with columns rank and propensity is read; std_error, of the log, gives errors. The
file holds no covariance, so errors read from it are "pointwise": each rank's own relative to the
reference, which is the rank with propensity 1. Without df, intervals take t to be normal. The
method, the gaps and the names of the segment columns are not in the file either.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankdrift.core.artefacts import PROPENSITIES_COLUMNS
from rankdrift.core.errors import BadPropensities, did_you_mean
from rankdrift.core.files import replacing
from rankdrift.core.words import cell, verb
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.table import POOLINGS, TRUST, parse_label

_YES_NO = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False, "": True}


def write_csv(columns: Mapping[str, Sequence[Any]], path: str | os.PathLike[str]) -> None:
    """Write the columns of a table, whole or not at all."""
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            # A backslash before a character is the character: `parse_label`.
            writer.writerow(_written(v) for v in row)


def _written(value: Any) -> Any:
    if isinstance(value, str):
        return cell(value)
    return str(value).lower() if isinstance(value, bool) else value


def read_csv(file: Path) -> Propensities:
    """The curves of a table, whoever wrote it; BadPropensities with the line that cannot be one."""
    curves: dict[tuple[str, str], list[_Row]] = {}
    with file.open(encoding="utf-8-sig", newline="") as lines:
        try:
            reader = csv.DictReader(lines, restval="")
            _check_columns(reader.fieldnames or ())
            for cells in reader:
                where, row = _row(cells, reader.line_num)
                curves.setdefault(where, []).append(row)
        except (UnicodeDecodeError, csv.Error) as error:
            raise BadPropensities(f"it is not CSV in UTF-8 ({error}). Save it as that.") from error
    if ("all", "") not in curves:
        raise BadPropensities(
            "it has no row of the pooled curve, whose segment is empty. Add those rows."
        )
    made = {where: _curve(rows) for where, rows in curves.items()}
    own, shrunk = (
        {parse_label(text): curve for (kind, text), curve in made.items() if kind == pooling}
        for pooling in ("own", "leaning")
    )
    many = {len(segment) for segment in (*own, *shrunk)}
    if len(many) > 1:
        raise BadPropensities(
            f"its segments have {' or '.join(map(str, sorted(many)))} values joined with '/'. "
            "Give each as many."
        )
    names = tuple(f"segment_{i + 1}" for i in range(max(many, default=0)))
    return replace(
        made["all", ""],
        segment_columns=("segment",) if len(names) == 1 else names,
        by_segment=own,
        shrunk=shrunk,
    )


@dataclass(frozen=True)
class _Row:
    rank: int
    propensity: float
    std_error: float | None
    pairs: int
    clicks: int
    supported: bool
    df: float
    trust: float | None
    trust_error: float | None


def _check_columns(found: Sequence[str]) -> None:
    missing = [name for name in ("rank", "propensity") if name not in found]
    if missing:
        optional = (c for c in (*PROPENSITIES_COLUMNS, "df") if c not in ("rank", "propensity"))
        raise BadPropensities(
            f"it has no column {' and no column '.join(missing)}."
            f"{did_you_mean(missing[0], found)} It must have rank and propensity, and may have "
            f"{', '.join([*optional, 'pooling', *TRUST])}."
        )


def _row(cells: Mapping[str, str], line: int) -> tuple[tuple[str, str], _Row]:
    """((pooling, segment), the row)."""
    segment = cells.get("segment", "")
    pooling = cells.get("pooling", "") or ("own" if segment else "all")
    try:
        if pooling not in POOLINGS:
            raise ValueError(f"pooling is {pooling!r}, not all, own or leaning")
        error = cells.get("std_error", "").strip()
        row = _Row(
            rank=int(cells["rank"]),
            propensity=float(cells["propensity"]),
            std_error=float(error) if error else None,
            pairs=int(cells.get("pairs", "") or 0),
            clicks=int(cells.get("clicks", "") or 0),
            supported=_YES_NO[cells.get("supported", "").strip().lower()],
            df=float(cells.get("df", "") or np.inf),
            trust=_maybe(cells.get("trust", "")),
            trust_error=_maybe(cells.get("trust_error", "")),
        )
        if not row.df >= 1:
            raise ValueError(f"df is {row.df}, not a number from 1 on")
        if not (0 < row.propensity < np.inf and 0 <= (row.std_error or 0) < np.inf):
            raise ValueError("propensity must be above 0, std_error 0 or more, and both finite")
        if not 1 <= row.rank < 2**31:
            raise ValueError(f"{row.rank} is no rank")
    except KeyError as error:
        raise BadPropensities(f"line {line}: supported is {error}, not true or false.") from error
    except ValueError as error:
        raise BadPropensities(f"line {line}: {error}. Correct it.") from error
    return (pooling, segment), row


def _maybe(text: str) -> float | None:
    return float(text) if text.strip() else None


def _trust(rows: list[_Row]) -> dict[str, Any]:
    """The second curve, if there is one; without errors it is taken as it is."""
    found = [row.trust for row in rows if row.trust is not None]
    if not found:
        return {}
    without = len(rows) - len(found)
    if without:
        raise BadPropensities(
            f"{without:,} of {len(rows):,} rows {verb(without, 'has', 'have')} no trust. Give all "
            "or none."
        )
    return {
        "trust": np.array(found),
        "trust_error": np.array([row.trust_error or 0.0 for row in rows]),
    }


def _curve(rows: list[_Row]) -> Propensities:
    rows.sort(key=lambda row: row.rank)
    values = np.array([row.propensity for row in rows])
    errors = [row.std_error for row in rows if row.std_error is not None]
    without = len(rows) - len(errors)
    if errors and without:
        raise BadPropensities(
            f"{without:,} of {len(rows):,} rows {verb(without, 'has', 'have')} no std_error. "
            "Give all or none."
        )
    unit = [row.rank for row in rows if row.propensity == 1 and not row.std_error]
    if not unit:
        raise BadPropensities(
            "no rank has propensity 1 and no error, so the reference is not known. Divide by the "
            "propensity of the reference rank, such as 1."
        )
    return Propensities(
        ranks=np.array([row.rank for row in rows], dtype=np.int32),
        log_p=np.log(values),
        deviations=np.diag(np.array(errors)) if errors else np.zeros((len(rows), 0)),
        pairs=np.array([row.pairs for row in rows], dtype=np.int64),
        clicks=np.array([row.clicks for row in rows], dtype=np.int64),
        supported=np.array([row.supported for row in rows]),
        reference=unit[0],
        method="read from CSV",
        errors="pointwise" if errors else "none",
        df=_only_df({row.df for row in rows}),
        **_trust(rows),
    )


def _only_df(found: set[float]) -> float:
    if len(found) > 1:
        raise BadPropensities(
            f"df is {' and '.join(f'{df:g}' for df in sorted(found)[:2])} in rows of one curve. "
            "Give each curve one."
        )
    return found.pop()
