"""diagnose: do the assumptions hold on this data, and what to do if not?"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rankdrift.core.errors import BadOption, RankdriftError, did_you_mean
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.verdicts import Verdict
from rankdrift.core.words import many
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.agreement import judge
from rankdrift.diagnosis.assumption import Assumption, Data, Finding
from rankdrift.diagnosis.checks import ASSUMPTIONS
from rankdrift.diagnosis.verdict import holm, overall, told_thin, unseen
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.identification import best_reference
from rankdrift.harvesting.taking import take_counts
from rankdrift.log.log import Log

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

ADD = "Add days"  # as advice begins where there are too few clicks
CLICKS_A_QUERY = 400  # from which on more of the same query tell little


@dataclass(frozen=True)
class Check:
    """A check that was made: of which assumption, and what was found.

    Attributes
    ----------
    name
        Of the check, such as "fit".
    verdict
        "good", "caution", "serious", or "cannot tell" where the counts do not allow the check, or
        are too few for it to see a difference that would matter.
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

    def __repr__(self) -> str:
        return brief(self, f"{self.name} is {self.verdict}", self.words)


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
        """Of all checks together: "serious" or "caution" if one of them is; "good" only if every
        danger was looked at closely enough to see a bias of 10%; else "cannot tell"."""
        worst = {assumption.name: assumption.worst for assumption in ASSUMPTIONS}
        return overall({check.name: check.verdict for check in self.checks}, worst)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What could not be told, and what to do to know, the cheapest first; a sentence each. That
        too few clicks are behind the curve itself is the first of them."""
        verdicts = {check.name: check.verdict for check in self.checks}
        instead = {}
        for check in self.checks:
            if "p_value" in check.numbers or check.numbers.get("logged"):
                instead[check.name] = check.advice or "Add days."
        thin = [
            told_thin(check.words, check.advice)
            for check in self.checks
            if check.name == "support" and check.verdict == Verdict.CANNOT_TELL
        ]
        return (*thin, *(danger.told(instead) for danger in unseen(verdicts)))

    def plot(self, check: str | None = None) -> "Figure":
        """Draw the checks at their p-values, or what one of them found rank by rank.

        Parameters
        ----------
        check
            The name of one that compared two curves, such as "score".

        Returns
        -------
        Figure
            Its `save` writes .png, .svg or .html.
        """
        from rankdrift.charts.checks import checks_chart
        from rankdrift.charts.difference import difference_chart
        from rankdrift.charts.style import Figure

        if check is None:
            return Figure(checks_chart(self))
        made = {one.name: one for one in self.checks}
        if check not in made:
            raise BadOption(
                f"No check {check!r} was made.{did_you_mean(check, made)} There are "
                f"{', '.join(made)}."
            )
        return Figure(difference_chart(made[check]))

    def __repr__(self) -> str:
        asides = {check.name for check in ASSUMPTIONS if check.worst == Verdict.GOOD}
        bad = (Verdict.CAUTION, Verdict.SERIOUS)
        objects = [c.name for c in self.checks if c.verdict in bad and c.name not in asides]
        return brief(
            self,
            f"{self.verdict}",
            many(len(self.checks), "check"),
            f"against it: {', '.join(objects)}" if objects else "",
        )

    def _repr_html_(self) -> str:
        return html_table(
            ["check", "verdict", "what was found", "what to do"],
            ((check.name, check.verdict, check.words, check.advice) for check in self.checks),
            " ".join([f"All in all: {self.verdict}.", *self.unseen]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict and the checks as plain values, as `rankdrift diagnose --json` prints; a
        number that is not known is None."""
        return {
            "verdict": self.verdict.value,
            "unseen": list(self.unseen),
            "checks": [
                {**vars(check), "verdict": str(check.verdict), "numbers": _known(check.numbers)}
                for check in self.checks
            ],
        }


