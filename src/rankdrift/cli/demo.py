"""rankdrift demo"""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import SEED
from rankdrift.cli.output import check_file
from rankdrift.cli.screen import Screen, Step, talking
from rankdrift.core.errors import RankdriftError

ROWS = 900_000
# A usual log. Where rank 1, the unit of all, happens to be off, whole curves are outside of their
# intervals: of seeds 1 to 20 that is the web of seed 1, and mobile of 3, 11 and 14.
USUAL = 2
# A small log needs few queries, each searched often, and many clicks to learn from.
SHOP = ["--queries", "200", "--click-rate", "0.2"]
DAYS, LATER_DAYS = 4, 2
QUERY = ["--query", "keywords,category,aspects", "--segment", "platform"]
# What must not differ between two appearances of a pair: see `rankdrift harvest --help`.
COMPARABLE = ["--time", "time", "--same", "price", "--where", "sort = 'best_match' AND NOT auction"]
# The top of the page, to be done in a minute.
SMALL = ["--max-rank", "40"]
# Small trees, as few queries bear no large ones: the same for both rankers, and no time to choose.
TREES = ["--fixed", "--trees", "60", "--leaves", "8", "--min-rows", "200", "--norm"]


@click.command()
@click.option(
    "-o",
    "--output",
    default="demo",
    show_default=True,
    metavar="FOLDER",
    help="Where all files go.",
)
@click.option("--rows", default=ROWS, show_default=True, metavar="N", help="Results shown.")
@click.option(
    "--seed",
    type=SEED,
    default=USUAL,
    show_default=True,
    metavar="N",
    help="Another makes another log.",
)
@talking
def demo(screen: Screen, output: str, rows: int, seed: int) -> int:
    """Make up a log and go through all the steps.

    A small marketplace, four days to learn from and two to judge by, on web and mobile, with
    rankers before and after. What is typed is shown, so that it can be tried on a real log; the
    last step leaves a page, report.html, to open in a browser.

    \b
        rankdrift demo                          under demo/, in a minute or two
        rankdrift demo --rows 100000 -o small   quicker, and less certain
    """
    folder = Path(output)
    check_file(str(folder / "report.html"))
    done: dict[str, Any] = {}
    codes: list[int] = []
    for name, words in _steps(folder, rows, seed):
        try:
            code, done[name] = _step(screen, words)
        except RankdriftError as error:
            # A log that is too small is a lesson as well: what it says about that is the demo.
            screen.say(str(error))
            code, done[name] = Exit.UNFIT, {"error": str(error)}
            codes.append(code)
            break
        codes.append(code)
    screen.answer({"folder": str(folder), "rows": rows, **done})
    if "report" in done:
        page = folder / "report.html"
        screen.say("", f"Open {page} in a browser. With a log of your own, begin with:")
        screen.next("rankdrift", "inspect", "YOUR_LOG")
    else:
        screen.next("rankdrift", "demo", "--rows", str(max(ROWS, 2 * rows)), "-o", output)
    return max(codes)


def _steps(folder: Path, rows: int, seed: int) -> list[tuple[str, list[str]]]:
    """(name, words to type) of each step."""
    shop, later, days = str(folder / "log"), str(folder / "later"), str(folder / "days")
    counts, curves = str(folder / "counts.parquet"), str(folder / "propensities.json")
    biased, fair = str(folder / "biased.txt"), str(folder / "fair.txt")
    judged, relevant = str(folder / "comparison.json"), str(folder / "judgments.parquet")
    truth, page = str(folder / "log" / "truth.json"), str(folder / "report.html")
    made = [*SHOP, "--seed", str(seed)]
    after = ["--days", str(LATER_DAYS), "--start", f"2024-01-{DAYS + 1:02}"]
    log, test = f"{shop}/*.parquet", f"{later}/*.parquet"
    inspected = str(folder / "inspect.html")
    training = ["train", log, *QUERY, *SMALL, *TREES]
    return [
        ("simulate", ["simulate", "market", "-o", shop, "--rows", str(rows), "--days", str(DAYS),
                      *made]),
        ("later", ["simulate", "market", "-o", later, "--rows", str(rows // 3), *after, *made,
                   "--labels"]),
        ("inspect", ["inspect", log, *QUERY, *COMPARABLE, "--html", inspected]),
        ("harvest", ["harvest", log, *QUERY, *COMPARABLE, "--by", "day", "-o", days]),
        ("merge", ["merge", days, "-o", counts]),
        ("estimate", ["estimate", counts, "--by", "platform", "-o", curves]),
        ("diagnose", ["diagnose", counts]),
        ("judge", ["judge", log, *QUERY, *SMALL, "--propensities", curves, "-o", relevant]),
        ("biased", [*training, "-o", biased]),
        ("fair", [*training, "--propensities", curves, "-o", fair]),
        ("evaluate", ["evaluate", test, *QUERY, *SMALL, "--model", biased, "--model", fair,
                      "--baseline", biased, "--relevance", "relevance", "-o", judged]),
        ("report", ["report", counts, curves, judged, relevant, truth, "-o", page]),
    ]  # fmt: skip


def _step(screen: Screen, words: list[str]) -> tuple[int, Any]:
    """Show a command and run it; its exit code, and its answer if that is wanted as JSON."""
    screen.command("$", "rankdrift", *words)
    flags = [flag for flag, on in (("--quiet", screen.quiet), ("--json", screen.json)) if on]
    printed = io.StringIO()
    if not screen.json:
        return _run(words + flags), None
    with redirect_stdout(printed):
        code = _run(words + flags)
    return code, json.loads(printed.getvalue())


def _run(words: list[str]) -> int:
    """Run another verb of the command that is running."""
    command = click.get_current_context().find_root().command
    code = command.main(words, prog_name="rankdrift", standalone_mode=False, obj=Step())
    return int(code or Exit.GOOD)
