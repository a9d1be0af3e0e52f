"""The pairs that moved, split in two by how they moved: each half has a curve. Do they agree?"""

from dataclasses import replace

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.agreement import difference_of, difference_words, judge
from rankdrift.diagnosis.assumption import Data, Finding
from rankdrift.estimation.curves import Curve, Part
from rankdrift.estimation.fitting import fit


def halves_agree(
    data: Data,
    one: tuple[int, ...],
    two: tuple[int, ...],
    names: tuple[str, str],
    advice: str,
) -> Finding:
    """The curve of the pairs that drifted in the ways `one` against that of the ways `two`.

    Parameters
    ----------
    data
        The counts, and how to fit a curve to them.
    one, two
        Places in `rankdrift.counts.tables.DRIFTS`: which pairs each half has.
    names
        Of the halves, as the words call them.
    advice
        What to do if the curves differ.
    """
    first, second = data.counts.drifting(one), data.counts.drifting(two)
    if not len(first.pairs) or not len(second.pairs):
        return Finding(
            Verdict.UNKNOWN,
            "The counts do not tell when a pair was shown.",
            "Harvest with a day column that holds the time of day, or with --time.",
        )
    options = replace(
        data.options, curve=_coarser(data.fitted.curve, min(first.n_clicks, second.n_clicks))
    )
    difference = difference_of(fit(first, options), fit(second, options), options.reference)
    verdict = judge(difference)
    return Finding(
        verdict,
        f"Curves from {names[0]} and from {names[1]}: {difference_words(difference)}.",
        advice if verdict != Verdict.GOOD else "",
        difference,
    )


def _coarser(curve: Curve, clicks: int) -> Curve:
    """Half the data bear fewer knots."""
    knots = (1, 3, 10, 50, 200) if clicks < 20_000 else (1, 2, 4, 8, 20, 50, 100, 200)
    return Curve((Part("loglog", knots), *curve.parts[1:]))
