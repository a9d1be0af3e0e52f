"""rankdrift train and rankdrift export-training"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import READING, SEED, Sections, again, guesses, log_options, read, typed
from rankdrift.cli.output import check_file, refuse_input
from rankdrift.cli.screen import Screen, join, talking

Command = Callable[..., Any]


def gain_options(command: Command, dual: bool = False) -> Command:
    """Add the options of every verb that weighs clicks: what a click is worth; dual: whether that
    may be learnt."""
    for option in reversed(
        (
            click.option(
                "--propensities",
                metavar="FILE",
                help="What `rankdrift estimate` wrote, or dual: learnt too."
                if dual
                else "What `rankdrift estimate` wrote: .csv, .json or .parquet.",
            ),
            click.option("--clip", type=float, metavar="W", help="The largest weight of a click."),
            click.option(
                "--beyond",
                type=click.Choice(["error", "clip"]),
                default="error",
                show_default=True,
                help="Clicks at ranks without propensity: stop, or take the nearest's.",
            ),
            click.option(
                "--pool",
                is_flag=True,
                help="One curve for all, though the propensities have segments.",
            ),
        )
    ):
        command = option(command)
    return command


def feature_options(command: Command) -> Command:
    """Add the options of every verb that reads features: which columns they are."""
    for option in reversed(
        (
            click.option(
                "--features",
                metavar="NAME,…",
                default="f_*",
                show_default=True,
                help="Columns to learn from: names or patterns.",
            ),
            click.option(
                "--categorical",
                metavar="NAME,…",
                default="",
                help="Those that are words, though they look like numbers.",
            ),
        )
    ):
        command = option(command)
    return command


def split(names: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in names.split(",") if name.strip()]


@click.command(
    cls=Sections,
    first=("output", "features", "propensities", "trees", *READING),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where the model goes.")
@feature_options
@partial(gain_options, dual=True)
@click.option(
    "--gains",
    metavar="KIND|FILE",
    default="ipw",
    show_default=True,
    help="What is learnt from: ipw, dr, poisson, or what `rankdrift judge` wrote.",
)
@click.option("--trees", default=100, show_default=True, help="How many.")
@click.option("--learning-rate", default=0.1, show_default=True, help="The shrinkage.")
@click.option("--leaves", type=int, metavar="N", help="Of a tree, at most.  [default: chosen]")
@click.option(
    "--min-rows", type=int, metavar="N", help="In a leaf, at least (LightGBM).  [default: chosen]"
)
@click.option(
    "--norm/--no-norm", default=None, help="Damp large gradients: not DCG.  [default: chosen]"
)
@click.option("--fixed", is_flag=True, help="Choose nothing: the paper's trees, no norm, no clip.")
@click.option("--validation", metavar="LOG|SHARE", help="Another log, or a share such as 0.1.")
@click.option("--early-stopping", type=int, metavar="N", help="Stop N trees after the best.")
@click.option(
    "--backend",
    type=click.Choice(["lightgbm", "xgboost"]),
    default="lightgbm",
    show_default=True,
    help="Whose trees.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of all that is random.")
@log_options()
@talking
def train(
    screen: Screen,
    logs: tuple[str, ...],
    output: str,
    features: str,
    categorical: str,
    propensities: str | None,
    gains: str,
    validation: str | None,
    threads: int | None,
    **options: Any,
) -> int:
    """Train a ranker on clicks that are worth 1 / propensity each.

    LambdaMART on the results shown in LOG. Without --propensities every click is worth the same,
    which gives the biased model to compare with. Leaves, rows a leaf, norm and clip that are not
    given are chosen by queries held out.

    \b
        rankdrift train train -o biased.txt
        rankdrift train train --propensities p.csv -o unbiased.txt
        rankdrift evaluate test --model biased.txt --model unbiased.txt
    """
    check_file(output)
    refuse_input(output, logs, options["format"], more=(propensities, gains, validation))
    from rankdrift.ranking.training import BY_NAME, train

    learnt_from: Any = gains
    if gains not in BY_NAME and (Path(gains).exists() or Path(gains).suffix):
        from rankdrift.judging.judgments import Judgments

        learnt_from = Judgments.load(gains)

    own = (
        "trees",
        "learning_rate",
        "leaves",
        "min_rows",
        "norm",
        "fixed",
        "early_stopping",
        "backend",
        "seed",
        "clip",
        "beyond",
        "pool",
    )
    chosen = {name: options.pop(name) for name in own}
    options["threads"] = threads
    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    judge: Any = None
    if validation is not None:
        share = _share(validation)
        judge = read((validation,), options) if share is None else share
    with tree_bar(screen, chosen["trees"]) as each:
        ranker = train(
            log,
            propensities=propensities,
            gains=learnt_from,
            features=split(features),
            categorical=split(categorical),
            validation=judge,
            threads=threads,
            each=each,
            say=screen.say,
            **chosen,
        )
    ranker.save(output)
    from rankdrift.ranking.ranker import LEARNT
    from rankdrift.report.terminal.rankers import ranker_report

    screen.show(ranker_report(ranker))
    screen.answer(
        {
            "file": output,
            "backend": ranker.backend,
            "trees": ranker.trees,
            "features": [f.name for f in ranker.features],
            "importance": ranker.importance,
            "gains": dict(ranker.gains),
            "training": dict(ranker.training),
            "propensities": ranker.propensities,
            "learnt": None if ranker.learnt is None else output + LEARNT,
            "history": list(ranker.history),
            "choice": dict(ranker.choice),
            "options": dict(ranker.options),
        }
    )
    screen.say("", f"The model is in {output}, what is known about it in {output}.meta.json.")
    if ranker.learnt is not None:
        screen.say(f"The propensities that it learnt are in {output}{LEARNT}.")
    screen.next("rankdrift", "evaluate", "TEST_LOG", *typed(options), "--model", output)
    return Exit.GOOD


class FormOption(click.Option):
    """Its help lists the forms there are when asked for: loading them takes longer than a help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """With the forms there are now."""
        from rankdrift.ranking.exporting import forms_in_words

        self.help = forms_in_words()
        return super().get_help_record(ctx)


