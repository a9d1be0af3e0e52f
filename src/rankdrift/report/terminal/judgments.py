"""Judgments on a terminal: what they rest on, and the best and worst docs of some queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from rankdrift.core.words import figure, many, share
from rankdrift.judging.checking import Agreement
from rankdrift.judging.grades import Grades, grade_words
from rankdrift.judging.judgments import Judgments
from rankdrift.report.judged_docs import between, judged_cells, judged_docs
from rankdrift.report.terminal.tables import empty_table, facts_table, heading, indent, line

QUERIES = 3  # shown, those with the most clicks
WIDEST = 20  # characters of a query or a doc


def judgments_report(
    judgments: Judgments,
    grades: Grades,
    *,
    names: bool = True,
    agreement: Agreement | None = None,
    look: Mapping[str, Sequence[Any]] | None = None,
) -> Group:
    """Lay out judgments.

    Parameters
    ----------
    judgments, grades
        What was judged.
    names
        Whether queries and docs are shown; they may be private.
    agreement
        With human labels.
    look
        The pairs worth a human look.
    """
    j, rest = judgments, judgments.rest
    facts = [
        ("pairs", f"{len(j):,}", f"of {many(len(j.queries), 'query', 'queries')}"),
        ("not listed", f"{rest['pairs']:,.0f}", "pairs without a click and hardly looked at"),
        ("clicks", f"{j.clicks.sum():,.0f}", f"over an exposure of {_exposure(j)}"),
        ("relevance", figure(j.prior["mean"]), "clicks over exposure, of all pairs together"),
        ("settled", share(int((j.known >= 0.5).sum()), len(j)), "of pairs by half or more"),
    ]
    blocks: list[RenderableType] = [facts_table(facts)]
    if names:
        blocks += [heading("Best and worst docs of the queries with the most clicks"), _docs(j)]
    blocks += [heading(f"Grades, by {grades.by}"), _grades(grades)]
    if agreement:
        blocks += [heading("Beside human labels"), _agreement(agreement, names)]
    if look and names:
        blocks += [
            heading("Worth a human look, by the clicks that knowing it may gain"),
            _look(look),
        ]
    return Group(*blocks)


def _exposure(j: Judgments) -> str:
    return f"{j.exposure.sum() + j.rest['exposure']:,.0f} looks at the reference rank"


def _docs(j: Judgments) -> RenderableType:
    table = empty_table(["query, doc"], ["relevance", "interval", "clicks", "shown", "settled"])
    for query, rows in judged_docs(j, QUERIES):
        table.add_row(line(_short(query)))
        for row in rows.tolist():
            table.add_row(line(f"  {_short(j.docs[j.doc[row]])}"), *judged_cells(j, row))
    return indent(table)


def _short(text: str) -> str:
    """Beginning and end of what is too long: queries of several columns differ at the end."""
    half = WIDEST // 2
    return text if len(text) <= WIDEST else f"{text[: half - 1]}…{text[-half:]}"


def _grades(grades: Grades) -> RenderableType:
    table = empty_table(["grade", "from"], ["pairs"])
    for name, start, pairs in grade_words(grades):
        table.add_row(name, start, f"{pairs:,}")
    return indent(table)


def _agreement(agreement: Agreement, names: bool) -> RenderableType:
    told = f"{agreement.matched:,} of {agreement.labelled:,} labels are of judged pairs"
    facts = facts_table(
        [
            ("queries", f"{len(agreement.queries):,}", told),
            ("Kendall's tau", str(agreement.mean_kendall), "mean over queries; 1 is agreement"),
            ("AUC", str(agreement.mean_auc), "0.5 is chance"),
        ]
    )
    if not names:
        return facts
    least = agreement.table()
    table = empty_table(["agrees least"], ["docs", "tau", "AUC"])
    for i in range(min(QUERIES, len(least["query"]))):
        numbers = (f"{least['kendall'][i]:.2f}", f"{least['auc'][i]:.2f}")
        table.add_row(line(_short(least["query"][i])), f"{least['docs'][i]:,}", *numbers)
    return Group(facts, line(""), indent(table))


def _look(look: Mapping[str, Sequence[Any]]) -> RenderableType:
    table = empty_table(["query", "doc"], ["relevance", "interval", "gain"])
    for query, doc, relevance, low, high, gain in zip(*look.values(), strict=True):
        numbers = (figure(relevance), between(low, high), f"{gain:,.1f}")
        table.add_row(line(_short(query)), line(_short(doc)), *numbers)
    return indent(table)
