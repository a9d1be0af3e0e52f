"""Rankers and their comparison on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from rankdrift.core.words import printable
from rankdrift.ranking.choosing import UNWEIGHTED, Capacity
from rankdrift.ranking.comparison import Comparison, Improvement, percent
from rankdrift.ranking.ranker import Ranker

_FEATURES = 10


def ranker_report(ranker: Ranker) -> Group:
    """Lay out what a ranker was trained on, and the features it goes by most."""
    gains = ranker.gains
    rows = [
        ("trees", f"{ranker.trees} ({ranker.backend})"),
        ("clicks", f"{gains['clicks']:,}, worth {gains['effective']:,.0f} equal ones"),
        ("weights", _weights(ranker)),
    ]
    if ranker.history:
        best = max(ranker.history)
        rows.append(("validation", f"{best:.4f} of the ideal DCG at tree {ranker.trees}"))
    choice = ranker.choice
    if choice:
        rows.append(("chosen", f"{_capacity(choice)}: {choice['reason']}"))
    about = Table.grid(padding=(0, 2))
    for name, words in rows:
        about.add_row(name, words)
    shares = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    shares.add_column("feature")
    shares.add_column("share of gain", justify="right")
    for name, share in list(ranker.importance.items())[:_FEATURES]:
        shares.add_row(printable(name), f"{share:.1%}")
    return Group(about, Text(), *_tried(choice), shares)


def _weights(ranker: Ranker) -> str:
    """What a click is worth, in words."""
    if not ranker.propensities:
        return "all 1: biased"
    up_to = f"up to {ranker.gains['largest']:.3g}"
    if ranker.options.get("clip") == UNWEIGHTED:
        return "all 1, as without propensities"
    return {
        "dr": f"{up_to}, and beyond that what features expect",
        "poisson": "none: clicks are counted by exposure",
        "judgments": f"none: judged relevance, {up_to}",
        "dual": f"{up_to}, learnt along with the trees",
    }.get(ranker.options.get("gains", ""), up_to)


def _tried(choice: Mapping[str, Any]) -> list[Table | Text]:
    """What there was to choose from, and what it is worth."""
    if not choice.get("tried"):
        return []
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("tried")
    table.add_column("of the ideal DCG", justify="right")
    table.add_column("below the best", justify="right")
    for one in choice["tried"]:
        below = f"{100 * one['behind']:.1f} ± {100 * one['sd']:.1f}%" if one["sd"] else "–"
        below = "given up" if one.get("given_up") else below
        table.add_row(_capacity(one), f"{one['value']:.4f}", below)
    return [table, Text()]


def _capacity(one: Mapping[str, Any]) -> str:
    return str(Capacity(one["leaves"], one["min_rows"], one["norm"], one["clip"]))


def comparison_report(c: Comparison) -> Group:
    """Lay out how rankers did at each rank, over all and by other measures."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("rank")
    table.add_column("clicks", justify="right")
    for model in c.models:
        table.add_column(f"AUC {printable(model)}", justify="right")
    for model, base in c.pairs:
        table.add_column(f"{printable(model)} over {printable(base)}", justify="right")
    for at in c.at_rank:
        if at.gap:
            table.add_row(str(at.rank), f"{at.clicks:,}", *("–" for _ in (*c.models, *c.pairs)))
            continue
        aucs = (f"{at.auc[model]:.4f}" for model in c.models)
        improvements = (_marked(c.improvement(*pair, at.rank)) for pair in c.pairs)
        table.add_row(str(at.rank), f"{at.clicks:,}", *aucs, *improvements)
    if c.pairs:
        blank = ["" for _ in c.models]
        table.add_row("all", "", *blank, *(_marked(c.improvement(*pair)) for pair in c.pairs))
    for measure in c.measures:
        values = (f"{measure.value[model]:.4f}" for model in c.models)
        improvements = (_marked(measure.improvements.get(pair)) for pair in c.pairs)
        table.add_row(measure.name, "", *values, *improvements)
    verdicts = [Text(printable(verdict)) for verdict in c.verdicts]
    gaps = [Text(printable(f"Rank {at.rank}: {at.gap}.")) for at in c.at_rank if at.gap]
    spread = f"improvement ± standard deviation over {c.spread}; * p < 0.05"
    foot = Text(f"AUC among results shown at one rank; {spread if c.pairs else '0.5 is chance'}")
    why = [Text(c.judge)] if c.pairs else []
    return Group(table, Text(), *gaps, foot, *verdicts, *why)


def _marked(found: Improvement | None) -> str:
    return percent(found) + ("*" if found and found.is_more_than_luck else " ")