@click.command(
    "export-training",
    cls=Sections,
    first=("output", "form", "features", "propensities", *READING),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("-o", "--output", required=True, metavar="PATH", help="Where the files go.")
@click.option("--form", cls=FormOption, default="lightgbm", show_default=True)
@feature_options
@gain_options
@log_options()
@talking
def export_training(
    screen: Screen,
    logs: tuple[str, ...],
    output: str,
    form: str,
    features: str,
    categorical: str,
    propensities: str | None,
    clip: float | None,
    beyond: Any,
    pool: bool,
    **options: Any,
) -> int:
    """Write the training data for people who train elsewhere.

    The same rows and gains as `rankdrift train`; what is written besides PATH depends on --form.

    \b
        rankdrift export-training train.parquet --propensities p.csv -o train.tsv
        rankdrift export-training train.parquet --form weights -o weights.parquet
    """
    check_file(output)
    refuse_input(output, logs, options["format"], more=(propensities,))
    from rankdrift.ranking.exporting import export_training

    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    written = export_training(
        log,
        output,
        form=form,
        propensities=propensities,
        features=split(features),
        categorical=split(categorical),
        clip=clip,
        beyond=beyond,
        pool=pool,
        say=screen.say,
    )
    for path in written:
        screen.text(str(path))
    screen.answer({"form": form, "files": [str(path) for path in written]})
    if form == "lightgbm":
        conf = written[-1]
        command = join(["lightgbm", f"config={conf.name}"])
        screen.say("", f"With LightGBM's command line, in the folder {conf.parent}: {command}")
    # The same model, to hold the other tool's against.
    screen.next(*again("-o", "ranker.txt", verb="train", without=("output", "form")))
    return Exit.GOOD


def _share(text: str) -> float | None:
    """The text as a number; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


@contextmanager
def tree_bar(screen: Screen, trees: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar that counts trees, where somebody watches."""
    if not screen.lively:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        "left",
        console=screen.err,
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=trees)
        yield lambda done: bar.update(task, completed=done, description="growing trees")
