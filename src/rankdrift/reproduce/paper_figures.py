"""The paper's figures on simulated data: Appendix D, and the web beside mobile of Section 4.

Each comes twice: as in the paper, and with every click, intervals and an automatic curve.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rankdrift.core.errors import BadOption, MissingExtra, NotConverged
from rankdrift.core.files import folder_for
from rankdrift.core.types import Floats
from rankdrift.counts.counts import Counts
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.reproduce.drawing import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    DRAWN,
    GREEN,
    RED,
    SOLID,
    Figures,
    Line,
    error_of,
    line_of,
    panel,
    save,
    true_line,
)
from rankdrift.simulate.appendix_d import pairs
from rankdrift.simulate.market_visits import PLATFORMS
from rankdrift.simulate.marketplace import (
    MARKET_QUERY,
    SAME_QUERY_SAME_RELEVANCE,
    Market,
    market,
)

Errors = dict[str, dict[str, float]]
"""Of each curve, by figure: see `Figures`."""

ROWS, ENOUGH = 10_000_000, 1_000_000  # of the marketplace
QUERIES, DAYS = 1_500, 8
# How far EM's log p may still have to go: less than a rank's noise, in half the default's time.
EM_TOLERANCE = 0.02
TITLES = {"web": "Web, 50 results a page", "mobile": "Mobile, 40 results at a time"}
PAIRS, RANKS = 40_000, 500
SCALE = "scaled to the truth, as only ratios are identified"


def figures(
    directory: str | os.PathLike[str],
    *,
    rows: int = ROWS,
    seed: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Figures:
    """Draw the paper's figures on simulated data, as SVG and PNG, with their numbers as CSV.

    Parameters
    ----------
    directory
        Where the files go.
    rows
        Results shown in the marketplace of the web and mobile figures.
    seed
        Of all simulations.
    say
        Called with what is being done.

    Returns
    -------
    Figures
        The files, and how far each curve is off.
    """
    if rows < ENOUGH:
        raise BadOption(
            f"With {rows:,} rows the web and mobile curves would be noise. Use {ENOUGH:,} or more."
        )
    folder = folder_for(directory)
    first, errors = simulation(folder, seed, say)
    second, more = platforms(folder, rows, seed, say)
    return Figures((*first, *second), {**errors, **more})


def simulation(folder: Path, seed: int, say: Callable[[str], None]) -> tuple[list[Path], Errors]:
    """The figure of Appendix D: does the method find a curve that is known?"""
    say(f"Appendix D: {PAIRS:,} pairs ...")
    world = pairs(PAIRS, ranks=RANKS, seed=seed)
    truth = world.propensities
    paper = {line.name: line for line in _as_in_the_paper(world.counts, scaled_to=truth)}
    ours = {
        f"{curve}, every click": line_of(
            f"{curve}, every click",
            estimate(world.counts, curve=curve),
            colour,
            band=band,
            scaled_to=truth,
            dash=dash,
        )
        for curve, colour, band, dash in (
            ("auto", BLUE, True, SOLID),
            ("loglog", RED, False, DASHED),
        )
    }
    drawn = [true_line(truth, GREEN), *paper.values()]
    size = f"{world.counts.n_pairs:,} pairs"
    chart = panel(drawn, "Simulation, as in the paper", f"{size}, single clicks; {SCALE}", 1.35)
    paths = save(folder, "simulation", chart, {"simulation": drawn})
    drawn = [*ours.values(), true_line(truth, BLACK, (2, 3))]
    chart = panel(
        drawn, "Simulation, every click", f"{size}; band: 95% of each rank by itself; {SCALE}", 1.35
    )
    paths += save(folder, "simulation-every", chart, {"simulation": drawn})
    return paths, {
        "simulation": {name: error_of(line, truth) for name, line in {**paper, **ours}.items()}
    }


def platforms(
    folder: Path, rows: int, seed: int, say: Callable[[str], None]
) -> tuple[list[Path], Errors]:
    """The figure of Section 4: propensities on the web and on mobile, by three methods."""
    with tempfile.TemporaryDirectory(prefix="rankdrift-") as scratch:
        say(f"A marketplace with {rows:,} results shown ...")
        made = market(scratch, rows=rows, days=DAYS, queries=QUERIES, seed=seed)
        counts = harvest(
            read_log(
                [str(path) for path in made.paths],
                query=MARKET_QUERY,
                same="price",
                day="day",
                search="search",
                segment="platform",
                where=SAME_QUERY_SAME_RELEVANCE,
            )
        )
        by_em = _by_em(made.paths, say)
    found = {name: counts.restrict(segments=[name]).pool() for name in PLATFORMS}
    say("Curves ...")
    paper = {name: _as_in_the_paper(found[name]) for name in PLATFORMS}
    for name, curve in by_em.items():
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
        {n: f"pairs with a single click, of {s}{_size_of(by_em.get(n))}" for n, s in sizes.items()},
    )
    paths += _draw(
        folder,
        "platforms-every",
        ours,
        {n: f"{s}, every one; band: 95% of each rank by itself" for n, s in sizes.items()},
    )
    return paths, errors


def _as_in_the_paper(counts: Counts, scaled_to: Floats | None = None) -> list[Line]:
    direct = estimate(counts, curve="direct", clicks="single", errors="model")
    loglog = estimate(counts, curve="loglog", clicks="single")
    return [
        line_of("direct", direct, BLUE, scaled_to=scaled_to, width=1.2),
        line_of("loglog", loglog, RED, scaled_to=scaled_to, dash=DASHED),
    ]


def _with_every_click(counts: Counts, made: Market, name: str) -> list[Line]:
    lines = [line_of("auto", estimate(counts, curve="auto"), BLUE, band=True)]
    if name == "mobile":
        known = estimate(counts, curve="loglog + periodic(40)")
        lines.append(line_of("loglog + periodic(40)", known, RED, dash=DASHED))
    return [*lines, true_line(made.propensities[name], BLACK, (2, 3))]


def _by_em(paths: Sequence[Path], say: Callable[[str], None]) -> dict[str, Propensities]:
    """Regression EM on all rows, with features, that the others count; nothing without LightGBM.

    Without auctions, that is: their relevance rises before they end, the ranker follows it and no
    feature tells, which EM would put down to the rank.
    """
    from rankdrift.methods.em_features import regression_em

    curves: dict[str, Propensities] = {}
    for name in PLATFORMS:
        log = read_log(
            [str(path) for path in paths],
            query=MARKET_QUERY,
            search="search",
            day="day",
            where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = '{name}'",
            max_rank=DRAWN,
        )
        matrix = read_matrix(log)
        say(f"EM, {name}: {len(matrix):,} results down to rank {DRAWN} with their features ...")
        try:
            curves[name] = regression_em(matrix, bootstrap=0, tolerance=EM_TOLERANCE)
        except (MissingExtra, NotConverged) as error:
            say(f"No EM curve for {name}: {error}")
    return curves


def _size_of(em: Propensities | None) -> str:
    if em is None:
        return ""
    return f"; EM: {em.clicks.sum():,} clicks on {em.provenance['rows']:,} results"


def _draw(
    folder: Path, name: str, lines: dict[str, list[Line]], subtitles: dict[str, str]
) -> list[Path]:
    import altair as alt

    top = 1.1
    charts = [panel(lines[n], TITLES[n], subtitles[n], top) for n in PLATFORMS]
    chart = alt.hconcat(*charts).resolve_scale(color="independent", strokeDash="independent")
    return save(folder, name, chart, lines)
