"""rankdrift judge"""

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import (
    READING,
    SEED,
    LateHelp,
    Sections,
    again,
    given,
    guesses,
    log_options,
    read,
)
from rankdrift.cli.output import check_file, check_folder, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.cli.settings import from_settings
from rankdrift.cli.train import split
from rankdrift.core.errors import BadOption
from rankdrift.core.files import together
from rankdrift.core.words import many

if TYPE_CHECKING:
    from rankdrift.log.engines.engine import Day

# Of a log: a pair is a query and a doc, whatever else was the same.
UNUSED = (
    "same", "window", "score", "ranker", "user", "outcome", "outcome_at_least",
)  # fmt: skip


# What is said of judgments, and not of what --by day counts.
_OF_JUDGMENTS = (
    "propensities", "model", "export", "features", "by_query", "last", "half_life",
    "min_exposure", "pool", "scale", "thresholds", "reference", "enough", "check", "look",
    "level", "seed",
)  # fmt: skip
_FLAGS = {"scale": "grades"}


def _exports() -> str:
    from rankdrift.judging.exports import forms_in_words

    return f"Also write as {forms_in_words()}; repeatable."


def _models() -> str:
    from rankdrift.clickmodels.models import judging_models

    return f"Or a model: {', '.join(judging_models())}."


