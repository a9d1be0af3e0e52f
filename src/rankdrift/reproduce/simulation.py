"""The figure of Appendix D: does the method find a curve that is known?"""

from collections.abc import Callable
from pathlib import Path

from rankdrift.estimation import estimate
from rankdrift.reproduce.drawing import (
    BLACK,
    BLUE,
    DASHED,
    GREEN,
    RED,
    SOLID,
    error_of,
    line_of,
    panel,
    save,
    true_line,
)
from rankdrift.simulate.appendix_d import pairs

PAIRS, RANKS = 40_000, 500
SCALE = "scaled to the truth, as only ratios are identified"


def simulation(
    folder: Path, seed: int, say: Callable[[str], None]
) -> tuple[list[Path], dict[str, dict[str, float]]]:
    say(f"Appendix D: {PAIRS:,} pairs ...")
    world = pairs(PAIRS, ranks=RANKS, seed=seed)
    truth = world.propensities
    paper = {
        "direct": line_of(
            "direct", estimate(world.counts, curve="direct", clicks="single", errors="model"),
            BLUE, scaled_to=truth, width=1.2,
        ),
        "loglog": line_of(
            "loglog", estimate(world.counts, clicks="single"), RED, scaled_to=truth, dash=DASHED
        ),
    }  # fmt: skip
    ours = {
        f"{curve}, every click": line_of(
            f"{curve}, every click", estimate(world.counts, curve=curve), colour, band=band,
            scaled_to=truth, dash=dash,
        )
        for curve, colour, band, dash in (
            ("auto", BLUE, True, SOLID), ("loglog", RED, False, DASHED),
        )
    }  # fmt: skip
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
