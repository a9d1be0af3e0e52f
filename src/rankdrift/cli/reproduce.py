"""rankdrift reproduce figures, table and real-features"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import SEED
from rankdrift.cli.output import check_file
from rankdrift.cli.screen import Screen, talking
from rankdrift.core.errors import BadOption

if TYPE_CHECKING:
    from rankdrift.reproduce.table import Size


@click.group()
def reproduce() -> None:
    """Make the paper's figures and table anew, from simulated data with a known truth.

    \b
        rankdrift reproduce figures -o figures/
        rankdrift reproduce table --small

    Each takes --json and --quiet.
    """


@reproduce.command(short_help="The figures: simulation, web and mobile.")
@click.option(
    "-o", "--output", default="figures", show_default=True, metavar="FOLDER", help="Where they go."
)
@click.option(
    "--rows",
    default=10_000_000,
    show_default=True,
    metavar="N",
    help="Results shown in the marketplace of the web and mobile figures.",
)
@click.option(
    "--seed", type=SEED, default=1, show_default=True, metavar="N", help="Of all simulations."
)
@talking
def figures(screen: Screen, output: str, rows: int, seed: int) -> int:
    """Draw the figures: simulation, web and mobile, as SVG and PNG, with their numbers as CSV.

    Each comes twice: as in the paper, and with every click, intervals and an automatic curve.

    \b
        rankdrift reproduce figures                 minutes, and 3 GB, for EM
        rankdrift reproduce figures --rows 1000000  under a minute, and noisier
    """
    check_file(str(Path(output) / "simulation.svg"))
    from rankdrift.reproduce import figures

    made = figures(output, rows=rows, seed=seed, say=screen.say)
    for path in made.paths:
        screen.text(str(path))
    screen.answer({"files": [str(path) for path in made.paths], "errors": made.errors})
    screen.next("rankdrift", "reproduce", "table", "--small")
    return Exit.GOOD


@reproduce.command(short_help="Table 1: rankers with and without propensities.")
@click.option("-o", "--output", metavar="FILE", help="Where the numbers go: .json, .txt or .tex.")
@click.option("--small", is_flag=True, help="A quarter of the paper's size, in a few minutes.")
@click.option(
    "--searches",
    type=click.IntRange(min=500),
    metavar="N",
    help="To train on, all else in proportion.  [default: 40000; small: 10000]",
)
@click.option("--seeds", metavar="N,…", help="A market for each.  [default: 1,2,3; small: 1]")
@click.option(
    "--market",
    "named",
    metavar="NAME,…|all",
    default="mixed",
    show_default=True,
    help="How queries differ: alike, candidates, levels, hidden, mixed.",
)
@click.option("--models", metavar="NAME,…", help="Only these, biased and ours among them.")
@click.option("--threads", type=int, metavar="N", help="For the trees.  [default: all cores]")
@talking
def table(
    screen: Screen,
    output: str | None,
    small: bool,
    searches: int | None,
    seeds: str | None,
    named: str,
    models: str | None,
    threads: int | None,
) -> int:
    """Table 1: rankers trained with and without propensities, judged at fixed ranks.

    On a made-up marketplace, beside the paper's numbers, and by the true relevance, which the
    paper could not know. Exits with 1 if ours is not better than biased by the truth.

    \b
        rankdrift reproduce table --small -o table.txt
        rankdrift reproduce table --small --searches 1000 --models biased,ours
        rankdrift reproduce table --small --market all
    """
    from rankdrift.reproduce import table as tables
    from rankdrift.reproduce.models import MODELS

    if output:
        tables.check_ending(output)
        check_file(output)
    chosen = [name.strip() for name in models.split(",")] if models else MODELS
    name = "small" if small else "paper"
    default = (1,) if small else (1, 2, 3)
    markets = list(tables.MARKETS) if named == "all" else [n.strip() for n in named.split(",")]
    made = [
        tables.reproduce_table(
            market=market,
            size=_scaled(tables.SIZES[name], searches) if searches else name,
            seeds=default if seeds is None else whole_numbers(seeds),
            models=chosen,
            threads=threads,
            say=screen.say,
        )
        for market in markets
    ]
    found = tables.Tables(tuple(made))
    if output:
        tables.save_table(found, output)
    screen.text(found.to_text())
    screen.answer(found.to_dict())
    screen.next("rankdrift", "inspect", "YOUR_LOG")
    return Exit.GOOD if all(map(tables.is_ours_better, made)) else Exit.UNFIT


def _scaled(size: "Size", searches: int) -> "Size":
    """As many searches to train on, and all that is counted beside them in proportion."""
    counted = ("train", "test", "train_rows", "test_rows", "queries")
    numbers = asdict(size)
    return replace(size, **{n: round(numbers[n] * searches / size.train) for n in counted})


@reproduce.command("real-features", short_help="The same rankers on features of your own.")
@click.argument("train_file", metavar="TRAIN")
@click.argument("test_file", metavar="TEST")
@click.option("--seeds", default="1,2,3", show_default=True, metavar="N,…", help="Of the clicks.")
@click.option("--searches", default=40, show_default=True, metavar="N", help="Of each query.")
@click.option("--threads", type=int, metavar="N", help="For the trees.  [default: all cores]")
@talking
def real_features(
    screen: Screen, train_file: str, test_file: str, seeds: str, searches: int, threads: int | None
) -> int:
    """The same rankers on real features: made-up clicks, judged by labels that people gave.

    TRAIN and TEST are files in SVMlight's form, each with the sizes of its queries in a .query
    beside it, as rank.train and rank.test of LightGBM's example.

    \b
        rankdrift reproduce real-features rank.train rank.test
    """
    from rankdrift.reproduce.real_features import as_text, reproduce_real

    found = reproduce_real(
        train_file,
        test_file,
        seeds=whole_numbers(seeds),
        searches=searches,
        threads=threads,
        say=screen.say,
    )
    screen.text(as_text(found))
    screen.answer({"ndcg": found})
    screen.next("rankdrift", "inspect", "YOUR_LOG")
    return Exit.GOOD


def whole_numbers(text: str) -> list[int]:
    """Seeds with commas between."""
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() for number in numbers):
        raise BadOption(f"--seeds are whole numbers from 0 with commas between, not {text!r}.")
    return list(map(int, numbers))
