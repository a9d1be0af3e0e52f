"""Does relevance have a trend over the day?

If it rises, pairs that moved up tell of a steeper curve than pairs that moved down. The two errors
cancel in the curve of both: a trend alone does no harm.
"""

from rankdrift.core.errors import NotIdentified
from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import compared
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.part_test import part_test

WANTED = "Harvest with --time, or a day column that has the time of day."
UP, DOWN = (1, 2), (3, 4)  # places in `rankdrift.counts.tables.DRIFTS`


def check(data: Data) -> Finding:
    """Pairs that moved up against those that moved down."""
    both, part = data.pooled.drifting((*UP, *DOWN)), data.pooled.drifting(UP)
    if not len(part.pairs) or len(part.pairs) == len(both.pairs):
        if data.counts.options.get("time"):
            raise NotIdentified("hardly any pair was shown at two times that are known.")
        raise NotIdentified("the counts do not tell when pairs were shown.")
    rises = "Relevance seems to rise between appearances"
    falls = "Relevance seems to fall between appearances"
    harmless = (
        "that alone leaves the curve as it is, as pairs that moved up and down make up for it."
    )
    return compared(
        part_test(both, part, data.fitted),
        "Pairs that moved up and pairs that moved down",
        steeper=f"{rises}; {harmless}",
        flatter=f"{falls}; {harmless}",
        advice="If docs rise because they get better, such as by a price cut, the curve is off: "
        "make those columns equal (--same price), or log the ranker's score (--score).",
    )


ASSUMPTIONS.register(
    Assumption(
        "trend",
        "Does relevance stay the same over the day?",
        "the time of day of each row",
        check,
        worst=Verdict.GOOD,
        wanted=WANTED,
        role="time",
    )
)
