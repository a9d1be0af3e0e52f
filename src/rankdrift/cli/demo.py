"""rankdrift demo"""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from rankdrift.cli.output import check_file
from rankdrift.cli.screen import Screen, join, talking
from rankdrift.errors import RankdriftError

DAYS = 4
CLICKS = 0.3  # many, for the same reason
QUERIES = 2_000  # few, so that a small log has enough searches of each


@click.command()
@click.option("-o", "--output", default="demo", show_default=True, metavar="FOLDER")
@click.option("--rows", default=2_000_000, show_default=True, metavar="N", help="Results shown.")
@click.option(
    "--seed", default=1, show_default=True, metavar="N", help="Another makes another log."
)
@talking
def demo(screen: Screen, output: str, rows: int, seed: int) -> int:
    """Make up a log and go through all the steps.

    The log has four days of searches on web and mobile. What is typed is shown, so that it can be
    tried on a real log; the last step leaves a page, report.html, to open in a browser.
    """
    folder = Path(output)
    check_file(str(folder / "report.html"))
    log, counts, total = folder / "log", folder / "counts", folder / "counts.parquet"
    curves = folder / "propensities.json"
    screen.say(f"Making up {rows:,} results shown over {DAYS} days, in {log} ...")
    from rankdrift.simulate import searches

    made = searches(log, rows=rows, days=DAYS, queries=QUERIES, seed=seed, click_rate=CLICKS)
    screen.say(f"{made.clicks:,} of them were clicked.")
    columns = ["--query", "query,category", "--same", "price", "--segment", "platform"]
    page = str(folder / "report.html")
    done = {
        name: _step(screen, words)
        for name, words in (
            ("inspect", ["inspect", str(log), *columns, "--html", page]),
            ("harvest", ["harvest", str(log), *columns, "--by", "day", "-o", str(counts)]),
            ("merge", ["merge", str(counts), "-o", str(total)]),
        )
    }
    done["estimate"] = _estimate(screen, total, curves)
    answers = {name: answer for name, (_, answer) in done.items()}
    screen.answer({"log": str(log), "rows": made.rows, "clicks": made.clicks, **answers})
    screen.say("", f"Open {page} in a browser.")
    return max(code for code, _ in done.values())


def _estimate(screen: Screen, counts: Path, curves: Path) -> tuple[int, Any]:
    """A small log may not bear an estimate; then what it says about that is the demo."""
    try:
        return _step(screen, ["estimate", str(counts), "--by", "platform", "-o", str(curves)])
    except RankdriftError as error:
        screen.say(str(error))
        return 1, {"error": str(error)}


def _step(screen: Screen, words: list[str]) -> tuple[int, Any]:
    """Show a command and run it; its exit code, and its answer if that is wanted as JSON."""
    from rankdrift.cli import rankdrift

    screen.say("", f"$ {join(['rankdrift', *words])}")
    flags = [flag for flag, on in (("--quiet", screen.quiet), ("--json", screen.json)) if on]
    printed = io.StringIO()
    if not screen.json:
        return int(_run(rankdrift, words + flags)), None
    with redirect_stdout(printed):
        code = _run(rankdrift, words + flags)
    return int(code), json.loads(printed.getvalue())


def _run(group: click.Group, words: list[str]) -> int:
    return int(group.main(words, prog_name="rankdrift", standalone_mode=False) or 0)
