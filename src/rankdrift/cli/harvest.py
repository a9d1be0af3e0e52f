"""rankdrift harvest"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import COUNTING, Sections, guesses, log_options, read, shorter, typed
from rankdrift.cli.output import check_file, check_folder, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.core.errors import BadOption
from rankdrift.core.words import many, verb

if TYPE_CHECKING:
    from rankdrift.counts.counts import Counts
    from rankdrift.log.engines.engine import Day
    from rankdrift.log.log import Log

Command = Callable[..., Any]


def size_options(command: Command) -> Command:
    """Add the options of every verb that counts: how much of a log the counts keep."""
    buckets = click.option(
        "--buckets", type=int, metavar="N", help="Groups of queries, for errors.  [default: 64]"
    )
    max_shown = click.option(
        "--max-shown",
        type=int,
        metavar="N",
        help="Pairs shown more often are kept as comparisons of two ranks.  [default: 8]",
    )
    return buckets(max_shown(command))


def given_sizes(buckets: int | None, max_shown: int | None) -> dict[str, int]:
    """Those of `size_options` that were typed, as `harvest` takes them."""
    sizes = {"buckets": buckets, "max_shown": max_shown}
    return {name: value for name, value in sizes.items() if value is not None}


@click.command(cls=Sections, first=("output", "by", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the counts go.")
@click.option(
    "--by", type=click.Choice(["day"]), help="One file a day in the folder -o; done days are kept."
)
@click.option(
    "--trust",
    is_flag=True,
    help="Count pairs without clicks too, for estimate --adjust trust: several times as long.",
)
@size_options
@click.option(
    "--singles",
    is_flag=True,
    help="Count pairs shown at one rank too, for estimate --method bayes.",
)
@click.option(
    "--prior",
    metavar="NAME",
    help="Count these by a column of numbers that tells of relevance, such as an old score.",
)
@click.option(
    "--prior-cuts", metavar="N,…", help="Of --prior: the numbers at which its groups begin."
)
@log_options()
@talking
def harvest(
    screen: Screen,
    logs: tuple[str, ...],
    output: str,
    by: str | None,
    trust: bool,
    buckets: int | None,
    max_shown: int | None,
    singles: bool,
    prior: str | None,
    prior_cuts: str | None,
    **options: Any,
) -> int:
    """Count a log: big log in, small file of counts out.

    LOG is a file, a folder or a glob in quotes: Parquet, CSV or JSON lines, compressed or not, or
    a DuckDB file. Several are read as one.

    Counted are pairs, one query and one doc on one day, shown at two ranks or more and clicked;
    the rest is told by reason. Exits with 1 without any.

    \b
        rankdrift harvest 'logs/*.parquet' -o counts.parquet
        rankdrift harvest 'logs/*.parquet' --by day -o counts/  # then new days
    """
    log = read(logs, options)
    refuse_input(output, logs, options["format"])
    (check_folder if by else check_file)(output)
    screen.say(*guesses(log), f"A day: {log.days}.")  # before time is spent on it
    sizes: dict[str, Any] = given_sizes(buckets, max_shown)
    if trust and by:
        raise BadOption(
            "--trust needs several days at once, and --by day counts each for itself. Leave one of "
            "them out."
        )
    sizes |= {"trust": True} if trust else {}
    sizes |= {"singles": singles, "prior": prior, "prior_cuts": _numbers(prior_cuts)}
    code = (_by_day if by else _whole)(screen, log, output, sizes)
    if code:
        screen.next("rankdrift", "inspect", *shorter(logs), *typed(options))
    return code


def _numbers(text: str | None) -> list[float]:
    """Of a list with commas."""
    try:
        return [float(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise BadOption(
            f"--prior-cuts is {text!r}. Give numbers with commas between them, such as 0.1,0.2,0.5."
        ) from None


def _whole(screen: Screen, log: "Log", output: str, sizes: dict[str, Any]) -> int:
    from rankdrift.harvesting.counting import harvest

    with bar(screen, log) as progress:
        counts = harvest(log, progress=progress, **sizes)
        counts.save(output)
    from rankdrift.cli.counts import next_estimate, show_counts

    show_counts(screen, counts, output, log={"roles": log.describe(), "guessed": log.guessed})
    screen.say("", f"The counts are in {output} ({Path(output).stat().st_size:,} bytes).")
    if not counts.n_pairs:
        return _no_pairs(screen, log, counts)
    next_estimate(screen, counts, output)
    return Exit.GOOD


def _by_day(screen: Screen, log: "Log", output: str, sizes: dict[str, Any]) -> int:
    from rankdrift.counts.counts import Counts, merge
    from rankdrift.harvesting.by_day import harvest_by_day
    from rankdrift.report.terminal.counts import funnel_table
    from rankdrift.report.terminal.tables import heading, line

    days: list[dict[str, Any]] = []
    empty: list[Counts] = []
    total = None
    with bar(screen, log, by_day=True) as progress:

        def each(day: "Day", path: Path, skipped: bool) -> None:
            nonlocal total
            counts = Counts.load(path)
            total = counts.funnel if total is None else total + counts.funnel
            if not counts.n_pairs:
                empty.append(counts)
            word = "unchanged" if skipped else "written"
            days.append(
                {
                    "day": day.day or None,
                    "file": str(path),
                    "state": word,
                    "rows": day.rows,
                    "pairs": counts.n_pairs,
                    "clicks": counts.n_clicks,
                }
            )
            progress.day_done(day.rows)
            with progress.aside():
                screen.show(
                    line(
                        f"{day.day or 'undated':<10}  {word:<9}  {day.rows:>13,} "
                        f"{verb(day.rows, 'row ', 'rows')}  {counts.n_pairs:>9,} "
                        f"{verb(counts.n_pairs, 'pair', 'pairs')}"
                    )
                )

        harvest_by_day(log, output, progress=progress, each=each, **sizes)
    assert total is not None  # harvest_by_day refuses a log without days
    screen.show(heading("All days"), funnel_table(total))
    screen.answer(
        {
            "folder": output,
            "days": days,
            "funnel": total.to_dict(),
            "roles": log.describe(),
            "guessed": dict(log.guessed),
        }
    )
    written = sum(day["state"] == "written" for day in days)
    what = many(written, "day" if log.rules.window == 1 else "window")
    screen.say("", f"{what} written to {output}, {len(days) - written} unchanged.")
    if len(empty) == len(days):
        return _no_pairs(screen, log, merge(empty))
    screen.next("rankdrift", "merge", output, "-o", "counts.parquet")
    return Exit.GOOD


def _no_pairs(screen: Screen, log: "Log", counts: "Counts") -> int:
    """Say why there are none, and how to get some."""
    from rankdrift.diagnosis.advice import how_to_get_pairs, why_no_pairs

    screen.say(f"There are no usable pairs. {why_no_pairs(counts)}")
    screen.say(*(f"> {advice}" for advice in how_to_get_pairs(log, counts)))
    return Exit.UNFIT
