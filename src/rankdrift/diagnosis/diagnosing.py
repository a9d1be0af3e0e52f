"""diagnose: do the assumptions hold on this data, and what to do if not?"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rankdrift.core.errors import RankdriftError
from rankdrift.core.verdicts import Verdict
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.assumption import Assumption, Data, Finding
from rankdrift.diagnosis.checks import ASSUMPTIONS
from rankdrift.diagnosis.verdict import overall
from rankdrift.estimation.fitting import Options, fit

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure


@dataclass(frozen=True)
class Check:
    """A check that was made: of which assumption, and what was found.

    Attributes
    ----------
    name
        Of the check, such as "fit".
    verdict
        "good", "caution", "serious", or "unknown" where the counts do not allow the check.
    words
        What was found, in a sentence or two.
    advice
        What to do about it; empty where there is nothing to do.
    numbers
        What the verdict rests on, plain values by name, such as `p_value`.
    """

    name: str
    verdict: Verdict
    words: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """Every check that was made, in order; a table in a notebook.

    Attributes
    ----------
    checks
        Of each assumption what was found.
    """

    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """That of the worst check; checks that could not be made do not count."""
        return overall(check.verdict for check in self.checks)

    def plot(self) -> "Figure":
        """The checks at their p-values; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.checks import checks_chart
        from rankdrift.charts.style import Figure

        return Figure(checks_chart(self))

    def _repr_html_(self) -> str:
        from rankdrift.core.notebook import html_table

        return html_table(
            ["check", "verdict", "what was found", "what to do"],
            ((check.name, check.verdict, check.words, check.advice) for check in self.checks),
            f"All in all: {self.verdict}",
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict and the checks as plain values, as `rankdrift diagnose --json` prints."""
        return {
            "verdict": self.verdict.value,
            "checks": [{**vars(check), "verdict": str(check.verdict)} for check in self.checks],
        }


def diagnose(counts: Counts, *, curve: str = "auto", reference: int = 1) -> Diagnosis:
    """Check whether what the estimate assumes holds on these counts, and say what to do if not.

    A check gives a verdict, words, advice and numbers. One that compares two curves asks for both
    size and certainty: a difference is serious if it is beyond 10% with p below 0.001. A check that
    these counts do not allow is "unknown" and says what they lack; "segments" is made of counts
    that are split by segment only.

    Parameters
    ----------
    counts
        From `harvest`, or loaded. Harvested with the time of day, they tell which way and over how
        long pairs moved, which two of the checks need.
    curve
        The curve whose assumptions are checked, as in `estimate`.
    reference
        The rank whose propensity is 1.

    Returns
    -------
    Diagnosis
        Its `verdict` is that of the worst check. `checks` are, in this order: "click
        probabilities", "moved up against moved down", "short against long gaps", "fit", "curve",
        "support", "period" and "segments".

    Raises
    ------
    RankdriftError
        Where the counts bear no estimate at all: no usable pair, or a reference that cannot be
        compared with other ranks.

    Examples
    --------
    >>> found = rankdrift.diagnose(rankdrift.Counts.load("counts.parquet"))  # doctest: +SKIP
    >>> for check in found.checks:  # doctest: +SKIP
    ...     print(f"{check.verdict:8} {check.name}: {check.words}")
    """
    options = Options(curve=curve, reference=reference)
    fitted = fit(counts, options)
    # The same curve in every other fit, so that parameters mean the same.
    data = Data(counts, replace(options, curve=fitted.curve), fitted)
    return Diagnosis(
        tuple(_made(assumption, data) for assumption in ASSUMPTIONS if assumption.asked_of(counts))
    )


def _made(assumption: Assumption, data: Data) -> Check:
    try:
        found = assumption.check(data)
    except RankdriftError as error:
        found = Finding(Verdict.UNKNOWN, f"Could not be told: {error}")
    return Check(assumption.name, **vars(found))
