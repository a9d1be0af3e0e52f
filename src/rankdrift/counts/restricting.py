"""Fewer or coarser counts of the same log, from counts that exist."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, Remark, did_you_mean
from rankdrift.core.rank_blocks import HALF_OCTAVES, fine_blocks, half_octave_of
from rankdrift.core.words import many
from rankdrift.counts.tables import (
    SPLITS,
    Overflow,
    Pairs,
    RankPairs,
    Singles,
    Splits,
    cut,
    fold,
    shorten,
    stack,
)

if TYPE_CHECKING:
    from rankdrift.core.types import Bools, Segment
    from rankdrift.counts.counts import Counts

Tables = dict[str, Any]
"""Tables of Counts by name."""


def restrict(
    counts: Counts,
    *,
    strict: bool,
    max_rank: int | None,
    shown_below: int | None,
    segments: Iterable[Segment | str | None] | None,
    max_shown: int | None,
    buckets: int | None,
) -> Counts:
    """See `Counts.restrict`."""
    max_rank = _at_most("max_rank", max_rank, counts.max_rank, 1)
    max_shown = _at_most("max_shown", max_shown, counts.max_shown, 2)
    buckets = _at_most("buckets", buckets, counts.buckets, 1)
    if buckets & (buckets - 1):
        raise BadOption(f"buckets is {buckets}. Use a power of two.")
    if shown_below is not None and not 1 <= shown_below < max_rank:
        raise BadOption(
            f"shown_below is {shown_below:,}, but a pair can be shown below ranks 1 to "
            f"{max_rank - 1:,} only: these counts end at rank {max_rank:,}."
        )
    tables, done = counts.tables, dict[str, Any]()
    if segments is not None:
        wanted = _find_segments(counts, segments)
        tables = {name: t.take(np.isin(t.segment, wanted)) for name, t in tables.items()}
        done["segments"] = [counts.segments[i] for i in wanted]
    if max_rank < counts.max_rank:
        tables = at_ranks(tables, np.arange(1, max_rank + 1), counts.max_rank)
        done["max_rank"] = max_rank
    if strict:
        two = (tables["pairs"].appearances == 2) & (tables["pairs"].clicks == 1)
        tables |= listed_only(tables["pairs"].take(two))
        done["strict"] = True
    if shown_below is not None:
        _tell_unlisted(counts, tables, shown_below)
        deepest = tables["pairs"].shown.max(axis=1) >> 1
        tables |= listed_only(tables["pairs"].take(deepest > shown_below))
        done["shown_below"] = shown_below
    pairs, rank_pairs, overflow = shorten(tables["pairs"], max_shown)
    tables["pairs"] = fold(pairs, buckets)
    tables["rank_pairs"] = fold(stack([tables["rank_pairs"], rank_pairs]), buckets)
    tables["overflow"] = (
        stack([tables["overflow"], overflow]) if counts.overflow_known else Overflow.empty()
    )
    tables["splits"] = fold(tables["splits"], buckets)
    return replace(
        counts,
        **tables,
        buckets=buckets,
        max_rank=max_rank,
        max_shown=max_shown,
        options=restricted_options(counts, **done),
    )


def at_ranks(tables: Tables, ranks: NDArray[Any], deepest: int) -> Tables:
    """Appearances at these ranks only, of counts down to the rank `deepest`."""
    rank_pairs, overflow, by_rank = tables["rank_pairs"], tables["overflow"], tables["by_rank"]
    inside = np.isin(rank_pairs.clicked, ranks) & np.isin(rank_pairs.other, ranks)
    return {
        "pairs": cut(tables["pairs"], ranks),
        "rank_pairs": rank_pairs.take(inside),
        "overflow": overflow.take(np.isin(overflow.rank, ranks)),
        "by_rank": by_rank.take(np.isin(by_rank.rank, ranks)),
        "splits": _between_blocks(tables["splits"], ranks, deepest),
        "singles": tables["singles"].take(np.isin(tables["singles"].rank, ranks)),
    }


def _between_blocks(splits: Splits, ranks: NDArray[Any], deepest: int) -> Splits:
    """The comparisons between blocks all of whose ranks, down to `deepest`, are among `ranks`."""
    every = np.arange(1, deepest + 1)
    gone = np.zeros(len(HALF_OCTAVES), bool)
    gone[half_octave_of(every[~np.isin(every, ranks)])] = True
    octave = gone.copy()  # a block of the split `queries` has both halves
    octave[1::2] |= gone[2::2]
    whole = splits.split == SPLITS.index("queries")
    by_rank = splits.split == SPLITS.index("ranker")
    fine = splits.split == SPLITS.index("trust")
    blocks = np.where(by_rank | fine, 0, [splits.clicked, splits.other])
    inside: Bools = ~np.asarray(np.where(whole, octave[blocks], gone[blocks]).any(axis=0))
    inside[by_rank] = np.isin(splits.clicked[by_rank], ranks)
    firsts = fine_blocks(deepest)
    left = firsts[np.searchsorted(firsts, every[~np.isin(every, ranks)], side="right") - 1]
    inside[fine] = ~np.isin([splits.clicked[fine], splits.other[fine]], left).any(axis=0)
    return splits.take(inside)


def listed_only(pairs: Pairs) -> Tables:
    """These listed pairs, and none of those kept as pairs of ranks, compared in splits or shown at
    one rank."""
    return {
        "pairs": pairs,
        "rank_pairs": RankPairs.empty(),
        "overflow": Overflow.empty(),
        "splits": Splits.empty(),
        "singles": Singles.empty(),
    }


def restricted_options(counts: Counts, **done: Any) -> dict[str, Any]:
    """The options of `counts` after this has been done to them as well."""
    before = counts.options.get("restrict", {})
    return {**counts.options, **({"restrict": {**before, **done}} if before or done else {})}


def _tell_unlisted(counts: Counts, tables: Tables, rank: int) -> None:
    """Say how many pairs are dropped because not all their ranks are known together."""
    if not len(tables["rank_pairs"]):
        return
    pairs = many(int(tables["overflow"].first.sum()), "pair") if counts.overflow_known else "pairs"
    warnings.warn(
        f"Left out: {pairs} shown more than {counts.max_shown} times. They are counted by two "
        f"ranks at a time, which does not tell which of them were shown below rank {rank}. A "
        "harvest with a larger --max-shown lists more of them.",
        Remark,
        stacklevel=4,
    )


def _at_most(name: str, asked: int | None, have: int, least: int) -> int:
    if asked is None:
        return have
    if not least <= asked <= have:
        raise BadOption(
            f"{name} is {asked:,}, but these counts were made with {name} {have:,}. "
            f"Use {least:,} to {have:,}, or harvest again with --{name.replace('_', '-')} {asked}."
        )
    return asked


def _find_segments(counts: Counts, wanted: Iterable[Segment | str | None]) -> list[int]:
    place = {segment: i for i, segment in enumerate(counts.segments)}
    found = set()
    for value in wanted:
        segment = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if segment not in place:
            names = [_segment_words(known) for known in counts.segments]
            words = _segment_words(segment)
            raise BadOption(
                f"There is no segment {words}.{did_you_mean(words, names)} "
                f"The segments by {', '.join(counts.segment_columns) or 'nothing'} are: "
                f"{'; '.join(names[:20])}{'; ...' if len(names) > 20 else ''}."
            )
        found.add(place[segment])
    return sorted(found)


def _segment_words(segment: Segment) -> str:
    return ", ".join("(missing)" if value is None else value for value in segment) or "(all)"
