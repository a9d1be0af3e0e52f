"""How to use the weights: code to copy, for the propensities at hand."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from rankdrift.propensities.exports import sql_case
from rankdrift.propensities.propensities import Propensities


@dataclass(frozen=True)
class Snippet:
    """Code to copy, with a title and words on what it does."""

    title: str
    words: str
    code: str


def snippets(p: Propensities, file: str, *, queries: bool) -> list[Snippet]:
    """Write code that uses these propensities, for rankdrift, for other libraries and as SQL.

    Parameters
    ----------
    p
        What is to be used.
    file
        What the propensities are kept in.
    queries
        Whether a segment may be named.
    """
    curve, by_segment = "p", bool(p.segments)
    if by_segment and queries:
        segment = next(iter(p.segments))
        curve = f"p.segment({', '.join(map(repr, segment))})"
    elif by_segment:
        curve = "p.segment(...)"
    columns = ", ".join(p.segment_columns)
    each = (
        f" The curve is that of one segment by {columns}: do so for the rows of each, or use p for "
        "all."
        if by_segment
        else ""
    )
    return [
        Snippet(
            "rankdrift",
            "Trains a ranker in which a click is worth 1 / propensity, and judges it among results "
            "shown at one rank.",
            _SHELL.format(file=shlex.quote(file), read=_read(p, by_segment)),
        ),
        Snippet(
            "LightGBM",
            "A weight on a row would not do: LightGBM multiplies it into gradients that are "
            "already summed over pairs. Gains belong into the table of label gains." + each,
            _ROWS + _GAIN.format(file=file, curve=curve) + _LIGHTGBM,
        ),
        Snippet(
            "XGBoost",
            "Gains are the labels themselves." + each,
            _ROWS + _GAIN.format(file=file, curve=curve) + _XGBOOST,
        ),
        Snippet(
            "SQL",
            "The weight of a click as an expression; NULL at a rank without propensity. "
            "“rankdrift.exports.sql_case” writes it for other dialects.",
            sql_case(p, by_segment=by_segment and queries),
        ),
    ]


def _read(p: Propensities, by_segment: bool) -> str:
    """Options that name the columns of the log as they were when it was counted, where it cannot be
    guessed from their names what they are."""
    options = p.provenance.get("counts", {}).get("options", {})
    named = {role: options.get(role) or [] for role in ("query", "doc", "rank", "click", "search")}
    named["segment"] = p.segment_columns if by_segment else []
    columns = {r: [names] if isinstance(names, str) else names for r, names in named.items()}
    typed = {r: ",".join(names) for r, names in columns.items() if list(names) not in ([], [r])}
    return "".join(f" --{role} {shlex.quote(names)}" for role, names in typed.items())


_SHELL = """\
rankdrift train 'train/*.parquet'{read} -o biased.txt
rankdrift train 'train/*.parquet'{read} --propensities {file} -o unbiased.txt
rankdrift evaluate 'test/*.parquet'{read} --model biased.txt --model unbiased.txt
"""

_ROWS = """\
# Your training rows, those of one search together, but in random order within it: equal
# scores keep the order of rows, and that in which they were shown would bring ranks back in.
#   x (rows, features), rank (rows,), click (rows,) of bool, sizes (searches,)
"""

_GAIN = """\
import numpy as np
from rankdrift import Propensities
from rankdrift.ranking.gains import ideal_dcg

p = Propensities.load({file!r})
gain = np.zeros(len(rank))
gain[click] = {curve}.weights(rank[click], clip=50)
search = np.repeat(np.arange(len(sizes)), sizes)
ideal = ideal_dcg(gain, search, len(sizes))
"""

_LIGHTGBM = """\

import lightgbm

table = np.unique(np.append(gain, 0))
rows = lightgbm.Dataset(
    x, np.searchsorted(table, gain), group=sizes, weight=ideal[search]
)
ranker = lightgbm.train(
    {
        "objective": "lambdarank",
        "label_gain": table.tolist(),
        "lambdarank_norm": False,
        "lambdarank_truncation_level": int(max(sizes)),
    },
    rows,
    num_boost_round=100,
)
"""

_XGBOOST = """\

import xgboost

rows = xgboost.DMatrix(x, gain, qid=search, weight=ideal)
ranker = xgboost.train(
    {
        "objective": "rank:ndcg",
        "ndcg_exp_gain": False,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": int(max(sizes)),
        "lambdarank_normalization": False,
        "lambdarank_score_normalization": False,
    },
    rows,
    num_boost_round=100,
)
"""
