"""rankdrift merge and rankdrift counts"""

from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.output import check_file, refuse_input
from rankdrift.cli.screen import Screen, talking
from rankdrift.core.words import many

if TYPE_CHECKING:
    from rankdrift.counts.counts import Counts


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="COUNTS...")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the sum goes.")
@talking
def merge(screen: Screen, files: tuple[str, ...], output: str) -> int:
    """Add counts up: a month is the sum of its days.

    COUNTS is a file, a folder (all its *.parquet) or a glob in quotes. Counts of the same input
    are refused, and so are counts that were made with different options. Exits with 1 if there is
    no usable pair in the sum.

    \b
        rankdrift merge counts/ -o counts.parquet
        rankdrift merge 'counts/2024-01-*.parquet' -o january.parquet
    """
    from rankdrift.counts.counts import merge
    from rankdrift.counts.file import find_counts

    paths = find_counts(files)
    refuse_input(output, paths, "parquet")
    check_file(output)
    counts = merge(paths)
    counts.save(output)
    show_counts(screen, counts, output, inputs=len(paths))
    screen.say("", f"{many(len(paths), 'file')} added up in {output}.")
    return end(screen, counts, output)


@click.command()
@click.argument("file", metavar="COUNTS")
@talking
def counts(screen: Screen, file: str) -> int:
    """Show what is in a file of counts: its size, and what became of the log's rows.

    Exits with 1 if there is no usable pair in it.

    \b
        rankdrift counts counts.parquet
    """
    from rankdrift.counts.counts import Counts

    found = Counts.load(file)
    show_counts(screen, found, file, options=dict(found.options), version=found.version)
    return end(screen, found, file)


def show_counts(screen: Screen, counts: "Counts", file: str, **more: Any) -> None:
    """Show the result of every verb that ends in counts.

    Parameters
    ----------
    screen
        What to show it with.
    counts, file
        The result, and where it is kept.
    more
        What else belongs into its JSON.
    """
    from rankdrift.report.terminal.counts import counts_report

    screen.show(*counts_report(counts))
    size, funnel = counts.summary(), counts.funnel.to_dict()
    screen.answer({"file": file, "counts": size, "funnel": funnel, **more})


def end(screen: Screen, counts: "Counts", file: str) -> int:
    """Say what comes next, and give back the exit code.

    Parameters
    ----------
    screen
        What to say it with.
    counts, file
        The result, and where it is kept: without usable pairs, the data are unfit.
    """
    if counts.n_pairs:
        next_estimate(screen, counts, file)
        return Exit.GOOD
    screen.say("", "There are no usable pairs in these counts. Looking at the log tells why.")
    screen.next("rankdrift", "inspect", "LOG")
    return Exit.UNFIT


def next_estimate(screen: Screen, counts: "Counts", file: str) -> None:
    """Counts are there to be estimated from, segment by segment where there are any."""
    by = ["--by", ",".join(counts.segment_columns)] if counts.segment_columns else []
    screen.next("rankdrift", "estimate", file, *by, "-o", "propensities.json")
