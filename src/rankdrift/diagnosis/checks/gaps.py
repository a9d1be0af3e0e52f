"""Does relevance stay the same within a day?"""

from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.diagnosis.halves import halves_agree

SHORT, LONG = (1, 3), (2, 4)  # places in DRIFTS


def check(data: Data) -> Finding:
    """The curve of pairs shown within an hour against that of pairs shown over longer."""
    return halves_agree(
        data,
        SHORT,
        LONG,
        ("pairs shown within an hour", "pairs shown over longer"),
        "Appearances far apart give another curve than those close together: relevance seems to "
        "change within a day. Trust the short gaps (Counts.drifting), or add columns that must be "
        "equal (--same).",
    )


ASSUMPTIONS.register(
    Assumption(
        "short against long gaps",
        "Do pairs shown within an hour tell the same curve as pairs shown over longer?",
        "the time of day of each row",
        check,
    )
)
