"""Propensities as a table and as plain values, which their files are made of.

The table has a row for each segment and rank: of the pooled curve (segment ""), then, if there are
segments, of the recommended curve of each, shrunk towards the pool (pooling "leaning"). The full
one has each segment's own curve besides (pooling "own").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.artefacts import PROPENSITIES_COLUMNS, PROPENSITIES_KIND
from rankdrift.core.errors import BadPropensities
from rankdrift.core.types import Segment
from rankdrift.core.version import __version__
from rankdrift.core.words import many
from rankdrift.propensities.intervals import check_level

if TYPE_CHECKING:
    from rankdrift.propensities.propensities import Propensities

FORMAT = 2
FORMAT_FULL = 1
"""Of files that hold every number as it is; older versions read them."""
FORMAT_TRUST = 3
"""Of files with a second curve, which older versions would pass over."""
TRUST = ("trust", "trust_error")
TRUST_COLUMNS = ("trust", "trust_low", "trust_high", "trust_error")
NONE = "(none)"
POOLINGS = ("all", "own", "leaning")
"""The pool, each segment for itself, and each shrunk towards the pool."""
PLAIN = ("reference", "method", "errors", "log_likelihood", "parameters")
_FURTHEST = 700.0  # a logarithm whose number still is one
_ARRAYS = ("ranks", "log_p", "deviations", "pairs", "clicks", "supported")


def all_curves(p: Propensities) -> Iterator[tuple[str, Segment, Propensities]]:
    """(pooling, segment, curve) of everything in it: the pool, each segment, each one shrunk."""
    yield "all", (), p
    yield from (("own", s, c) for s, c in p.by_segment.items())
    yield from (("leaning", s, c) for s, c in p.shrunk.items())


def recommended(p: Propensities) -> Propensities:
    """With one curve a segment: that shrunk towards the pool, where there are such."""
    return replace(p, by_segment={}) if p.shrunk else p


def most_clicked(p: Propensities, most: int) -> dict[Segment, Propensities]:
    """Curves of the segments with the most clicks, `most` at the most, in the order they have."""
    curves = p.segments
    chosen = sorted(curves, key=lambda segment: -int(curves[segment].clicks.sum()))[:most]
    return {segment: curve for segment, curve in curves.items() if segment in chosen}


def label(segment: Segment) -> str:
    r"""One text for a segment: values joined with "/", NULL as (none), \ before a mere / or \."""
    return "/".join(map(_escaped, segment))


def parse_label(text: str) -> Segment:
    """The segment that `label` made into `text`."""
    parts, rest = [""], iter(text)
    for character in rest:
        if character == "/":
            parts.append("")
        else:
            parts[-1] += character + (next(rest, "") if character == "\\" else "")
    return tuple(None if p == NONE else re.sub(r"\\(.)", r"\1", p, flags=re.S) for p in parts)


def _escaped(value: str | None) -> str:
    if value is None:
        return NONE
    text = value.replace("\\", "\\\\").replace("/", "\\/")
    return "\\" + text if text == NONE else text


def table_of(
    p: Propensities, level: float = 0.95, simultaneous: bool = False, full: bool = False
) -> dict[str, list[Any]]:
    """Columns of plain values; low, high and std_error (of the log) are None without errors, and df
    where t is normal."""
    check_level(level)
    trust = TRUST_COLUMNS if p.trust is not None else ()
    columns: dict[str, list[Any]] = {name: [] for name in (*PROPENSITIES_COLUMNS, "df", *trust)}
    if _segmented(p):
        columns["pooling"] = []
    for pooling, segment, curve in all_curves(p if full else recommended(p)):
        part = curve_columns(curve, level, simultaneous)
        part["segment"] = [label(segment)] * len(curve.ranks)
        part["df"] = [float(curve.df) if np.isfinite(curve.df) else None] * len(curve.ranks)
        part["pooling"] = [pooling] * len(curve.ranks)
        for name, values in columns.items():
            values += part[name]
    return columns


def same(a: Propensities, b: Propensities) -> bool:
    """Whether every number and every word of both is the same."""
    return (
        about_all(a, 0.5) == about_all(b, 0.5)
        and about_each(a) == about_each(b)
        and all(
            np.array_equal(getattr(x, name), getattr(y, name), equal_nan=name == "deviations")
            for (_, _, x), (_, _, y) in zip(all_curves(a), all_curves(b), strict=True)
            for name in _ARRAYS
        )
    )


def _segmented(p: Propensities) -> bool:
    return bool(p.segment_columns or p.by_segment or p.shrunk)


def curve_columns(
    curve: Propensities, level: float, simultaneous: bool = False
) -> dict[str, list[Any]]:
    """The columns of one curve; low, high and std_error are None where no error is known."""
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
    found = {
        "rank": curve.ranks.tolist(),
        "propensity": curve.values.tolist(),
        **spread,
        "pairs": curve.pairs.tolist(),
        "clicks": curve.clicks.tolist(),
        "supported": curve.supported.tolist(),
    }
    if curve.trust is not None and curve.trust_error is not None:
        bounds = curve.trust, *curve.trust_interval(level), curve.trust_error
        found |= {n: values.tolist() for n, values in zip(TRUST_COLUMNS, bounds, strict=True)}
    return found


def about_all(p: Propensities, level: float, simultaneous: bool = False) -> dict[str, Any]:
    """All of it that belongs to no one curve, as plain values."""
    difference = None
    if p.difference:
        left_out = [[list(segment), why] for segment, why in p.difference.left_out.items()]
        difference = {**_plain(vars(p.difference)), "left_out": left_out}
    return {
        "kind": PROPENSITIES_KIND,
        "format": FORMAT if p.trust is None else FORMAT_TRUST,
        "version": __version__,
        "level": level,
        "simultaneous": simultaneous,
        "segment_columns": list(p.segment_columns),
        "difference": difference,
    }


def about_each(p: Propensities) -> list[dict[str, Any]]:
    """All of each curve that is not an array, as plain values."""
    return [
        {
            "pooling": pooling,
            "segment": list(segment),
            **{name: _plain(getattr(curve, name)) for name in PLAIN},
            "df": float(curve.df) if np.isfinite(curve.df) else None,
            "gaps": {str(rank): why for rank, why in curve.gaps.items()},
            "provenance": _plain(curve.provenance),
            **({n: _plain(getattr(curve, n)) for n in TRUST} if curve.trust is not None else {}),
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


def check_curve(curve: Propensities) -> None:
    """Raise BadPropensities for a curve that cannot be one."""
    size = len(curve.ranks)
    wrong = None
    if any(len(getattr(curve, name)) != size for name in _ARRAYS) or curve.deviations.ndim != 2:
        wrong = f"its columns do not have {many(size, 'row')} each"
    elif curve.ranks[0] < 1 or (np.diff(curve.ranks) <= 0).any():
        wrong = "its ranks do not ascend from 1 or more, each once"
    elif not np.isfinite(curve.log_p).all() or np.abs(curve.log_p).max() > _FURTHEST:
        wrong = "some propensities are not positive numbers"
    elif np.isinf(curve.deviations).any() or np.nanmax(np.abs(curve.deviations), initial=0) > 1e9:
        wrong = "some errors are not numbers of any use"
    elif (curve.pairs < 0).any() or (curve.clicks < 0).any():
        wrong = "some pairs or clicks are negative"
    elif curve.reference not in curve.ranks:
        wrong = f"the reference rank {curve.reference} has no propensity"
    elif curve.log_p[curve.ranks == curve.reference] != 0:
        wrong = f"the propensity of the reference rank {curve.reference} is not 1"
    elif curve.trust is not None:
        wrong = _wrong_trust(curve)
    if wrong:
        raise BadPropensities(f"{wrong}. Estimate again, or correct the file.")


def _wrong_trust(curve: Propensities) -> str | None:
    size = curve.ranks.shape
    if curve.trust is None or curve.trust_error is None:
        return "it has trust without errors, or errors without it"
    if curve.trust.shape != size or curve.trust_error.shape != size:
        return f"trust does not have {many(len(curve.ranks), 'number')}"
    if not (np.abs(curve.trust) < 1).all() or not (curve.trust_error >= 0).all():
        return "some trust is no chance of a click, or has an error below 0"
    return None
