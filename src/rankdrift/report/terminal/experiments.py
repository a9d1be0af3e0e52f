"""Experiments in the terminal: what they would cost, whom they take, what they found."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import many, percent
from rankdrift.experiments.analysing import Analysis, advice
from rankdrift.experiments.designs import words
from rankdrift.experiments.experiment import Experiment
from rankdrift.experiments.planning import Plan
from rankdrift.experiments.preferring import SURE, Preferences
from rankdrift.experiments.winning import Wins
from rankdrift.report.terminal.curve import curve_report
from rankdrift.report.terminal.diagnosis import COLOURS
from rankdrift.report.terminal.tables import FirstThatFits, bullets, empty_table, heading, line

LISTED = 12  # ranks of an order that are shown
PRECISIONS = (0.05, 0.1, 0.2, 0.3)


def plan_report(found: Plan) -> Group:
    """Lay out what each design costs, and what precision costs in the best one."""
    i, j = found.ratio
    wanted = f"to within {percent(found.within)} at {100 * found.level:g}%"
    blocks: list[RenderableType] = [
        heading(f"To know how much more rank {j} is looked at than rank {i}, {wanted}"),
        FirstThatFits(_designs(found, True), _designs(found, False)),
        line(
            "* no other design needs both fewer searches and fewer clicks; shares are of the "
            "searches that take part",
            "dim",
        ),
        *(line(text) for text in found.assumed),
        *(line(f"Not {name}: {why}.") for name, why in found.left_out.items()),
        heading(f"The least invasive: {found.best.name}"),
        line(f"{words(found.best.design).capitalize()}."),
        _precisions(found),
    ]
    return Group(*blocks)


def _designs(found: Plan, whole: bool) -> Table:
    days = any(each.days is not None for each in found.designs)
    names = ["searches", "clicks lost", "in all"]
    rows = empty_table(["design"], names + (["DCG lost", "days"] if whole and days else []))
    for each in found.designs:
        cells = [
            f"{each.name}{' *' if each.frontier else ''}",
            f"{each.searches:,}",
            _share(each.clicks_lost),
            f"{each.clicks_lost_in_all:,.0f}",
        ]
        if whole and days:
            cells += [_share(each.dcg_lost), "" if each.days is None else f"{each.days:,.1f}"]
        rows.add_row(*cells)
    return rows


def _share(value: float) -> str:
    """What is lost, as a share; less than nothing is a gain."""
    return percent(value) if value >= 0 else f"-{percent(-value)}"


def _precisions(found: Plan) -> Table:
    rows = empty_table(["interval"], ["searches", "clicks lost"])
    for within in sorted({*PRECISIONS, found.within}):
        searches, clicks = found.best.at(within, found.within)
        rows.add_row(f"±{percent(within)}", f"{searches:,.0f}", f"{clicks:,.0f}")
    return rows


def assignments_report(found: Experiment, orders: Mapping[str, tuple[int, ...] | None]) -> Group:
    """Lay out what becomes of some ids."""
    rows = empty_table([found.unit, "takes part", "ranks before, in the order shown"])
    for unit, order in orders.items():
        shown = "as they are"
        if order is not None:
            shown = " ".join(map(str, order[:LISTED])) + (" …" if len(order) > LISTED else "")
        rows.add_row(line(unit), "no" if order is None else "yes", shown)
    return Group(line(f"{found!r}"), rows)


def wins_report(found: Sequence[Wins]) -> Group:
    """Lay out how rankers fare against each other."""
    rows = empty_table(["first", "second"], ["searches", "won", "lost", "tied", "delta"])
    for each in found:
        rows.add_row(
            line(each.first),
            line(each.second),
            f"{each.searches:,}",
            *(f"{int(n.sum()):,}" for n in (each.won, each.lost, each.tied)),
            f"{each.delta:+.4f}",
        )
    told = []
    for each in found:
        low, high = each.anytime.low, each.anytime.high
        told.append(
            f"{each.words.capitalize()}: delta between {low:+.4f} and {high:+.4f}, at this look "
            f"and all others. A delta of {each.smallest:.4f} is seen in 8 of 10 such experiments "
            "that are looked at once."
        )
    return Group(heading("Which ranker wins"), rows, bullets(told))


def analysis_report(found: Analysis, preferred: Preferences | None = None) -> Group:
    """Lay out whether the experiment was drawn as planned, and what it tells."""
    blocks: list[RenderableType] = [heading(f"Was {found.experiment.name} drawn as planned?")]
    for check in found.checks:
        word = (f"{check.verdict:11} ", COLOURS[Verdict(check.verdict)])
        blocks.append(Text.assemble(word, (f"{check.name}: ", "bold"), check.words))
    if advice(found.checks):
        blocks.append(line(f"> {advice(found.checks)}"))
    blocks.append(curve_report(found.curve, 0.95, False))
    if found.combined is not None:
        blocks += [
            heading("Together with the drift of all other rows"),
            curve_report(found.combined, 0.95, False),
        ]
    if preferred is not None:
        told = (
            f"{many(len(preferred.doc), 'pair')} of neighbours, {preferred.sure:,} of them told "
            f"apart with {SURE:.0%} or more."
        )
        blocks += [heading("Which of two neighbours is preferred"), bullets([told])]
    return Group(*blocks)
