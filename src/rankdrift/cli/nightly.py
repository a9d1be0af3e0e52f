"""rankdrift run"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankdrift.cli import stopping
from rankdrift.cli.exits import Exit
from rankdrift.cli.harvest import given_sizes
from rankdrift.cli.options import Sections, guesses, log_options, read
from rankdrift.cli.output import check_file, refuse_input
from rankdrift.cli.progress import Bar, bar
from rankdrift.cli.screen import Screen, json_line, talk_as_json, talking, talks_json
from rankdrift.cli.settings import FILE, settings_file
from rankdrift.cli.train import split
from rankdrift.core.addresses import without_secrets
from rankdrift.core.days import iso_day
from rankdrift.core.errors import BadOption, RankdriftError

if TYPE_CHECKING:
    from rankdrift.log.log import Log
    from rankdrift.monitoring.record import Outcome, Record
    from rankdrift.monitoring.steps import Job


def _choose_lines(ctx: click.Context, parameter: click.Parameter, chosen: str) -> str:
    """Before anything is said."""
    if not ctx.resilient_parsing:
        talk_as_json(chosen == "json")
    return chosen


@click.command(
    cls=Sections,
    first=("output", "last", "since", "judge", "publish", "keep", "wait", "log_format"),
)
@click.argument("logs", nargs=-1, metavar="[LOG]...")
@click.option("--log", multiple=True, metavar="PATH", help="The log, if no LOG is typed.")
@click.option(
    "-o", "--output", default="runs", show_default=True, metavar="FOLDER", help="Of all runs."
)
@click.option(
    "--last",
    type=click.IntRange(min=1),
    metavar="DAYS",
    help="The curve is of so many days, up to the newest.  [default: all]",
)
@click.option(
    "--since",
    metavar="DAY",
    help="Neither the curve nor drift goes by a day before this, such as that of a new page.",
)
@click.option("--judge", is_flag=True, help="Also judge docs, as `rankdrift judge` does.")
@click.option(
    "--publish",
    type=click.Choice(["fit", "always"]),
    default="fit",
    show_default=True,
    help="Whether `latest` leads only to results that are fit for use.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=30,
    metavar="N",
    show_default=True,
    help="Folders of results that stay.",
)
@click.option(
    "--wait",
    type=float,
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another run.",
)
@click.option("--metrics", metavar="FILE", help="Also write the metrics for Prometheus there.")
@click.option(
    "--mlflow", metavar="EXPERIMENT", help="Also log the run to MLflow, at MLFLOW_TRACKING_URI."
)
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    default="plain",
    show_default=True,
    callback=_choose_lines,
    help="Of what is said on the way: for people, or a JSON object a line.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the record instead.")
@log_options()
@talking
def run(
    screen: Screen,
    logs: tuple[str, ...],
    log: tuple[str, ...],
    output: str,
    schema: bool,
    log_format: str,
    **options: Any,
) -> int:
    """Bring everything up to date with a log that grows; for a scheduler to start.

    Counts new and changed days, estimates, diagnoses, judges if asked to, looks for drift, and
    makes the page, with what rankdrift.toml says of each verb. `latest` in -o leads to the results,
    last-run.json tells how it went. If nothing is new nothing is made; after a kill the next run
    goes on; of two at once one waits. Exits with 1 if the data will not do or the curve drifts.

    \b
        rankdrift run
        rankdrift run 'logs/*.parquet' -o runs --last 28
        rankdrift run --judge --log-format json
    """
    from rankdrift.monitoring.record import RECORD_SCHEMA

    if schema:
        screen.text(json.dumps(RECORD_SCHEMA, indent=2))
        screen.answer(dict(RECORD_SCHEMA))
        return Exit.GOOD
    names = logs or log
    if not names:
        raise BadOption(
            f"run needs to know where the log is. Say so under [run] in {FILE}, such as "
            "log = \"logs/*.parquet\", or type it: rankdrift run 'logs/*.parquet'"
        )
    refuse_input(output, names, options["format"])
    own = {name: options.pop(name) for name in _OWN}
    if own["metrics"]:
        check_file(own["metrics"])
        if os.path.abspath(own["metrics"]) == os.path.abspath(output):
            raise BadOption(f"-o and --metrics are both {output!r}: a folder, and a file.")
        refuse_input(own["metrics"], names, options["format"])
    if own["mlflow"] is not None:
        from rankdrift.monitoring.mlflow_run import need_mlflow

        need_mlflow()
    record = _run(screen, _job(own), names, Path(output), options)
    _show(screen, record)
    screen.answer(record.to_dict())
    _end(screen, record, Path(output))
    assert record.exit_code is not None  # it ended
    return record.exit_code


_OWN = ("last", "since", "judge", "publish", "keep", "wait", "metrics", "mlflow")


def _run(
    screen: Screen, job: Job, names: tuple[str, ...], root: Path, options: dict[str, Any]
) -> Record:
    from rankdrift.monitoring.lock import Busy
    from rankdrift.monitoring.running import busy_record, run_job

    def open_log() -> Log:
        found = read(names, options)
        screen.say(*guesses(found), f"A day: {found.days}.")
        return found

    named = [without_secrets(name) for name in names]
    try:
        return run_job(job, open_log, named, root, _Watch(screen))
    except Busy as error:
        if screen.json:
            screen.answer(busy_record(job, named, error).to_dict())
        raise


def _job(own: Mapping[str, Any]) -> Job:
    """What is asked for: of other verbs what the file and the environment say."""
    from rankdrift.monitoring.steps import Job

    if not 0 <= own["wait"] < float("inf"):
        raise BadOption(f"--wait takes seconds from 0, not {own['wait']:g}.")
    if own["since"] is not None:
        own = {**own, "since": iso_day("since", own["since"])}
    harvest, estimate = _said_of("harvest", "-o", "-").params, _said_of("estimate").params
    diagnose, report = _said_of("diagnose"), _said_of("report", "-o", "-").params
    judge, drift = _said_of("judge").params, _said_of("drift").params
    by, features = estimate["by"], judge["features"]
    names = ("by_query", "min_exposure", "last", "half_life", "pool", "level", "seed")
    judging = {name: judge[name] for name in names}
    judging["features"] = split(features) if features else []
    alike = ("curve", "reference")
    return Job(
        **{name: own[name] for name in _OWN if name != "judge"},
        harvest=given_sizes(harvest["buckets"], harvest["max_shown"]),
        estimate={
            **{name: estimate[name] for name in _ESTIMATE},
            "by": [name.strip() for name in by.split(",")] if by else None,
        },
        shown_below=estimate["shown_below"],
        save={name: estimate[name] for name in ("level", "simultaneous", "full")},
        diagnose={
            name: (estimate if _is_default(diagnose, name) else diagnose.params)[name]
            for name in alike
        },
        judge=judging if own["judge"] else None,
        drift={**{name: drift[name] for name in _DRIFT}, "since": _later(own, drift)},
        report={name: report[name] for name in ("title", "queries")},
    )


_ESTIMATE = (
    "curve", "clicks", "reference", "errors", "samples", "seed", "extrapolate_to", "adjust",
)  # fmt: skip


_DRIFT = ("since", "reference", "window", "false_alarms", "smallest", "level")


def _said_of(verb: str, *more: str) -> click.Context:
    """Another verb as it would run now: its options by the file, the environment and default."""
    context = click.get_current_context()
    root = context.find_root()
    group = root.command
    assert isinstance(group, click.Group)
    command = group.get_command(root, verb)
    assert command is not None
    path = settings_file(context.params.get("config")) or ""
    return command.make_context(verb, ["-", *more, "--config", path], parent=root)


def _later(own: Mapping[str, Any], drift: Mapping[str, Any]) -> str | None:
    """The first day that drift goes by."""
    given = [day for day in (own["since"], drift["since"]) if day is not None]
    return max((iso_day("since", day) for day in given), default=None)


def _is_default(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) == ParameterSource.DEFAULT


@dataclass
class _Watch:
    """Says what happens: a line each, and a bar while the log is read."""

    screen: Screen
    _bars: list[Bar] = field(default_factory=list)

    def say(self, step: str, message: str, **fields: Any) -> None:
        if self.screen.quiet:
            return
        if talks_json():
            json_line("info", message, step=step, **fields)
            return
        from rankdrift.monitoring.record import now

        for shown in self._bars:
            with shown.aside():
                pass
        self.screen.say(f"{now():%H:%M:%S}  {step:<11}  {message}")

    @contextmanager
    def reading(self, log: Log) -> Iterator[Bar]:
        if talks_json():
            yield Bar(None, None, by_day=True)
            return
        with bar(self.screen, log, by_day=True) as shown:
            self._bars.append(shown)
            try:
                yield shown
            finally:
                self._bars.remove(shown)

    def outcome_of(self, error: BaseException) -> Outcome:
        from rankdrift.cli.running import interrupted, shortage_words
        from rankdrift.monitoring.record import Outcome

        if stopping.asked() or interrupted(error):
            return Outcome.STOPPED
        known = isinstance(error, RankdriftError | OSError)
        if known or (isinstance(error, Exception) and shortage_words(error)):
            return Outcome.WRONG
        return Outcome.BROKEN


def _show(screen: Screen, record: Record) -> None:
    """The steps, and how the run ended."""
    from rankdrift.core.words import many
    from rankdrift.report.terminal.tables import empty_table, heading, indent, line

    used = [day for day in record.days if day.used]
    rows = many(sum(day.rows for day in used), "row")
    table = empty_table(["step", "", "what"])
    for step in record.steps:
        style = "dim" if step.state in ("skipped", "unchanged") else ""
        table.add_row(line(step.name, style), line(str(step.state), style), line(step.words, style))
    title = f"{rows} of {many(len(used), 'day')}: {record.outcome}"
    screen.show(heading(title), indent(table))


def _end(screen: Screen, record: Record, root: Path) -> None:
    assert record.results
    folder = root / record.results
    here = "leads there" if record.latest == record.results else f"leads to {record.latest}"
    latest = f"{root / 'latest'} {here if record.latest else 'leads nowhere yet'}."
    again = "Nothing is new: the results" if record.unchanged else "The results"
    screen.say("", f"{again} are in {folder}. {latest}")
    if record.exit_code:
        from rankdrift.monitoring.days import COUNTS_FOLDER
        from rankdrift.monitoring.record import Outcome

        ended = f"It ended as {record.outcome}, exit code {record.exit_code}: {record.reason}"
        screen.note([ended])
        if record.outcome == Outcome.DRIFT:
            counts = str(root / COUNTS_FOLDER)
            screen.next("rankdrift", "drift", counts, "--chart", "drift.png")
        else:
            screen.next("rankdrift", "inspect", *record.log)
    else:
        curve = str(root / "latest" / "propensities.json")
        screen.next("rankdrift", "train", "LOG", "--propensities", curve, "-o", "ranker.txt")
