"""Replayed counts in the terminal: what came back of the curve they were drawn from."""

from rich.console import Group

from rankdrift.core.words import ranges, rank_words
from rankdrift.report.terminal.tables import empty_table, heading, line
from rankdrift.simulate.replay import VERDICTS, Replay


def replay_report(found: Replay) -> Group:
    """Lay out bias, error and coverage by block of ranks, and what the curve does over all."""
    table = empty_table(
        ["ranks"], ["bias", "±", "error", "claimed", f"{found.level:.0%} covers", "", ""]
    )
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
    words = [f"Overall the curve {VERDICTS[found.verdict]}."]
    if found.left_out:
        known = ranges(found.truth.ranks.tolist())
        pairs = "pair was" if found.left_out == 1 else "pairs were"
        words.append(f"{found.left_out:,} {pairs} left out: the truth tells of ranks {known} only.")
    words += [f"{many:,} of {found.replays:,} failed: {why}" for why, many in found.failed.items()]
    return Group(
        heading(f"{found.replays:,} replays: log p relative to rank {found.truth.reference}"),
        table,
        *(line(text) for text in words),
        line("error: root mean square; claimed: mean standard error of the estimates", "dim"),
    )
