"""rankdrift experiment plan, assign, analyse and wins"""

from typing import TYPE_CHECKING, Any

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.options import COUNTING, Sections, again, guesses, log_options, read
from rankdrift.cli.output import check_chart, check_file, refuse_input
from rankdrift.cli.progress import bar
from rankdrift.cli.screen import Screen, talking
from rankdrift.core.errors import BadOption
from rankdrift.core.verdicts import Verdict

if TYPE_CHECKING:
    from rankdrift.propensities.propensities import Propensities

UNIT = click.Choice(["search", "user"])
LANGUAGE = click.Choice(["python", "javascript", "sql"])
# Options of a log that an experiment decides itself.
UNUSED = ("randomised", "randomised_apart", "score", "ranker", "outcome", "outcome_at_least")


@click.group()
def experiment() -> None:
    """When the log cannot tell: the smallest experiment that can.

    \b
        rankdrift experiment plan counts.parquet --ratio 10,1 -o swap.json
        rankdrift experiment assign swap.json --as javascript
        rankdrift experiment analyse 'logs/*.parquet' --experiment swap.json
        rankdrift experiment wins 'logs/*.parquet' --ranker team

    Each takes --json and --quiet.
    """


@experiment.command(
    cls=Sections,
    first=("output", "propensities", "rates", "ratio", "within", "share", "never", "design"),
)
@click.argument("counts", nargs=-1, metavar="[COUNTS]...")
@click.option("-o", "--output", metavar="FILE", help="Where the experiment goes: .json.")
@click.option("--propensities", metavar="FILE", help="What is thought of them now.")
@click.option("--rates", metavar="N,…", help="Instead of counts: clicks per impression by rank.")
@click.option("--ratio", default="10,1", show_default=True, help="The two ranks to compare.")
@click.option("--within", default=0.1, show_default=True, help="How closely: 0.1 is ±10%.")
@click.option("--level", default=0.95, show_default=True, help="Of that interval.")
@click.option("--share", default=0.01, show_default=True, help="Of searches that may take part.")
@click.option("--never", metavar="RANK,…", help="Ranks that must stay as they are.")
@click.option("--searches-a-day", type=float, help="The traffic.  [default: that of the counts]")
@click.option("--design", help="The one to write.  [default: that which loses the fewest clicks]")
@click.option("--name", default="swap", show_default=True, help="Of the experiment.")
@click.option("--salt", default="", help="Another draws other searches.  [default: the name]")
@click.option("--unit", type=UNIT, default="search", show_default=True, help="What is drawn.")
@click.option(
    "--chart", metavar="FILE", help="Also draw cost against precision: .png, .svg, .html."
)
@talking
def plan(
    screen: Screen,
    counts: tuple[str, ...],
    output: str | None,
    propensities: str | None,
    rates: str | None,
    ratio: str,
    never: str | None,
    design: str | None,
    name: str,
    salt: str,
    unit: str,
    chart: str | None,
    **options: Any,
) -> int:
    """What it takes to know the ratio of two ranks' propensities, by design.

    \b
        rankdrift experiment plan counts.parquet --ratio 10,1 -o swap.json
        rankdrift experiment plan --rates 0.21,0.12,0.09,0.07,0.06 --ratio 5,1
    """
    for path in filter(None, (output, chart)):
        (check_chart if path == chart else check_file)(path)
        refuse_input(path, counts, None, more=(propensities,))
    from rankdrift.counts.counts import merge
    from rankdrift.experiments.planning import plan
    from rankdrift.report.terminal.experiments import plan_report

    if bool(counts) == bool(rates):
        raise BadOption("Give counts, or --rates: the clicks per impression of ranks 1, 2, 3 …")
    ranks = _numbers(ratio, "--ratio", int)
    if len(ranks) != 2:
        raise BadOption(f"--ratio takes two ranks, such as 10,1, not {ratio!r}.")
    found = plan(
        _numbers(rates, "--rates", float) if rates else merge(counts),
        propensities=_curve(propensities),
        ratio=(ranks[0], ranks[1]),
        never=_numbers(never, "--never", int) if never else (),
        **options,
    )
    if chart:
        found.plot().save(chart)
    fixed = tuple(_numbers(never, "--never", int)) if never else ()
    chosen = found.experiment(name, design, salt=salt, unit=unit, never=fixed)
    if output:
        chosen.save(output)
    screen.show(plan_report(found))
    screen.answer(
        {**found.to_dict(), "experiment": chosen.to_dict(), "file": output, "chart": chart}
    )
    if output:
        screen.say("", f"The experiment is in {output}: {chosen!r}.")
        screen.next("rankdrift", "experiment", "assign", output, "--as", "javascript")
    else:
        screen.say("", "Nothing is written yet.")
        screen.next(*again("-o", "swap.json"))
    return Exit.GOOD


