"""Is there enough behind every rank?"""

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import ranges
from rankdrift.counts.connection import connection
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding

MOST_WEAK = 0.5  # of the ranks; where more are thin, that is serious


def check(data: Data) -> Finding:
    """Ranks with too few clicks won or lost, or from too few buckets of queries."""
    terms, supported = data.fitted.likelihood, data.fitted.supported
    weak = terms.ranks[~supported].tolist()
    unclicked = terms.ranks[supported & (terms.wins == 0)].tolist()
    linked = connection(data.counts)
    numbers = {
        "weak": weak,
        "without_clicks": unclicked,
        "unconnected": list(linked.alone),
        "blocks": [list(block) for block in linked.blocks],
    }
    words = f"{terms.size - len(weak)} of {terms.size} ranks are well supported"
    if unclicked:
        words += (
            f", {len(unclicked):,} of them only by others between the same knots of the curve, for "
            "they have no click of their own"
        )
    if not weak:
        return Finding(Verdict.GOOD, f"{words}.", numbers=numbers)
    serious = len(weak) / terms.size > MOST_WEAK
    return Finding(
        Verdict.SERIOUS if serious else Verdict.CAUTION,
        f"{words}; thin: {ranges(weak)}.",
        "Add days, use a curve with fewer parameters (loglog, fewer knots), or stop at a smaller "
        "--max-rank.",
        numbers,
    )


ASSUMPTIONS.register(
    Assumption("support", "Are there enough clicks behind every rank?", "nothing more", check)
)
