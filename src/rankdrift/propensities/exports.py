"""Propensities in the forms that other tools read: ULTRA, SQL, LightGBM.

All give the weight of a click, 1 / p, relative to the reference rank and at most `clip`. None
makes up a weight: a rank without propensity is an error, or NULL in SQL.

A form is one `ExportFormat`, registered in `FORMATS` at the end of this file or of any other;
`Propensities.export` and the error for an unknown form read FORMATS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from rankdrift.core.dialects import Dialect
from rankdrift.core.dialects import dialect as find_dialect
from rankdrift.core.errors import BadOption, NotIdentified
from rankdrift.core.files import write_text
from rankdrift.core.moved import warn_renamed
from rankdrift.core.registry import Registry
from rankdrift.core.types import Segment
from rankdrift.core.words import named_ranks

if TYPE_CHECKING:
    from rankdrift.propensities.propensities import Propensities

Found = TypeVar("Found")


@dataclass(frozen=True)
class ExportFormat(Generic[Found]):
    """A form in which another tool takes propensities; `FORMATS.register` makes it known.

    Parameters
    ----------
    name
        What `Propensities.export` calls it.
    ending
        How files of it are usually named.
    use
        Which tool reads it, in a few words.
    function
        (propensities, options...) -> what the tool needs.
    text
        What the function found, as the text of the file.
    """

    name: str
    ending: str
    use: str
    function: Callable[..., Found]
    text: Callable[[Found], str]

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `export` that it takes: those of its function."""
        return tuple(signature(self.function).parameters)[1:]


FORMATS: Registry[ExportFormat[Any]] = Registry("form")
"""The forms there are, in the order in which they are listed."""


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
            f"{named_ranks(missing)}{reason}. Estimate with a loglog curve, which has no gaps, or "
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
    leaning: bool | None = None,
) -> str:
    """A CASE expression for your warehouse: the weight of a click by its rank, NULL without one.

    Parameters
    ----------
    p
        The propensities.
    rank_column
        The column with the rank.
    clip
        The largest weight allowed.
    dialect
        Of the SQL: duckdb, spark, bigquery, snowflake or trino.
    by_segment
        Each segment has its own weights, chosen by the segment columns.
    shrunk
        Weights of segments are those shrunk towards the pool, where there are such.
    table
        Goes before the names of the columns.
    leaning
        Old name of `shrunk`.
    """
    if leaning is not None:
        warn_renamed("leaning=", "shrunk=")
        shrunk = leaning
    d = find_dialect(dialect)
    path = (table,) if table else ()
    rank = d.quote(*path, rank_column)
    if not by_segment:
        return f"CAST({_by_rank(p, rank, clip, '')} AS {d.double})"
    curves = p.segments if shrunk else p.own_curves()
    if not curves:
        raise BadOption("There are no curves by segment. Estimate with by=, or leave by_segment.")
    columns = [d.quote(*path, column) for column in p.segment_columns]
    whens = [
        f"  WHEN {_is_segment(d, columns, segment)} THEN {_by_rank(curve, rank, clip, '  ')}\n"
        for segment, curve in curves.items()
    ]
    return f"CAST(CASE\n{''.join(whens)}  ELSE NULL\nEND AS {d.double})"


def save_export(p: Propensities, path: str | os.PathLike[str], form: str, **options: Any) -> None:
    """Write one of FORMATS, whole or not at all; `options` are those of its function."""
    wanted = FORMATS.get(form)
    try:
        found = wanted.function(p, **options)
    except TypeError as error:
        why = str(error).partition("() ")[2] or error
        raise BadOption(f"The form {form!r} does not take these options: it {why}.") from error
    write_text(path, wanted.text(found))


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"


def _lightgbm_text(found: tuple[list[float], dict[int, int]]) -> str:
    gains, labels = found
    return _json({"label_gain": gains, "label_of_click_at_rank": labels})


FORMATS.register(
    ExportFormat(
        "ultra",
        ending=".json",
        use="ULTRA's propensity estimators",
        function=ultra_ipw,
        text=_json,
    )
)
FORMATS.register(
    ExportFormat(
        "lightgbm",
        ending=".json",
        use="LightGBM's label_gain, and the label of a click at each rank",
        function=label_gain,
        text=_lightgbm_text,
    )
)
FORMATS.register(
    ExportFormat(
        "sql",
        ending=".sql",
        use="a CASE expression with the weight of a click, for a warehouse",
        function=sql_case,
        text=lambda expression: f"{expression}\n",
    )
)


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
