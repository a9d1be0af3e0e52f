"""How to use the weights: code to copy, for the propensities at hand."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from rankdrift.propensities.exports import sql_case
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.recipes import recipe


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
    by_segment = bool(p.segments)
    columns = ", ".join(p.segment_columns)
    each = f" A row's segment is its {columns}; its curve is that of its segment." * by_segment
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
            recipe("LightGBM", file, by_segment),
        ),
        Snippet(
            "XGBoost",
            "Gains are the labels themselves." + each,
            recipe("XGBoost", file, by_segment),
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
