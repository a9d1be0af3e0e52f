"""Click models on a terminal: how well each forecasts, and whether another is better."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from rankdrift.clickmodels.comparing import FLOOR, REFERENCE, ModelComparison, Score
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import many
from rankdrift.report.terminal.curve import shown_ranks
from rankdrift.report.terminal.tables import (
    FirstThatFits,
    empty_table,
    facts_table,
    heading,
    indent,
    line,
)

COLOURS = {
    Verdict.GOOD: "green",
    Verdict.CAUTION: "yellow",
    Verdict.SERIOUS: "bold red",
    Verdict.CANNOT_TELL: "yellow",
}


def models_report(found: ModelComparison) -> Group:
    """The verdict, a table of models, and the perplexity by rank of the best beside the
    position-based model.

    Parameters
    ----------
    found
        From `compare_models`.
    """
    (train, test), (_, results) = found.searches, found.results
    facts = [
        ("learnt from", f"{train:,}", f"searches with {many(found.clicks[0], 'click')}"),
        (
            "held out",
            f"{test:,}",
            f"searches with {many(results, 'result')}, {found.clicks[1]:,} clicked",
        ),
    ]
    blocks: list[RenderableType] = [
        line(f"{found.verdict}: {found.words}", COLOURS[found.verdict]),
        heading("Searches"),
        facts_table(facts),
        heading("How well each model forecasts what was held out"),
        indent(FirstThatFits(_models(found, True), _models(found, False))),
        line(
            "log-lik: mean of the natural logarithm of what happened, a result; perplexity: 1 is "
            "certainty; given: the clicks above; more: explained beyond random clicks, beside "
            f"{REFERENCE}, with its {found.level:.0%} interval over queries",
            "dim",
        ),
        heading("Perplexity by rank, given the clicks above"),
        indent(_by_rank(found)),
    ]
    if found.left_out:
        blocks.append(heading("Left out"))
        blocks += [line(f"{name}: {why}") for name, why in found.left_out.items()]
    return Group(*blocks)


def _models(found: ModelComparison, wide: bool) -> Table:
    titles = ["model", "says"] if wide else ["model"]
    table = empty_table(titles, ["log-lik", "perplexity", "given", "more", "interval"])
    for score in found.scores.values():
        style = "bold" if score.name == found.best else ""
        more = "" if score.more is None else f"{score.more:+.1%}"
        if score.more is not None and score.more < -1:
            more = "below rcm"
        texts = [score.name, *([score.model.title] if wide else [])]
        numbers = [
            f"{score.log_likelihood:.5f}",
            f"{score.perplexity:.4f}",
            f"{score.conditional_perplexity:.4f}",
            "" if score.name == REFERENCE else more,
            _interval(score),
        ]
        table.add_row(*(line(text, style) for text in (*texts, *numbers)))
    return table


def _interval(score: Score) -> str:
    if score.name == REFERENCE or score.more_low is None or score.more_high is None:
        return ""
    if score.more_high < -1 or score.name == FLOOR:
        return ""
    return f"{score.more_low:+.1%} to {score.more_high:+.1%}"


def _by_rank(found: ModelComparison) -> Table:
    names = list(dict.fromkeys([REFERENCE, "ubm", found.best]))
    scores = [found.scores[name] for name in names if name in found.scores]
    table = empty_table(["rank"], [score.name for score in scores])
    ranks = scores[0].by_rank["rank"]
    wanted = set(shown_ranks(int(max(ranks))))
    for i, rank in enumerate(ranks):
        if rank in wanted:
            cells = [f"{score.by_rank['conditional_perplexity'][i]:.4f}" for score in scores]
            table.add_row(f"{int(rank)}", *cells)
    return table
