"""A diagnosis in the terminal."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import printable
from rankdrift.diagnosis.diagnosing import Diagnosis
from rankdrift.report.diagnosis import HEADLINES, UNSEEN, Plain, sort_checks
from rankdrift.report.terminal.tables import bullets, heading, indent, line

COLOURS = {
    Verdict.GOOD: "bold green",
    Verdict.CAUTION: "bold yellow",
    Verdict.SERIOUS: "bold red",
    Verdict.CANNOT_TELL: "bold cyan",
}


def diagnosis_report(found: Diagnosis) -> Group:
    """Lay out the whole first and what to do, then the checks that object with their advice, those
    that could not tell in a line each, and the good ones in one."""
    checks = sort_checks(found.to_dict()["checks"])
    word = (f"\n{found.verdict.capitalize()}: ", COLOURS[found.verdict])
    blocks: list[RenderableType] = [Text.assemble(word, HEADLINES[found.verdict])]
    if found.unseen:
        blocks += [heading(f"{UNSEEN}:"), bullets(found.unseen)]
    for check in checks.objections:
        blocks += _in_full(check)
    if checks.untold:
        helps = ((check["name"], check["advice"] or check["words"]) for check in checks.untold)
        blocks += [heading("Checks that could not tell, and what they need:"), _lines(helps)]
    if checks.good:
        names = ", ".join(printable(check["name"]) for check in checks.good)
        blocks.append(Text.assemble(("\nGood: ", COLOURS[Verdict.GOOD]), names))
    if checks.information:
        told = ((check["name"], _sentence(check)) for check in checks.information)
        blocks += [heading("For information (these leave the curve as it is):"), _lines(told)]
    return Group(*blocks)


def _in_full(check: Plain) -> list[RenderableType]:
    verdict = Verdict(check["verdict"])
    blocks: list[RenderableType] = [
        Text.assemble(
            (f"\n{verdict:8}", COLOURS[verdict]), (f" {printable(check['name'])}", "bold")
        ),
        line(check["words"]),
    ]
    return [*blocks, line(f"> {check['advice']}")] if check["advice"] else blocks


def _sentence(check: Plain) -> str:
    """What an aside found; what it needs if it could not tell."""
    untold = Verdict(check["verdict"]) is Verdict.CANNOT_TELL
    return str(check["advice"] if untold and check["advice"] else check["words"])


def _lines(named: Iterable[tuple[str, str]]) -> Padding:
    """A line for each name, its words wrapped under themselves."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, words in named:
        table.add_row(Text(printable(name), style="bold"), line(words))
    return indent(table)
