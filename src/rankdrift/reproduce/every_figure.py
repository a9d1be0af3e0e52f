"""All figures, into one folder."""

import os
from collections.abc import Callable
from pathlib import Path

from rankdrift.core.errors import BadOption
from rankdrift.reproduce.drawing import Figures

ROWS = 10_000_000
ENOUGH = 1_000_000


def figures(
    directory: str | os.PathLike[str],
    *,
    rows: int = ROWS,
    seed: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Figures:
    """Draw the paper's figures on simulated data, as SVG and PNG, with their numbers as CSV.

    rows: results shown in the marketplace of the web and mobile figures.
    """
    if rows < ENOUGH:
        raise BadOption(
            f"With {rows:,} rows the web and mobile curves would be noise. Use {ENOUGH:,} or more."
        )
    from rankdrift.reproduce.platforms import platforms
    from rankdrift.reproduce.simulation import simulation

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    first, errors = simulation(folder, seed, say)
    second, more = platforms(folder, rows, seed, say)
    return Figures((*first, *second), {**errors, **more})
