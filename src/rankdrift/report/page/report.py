"""The report: all that was found, as one page that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rankdrift.core.errors import RankdriftError
from rankdrift.core.files import write_text
from rankdrift.core.version import __version__
from rankdrift.core.words import figure, printable
from rankdrift.counts.counts import Counts
from rankdrift.counts.funnel import NOTES
from rankdrift.diagnosis.checks.segments import segment_difference_words
from rankdrift.propensities.propensities import Propensities
from rankdrift.report.page.comparison_tables import (
    distance_rows,
    meanings,
    method_table,
    ranker_tables,
)
from rankdrift.report.page.curve_svg import curve_picture
from rankdrift.report.page.frame import render
from rankdrift.report.page.inspection import funnel_lines, listed
from rankdrift.report.page.series import LEVEL, MOST_SEGMENTS, Series, all_series
from rankdrift.report.page.snippets import snippets
from rankdrift.report.page.support import clicks_to_weigh, support_picture
from rankdrift.report.results import CURVE, ENDINGS, Results, gather

AXES = {"linear": (False, False), "log": (True, False), "loglog": (True, True)}
FIRST_AXES = "log"
TYPICAL = 10  # the rank whose numbers are told first
HEADLINES = {
    "good": "None of the checks found a problem.",
    "caution": "Use it with care: some checks ask for attention.",
    "serious": "Do not rely on it yet: some assumptions fail on this data.",
}


@dataclass(frozen=True)
class Page:
    """A page as text; results and verdict say what it was made of and what its checks found."""

    html: str
    results: Results
    verdict: str | None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, whole or not at all."""
        write_text(path, self.html)


def make_report(results: Any, *, title: str | None = None, queries: bool = True) -> Page:
    """One page on any mix of `results`, for people who have not seen them before.

    `results`: counts, propensities, comparisons of methods and of rankers, a diagnosis, the truth
    of a simulation; each as it is or as the file it was saved in; a list of them, or a mapping
    that names them. Counts are diagnosed and, if there are no propensities, estimated from.

    `queries`: False leaves out what users typed and what rows were about, that is, every value of
    the log: segments are numbered, and neither a row condition is told nor a reason that may quote
    a row. Names of files and columns stay.
    """
    found = gather(results)
    curves, estimated = _curves(found)
    diagnosis, undiagnosed = _diagnosis(found)
    series = all_series(found, curves, queries)
    main = next(iter(curves.values()), None)
    rank = _typical(series)
    html = render(
        "report.html.j2",
        script="report.js",
        title=title,
        headline=_headline(series, rank),
        verdict=diagnosis["verdict"] if diagnosis else None,
        verdict_words=HEADLINES.get(diagnosis["verdict"], "") if diagnosis else "",
        tiles=_tiles(found.counts, main),
        series=series,
        groups=_groups(series),
        curve=curve_picture(series, *AXES[FIRST_AXES]) if series else None,
        data={"series": [s.to_dict() for s in series], "rank": rank, "axes": FIRST_AXES},
        rank=rank,
        ranks=sorted({r for s in series for r in s.rank}),
        truth=any(s.truth for s in series),
        level=f"{100 * LEVEL:g}%",
        estimated=estimated,
        left_out=max((len(c.by_segment) - MOST_SEGMENTS for c in curves.values()), default=0),
        gaps=_gaps(main),
        difference=segment_difference_words(main) if main else "",
        diagnosis=diagnosis,
        undiagnosed=undiagnosed,
        funnel=funnel_lines(found.counts) if found.counts else None,
        notes=[(n, NOTES[k]) for k, n in found.counts.funnel.notes.items() if n]
        if found.counts
        else [],
        support=support_picture(main, found.counts) if main else None,
        methods=[
            {
                "table": method_table(m),
                "distances": distance_rows(m),
                "meanings": meanings(m),
                # The reason is an error met while reading the log, which may quote it.
                "left_out": m["left_out"] if queries else dict.fromkeys(m["left_out"], ""),
            }
            for m in found.methods
        ],
        rankers=[ranker_tables(r) for r in found.rankers],
        snippets=snippets(main, _file(found), queries=queries) if main else [],
        worth=_worth(main, found.counts) if main else [],
        provenance=_provenance(found, curves, queries),
    )
    return Page(html, found, diagnosis["verdict"] if diagnosis else None)


def _curves(found: Results) -> tuple[Mapping[str, Propensities], str]:
    """Those given, or one estimated from the counts; then what was done, in words."""
    if found.curves or not found.counts:
        return found.curves, ""
    from rankdrift.estimation import estimate

    by = list(found.counts.segment_columns) or None
    try:
        curve = estimate(found.counts, by=by)
    except RankdriftError as error:
        return {}, f"These counts bear no estimate: {error}"
    return {"estimate": curve}, "No propensities were given: these are estimated from the counts."


