"""Propensities in few words and numbers, and how far two curves are apart."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.errors import NotIdentified
from rankdrift.core.notebook import brief
from rankdrift.core.words import figure, many, named_ranks, ranges
from rankdrift.propensities.intervals import POSTERIOR
from rankdrift.propensities.table import label, table_of

if TYPE_CHECKING:
    from rankdrift.propensities.propensities import Propensities

SHOWN_RANKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)
WIDEST = 4.0
"""An interval may reach from one end to so many times that. More, and the number in its middle may
be twice or half as much: it says nothing."""
ANYTHING = 1000.0  # an interval that reaches so many times its lower end may as well be all numbers
_NAMED_SEGMENTS = 10


def summarise(p: Propensities, level: float = 0.95, simultaneous: bool = False) -> dict[str, Any]:
    """The curve in few plain values; `at` has some ranks, None for bounds that are not known."""
    columns = table_of(p, level, simultaneous)
    shown = [r for r in p.ranks.tolist() if r in SHOWN_RANKS or r == p.reference]
    places = {rank: int(np.searchsorted(p.ranks, rank)) for rank in shown}
    names: tuple[str, ...] = ("propensity", "low", "high", "supported")
    if p.trust is not None:
        names += ("trust", "trust_low", "trust_high")
    found: dict[str, Any] = {
        "method": p.method,
        "reference": p.reference,
        "ranks": ranges(p.ranks.tolist()),
        "deepest_rank": int(p.ranks[-1]),
        "clicks": int(p.clicks.sum()),
        "errors": p.errors,
        "intervals": "credible" if p.errors == POSTERIOR else "confidence",
        "level": level,
        "simultaneous": simultaneous,
        "log_likelihood": p.log_likelihood,
        "parameters": p.parameters,
        "thin": ranges(p.ranks[~p.supported].tolist()),
        "gaps": {why: ranges(found) for why, found in _by_reason(p).items()},
        "at": {rank: {n: columns[n][at] for n in names} for rank, at in places.items()},
    }
    if p.segment_columns:
        found["segment_columns"] = list(p.segment_columns)
        found["segments"] = [label(segment) for segment in p.segments]
        found["left_out"] = _left_out(p)
    if p.difference:
        found["segments_differ"] = {
            "p_value": p.difference.p_value,
            "spread_percent": 100 * float(np.expm1(p.difference.spread)),
        }
    return found


def gap_words(p: Propensities) -> list[str]:
    """Ranks without an estimate, a sentence for each reason."""
    return [f"No estimate for {named_ranks(at)}: {why}." for why, at in _by_reason(p).items()]


def says_nothing(p: Propensities) -> str:
    """Why the curve is of no use, in a sentence; empty if it is: most of its clicks, those at the
    reference apart, are at ranks whose 95% intervals are at most WIDEST wide."""
    low, high = p.interval()
    others = p.ranks != p.reference
    wide = ~(high <= WIDEST * low)
    clicks = np.where(others, p.clicks, 0)
    if not others.any() or clicks[wide].sum() <= clicks.sum() / 2:
        return ""
    rank = int(p.ranks[others & wide][np.argmax(clicks[others & wide])])
    place = int(np.searchsorted(p.ranks, rank))
    between = f"from {figure(low[place])} to {figure(high[place])}"
    if high[place] > ANYTHING * low[place] or not np.isfinite(high[place]):
        between = "anything at all"
    some, every = int((others & wide).sum()), int(others.sum())
    where = f"at {some:,} of {every:,} ranks" if some < every else "at all ranks but the reference"
    return (
        f"This curve says nothing: {where} the interval reaches further than {WIDEST:g} times its "
        f"lower end (at rank {rank}: {between}). See `rankdrift inspect` for what would help, or "
        "add days."
    )


def one_line(p: Propensities) -> str:
    """The curve on one line, for `repr`."""
    covered, parts = named_ranks(p.ranks.tolist(), most=3), [f"{p.method}"]
    parts.append(f"{covered} relative to rank {p.reference}")
    parts.append(many(int(p.clicks.sum()), "click"))
    if p.segment_columns:
        segments = many(len(p.segments), "segment")
        parts.append(f"{segments} by {', '.join(p.segment_columns)}")
    return brief(p, *parts)


def html(p: Propensities, level: float = 0.95) -> str:
    """A small table for a notebook."""
    found = summarise(p, level)
    rows = "".join(
        f"<tr><td>{rank}</td><td>{row['propensity']:.3g}</td>"
        f"<td>{'reference' if rank == p.reference else _interval(row)}</td>"
        f"<td>{'' if row['supported'] else 'thin data'}</td></tr>"
        for rank, row in found["at"].items()
    )
    covered, thin = named_ranks(p.ranks.tolist()), p.ranks[~p.supported].tolist()
    notes = [f"{found['method']}; {covered}; {many(found['clicks'], 'click')}"]
    if thin:
        notes.append(f"Thin data, so take the interval with care: {named_ranks(thin)}")
    notes += gap_words(p)
    if p.segment_columns:
        names = found["segments"][:_NAMED_SEGMENTS]
        more = len(found["segments"]) - len(names)
        named = ", ".join(names) + (f" and {more} more" if more else "")
        notes.append(f"Segments by {', '.join(p.segment_columns)}: {named}")
    lines = "".join(f"<div>{escape(note)}</div>" for note in notes)
    return (
        "<table><thead><tr><th>Rank</th>"
        f"<th>Propensity relative to rank {p.reference}</th><th>{100 * level:g}% interval</th>"
        f"<th></th></tr></thead><tbody>{rows}</tbody></table>{lines}"
    )


def distance(a: Propensities, b: Propensities) -> dict[str, Any]:
    """How far two curves are apart at the ranks both have, as the percent the larger is larger.

    Both are taken relative to the same rank: the reference of `a` or, if `b` lacks it, the first
    that both have. The mean is weighted with the clicks behind both; the unit, equal by
    definition, is left out.
    """
    shared = np.intersect1d(a.ranks, b.ranks)
    if len(shared) < 2:
        raise NotIdentified(
            f"The curves share {many(len(shared), 'rank')}, and two are needed to compare them: "
            f"one covers {named_ranks(a.ranks.tolist())}, the other "
            f"{named_ranks(b.ranks.tolist())}."
        )
    unit = a.reference if a.reference in shared else int(shared[0])
    in_a, in_b = np.searchsorted(a.ranks, shared), np.searchsorted(b.ranks, shared)
    apart = a.log_p[in_a] - b.log_p[in_b]
    apart = np.abs(apart - apart[shared == unit])
    weight = (a.clicks[in_a] + b.clicks[in_b]).astype(float) * (shared != unit)
    if not weight.any():
        weight = (shared != unit).astype(float)
    percent = 100 * np.expm1(apart)
    worst = int(percent.argmax()) if percent.any() else int(weight.argmax())
    return {
        "relative_to": unit,
        "shared": ranges(shared.tolist()),
        "only_first": ranges(np.setdiff1d(a.ranks, b.ranks).tolist()),
        "only_second": ranges(np.setdiff1d(b.ranks, a.ranks).tolist()),
        "max_percent": float(percent[worst]),
        "max_rank": int(shared[worst]),
        "mean_percent": float(np.average(percent, weights=weight)),
        "note": (
            "No interval: the error of a difference depends on how far both curves come from the "
            "same clicks. It can be told only when both are estimated from the same counts."
        ),
    }


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:.3g} to {row['high']:.3g}"


def _by_reason(p: Propensities) -> dict[str, list[int]]:
    """Reason -> ranks without an estimate."""
    by_reason: dict[str, list[int]] = {}
    for rank, why in p.gaps.items():
        by_reason.setdefault(why, []).append(rank)
    return by_reason


def _left_out(p: Propensities) -> dict[str, str]:
    left_out = p.difference.left_out if p.difference else {}
    return {label(segment): why for segment, why in left_out.items()}
