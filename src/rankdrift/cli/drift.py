"""rankdrift drift"""

import click

from rankdrift.cli.exits import Exit
from rankdrift.cli.output import check_chart, refuse_input
from rankdrift.cli.screen import Screen, talking


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="COUNTS...")
@click.option(
    "--since",
    metavar="DAY",
    help="The first day to go by, such as the one after a change that is known.",
)
@click.option(
    "--reference",
    default=7,
    show_default=True,
    metavar="DAYS",
    help="Days at the beginning in which no change is looked for.",
)
@click.option(
    "--window",
    default=28,
    show_default=True,
    metavar="DAYS",
    help="Days back that a change may have begun at most.",
)
@click.option(
    "--false-alarms",
    default=0.1,
    show_default=True,
    metavar="N",
    help="How many a year at most, of all segments together, while nothing changes.",
)
@click.option(
    "--smallest",
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="The smallest change of propensities that raises an alarm.",
)
@click.option("--level", default=0.95, show_default=True, help="Of the intervals.")
@click.option("--chart", metavar="FILE", help="Also draw it: .png, .svg or .html.")
@talking
def drift(
    screen: Screen,
    files: tuple[str, ...],
    since: str | None,
    reference: int,
    window: int,
    false_alarms: float,
    smallest: float,
    level: float,
    chart: str | None,
) -> int:
    """Test every day whether propensities have changed.

    COUNTS are kept a day each: the folder that harvest --by day writes, files, or a glob in quotes.
    Each segment is tested by itself, its newest days against all before them; one may look every
    day without raising more false alarms than --false-alarms. Exits with 1 if there is an alarm.

    \b
        rankdrift drift days/
        rankdrift drift days/ --since 2024-03-05 --chart drift.png
    """
    from rankdrift.counts.file import find_counts
    from rankdrift.monitoring import drifting
    from rankdrift.report.terminal.drift import drift_report

    if chart:
        check_chart(chart)
    paths = find_counts(files)
    if chart:
        refuse_input(chart, paths, "parquet")
    found = drifting.drift(
        paths,
        since=since,
        reference=reference,
        window=window,
        false_alarms=false_alarms,
        smallest=smallest,
        level=level,
    )
    screen.note(found.remarks)
    if chart:
        found.plot(level=level).save(chart)
    screen.show(drift_report(found))
    screen.answer({**found.to_dict(), "chart": chart})
    if chart:
        screen.say("", f"The chart is in {chart}.")
    began = min((one.newest[0] for one in found.segments if one.alarm and one.newest), default=None)
    if began:
        screen.say("", "If this is a change you know of, begin anew with it:")
        screen.next("rankdrift", "drift", *files, "--since", began)
    else:
        screen.next("rankdrift", "report", *files, "-o", "report.html")
    return Exit.UNFIT if found.alarm else Exit.GOOD
