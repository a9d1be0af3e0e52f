"""rankdrift simulate market, pairs, world and like"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.estimate import CLICKS, ERRORS
from rankdrift.cli.exits import Exit
from rankdrift.cli.options import SEED, Sections
from rankdrift.cli.output import check_file
from rankdrift.cli.screen import WHOLE, Screen, talking
from rankdrift.core.errors import BadOption
from rankdrift.core.words import many, verb
from rankdrift.log.sources import TRUTH

if TYPE_CHECKING:
    from rankdrift.core.types import Floats

SHARE: dict[str, Any] = {"default": 0.0, "show_default": True, "metavar": "SHARE"}
SPREAD: dict[str, Any] = {"default": 0.0, "show_default": True, "metavar": "N"}


@click.group()
def simulate() -> None:
    """Make up data whose true propensities are known.

    \b
        rankdrift simulate market -o market/          a log like a real one
        rankdrift simulate pairs -o counts.parquet    the paper's simulation
        rankdrift simulate world price-cuts -o logs/  a log with something wrong
        rankdrift simulate like counts.parquet        is my curve recovered?

    Each takes --json and --quiet.
    """


seeded = click.option(
    "--seed",
    type=SEED,
    default=1,
    show_default=True,
    metavar="N",
    help="Another makes other data; the same, the same bytes.",
)


@simulate.command(
    cls=Sections, first=("output", "rows", "days", "queries", "click_rate", "randomised", "seed")
)
@click.option(
    "-o",
    "--output",
    default="market",
    show_default=True,
    metavar="FOLDER",
    help="Where the files go.",
)
@click.option("--rows", default=1_000_000, show_default=True, metavar="N", help="Results shown.")
@click.option("--days", default=4, show_default=True, metavar="N", help="A file each.")
@click.option("--queries", default=500, show_default=True, metavar="N", help="To be searched for.")
@click.option("--users", default=20_000, show_default=True, metavar="N", help="Who search.")
@click.option("--start", default="2024-01-01", show_default=True, metavar="DAY", help="The first.")
@click.option(
    "--click-rate",
    default=0.065,
    show_default=True,
    metavar="RATE",
    help="Mean chance of a click on a query's best item when it is looked at.",
)
@click.option(
    "--auctions", default=0.12, show_default=True, metavar="SHARE", help="Items by auction."
)
@click.option(
    "--price-changes",
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Items that cut their price on a day.",
)
@click.option("--randomised", help="Searches with the top in random order.", **SHARE)
@click.option("--bots", help="Sessions that are no person's.", **SHARE)
@click.option("--duplicates", help="Rows logged twice.", **SHARE)
@click.option("--candidate-spread", help="Of how many items queries find.", **SPREAD)
@click.option("--level-spread", help="Of the features' level, from query to query.", **SPREAD)
@click.option("--hidden-knowledge", help="Of the old ranker: what no feature tells.", **SPREAD)
@click.option("--features/--no-features", default=True, help="Write 25 ranking features.")
@click.option("--labels", is_flag=True, help="Write the true relevance of each row.")
@seeded
@talking
def market(screen: Screen, output: str, **options: Any) -> int:
    """Make up the log of a whole marketplace.

    One Parquet file a day, and truth.json with the true propensities. Queries have keywords, a
    category and aspects; items have prices that change, auctions that end and seasons; users
    search on the web and on mobile, with several sorts. Items drift between ranks as popularity
    changes and others are sold.

    \b
        rankdrift simulate market -o market/ --rows 100000 --queries 60
    """
    check_file(str(Path(output) / TRUTH))
    from rankdrift.simulate import market

    made = market(output, **options)
    days = [str(path) for path in made.paths]
    screen.text(f"{many(made.rows, 'result')} shown, {made.clicks:,} of them clicked, in {output}")
    screen.answer(
        {
            "folder": output,
            "files": days,
            "truth": str(made.truth),
            "rows": made.rows,
            "clicks": made.clicks,
            "options": options,
        }
    )
    screen.say("", f"The truth is in {made.truth}.")
    screen.next(
        "rankdrift",
        "harvest",
        str(Path(output) / "*.parquet"),
        "--query",
        "keywords,category,aspects",
        "--same",
        "price",
        "--segment",
        "platform",
        "--day",
        "day",
        "--time",
        "time",
        "--where",
        "sort = 'best_match' AND NOT auction",
        "-o",
        "counts.parquet",
    )
    return Exit.GOOD


@simulate.command(
    cls=Sections, first=("output", "log", "n", "ranks", "propensities", "queries", "seed")
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="Counts, or with --log a Parquet log."
)
@click.option("--log", is_flag=True, help="Write every appearance, clicked or not, not counts.")
@click.option("--pairs", "n", default=40_000, show_default=True, metavar="N", help="Usable ones.")
@click.option("--ranks", default=500, show_default=True, metavar="N", help="Results in all.")
@click.option(
    "--propensities",
    metavar="FILE",
    help="True curve, as estimate writes it.  [default: min(1 / log rank, 1), as in the paper]",
)
@click.option(
    "--relevance",
    default=0.1,
    show_default=True,
    metavar="RATE",
    help="Mean chance of a click at the top when looked at; half of it at the bottom.",
)
@click.option(
    "--ctr",
    metavar="FILE",
    help="Click-through rates to follow: a CSV file with the columns rank and ctr.",
)
@click.option("--appearances", default=2, show_default=True, metavar="N", help="Of each pair.")
@click.option(
    "--spread",
    default=0.2,
    show_default=True,
    metavar="SHARE",
    help="Deviation of a pair's ranks, as a share of their mean.",
)
@click.option("--queries", default=5_000, show_default=True, metavar="N", help="Of the pairs.")
@click.option(
    "--query-effect",
    default=0.0,
    show_default=True,
    metavar="N",
    help="Deviation of log relevance between queries.",
)
@seeded
@talking
def pairs(
    screen: Screen,
    output: str,
    log: bool,
    n: int,
    ranks: int,
    propensities: str | None,
    ctr: str | None,
    **options: Any,
) -> int:
    """Make up pairs as in the paper's Appendix D.

    A pair's mean rank is uniform, its two ranks are normal around it, and clicks follow the
    position-based model. Only pairs at two ranks with a click count.

    \b
        rankdrift simulate pairs -o counts.parquet
        rankdrift simulate pairs -o log.parquet --log --pairs 10000 --ranks 50
    """
    check_file(output)
    if log and Path(output).suffix != ".parquet":
        raise BadOption(
            f"A log is known by its ending, and {output!r} has another than .parquet. "
            f"Call it {Path(output).name}.parquet."
        )
    from rankdrift import simulate as made_up

    truth = _curve(propensities, ranks) if propensities else None
    rates = _click_rates(ctr, ranks) if ctr else None
    chosen = {"ranks": ranks, "propensities": truth, "ctr": rates, **options}
    if log:
        p = made_up.pairs_log(output, n, **chosen)
        screen.text(f"A log of {n:,} usable pairs and of those beside them is in {output}")
        follow = ["rankdrift", "harvest", output, "-o", "counts.parquet"]
    else:
        world = made_up.pairs(n, **chosen)
        p = world.propensities
        world.counts.save(output)
        screen.text(
            f"{many(n, 'pair')} with {many(world.counts.n_clicks, 'click')} "
            f"{verb(n, 'is', 'are')} in {output}"
        )
        follow = ["rankdrift", "estimate", output]
    screen.answer({"file": output, "pairs": n, "truth": (p / p[0]).tolist(), **options})
    screen.next(*follow)
    return Exit.GOOD


class WorldsCommand(Sections):
    """Its help lists the worlds that there are when it is asked for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of all worlds, and with --help-all what goes on in them."""
        from rankdrift.simulate.worlds import WORLDS

        for title, valid in (("Assumptions hold", True), ("Assumptions are broken", False)):
            kinds = [kind for kind in WORLDS if kind.valid == valid]
            with formatter.section(title):
                if WHOLE in ctx.meta:
                    formatter.write_dl([(kind.name, kind.sentence) for kind in kinds])
                else:
                    formatter.write_text(", ".join(kind.name for kind in kinds))


@simulate.command(
    cls=WorldsCommand,
    first=("output", "pairs", "strength", "seed"),
    short_help="Make up a log in which assumptions hold, or break.",
)
@click.argument("name", metavar="WORLD")
@click.option(
    "-o",
    "--output",
    default="world",
    show_default=True,
    metavar="FOLDER",
    help="Where the files go.",
)
@click.option("--pairs", default=35_000, show_default=True, metavar="N", help="Usable ones.")
@click.option(
    "--strength",
    default=1.0,
    show_default=True,
    metavar="N",
    help="Of what goes wrong: 0 is nothing, 2 is twice as much.",
)
@click.option("--ranks", default=40, show_default=True, metavar="N", help="Results of a search.")
@click.option("--days", type=int, metavar="N", help="A file each.  [default: as the world has]")
@click.option(
    "--queries", type=int, metavar="N", help="To be searched for.  [default: as pairs need]"
)
@click.option(
    "--columns",
    default="score,ranker,user,outcome",
    show_default=True,
    metavar="NAME,…",
    help="Logged besides the usual ones; also platform.",
)
@click.option("--experiment", metavar="FILE", help="That runs meanwhile (rankdrift experiment).")
@seeded
@talking
def world(
    screen: Screen, name: str, output: str, columns: str, experiment: str | None, **options: Any
) -> int:
    """Make up a log in which the method's assumptions hold, or one of them is broken.

    One Parquet file a day, and truth.json with the true propensities.

    \b
        rankdrift simulate world valid -o logs/
        rankdrift simulate world price-cuts -o logs/ --pairs 5000 --strength 2
    """
    check_file(str(Path(output) / TRUTH))
    from rankdrift.experiments.experiment import Experiment
    from rankdrift.simulate import world

    running = Experiment.load(experiment) if experiment else None
    chosen = [word for word in columns.split(",") if word]
    made = world(name, columns=chosen, experiment=running, **options)
    paths = made.write(output)
    screen.text(f"{many(made.rows, 'result')} shown, {made.clicks:,} of them clicked, in {output}")
    screen.answer(
        {
            "world": made.name,
            "sentence": made.sentence,
            "valid": made.valid,
            "harmful": made.harmful,
            "folder": output,
            "files": [str(path) for path in paths],
            "truth": str(Path(output) / TRUTH),
            "rows": made.rows,
            "clicks": made.clicks,
            "options": dict(made.options),
        }
    )
    screen.say("", made.sentence, f"The truth is in {Path(output) / TRUTH}.")
    files = str(Path(output) / "*.parquet")
    screen.next("rankdrift", "harvest", files, "--time", "time", "-o", "counts.parquet")
    return Exit.GOOD


@simulate.command()
@click.argument("file", metavar="COUNTS")
@click.option("--replays", default=100, show_default=True, metavar="N", help="More tell better.")
@click.option(
    "--curve", default="loglog", show_default=True, help="As of estimate: direct, loglog, auto, …"
)
@click.option(
    "--truth", metavar="FILE", help="The true curve.  [default: what the counts themselves give]"
)
@click.option(
    "--clicks",
    type=CLICKS,
    default="every",
    show_default=True,
    help="As of estimate.",
)
@click.option(
    "--errors",
    type=ERRORS,
    default="buckets",
    show_default=True,
    help="As of estimate.",
)
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@seeded
@talking
def like(screen: Screen, file: str, truth: str | None, **options: Any) -> int:
    """Could my data recover this curve?

    The clicks of COUNTS are drawn anew, at the same ranks and the same click rates, from a known
    curve, and estimated, many times. What comes back shows bias, error and honesty of the
    intervals by block of ranks. Pairs are drawn independently of each other. Exits with 1 if the
    curve does not come back.

    \b
        rankdrift simulate like counts.parquet --replays 200
    """
    from rankdrift.counts.counts import Counts
    from rankdrift.propensities.propensities import Propensities
    from rankdrift.report.terminal.replay import replay_report
    from rankdrift.simulate import like

    counts = Counts.load(file)
    found = like(
        counts,
        truth=Propensities.load(truth) if truth else None,
        progress=_counting(screen),
        **options,
    )
    screen.show(replay_report(found))
    screen.answer({"counts": file, **found.to_dict()})
    screen.next("rankdrift", "estimate", file, "-o", "propensities.json")
    return Exit.GOOD if found.verdict in ("close", "useful") else Exit.UNFIT


def _counting(screen: Screen) -> Callable[[int, int], None]:
    """Says now and then how many replays are done, where somebody watches."""

    def count(number: int, replays: int) -> None:
        if screen.lively and number % max(replays // 10, 1) == 0:
            screen.say(f"{number:,} of {replays:,} replays done")

    return count


def _curve(path: str, ranks: int) -> "Floats":
    """The propensities of a file at ranks 1, 2, 3 …, none above 1."""
    import numpy as np

    from rankdrift.propensities.propensities import Propensities

    found = Propensities.load(path).at(np.arange(1, ranks + 1))
    return found / max(float(found.max()), 1.0)


def _click_rates(path: str, ranks: int) -> "Floats":
    """The click rates of ranks 1, 2, 3 …, by linear interpolation between those of the file."""
    import csv

    import numpy as np

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        given = sorted((int(row["rank"]), float(row["ctr"])) for row in rows)
    except (KeyError, TypeError, ValueError, UnicodeDecodeError):
        given = []
    if not given or given[0][0] > 1 or given[-1][0] < ranks:
        raise BadOption(
            f"{path!r} does not tell the click-through rates of ranks 1 to {ranks}. Give a CSV "
            "file with the columns rank and ctr, from rank 1 to the deepest."
        )
    at, rates = zip(*given, strict=True)
    return np.asarray(np.interp(np.arange(1, ranks + 1), at, rates))
