"""Propensities in the forms that other tools read: ULTRA, SQL, LightGBM.

All give the weight of a click, 1 / p, relative to the reference rank and at most `clip`. None
makes up a weight: a rank without propensity is an error, or NULL in SQL.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from rankdrift.core.dialects import Dialect
from rankdrift.core.dialects import dialect as find_dialect
from rankdrift.core.errors import BadOption, NotIdentified, did_you_mean
from rankdrift.core.files import write_text
from rankdrift.core.types import Segment
from rankdrift.core.words import ranges
from rankdrift.propensities.propensities import Propensities


def ultra_ipw(p: Propensities, clip: float | None = None) -> dict[str, list[float]]:
    """The JSON object that ULTRA's propensity estimators load: {"IPW_list": [1/p_1, 1/p_2, ...]}.

    The list has a place for every rank from 1 on, so there must be no gap. For ranks deeper than
    the list ULTRA takes its last weight: estimate as deep as the lists you train on.
    """
    missing = sorted(set(range(1, int(p.ranks[-1]) + 1)) - set(p.ranks.tolist()))
    if missing:
        why = sorted({p.gaps[rank] for rank in missing if rank in p.gaps})
        reason = f" ({'; '.join(why)})" if why else ""
        raise NotIdentified(
            f"ULTRA needs a weight for every rank from 1 to {p.ranks[-1]}, and there is none for "
            f"rank {ranges(missing)}{reason}. Estimate with a loglog curve, which has no gaps, or "
            "with a smaller max_rank."
        )
    return {"IPW_list": p.weights(p.ranks, clip).tolist()}


def label_gain(p: Propensities, clip: float | None = None) -> tuple[list[float], dict[int, int]]:
    """LightGBM's `label_gain`, ascending from 0, and the label of a click at each rank.

    A click at rank r gets the integer label whose gain is 1 / p_r, and a row without click the
    label 0; equal gains share a label. Train with `lambdarank_norm=false` and the rows of a query
    weighted with its ideal DCG (`weight=` alone is not inverse-propensity weighting).

    LightGBM's own table ends at label 30. With an explicit one every label below its length is
    allowed, so 500 ranks are no problem; labels are kept as 32-bit floats, which hold whole
    numbers up to 2**24. What LightGBM does limit is the rows of one query: 10,000.
    """
    weights = p.weights(p.ranks, clip)
    gains = np.unique(weights)
    labels = np.searchsorted(gains, weights) + 1
    return [0.0, *gains.tolist()], dict(zip(p.ranks.tolist(), labels.tolist(), strict=True))


def sql_case(
    p: Propensities,
    rank_column: str = "rank",
    *,
    clip: float | None = None,
    dialect: str = "duckdb",
    by_segment: bool = False,
    shrunk: bool = True,
    table: str | None = None,
) -> str:
    """A CASE expression: the weight of a click by its rank, NULL where there is none.

    `by_segment`: each segment has its own weights, told by the segment columns; `shrunk` towards
    the pool, unless told otherwise. `table` goes before the names of the columns.
    """
    d = find_dialect(dialect)
    path = (table,) if table else ()
    rank = d.quote(*path, rank_column)
    if not by_segment:
        return f"CAST({_by_rank(p, rank, clip, '')} AS {d.double})"
    curves = p.shrunk if shrunk and p.shrunk else p.by_segment
    if not curves:
        raise BadOption("There are no curves by segment. Estimate with by=, or leave by_segment.")
    columns = [d.quote(*path, column) for column in p.segment_columns]
    whens = [
        f"  WHEN {_is_segment(d, columns, segment)} THEN {_by_rank(curve, rank, clip, '  ')}\n"
        for segment, curve in curves.items()
    ]
    return f"CAST(CASE\n{''.join(whens)}  ELSE NULL\nEND AS {d.double})"


def save_export(p: Propensities, path: str | os.PathLike[str], form: str, **options: Any) -> None:
    """Write one of FORMS, whole or not at all; `options` are those of its function."""
    if form not in FORMS:
        raise BadOption(f"No form {form!r}.{did_you_mean(form, FORMS)} There are {_forms()}.")
    try:
        text = FORMS[form](p, **options)
    except TypeError as error:
        told = str(error).partition("() ")[2] or error
        raise BadOption(f"The form {form!r} does not take these options: it {told}.") from error
    write_text(path, text)


def _ultra_text(p: Propensities, clip: float | None = None) -> str:
    return json.dumps(ultra_ipw(p, clip), indent=1) + "\n"


def _lightgbm_text(p: Propensities, clip: float | None = None) -> str:
    gains, labels = label_gain(p, clip)
    return json.dumps({"label_gain": gains, "label_of_click_at_rank": labels}, indent=1) + "\n"


def _sql_text(p: Propensities, **options: Any) -> str:
    return sql_case(p, **options) + "\n"


FORMS: dict[str, Callable[..., str]] = {
    "ultra": _ultra_text,
    "lightgbm": _lightgbm_text,
    "sql": _sql_text,
}


def _forms() -> str:
    return ", ".join(FORMS)


def _by_rank(p: Propensities, rank: str, clip: float | None, indent: str) -> str:
    weights = zip(p.ranks.tolist(), p.weights(p.ranks, clip).tolist(), strict=True)
    whens = "".join(f"{indent}  WHEN {r} THEN {_double(w)}\n" for r, w in weights)
    return f"CASE {rank}\n{whens}{indent}  ELSE NULL\n{indent}END"


def _double(value: float) -> str:
    """A literal that means exactly this double; without exponent it would be a decimal."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _is_segment(d: Dialect, columns: list[str], segment: Segment) -> str:
    return " AND ".join(
        f"{column} IS NULL" if value is None else f"{d.text.format(column)} = {d.literal(value)}"
        for column, value in zip(columns, segment, strict=True)
    )
