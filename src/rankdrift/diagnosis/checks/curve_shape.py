"""Can the curve follow the propensities, or do blocks of ranks lie beside it?"""

from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import chance_words, off_by
from rankdrift.diagnosis.agreement import plain_numbers
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Evidence, Finding
from rankdrift.estimation.part_test import curve_test


def check(data: Data) -> Finding:
    """A score test of blocks of ranks on top of the curve."""
    test = curve_test(data.fitted)
    curve = data.fitted.curve
    if test is None:
        return Finding(Verdict.GOOD, f"{curve} can follow every block of ranks.")
    noise = float((test.error[1:] ** 2).mean() ** 0.5) if len(test.error) > 1 else 0.0
    return Finding(
        None,
        f"Blocks of ranks lie no further from {curve} than chance explains "
        f"({chance_words(test.p_value)}).",
        alarm=f"Blocks of ranks lie beside {curve} ({chance_words(test.p_value)}), by "
        f"{off_by(test.beyond_noise)} at a typical rank: it is too stiff.",
        advice="Use --curve auto, or more knots.",
        wanted="Add days.",
        # A curve that is smoother than the data can tell is no fault: noise is not held against it.
        evidence=Evidence(test.p_value, test.beyond_noise),
        numbers={**plain_numbers(test), "noise": noise},
    )


ASSUMPTIONS.register(
    Assumption("curve", "Can the curve follow every block of ranks?", "nothing more", check)
)
