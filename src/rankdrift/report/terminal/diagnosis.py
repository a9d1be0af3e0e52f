"""A diagnosis in the terminal."""

from rich.console import Group, RenderableType
from rich.text import Text

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.diagnosing import Diagnosis
from rankdrift.report.terminal.tables import heading, line

COLOURS = {
    Verdict.GOOD: "green",
    Verdict.CAUTION: "yellow",
    Verdict.SERIOUS: "bold red",
    Verdict.CANNOT_TELL: "dim",
}


def diagnosis_report(found: Diagnosis) -> Group:
    """Lay out each check with its verdict, its words and its advice."""
    blocks: list[RenderableType] = [heading("Do the assumptions hold?")]
    for check in found.checks:
        verdict = (f"\n{check.verdict:8}", COLOURS[Verdict(check.verdict)])
        blocks.append(Text.assemble(verdict, (f" {check.name}\n", "bold"), (check.words, "")))
        if check.advice:
            blocks.append(line(f"> {check.advice}"))
    all_in_all = Text(f"\nAll in all: {found.verdict}", style=COLOURS[Verdict(found.verdict)])
    return Group(*blocks, all_in_all)