def _known(value: Any) -> Any:
    """With None for numbers that are not finite, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@names_checked
def diagnose(
    counts: Counts | Log | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    curve: str = "auto",
    reference: int | None = None,
) -> Diagnosis:
    """Check whether what the estimate assumes holds on these counts, and say what to do if not.

    A check gives a verdict, words, advice and numbers. One that tests for a difference asks for
    both size and certainty: it is serious beyond 10% with p below 0.001, and calls for caution
    beyond 5% with p below 0.04, all checks together taken into account. A check that these counts
    do not allow, or that leaves a bias of 10% open, says "cannot tell" and what is lacking.

    Parameters
    ----------
    counts
        From `harvest`, or where they are, or a log, as in `estimate`. What they were harvested with
        decides what can be told: the time of day, the ranker's score, the ranker, the user, what
        came after a click, several days.
    curve
        The curve whose assumptions are checked, as in `estimate`.
    reference
        The rank whose propensity is 1; by default as in `estimate`.

    Returns
    -------
    Diagnosis
        Its `verdict` is for all checks together, its `unseen` says what could not be told, and its
        `checks` are in the order of `rankdrift.diagnosis.checks`.

    Raises
    ------
    RankdriftError
        Where the counts bear no estimate at all: no usable pair, or a reference that cannot be
        compared with other ranks.

    Examples
    --------
    >>> found = rankdrift.diagnose("counts.parquet")  # doctest: +SKIP
    >>> for check in found.checks:  # doctest: +SKIP
    ...     print(f"{check.verdict:8} {check.name}: {check.words}")
    """
    counts = take_counts(counts)
    options = Options(curve=curve, reference=reference or best_reference(counts))
    fitted = fit(counts, options)
    # The same curve in every other fit, so that parameters mean the same.
    data = Data(counts, replace(options, curve=fitted.curve), fitted)
    asked = [assumption for assumption in ASSUMPTIONS if assumption.asked_of(counts)]
    for assumption in asked:
        data.found[assumption.name] = _made(assumption, data)
    more = _more(data.pooled)
    return Diagnosis(
        tuple(
            replace(check, advice=check.advice.replace(ADD, more))
            for check in _judged(asked, list(data.found.values()))
        )
    )


def _more(counts: Counts) -> str:
    """What there should be more of: days or, where there are clicks enough, but of a few queries,
    queries. A bucket that has any then has about one."""
    used = len({*counts.pairs.bucket.tolist(), *counts.rank_pairs.bucket.tolist()})
    if 2 * used > counts.buckets or counts.n_clicks < CLICKS_A_QUERY * used:
        return ADD
    return f"Log more queries (all {counts.n_clicks:,} clicks are of about {used})"


def _made(assumption: Assumption, data: Data) -> Finding:
    try:
        return assumption.check(data)
    except RankdriftError as error:
        words = f"Could not be told: {error}"
        logged = bool(data.counts.options.get(assumption.role))
        wanted = assumption.more if logged else assumption.wanted
        numbers = {"logged": True} if logged else {}
        return Finding(Verdict.CANNOT_TELL, words, wanted=wanted, numbers=numbers)


def _judged(assumptions: list[Assumption], findings: list[Finding]) -> Iterator[Check]:
    """Each finding with its verdict; those for information do not make others harder to find."""
    counted = [
        (finding.evidence.p_value, assumption.weight)
        for assumption, finding in zip(assumptions, findings, strict=True)
        if finding.evidence and assumption.worst != Verdict.GOOD
    ]
    adjusted = iter(holm(*zip(*counted, strict=True)) if counted else [])
    for assumption, finding in zip(assumptions, findings, strict=True):
        verdict, found = finding.verdict, finding.evidence
        if found:
            told = assumption.worst == Verdict.GOOD
            p_value = found.p_value if told else next(adjusted)
            verdict = judge(p_value, found.size, found.reach, assumption.worst)
        assert verdict is not None
        alarmed = verdict in (Verdict.CAUTION, Verdict.SERIOUS)
        yield Check(
            assumption.name,
            verdict,
            finding.alarm if alarmed and finding.alarm else finding.words,
            finding.advice if alarmed else finding.wanted if verdict == Verdict.CANNOT_TELL else "",
            {**finding.numbers, **({"reach": found.reach} if found else {})},
        )
