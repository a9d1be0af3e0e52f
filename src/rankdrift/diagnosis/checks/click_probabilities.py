"""Are clicks so rare that the paper's likelihood, which drops their products, would do too?"""

from dataclasses import replace

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import difference_of, difference_words, judge
from rankdrift.diagnosis.assumption import ASSUMPTIONS, Assumption, Data, Finding
from rankdrift.estimation.fitting import fit


def check(data: Data) -> Finding:
    """The curve from every click against the paper's, from pairs with a single click."""
    single = fit(data.counts, replace(data.options, clicks="single"))
    difference = difference_of(data.fitted, single, data.options.reference)
    # The default does not need the assumption, so this is never serious.
    good = judge(difference) == Verdict.GOOD
    return Finding(
        Verdict.GOOD if good else Verdict.CAUTION,
        "Curves from every click and from pairs with a single click: "
        f"{difference_words(difference)}.",
        ""
        if good
        else "Clicks are too frequent for the paper's likelihood (clicks='single'). Stay with "
        "clicks='every', which does not need them to be rare.",
        difference,
    )


ASSUMPTIONS.register(
    Assumption(
        "click probabilities",
        "Are clicks rare enough for the paper's likelihood?",
        "pairs with a single click",
        check,
    )
)
