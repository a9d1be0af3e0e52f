"""The figure of Section 4: propensities on the web and on mobile, by three methods."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rankdrift.core.errors import MissingExtra, NotConverged
from rankdrift.counts.counts import Counts
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log
from rankdrift.propensities.propensities import Propensities
from rankdrift.reproduce.drawing import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    DRAWN,
    GREEN,
    RED,
    Line,
    error_of,
    line_of,
    panel,
    save,
    true_line,
)
from rankdrift.simulate.market_visits import PLATFORMS
from rankdrift.simulate.marketplace import Market, market

QUERIES, DAYS = 1_500, 8
EM_SHARE, EM_DAYS = 0.08, 2  # of the rows: EM needs features, and time
QUERY = ("keywords", "category", "aspects")
SAME_QUERY_SAME_RELEVANCE = "sort = 'best_match' AND NOT auction"
TITLES = {"web": "Web, 50 results a page", "mobile": "Mobile, 40 results at a time"}


def platforms(
    folder: Path, rows: int, seed: int, say: Callable[[str], None]
) -> tuple[list[Path], dict[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory(prefix="rankdrift-") as scratch:
        say(f"A marketplace with {rows:,} results shown ...")
        made = market(scratch, rows=rows, days=DAYS, queries=QUERIES, seed=seed, features=False)
        counts = harvest(
            read_log(
                [str(path) for path in made.paths], query=QUERY, same="price", day="day",
                search="search", segment="platform", where=SAME_QUERY_SAME_RELEVANCE,
            )
        )  # fmt: skip
    found = {name: counts.restrict(segments=[name]).pool() for name in PLATFORMS}
    say("Curves ...")
    paper = {name: _as_in_the_paper(found[name]) for name in PLATFORMS}
    for name, curve in _by_em(int(EM_SHARE * rows), seed, say).items():
        paper[name].append(line_of("EM", curve, BLACK, dash=DOTTED))
    web = next(line for line in paper["web"] if line.name == "loglog")
    paper["mobile"].insert(0, replace(web, name="web, loglog", colour=GREEN, dash=(1, 0)))
    ours = {name: _with_every_click(found[name], made, name) for name in PLATFORMS}
    errors = {
        name: {
            line.name: error_of(line, made.propensities[name])
            for line in paper[name] + ours[name]
            if line.name != "truth"
        }
        for name in PLATFORMS
    }
    sizes = {name: f"{found[name].choices().weight.sum():,.0f} clicks" for name in PLATFORMS}
    paths = _draw(
        folder,
        "platforms",
        paper,
        {n: f"pairs with a single click, of {s}" for n, s in sizes.items()},
    )
    paths += _draw(
        folder, "platforms-every", ours,
        {n: f"{s}, every one; band: 95% of each rank by itself" for n, s in sizes.items()},
    )  # fmt: skip
    return paths, errors


def _as_in_the_paper(counts: Counts) -> list[Line]:
    direct = estimate(counts, curve="direct", clicks="single", errors="model")
    return [
        line_of("direct", direct, BLUE, width=1.2),
        line_of("loglog", estimate(counts, clicks="single"), RED, dash=DASHED),
    ]


def _with_every_click(counts: Counts, made: Market, name: str) -> list[Line]:
    lines = [line_of("auto", estimate(counts, curve="auto"), BLUE, band=True)]
    if name == "mobile":
        known = estimate(counts, curve="loglog + periodic(40)")
        lines.append(line_of("loglog + periodic(40)", known, RED, dash=DASHED))
    return [*lines, true_line(made.propensities[name], BLACK, (2, 3))]


def _by_em(rows: int, seed: int, say: Callable[[str], None]) -> dict[str, Propensities]:
    """Regression EM on the same marketplace, with features; nothing without LightGBM.

    Without auctions either: their relevance rises before they end, the ranker follows it and no
    feature tells, which EM would put down to the rank.
    """
    from rankdrift.methods.em_features import regression_em
    from rankdrift.ranking.matrix_reading import read_matrix

    curves: dict[str, Propensities] = {}
    with tempfile.TemporaryDirectory(prefix="rankdrift-") as scratch:
        say(f"EM, on {rows:,} results with their features ...")
        made = market(scratch, rows=rows, days=EM_DAYS, queries=QUERIES, seed=seed)
        for name in PLATFORMS:
            log = read_log(
                [str(path) for path in made.paths], query=QUERY, search="search", day="day",
                where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = '{name}'", max_rank=DRAWN,
            )  # fmt: skip
            try:
                curves[name] = regression_em(read_matrix(log), bootstrap=0, threads=1)
            except (MissingExtra, NotConverged) as error:
                say(f"No EM curve for {name}: {error}")
    return curves


def _draw(
    folder: Path, name: str, lines: dict[str, list[Line]], subtitles: dict[str, str]
) -> list[Path]:
    import altair as alt

    top = 1.1
    charts = [panel(lines[n], TITLES[n], subtitles[n], top) for n in PLATFORMS]
    chart = alt.hconcat(*charts).resolve_scale(color="independent", strokeDash="independent")
    return save(folder, name, chart, lines)
