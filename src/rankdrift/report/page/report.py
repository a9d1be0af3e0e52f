"""The page of a report: all that was found, and nothing else is needed to read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import RESULT_ENDINGS, ResultKind
from rankdrift.core.files import write_text
from rankdrift.core.lineage import lineage
from rankdrift.core.notebook import brief
from rankdrift.core.verdicts import Verdict
from rankdrift.core.version import __version__
from rankdrift.core.words import figure, printable, share
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.checks.segments import segment_difference_words
from rankdrift.judging.judgments import Judgments
from rankdrift.propensities.intervals import POSTERIOR
from rankdrift.propensities.propensities import Propensities
from rankdrift.propensities.summary import WIDEST, gap_words
from rankdrift.report.diagnosis import HEADLINES, UNSEEN, Sorted, sort_checks
from rankdrift.report.judged_docs import judged_cells, judged_docs
from rankdrift.report.page.blocks import funnel_lines, listed, made_now, pair_words
from rankdrift.report.page.comparison_tables import (
    click_model_table,
    distance_rows,
    meanings,
    method_table,
    ranker_tables,
)
from rankdrift.report.page.curve_svg import curve_picture
from rankdrift.report.page.difference_svg import common_reach, difference_picture
from rankdrift.report.page.drift_svg import drift_picture
from rankdrift.report.page.frame import render
from rankdrift.report.page.headline import TYPICAL, headline, typical_rank, worth
from rankdrift.report.page.rates_svg import rate_pictures
from rankdrift.report.page.series import LEVEL, MOST_SEGMENTS, Series, all_series
from rankdrift.report.page.small_pictures import method_pictures, period_picture, weight_picture
from rankdrift.report.page.snippets import snippets
from rankdrift.report.page.support import clicks_to_weigh, support_picture
from rankdrift.report.results import Findings, Plain, Results

JUDGED_QUERIES = 5  # shown, those with the most clicks
AXES = {"linear": (False, False), "log": (True, False), "loglog": (True, True)}
FIRST_AXES = "log"


@dataclass(frozen=True)
class Page:
    """A page as text; `results` are what it was made of, `verdict` is what its checks found."""

    html: str
    results: Results
    verdict: str | None

    def __repr__(self) -> str:
        return brief(self, f"{len(self.html):,} characters", f"checks: {self.verdict or 'none'}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all."""
        write_text(path, self.html)


def render_report(found: Findings, *, title: str | None = None, queries: bool = True) -> Page:
    """Lay findings out as one page, for people who have not seen them before.

    Parameters
    ----------
    found
        All there is to tell; nothing is worked out here.
    title
        What to call the page.
    queries
        Whether to show values of the log: what users typed and what rows were about.
    """
    given, main = found.results, next(iter(found.curves.values()), None)
    counts, diagnosis = given.counts, found.diagnosis
    series = all_series(given, found.curves, queries)
    rank = typical_rank(series[0].rank, series[0].reference) if series else TYPICAL
    html = render(
        "report.html.j2",
        script="report.js",
        title=title,
        headline=headline(series, rank),
        lead=worth(series[0], rank) if series else "",
        verdict=diagnosis["verdict"] if diagnosis else None,
        verdict_words=_sentence(diagnosis["verdict"]) if diagnosis else "",
        tiles=_tiles(counts, main),
        series=series,
        groups=_groups(series),
        curve=curve_picture(series, *AXES[FIRST_AXES]) if series else None,
        data={"series": [s.to_dict() for s in series], "rank": rank, "axes": FIRST_AXES}
        | {"widest": WIDEST},
        rank=rank,
        ranks=sorted({r for s in series for r in s.rank}),
        truth=any(s.truth for s in series),
        level=f"{100 * LEVEL:g}%",
        estimated=found.estimated,
        left_out=max((len(c.segments) - MOST_SEGMENTS for c in found.curves.values()), default=0),
        gaps=gap_words(main) if main else [],
        difference=segment_difference_words(main) if main else "",
        leaning=bool(main and main.shrunk),
        intervals="credible intervals" if main and main.errors == POSTERIOR else "intervals",
        unseen=diagnosis["unseen"] if diagnosis else [],
        unseen_title=UNSEEN,
        rates=rate_pictures(main, counts, rank, queries) if main and counts else [],
        over_time=period_picture(found.periods, main, found.steadiness) if main else None,
        drift=drift_picture(found.drift, queries) if found.drift else None,
        weights=weight_picture(series) if series else None,
        checks=_checks(diagnosis) if diagnosis else None,
        undiagnosed=found.undiagnosed,
        funnel=funnel_lines(counts.funnel) if counts else None,
        pair=pair_words(counts) if counts else "",
        notes=counts.funnel.note_words() if counts else [],
        support=support_picture(main, counts) if main else None,
        methods=[_methods(comparison, given, queries) for comparison in given.methods],
        rankers=[ranker_tables(comparison) for comparison in given.rankers],
        click_models=[_click_models(comparison, queries) for comparison in given.click_models],
        judged=_judged(given.judgments, queries) if given.judgments else None,
        snippets=snippets(main, _file(given), queries=queries) if main else [],
        worth=_worth(main, counts) if main else [],
        provenance=_provenance(given, found.curves, queries),
    )
    return Page(html, given, diagnosis["verdict"] if diagnosis else None)


def _sentence(verdict: Verdict) -> str:
    words = HEADLINES[verdict]
    return words[0].upper() + words[1:]


def _checks(diagnosis: Plain) -> Sorted:
    """The checks in the order in which they are told, each with its picture; all pictures have the
    same axis, so that they can be compared."""
    pictured = [check for check in diagnosis["checks"] if check["curve"]]
    told = [check["curve"] for check in pictured if check["verdict"] != Verdict.CANNOT_TELL]
    reach = common_reach(told)
    return sort_checks(
        {**check, "picture": difference_picture(check["curve"], reach) if check["curve"] else None}
        for check in diagnosis["checks"]
    )


