"""Does relevance stay the same between the appearances of a pair?

If it rose, pairs that moved up tell of a curve that is too steep, and pairs that moved down of one
that is too flat.
"""

from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.diagnosis.halves import halves_agree

UP, DOWN = (1, 2), (3, 4)  # places in DRIFTS


def check(data: Data) -> Finding:
    """The curve of pairs that moved up against that of pairs that moved down."""
    return halves_agree(
        data,
        UP,
        DOWN,
        ("pairs whose item moved up", "pairs whose item moved down"),
        "Relevance seems to rise or fall between appearances. Add columns that must be equal "
        "(--same price), leave out items whose relevance changes by itself (--where), or take "
        "appearances closer in time.",
    )


ASSUMPTIONS.register(
    Assumption(
        "moved up against moved down",
        "Do pairs that moved up tell the same curve as pairs that moved down?",
        "the time of day of each row",
        check,
    )
)
