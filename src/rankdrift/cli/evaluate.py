"""rankdrift evaluate"""

from pathlib import Path
from typing import Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import READING, SEED, Sections, again, guesses, log_options, read
from rankdrift.cli.output import check_file, outside, refuse_input
from rankdrift.cli.screen import Screen, talking
from rankdrift.cli.train import gain_options, split
from rankdrift.core.errors import BadOption


@click.command(
    cls=Sections,
    first=("models", "baselines", "output", "relevance", *READING),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--model",
    "models",
    multiple=True,
    required=True,
    metavar="FILE",
    help="What `rankdrift train` wrote; repeatable.",
)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="FILE",
    help="The models to improve on.  [default: the first]",
)
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help="Table (.csv, .json, .tex) or chart (.png, .svg, .html).",
)
@click.option(
    "--ranks", metavar="N,…", default="1,2,4,8,16,32", show_default=True, help="To judge at."
)
@click.option(
    "--bootstrap", default=1000, show_default=True, help="Samples of queries; 0: DeLong's way."
)
@click.option("--relevance", metavar="NAME", help="A column of true relevance, if there is one.")
@gain_options
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the samples.")
@log_options()
@talking
def evaluate(
    screen: Screen,
    logs: tuple[str, ...],
    models: tuple[str, ...],
    baselines: tuple[str, ...],
    output: tuple[str, ...],
    ranks: str,
    bootstrap: int,
    relevance: str | None,
    propensities: str | None,
    clip: float | None,
    beyond: Any,
    pool: bool,
    seed: int,
    **options: Any,
) -> int:
    """Judge rankers fairly: among results shown at the same rank, who tells the clicked ones?

    At one rank all results were equally likely to be looked at, so that no propensities are
    needed. Given all the same, they weigh clicks for DCG, MRR and mean rank, with their own
    errors in the deviations; --relevance adds true DCG and NDCG. The last line says what to
    believe.

    \b
        rankdrift evaluate test --model biased.txt --model unbiased.txt -o t.tex
    """
    from rankdrift.ranking.comparison import check_ending
    from rankdrift.ranking.evaluation import evaluate
    from rankdrift.ranking.ranker import Ranker
    from rankdrift.report.terminal.rankers import comparison_report

    for path in output:
        check_ending(path)
        check_file(path)
        refuse_input(path, logs, options["format"], more=(*models, *baselines, propensities))
    names = _names((*models, *(b for b in baselines if b not in models)))
    rankers = {name: Ranker.load(path, name) for path, name in names.items()}
    try:
        judged = [int(rank) for rank in split(ranks)]
    except ValueError:
        raise BadOption(f"--ranks are whole numbers with commas between, not {ranks!r}.") from None
    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    found = evaluate(
        rankers,
        log,
        ranks=judged,
        bootstrap=bootstrap,
        baseline=[names[b] for b in baselines] or None,
        propensities=propensities,
        clip=clip,
        beyond=beyond,
        pool=pool,
        relevance=relevance,
        seed=seed,
        say=screen.say,
    )
    for path in output:
        found.save(path)
    screen.show(comparison_report(found))
    screen.note(found.remarks)
    screen.answer(found.to_dict())
    kept = next((path for path in output if path.endswith(".json")), None)
    if kept:
        screen.next("rankdrift", "report", kept, "-o", "report.html")
    else:
        screen.next(*again("-o", outside("comparison.json", logs)))
    return Exit.GOOD


def _names(paths: tuple[str, ...]) -> dict[str, str]:
    """Path -> a short name: the file's, or the whole path where two files are called alike."""
    different = list(dict.fromkeys(paths))
    stems = [Path(path).stem for path in different]
    return {
        path: stem if stems.count(stem) == 1 else path
        for path, stem in zip(different, stems, strict=True)
    }
