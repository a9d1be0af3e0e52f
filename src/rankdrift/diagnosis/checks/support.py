"""Is there enough behind every rank?"""

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import many, ranges
from rankdrift.counts.connection import connection
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding

MOST_WEAK = 0.5  # of the ranks; where more are thin, the curve as a whole cannot be told


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
    well = terms.size - len(weak)
    words = f"{well} of {many(terms.size, 'rank')} {'is' if well == 1 else 'are'} well supported"
    if unclicked:
        words += (
            f", {len(unclicked):,} of them only by neighbours on the curve, having no click of "
            f"{'its' if len(unclicked) == 1 else 'their'} own"
        )
    if not weak:
        return Finding(Verdict.GOOD, f"{words}.", numbers=numbers)
    thin = len(weak) / terms.size > MOST_WEAK
    return Finding(
        Verdict.CANNOT_TELL if thin else Verdict.GOOD,
        f"{words}; thin: {ranges(weak)}. Intervals there are not to be taken at their word.",
        wanted="Add days, use a simpler --curve, or stop at a smaller --max-rank.",
        numbers=numbers,
    )


ASSUMPTIONS.register(
    Assumption("support", "Are there enough clicks behind every rank?", "nothing more", check)
)