def _methods(comparison: Plain, given: Results, queries: bool) -> dict[str, Any]:
    left_out = comparison["left_out"]
    pictures = method_pictures(comparison, given)
    return {
        "pictures": pictures,
        "truth": any(line["truth"] for picture in pictures for line in picture["lines"]),
        "table": method_table(comparison),
        "distances": distance_rows(comparison),
        "meanings": meanings(comparison),
        # The reason is an error met while reading the log, which may quote it.
        "left_out": left_out if queries else dict.fromkeys(left_out, ""),
    }


def _click_models(comparison: Plain, queries: bool) -> dict[str, Any]:
    table = click_model_table(comparison)
    # Reasons and remarks are met while reading the log, which they may quote.
    hidden = {"left_out": dict.fromkeys(table["left_out"], ""), "remarks": ()}
    return table if queries else table | hidden


def _judged(j: Judgments, queries: bool) -> dict[str, Any]:
    """What was judged, and the best and worst docs of some queries, unless they are private."""
    shown = [
        (query, [(j.docs[j.doc[row]], judged_cells(j, row)) for row in rows.tolist()])
        for query, rows in (judged_docs(j, JUDGED_QUERIES) if queries else ())
    ]
    return {
        "tiles": [
            ("pairs judged", f"{len(j):,}"),
            ("queries", f"{len(j.queries):,}"),
            ("settled by half or more", share(int((j.known >= 0.5).sum()), len(j))),
            ("pairs hardly looked at", f"{j.rest['pairs']:,.0f}"),
        ],
        "level": f"{100 * j.level:g}%",
        "reference": j.options.get("reference", 1),
        "model": j.options.get("model"),
        "queries": shown,
        "remarks": list(j.remarks),
    }


def _groups(series: list[Series]) -> list[tuple[str, list[Series]]]:
    """(name, its lines) of each group."""
    groups: dict[str, list[Series]] = {}
    for s in series:
        groups.setdefault(s.group, []).append(s)
    return list(groups.items())


def _tiles(counts: Counts | None, main: Propensities | None) -> list[tuple[str, str]]:
    """The page's large numbers as (what, how many)."""
    tiles: list[tuple[str, str]] = []
    if counts:
        tiles += [
            ("results shown", f"{counts.funnel.rows:,}"),
            ("clicks", f"{counts.funnel.clicks:,}"),
            ("usable pairs", f"{counts.n_pairs:,}"),
        ]
        what = f"windows of {counts.window} days" if counts.window else "days"
        tiles += [(what, f"{len(counts.days):,}")] if counts.days else []
    if main:
        tiles.append(("ranks", f"{len(main.ranks):,}"))
        if not counts and main.clicks.any():
            tiles.append(("clicks behind them", f"{int(main.clicks.sum()):,}"))
    return tiles


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


def _file(results: Results) -> str:
    """A name to load the propensities by, in code to copy."""
    names = [name for name, kind in results.given if kind is ResultKind.PROPENSITIES]
    return next((n for n in names if Path(n).suffix in RESULT_ENDINGS), "propensities.json")


def _provenance(
    results: Results, curves: Mapping[str, Propensities], queries: bool
) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, rows) of this page, and of each thing that it was made of."""
    given = [(name or kind, kind) for name, kind in results.given]
    made, run = lineage(), []
    if made:
        run = [("run", made.run), *((f"digest of {n}", d) for n, d in made.inputs.items())]
    sections: list[tuple[str, list[tuple[str, str]]]] = [
        ("This page", [("rankdrift", __version__), ("made", made_now()), *run, *given])
    ]
    hidden = set() if queries else {"where", "restrict"}

    def rows(values: Plain) -> list[tuple[str, str]]:
        kept = {k: v for k, v in values.items() if k not in hidden and v not in (None, [], (), {})}
        return [(printable(str(name)), listed(value)) for name, value in kept.items()]

    if results.counts:
        c = results.counts
        about = {
            "rankdrift": c.version,
            ("windows from" if c.window else "days"): _days(c.days),
            "inputs": len(c.sources),
            "buckets": c.buckets,
            "max_rank": c.max_rank,
            "max_shown": c.max_shown,
        }
        sections.append(("Counts", rows({**about, **c.options})))
    for name, curve in curves.items():
        more = {k: v for k, v in curve.provenance.items() if not isinstance(v, Mapping)}
        about = {
            "method": curve.method,
            "reference": curve.reference,
            "errors": curve.errors,
            "log_likelihood": curve.log_likelihood,
            "parameters": curve.parameters,
        }
        if not results.counts:
            more |= curve.provenance.get("counts", {}).get("options", {})
        sections.append((f"Propensities: {printable(name)}", rows({**about, **more})))
    if results.judgments:
        j = results.judgments
        about = {"rankdrift": j.version, "propensities": j.propensities, **j.options}
        sections.append(("Judgments", rows({**about, **j.source.get("read", {})})))
    for models in results.click_models:
        sections.append(("Click models", rows(models.get("options", {}))))
    for r in results.rankers:
        data = {k: v for k, v in r.get("data", {}).items() if not isinstance(v, Mapping)}
        about = {
            "rankdrift": r.get("rankdrift"),
            "bootstrap": r.get("bootstrap"),
            "seed": r.get("seed"),
            "propensities": r.get("propensities"),
        }
        sections.append(("Rankers", rows({**about, **data})))
    return sections


def _days(days: tuple[str, ...]) -> str:
    return f"{days[0]} to {days[-1]}" if len(days) > 1 else "".join(days)