@click.command(
    cls=Sections,
    first=("output", "by", "propensities", "model", "export", *READING),
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("-o", "--output", metavar="FILE", help="Where the judgments go: .parquet.")
@click.option(
    "--by", type=click.Choice(["day"]), help="Only count: one file a day in the folder -o."
)
@click.option("--propensities", metavar="FILE", help="What `rankdrift estimate` wrote.")
@click.option(
    "--model",
    cls=LateHelp,
    listed=_models,
    metavar="NAME",
    help="Or a click model.",
)
@click.option(
    "--export",
    cls=LateHelp,
    listed=_exports,
    multiple=True,
    metavar="FORM=PATH",
    help="Also write for others.",
)
@click.option(
    "--features", metavar="NAME,…", help="Numbers, or an old score, that tell what to expect."
)
@click.option("--by-query", is_flag=True, help="Expect what other docs of the query are like.")
@click.option("--last", type=int, metavar="DAYS", help="Only so many days, up to the last one.")
@click.option("--half-life", type=float, metavar="DAYS", help="Days so much older count half.")
@click.option(
    "--min-exposure",
    type=float,
    default=1.0,
    show_default=True,
    help="List pairs without a click from here on; 0: all.",
)
@click.option(
    "--pool", is_flag=True, help="One curve for all, though the propensities have segments."
)
@click.option(
    "--grades",
    "scale",
    default="quantile",
    show_default=True,
    metavar="SCALE",
    help="quantile, better (than --reference) or relevance.",
)
@click.option("--thresholds", metavar="N,…", help="Where grades 1 to 4 begin.")
@click.option("--reference", type=float, metavar="Z", help="The relevance to be better than.")
@click.option(
    "--enough",
    type=float,
    default=0.25,
    show_default=True,
    help="Share that a pair's clicks must settle for a grade.",
)
@click.option("--check", metavar="FILE", help="Human labels: query, doc, label.")
@click.option("--look", default=0, show_default=True, help="List pairs worth a human look.")
@click.option("--no-queries", is_flag=True, help="Print no query and no doc.")
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of all that is random.")
@log_options(without=UNUSED)
@talking
def judge(
    screen: Screen,
    logs: tuple[str, ...],
    output: str | None,
    by: str | None,
    propensities: str | None,
    model: str | None,
    export: tuple[str, ...],
    features: str | None,
    by_query: bool,
    last: int | None,
    half_life: float | None,
    min_exposure: float,
    pool: bool,
    scale: str,
    thresholds: str | None,
    reference: float | None,
    enough: float,
    check: str | None,
    look: int,
    no_queries: bool,
    level: float,
    seed: int,
    **options: Any,
) -> int:
    """Tell how relevant each doc is to each query.

    By clicks and looks at all the ranks it had. LOG may be what --by day wrote.

    \b
        rankdrift judge logs --propensities p.json -o judgments.parquet
        rankdrift judge logs --model dbn --export trec=qrels.txt
    """
    if by:
        return _by_day(screen, logs, output, options)
    if propensities is None and model is None:
        raise BadOption(
            "judge needs --propensities FILE or --model NAME, or --by day to count only."
        )
    from rankdrift.judging.exports import FORMS
    from rankdrift.judging.file import check_ending
    from rankdrift.judging.judging import judge

    targets = [_target(word) for word in export]
    for form, _ in targets:
        FORMS.get(form)
    if output:
        check_ending(output)
    paths = (*([output] if output else []), *(path for _, path in targets))
    twice = [path for path, times in Counter(map(os.path.abspath, paths)).items() if times > 1]
    if twice:
        raise BadOption(f"{twice[0]} is named twice: what is written first would be lost.")
    for path in paths:
        check_file(path)
        refuse_input(path, logs, options["format"], more=(propensities, check))
    graded: dict[str, Any] = {"by": scale, "reference": reference, "enough": enough}
    if thresholds:
        graded["thresholds"] = _numbers(thresholds)
    log = _open(screen, logs, options)
    with bar(screen, log) as progress:
        found = judge(
            log,
            propensities,
            model=model,
            features=split(features) if features else (),
            by_query=by_query,
            min_exposure=min_exposure,
            last=last,
            half_life=half_life,
            pool=pool,
            level=level,
            seed=seed,
            progress=progress,
        )
    screen.note(found.remarks)
    grades = found.grades(**graded)
    with together():
        if output:
            found.save(output)
        written = [
            str(file) for form, path in targets for file in found.export(path, form, grades=grades)
        ]
    agreement = found.check(check, level) if check else None
    listed = found.worth_a_look(look) if look else None
    from rankdrift.report.terminal.judgments import judgments_report

    screen.show(
        judgments_report(found, grades, names=not no_queries, agreement=agreement, look=listed)
    )
    screen.answer(
        {
            "file": output,
            "files": written,
            "judgments": found.to_dict(),
            "grades": {"by": grades.by, "cuts": grades.cuts.tolist(), "pairs": grades.counts},
            "funnel": found.funnel.to_dict(),
            "agreement": agreement.to_dict() if agreement else None,
            "look": None if no_queries else listed,
        }
    )
    if output:
        screen.say("", f"The judgments are in {output}.")
    if written:
        screen.say("", f"Written for other tools: {', '.join(written)}.")
    more = ("--look", "20") if export else ("--export", "trec=qrels.txt")
    screen.next(*again(*more, without=("look",)))
    return Exit.GOOD


def _open(screen: Screen, logs: tuple[str, ...], options: dict[str, Any]) -> Any:
    """The log, or the appearances that were counted of one."""
    from rankdrift.harvesting.appearances import holds_appearances, open_appearances

    if holds_appearances(list(logs), options["format"]):
        said = given(options)
        taken = {name: said.pop(name) for name in ("format", "memory", "threads") if name in said}
        typed = [name for name in said if not from_settings(name)]
        if typed:
            raise BadOption(
                "These are appearances that were counted of a log, and how it is read was said "
                f"then. Leave out --{_flag(typed[0])}, or give the log itself."
            )
        return open_appearances(list(logs), **taken)
    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    return log


def _flag(name: str) -> str:
    return _FLAGS.get(name, name).replace("_", "-")


def _by_day(
    screen: Screen, logs: tuple[str, ...], output: str | None, options: dict[str, Any]
) -> int:
    """Count appearances, a file a day."""
    from rankdrift.harvesting.appearances import appearances_by_day
    from rankdrift.report.terminal.tables import line

    context = click.get_current_context()
    for name in _OF_JUDGMENTS:
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise BadOption(
                f"--by day only counts: leave out --{_flag(name)} until you judge what it wrote."
            )
    if not output:
        raise BadOption("--by day needs a folder for its files: -o days/.")
    check_folder(output)
    log = read(logs, options)
    refuse_input(output, logs, options["format"])
    screen.say(*guesses(log), f"A day: {log.days}.")
    screen.note(log.remarks)
    days: list[dict[str, Any]] = []
    with bar(screen, log, by_day=True) as progress:

        def each(day: "Day", path: Path, skipped: bool) -> None:
            word = "unchanged" if skipped else "written"
            days.append(
                {"day": day.day or None, "file": str(path), "state": word, "rows": day.rows}
            )
            progress.day_done(day.rows)
            with progress.aside():
                rows = many(day.rows, "row")
                screen.show(line(f"{day.day or 'undated':<10}  {word:<9}  {rows:>18}"))

        appearances_by_day(log, output, progress=progress, each=each)
    written = sum(day["state"] == "written" for day in days)
    screen.answer(
        {"folder": output, "days": days, "roles": log.describe(), "guessed": dict(log.guessed)}
    )
    screen.say("", f"{many(written, 'day')} written to {output}, {len(days) - written} unchanged.")
    screen.next("rankdrift", "judge", output, "--propensities", "propensities.json")
    return Exit.GOOD


def _target(text: str) -> tuple[str, str]:
    """FORM=PATH"""
    form, equals, path = text.partition("=")
    if not equals or not path:
        raise BadOption(f"--export takes FORM=PATH, such as trec=qrels.txt, not {text!r}.")
    return form, path


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadOption(
            f"--thresholds takes four numbers, such as 0.01,0.03,0.1,0.3, not {text!r}."
        ) from None