@experiment.command()
@click.argument("file", metavar="EXPERIMENT")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--size", default=50, show_default=True, help="Results of each of these searches.")
@click.option("--as", "language", type=LANGUAGE, help="Print the code that decides.")
@click.option("--dialect", default="duckdb", show_default=True, help="Of SQL.")
@talking
def assign(
    screen: Screen, file: str, ids: tuple[str, ...], size: int, language: str | None, dialect: str
) -> int:
    """What goes into the search service: who takes part, and in what order results are shown.

    A pure function of an id, the same in Python, JavaScript and SQL.

    \b
        rankdrift experiment assign swap.json --as javascript
        rankdrift experiment assign swap.json search-17 search-18
    """
    from rankdrift.experiments.experiment import Experiment
    from rankdrift.report.terminal.experiments import assignments_report

    found = Experiment.load(file)
    if language:
        if ids:
            raise BadOption("Give ids to see what becomes of them, or --as, not both.")
        text = found.sql(dialect=dialect) if language == "sql" else _code(language)
        screen.text(text)
        screen.answer({"language": language, "code": text})
        screen.say(
            "",
            f"Give `arrange` what is in {file}, the id of the {found.unit} and the docs."
            if language != "sql"
            else "These are columns of a SELECT from results as the ranker has them.",
            "Log the rank before as `original_rank`, and whether the search took part as "
            "`randomised`, with every result.",
        )
        screen.next("rankdrift", "experiment", "analyse", "LOG", "--experiment", file)
        return Exit.GOOD
    if not ids:
        raise BadOption(
            f"Give ids of {'users' if found.unit == 'user' else 'searches'} to see what becomes of "
            "them, or --as python, javascript or sql for the code that decides."
        )
    orders = {each: found.assign(each, size) for each in ids}
    screen.show(assignments_report(found, orders))
    screen.answer(
        {"assigned": {each: list(order) if order else None for each, order in orders.items()}}
    )
    screen.next("rankdrift", "experiment", "assign", file, "--as", "javascript")
    return Exit.GOOD


@experiment.command(cls=Sections, first=("file", "output", "propensities", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--experiment", "file", required=True, metavar="FILE", help="As it was planned.")
@click.option("-o", "--output", metavar="FILE", help="Where the propensities go.")
@click.option("--propensities", metavar="FILE", help="From the drift, to be combined with.")
@click.option(
    "--original", default="original_rank", show_default=True, help="The rank before it was moved."
)
@click.option("--took-part", default="randomised", show_default=True, help="Which results did.")
@click.option("--preferences", metavar="FILE", help="Of fairpairs: which doc is preferred: .csv.")
@click.option("--reference", type=int, help="The rank whose propensity is 1.")
@click.option("--chart", metavar="FILE", help="Also draw the curve: .png, .svg or .html.")
@log_options(without=UNUSED)
@talking
def analyse(
    screen: Screen,
    logs: tuple[str, ...],
    file: str,
    output: str | None,
    propensities: str | None,
    original: str,
    took_part: str,
    preferences: str | None,
    reference: int | None,
    chart: str | None,
    **options: Any,
) -> int:
    """Propensities from the log of an experiment, and whether it was drawn as planned.

    Exits with 1 if it was not.

    \b
        rankdrift experiment analyse logs --experiment swap.json -o p.json
    """
    for path in filter(None, (output, chart, preferences)):
        (check_chart if path == chart else check_file)(path)
        refuse_input(path, logs, options["format"], more=(file, propensities))
    from rankdrift.experiments.analysing import analyse
    from rankdrift.experiments.experiment import Experiment
    from rankdrift.experiments.preferring import prefer
    from rankdrift.report.terminal.experiments import analysis_report

    planned = Experiment.load(file)
    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    with bar(screen, log) as progress:
        found = analyse(
            log,
            planned,
            original=original,
            randomised=took_part,
            propensities=_curve(propensities),
            reference=reference,
            progress=progress,
        )
        preferred = None
        if preferences:
            preferred = prefer(log, planned, original=original, randomised=took_part)
            preferred.save(preferences)
    best = found.combined or found.curve
    if output:
        best.save(output)
    if chart:
        found.plot().save(chart)
    screen.show(analysis_report(found, preferred))
    told = None if preferred is None else preferred.to_dict()
    screen.answer({**found.to_dict(), "preferences": told, "file": output, "chart": chart})
    if output:
        screen.say("", f"The propensities are in {output}.")
        screen.next("rankdrift", "report", output, "-o", "report.html")
    else:
        screen.next(*again("-o", "propensities.json"))
    return Exit.UNFIT if found.verdict is Verdict.SERIOUS else Exit.GOOD


@experiment.command(cls=Sections, first=("level", "ranker", "user", *COUNTING))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@log_options(without=("randomised", "randomised_apart", "score", "outcome", "outcome_at_least"))
@talking
def wins(screen: Screen, logs: tuple[str, ...], level: float, **options: Any) -> int:
    """Which ranker wins, where results of several were interleaved.

    The column --ranker says which ranker added each result (team draft).

    \b
        rankdrift experiment wins 'logs/*.parquet' --ranker team
    """
    from rankdrift.experiments.winning import wins
    from rankdrift.report.terminal.experiments import wins_report

    log = read(logs, options)
    screen.say(*guesses(log))
    screen.note(log.remarks)
    with bar(screen, log) as progress:
        found = wins(log, level=level, progress=progress)
    screen.show(wins_report(found))
    screen.answer({"wins": [each.to_dict() for each in found]})
    screen.next(*again("--json"))
    return Exit.GOOD


def _curve(path: str | None) -> "Propensities | None":
    from rankdrift.propensities.propensities import Propensities

    return Propensities.load(path) if path else None


def _code(language: str) -> str:
    """The file that decides, as it is."""
    from importlib.resources import files

    name = "assigning.py" if language == "python" else "assign.js"
    return files("rankdrift.experiments").joinpath(name).read_text(encoding="utf-8").rstrip("\n")


def _numbers(text: str, option: str, kind: Any) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise BadOption(f"{option} takes numbers with commas between, not {text!r}.") from None