def _diagnosis(found: Results) -> tuple[Mapping[str, Any] | None, str]:
    """That given, or that of the counts; and why there is none."""
    if found.diagnosis or not found.counts:
        return found.diagnosis, ""
    from rankdrift.diagnosis.diagnosing import diagnose

    try:
        return diagnose(found.counts).to_dict(), ""
    except RankdriftError as error:
        return None, str(error)


def _typical(series: list[Series]) -> int:
    """Rank 10 or, of the ranks that the first curve has, the nearest."""
    return min(series[0].rank, key=lambda rank: abs(rank - TYPICAL)) if series else TYPICAL


def _headline(series: list[Series], rank: int) -> str:
    here = series[0].at(rank) if series else None
    if not here:
        return "What was found"
    worth, unit = figure(1 / here["p"]), series[0].reference
    return f"A click at rank {rank} is worth {worth} clicks at rank {unit}."


def _groups(series: list[Series]) -> list[tuple[str, list[Series]]]:
    groups: dict[str, list[Series]] = {}
    for s in series:
        groups.setdefault(s.group, []).append(s)
    return list(groups.items())


def _tiles(counts: Counts | None, main: Propensities | None) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    if counts:
        told += [
            ("results shown", f"{counts.funnel.rows:,}"),
            ("clicks", f"{counts.funnel.clicks:,}"),
            ("usable pairs", f"{counts.n_pairs:,}"),
        ]
        told += [("days", f"{len(counts.days):,}")] if counts.days else []
    if main:
        told.append(("ranks", f"{len(main.ranks):,}"))
        if not counts and main.clicks.any():
            told.append(("clicks behind them", f"{int(main.clicks.sum()):,}"))
    return told


def _gaps(main: Propensities | None) -> list[str]:
    from rankdrift.report.terminal.curve import gap_words

    return gap_words(main) if main else []


def _worth(main: Propensities, counts: Counts | None) -> list[tuple[str, float, float]]:
    """(largest weight allowed, effective clicks, their share), until clipping changes nothing."""
    clicks = clicks_to_weigh(main, counts)
    if not clicks.any():
        return []
    largest = float(main.weights(main.ranks).max())
    return [
        (
            f"{clip:g}" if clip else f"no limit ({figure(largest)})",
            size,
            size / float(clicks.sum()),
        )
        for clip, size in main.effective_sample_size(clicks).items()
        if clip is None or clip < largest
    ]


def _file(found: Results) -> str:
    """A name to load the propensities by, in code to copy."""
    files = [n for n, kind in found.given if kind == CURVE and Path(n).suffix in ENDINGS]
    return files[0] if files else "propensities.json"


def _provenance(
    found: Results, curves: Mapping[str, Propensities], queries: bool
) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, rows)."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts: list[tuple[str, list[tuple[str, str]]]] = [
        ("This page", [("rankdrift", __version__), ("made", made),
                       *((name or kind, kind) for name, kind in found.given)])
    ]  # fmt: skip
    hidden = set() if queries else {"where", "restrict"}

    def rows(told: Mapping[str, Any]) -> list[tuple[str, str]]:
        kept = {k: v for k, v in told.items() if k not in hidden and v not in (None, [], (), {})}
        return [(printable(str(name)), listed(value)) for name, value in kept.items()]

    if found.counts:
        c = found.counts
        about = {
            "rankdrift": c.version,
            "days": _days(c.days),
            "inputs": len(c.sources),
            "buckets": c.buckets,
            "max_rank": c.max_rank,
            "max_shown": c.max_shown,
        }
        parts.append(("Counts", rows({**about, **c.options})))
    for name, curve in curves.items():
        told = {k: v for k, v in curve.provenance.items() if not isinstance(v, Mapping)}
        about = {
            "method": curve.method,
            "reference": curve.reference,
            "errors": curve.errors,
            "log_likelihood": curve.log_likelihood,
            "parameters": curve.parameters,
        }
        if not found.counts:
            told |= curve.provenance.get("counts", {}).get("options", {})
        parts.append((f"Propensities: {printable(name)}", rows({**about, **told})))
    for r in found.rankers:
        data = {k: v for k, v in r.get("data", {}).items() if not isinstance(v, Mapping)}
        about = {
            "rankdrift": r.get("rankdrift"),
            "bootstrap": r.get("bootstrap"),
            "seed": r.get("seed"),
            "propensities": r.get("propensities"),
        }
        parts.append(("Rankers", rows({**about, **data})))
    return parts


def _days(days: tuple[str, ...]) -> str:
    return f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days)
