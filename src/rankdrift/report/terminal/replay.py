"""Replayed counts in the terminal: what came back of the curve they were drawn from."""

from rich.console import Group
from rich.table import Table

from rankdrift.core.words import many, named_ranks, rank_words, verb
from rankdrift.report.terminal.tables import FirstThatFits, empty_table, heading, line
from rankdrift.simulate.replay import VERDICTS, Replay


def replay_report(found: Replay) -> Group:
    """Lay out bias, error and coverage by block of ranks, and what the curve does over all."""
    narrow = _blocks(found)
    narrow.padding = (0, 1, 0, 0)
    words = [f"Overall the curve {VERDICTS[found.verdict]}."]
    if found.left_out:
        known = named_ranks(found.truth.ranks.tolist())
        pairs = f"{many(found.left_out, 'pair')} {verb(found.left_out, 'was', 'were')}"
        words.append(f"{pairs} left out: the truth tells of {known} only.")
    words += [f"{n:,} of {found.replays:,} failed: {why}" for why, n in found.failed.items()]
    return Group(
        heading(f"{many(found.replays, 'replay')}: log p relative to rank {found.truth.reference}"),
        FirstThatFits(_blocks(found), narrow),
        *(line(text) for text in words),
        line("error: root mean square; claimed: mean standard error of the estimates", "dim"),
    )


def _blocks(found: Replay) -> Table:
    names = ["bias", "±", "error", "claimed", f"{100 * found.level:g}% covers", "", ""]
    table = empty_table(["ranks"], names)
    for block in found.blocks:
        table.add_row(
            rank_words(block.first, block.last),
            f"{block.bias:+.3f}",
            f"{block.bias_error:.3f}",
            f"{block.rmse:.3f}",
            f"{block.predicted:.3f}",
            "–" if block.coverage is None else f"{block.coverage:.1%}",
            "",
            block.verdict,
        )
    return table
