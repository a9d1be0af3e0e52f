"""rankdrift reproduce figures and rankdrift reproduce table"""

from pathlib import Path

import click

from rankdrift.cli.output import check_file
from rankdrift.cli.screen import Screen, talking
from rankdrift.errors import BadOption


@click.group()
def reproduce() -> None:
    """Make the paper's figures and table anew, from simulated data with a known truth.

    \b
        rankdrift reproduce figures -o figures/
        rankdrift reproduce table --small

    Each takes --json and --quiet.
    """


@reproduce.command()
@click.option("-o", "--output", default="figures", show_default=True, metavar="FOLDER")
@click.option(
    "--rows",
    default=10_000_000,
    show_default=True,
    metavar="N",
    help="Results shown in the marketplace of the web and mobile figures.",
)
@click.option("--seed", default=1, show_default=True, metavar="N", help="Of all simulations.")
@talking
def figures(screen: Screen, output: str, rows: int, seed: int) -> int:
    """Draw the figures: simulation, web and mobile, as SVG and PNG, with their numbers as CSV.

    Each comes twice: as in the paper, and with every click, intervals and an automatic curve.
    """
    check_file(str(Path(output) / "simulation.svg"))
    from rankdrift.reproduce import figures

    made = figures(output, rows=rows, seed=seed, say=screen.say)
    for path in made.paths:
        screen.text(str(path))
    screen.answer({"files": [str(path) for path in made.paths], "errors": made.errors})
    return 0


@reproduce.command()
@click.option("-o", "--output", metavar="FILE", help="Where the numbers go: .json, .txt or .tex.")
@click.option("--small", is_flag=True, help="A quarter of the paper's size, in a few minutes.")
@click.option("--seeds", metavar="N,…", help="A market for each.  [default: 1,2,3; small: 1]")
@click.option("--models", metavar="NAME,…", help="Only these, biased and ours among them.")
@click.option("--threads", type=int, metavar="N", help="For the trees.  [default: all cores]")
@talking
def table(
    screen: Screen,
    output: str | None,
    small: bool,
    seeds: str | None,
    models: str | None,
    threads: int | None,
) -> int:
    """Table 1: rankers trained with and without propensities, judged at fixed ranks.

    On a made-up marketplace, beside the paper's numbers, and by the true relevance, which the
    paper could not know. Exits with 1 if ours is not better than biased by the truth.
    """
    from rankdrift.reproduce import table as tables

    if output:
        tables.check_ending(output)
        check_file(output)
    chosen = [name.strip() for name in models.split(",")] if models else tables.MODELS
    found = tables.reproduce_table(
        size="small" if small else "paper", seeds=whole_numbers(seeds) if seeds else None,
        models=chosen, threads=threads, say=screen.say,
    )  # fmt: skip
    if output:
        tables.save_table(found, output)
    screen.text(found.to_text())
    screen.answer(found.to_dict())
    return 0 if tables.is_ours_better(found) else 1


def whole_numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise BadOption(f"--seeds are whole numbers with commas between, not {text!r}.") from None
