"""Propensities in the forms that other tools read: ULTRA, SQL, LightGBM.

All give the weight of a click, 1 / p, relative to the reference rank and at most `clip`; of a curve
with trust, what a row says clicked or not, (click - trust) / p. None makes up a weight: a rank
without propensity is an error, or NULL in SQL.

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
    if p.trust is not None:
        raise BadOption(
            "ULTRA multiplies clicks by one number a rank, and a curve with trust takes something "
            "off rows without a click too. Use the form lightgbm or sql, or a plain curve."
        )
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


@dataclass(frozen=True)
class LabelGain:
    """LightGBM's `label_gain`, and the label of a row at each rank: clicked, and not clicked."""

    gains: list[float]
    clicked: dict[int, int]
    unclicked: dict[int, int]


def labels_with_trust(p: Propensities, clip: float | None = None) -> LabelGain:
    """`label_gain` for a curve with trust: a row without click has a label by its rank as well.

    Gains are (click - trust) / p, all raised by the same so that the least is 0: that changes no
    difference between the rows of a search, which is all that a ranker learns from.
    """
    both = np.stack([p.gains(p.ranks, np.full(len(p.ranks), c), clip) for c in (True, False)])
    gains = np.unique(both)
    ranks = p.ranks.tolist()
    clicked, unclicked = (
        dict(zip(ranks, labels.tolist(), strict=True)) for labels in np.searchsorted(gains, both)
    )
    return LabelGain((gains - gains[0]).tolist(), clicked, unclicked)


def label_gain(p: Propensities, clip: float | None = None) -> tuple[list[float], dict[int, int]]:
    """LightGBM's `label_gain`, ascending from 0, and the label of a click at each rank.

    A click at rank r gets the integer label whose gain is 1 / p_r, and a row without click the
    label 0; equal gains share a label. Train with `lambdarank_norm=false` and the rows of a query
    weighted with its ideal DCG (`weight=` alone is not inverse-propensity weighting).

    LightGBM's own table ends at label 30. With an explicit one every label below its length is
    allowed, so 500 ranks are no problem; labels are kept as 32-bit floats, which hold whole
    numbers up to 2**24. What LightGBM does limit is the rows of one query: 10,000.
    """
    if p.trust is not None:
        raise BadOption(
            "With trust, rows without a click have gains too: use labels_with_trust, or "
            "export(path, 'lightgbm'), which has both."
        )
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
    click_column: str = "click",
) -> str:
    """A CASE expression for your warehouse: the weight of a click by its rank, NULL without one; of
    a curve with trust, what a row says of relevance, clicked or not.

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
    click_column
        The column that is 1 or true for a click; only a curve with trust needs it.
    """
    if leaning is not None:
        warn_renamed("leaning=", "shrunk=")
        shrunk = leaning
    d = find_dialect(dialect)
    path = (table,) if table else ()
    rank = d.quote(*path, rank_column)
    if not by_segment:
        if p.trust is not None:
            return _with_trust(p, rank, f"CAST({d.quote(*path, click_column)} AS INTEGER)", clip, d)
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


def _lightgbm(p: Propensities, clip: float | None = None) -> dict[str, object]:
    if p.trust is None:
        gains, labels = label_gain(p, clip)
        return {"label_gain": gains, "label_of_click_at_rank": labels}
    found = labels_with_trust(p, clip)
    return {
        "label_gain": found.gains,
        "label_of_click_at_rank": found.clicked,
        "label_of_no_click_at_rank": found.unclicked,
    }


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
        function=_lightgbm,
        text=_json,
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


def _with_trust(p: Propensities, rank: str, click: str, clip: float | None, d: Dialect) -> str:
    """(click - trust) / p."""
    assert p.trust is not None
    weights = p.weights(p.ranks, clip).tolist()
    rows = zip(p.ranks.tolist(), weights, p.trust.tolist(), strict=True)
    whens = "".join(
        f"  WHEN {r} THEN ({click} - {_double(t)}) * {_double(w)}\n" for r, w, t in rows
    )
    return f"CAST(CASE {rank}\n{whens}  ELSE NULL\nEND AS {d.double})"


def _double(value: float) -> str:
    """A literal that means exactly this double; without exponent it would be a decimal."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _is_segment(d: Dialect, columns: list[str], segment: Segment) -> str:
    return " AND ".join(
        f"{column} IS NULL" if value is None else f"{d.text.format(column)} = {d.literal(value)}"
        for column, value in zip(columns, segment, strict=True)
    )
