"""The pairs that moved, split by how they moved: does one part follow the curve of both?"""

from rankdrift.core.errors import NotIdentified
from rankdrift.diagnosis.assumption import Data
from rankdrift.estimation.part_test import part_test
from rankdrift.estimation.score_test import ScoreTest

WANTED = "Harvest with --time, or a day column that has the time of day."


def drift_test(data: Data, one: tuple[int, ...], two: tuple[int, ...]) -> ScoreTest:
    """Whether pairs that drifted in the ways `one` follow the curve of those and of `two`, places
    in `rankdrift.counts.tables.DRIFTS`."""
    both, part = data.pooled.drifting((*one, *two)), data.pooled.drifting(one)
    if not len(part.pairs) or len(part.pairs) == len(both.pairs):
        if data.counts.options.get("time"):
            raise NotIdentified("hardly any pair was shown at two times that are known.")
        raise NotIdentified("the counts do not tell when pairs were shown.")
    return part_test(both, part, data.fitted)
