"""diagnose: do the assumptions hold on this data, and what to do if not?

Each check gives a number, a verdict and advice. Two estimates from the same queries are compared
by how they move together from bucket to bucket, so that what they share cancels.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.core.errors import NotIdentified, RankdriftError
from rankdrift.core.rank_blocks import DOUBLING, block_of
from rankdrift.core.words import ranges
from rankdrift.counts.connection import connection
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis.agreement import LIKELY, MATTERS, SURE, segments_words
from rankdrift.estimation.curves import Curve, Part
from rankdrift.estimation.fitting import Fitted, Options, fit
from rankdrift.estimation.hotelling import hotelling, hotelling_test
from rankdrift.estimation.likelihood import shares
from rankdrift.estimation.newton import maximise

if TYPE_CHECKING:
    from rankdrift.charts.curve import Figure

GOOD, CAUTION, SERIOUS, UNKNOWN = "good", "caution", "serious", "unknown"


@dataclass(frozen=True)
class Check:
    name: str
    verdict: str
    words: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> str:
        found = {check.verdict for check in self.checks}
        return next((v for v in (SERIOUS, CAUTION) if v in found), GOOD)

    def plot(self) -> "Figure":
        """The checks at their p-values; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.checks import checks_chart
        from rankdrift.charts.curve import Figure

        return Figure(checks_chart(self))

    def _repr_html_(self) -> str:
        from rankdrift.core.notebook import html_table

        return html_table(
            ["check", "verdict", "what was found", "what to do"],
            ((check.name, check.verdict, check.words, check.advice) for check in self.checks),
            f"All in all: {self.verdict}",
        )

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "checks": [vars(check) for check in self.checks]}


def diagnose(counts: Counts, *, curve: str = "loglog", reference: int = 1) -> Diagnosis:
    """Every check that these counts allow."""
    options = Options(curve=curve, reference=reference)
    base = fit(counts, options)
    # The same curve in every comparison, so that parameters mean the same.
    options = replace(options, curve=base.curve)
    checks: dict[str, Callable[[], Check]] = {
        "click probabilities": lambda: _click_sizes(counts, base, options),
        "moved up against moved down": lambda: _direction(counts, options),
        "short against long gaps": lambda: _gap(counts, options),
        "fit": lambda: _goodness(base),
        "curve": lambda: _sufficiency(counts, base, options),
        "support": lambda: _support(counts, base),
        "period": lambda: _period(base),
    }
    if counts.segment_columns:
        checks["segments"] = lambda: _segments(counts, options)
    return Diagnosis(tuple(_tried(name, check) for name, check in checks.items()))


def _tried(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except RankdriftError as error:
        return Check(name, UNKNOWN, f"Could not be told: {error}")


# -- two estimates of one curve ----------------------------------------------------------------


def _compared(a: Fitted, b: Fitted, reference: int) -> dict[str, Any]:
    """b against a: how far apart, where most, and how surprising that is."""
    found = hotelling_test([a, b], reference)
    if not found.df:
        raise NotIdentified("All comparisons come from one bucket of queries. Add queries.")
    off = np.abs(found.off[0])
    return {
        "beyond_noise": found.beyond_noise,
        "largest": float(np.expm1(off.max())),
        "at_rank": int(found.ranks[off.argmax()]),
        "statistic": found.statistic,
        "df": found.df,
        "df_error": found.df_error,
        "p_value": found.p_value,
    }


def _judge(numbers: dict[str, Any]) -> str:
    """By how surely there is a difference, and how large it is once noise is taken off."""
    p_value, size = numbers["p_value"], numbers["beyond_noise"]
    if p_value < SURE and size > MATTERS:
        return SERIOUS
    return CAUTION if p_value < LIKELY and size > MATTERS / 2 else GOOD


def _told(numbers: dict[str, Any]) -> str:
    """The same that `_judge` says, in words."""
    chance = f"(p = {numbers['p_value']:.2g})"
    most = f"at most by {numbers['largest']:.0%} with noise (rank {numbers['at_rank']})"
    if numbers["p_value"] >= LIKELY:
        return f"they differ by no more than chance explains {chance}, {most}"
    little = ", but little" if _judge(numbers) == GOOD else ""
    return (
        f"they differ {chance}{little}: beyond noise by {numbers['beyond_noise']:.1%} at a typical "
        f"rank, {most}"
    )


# -- the checks --------------------------------------------------------------------------------


def _click_sizes(counts: Counts, every: Fitted, options: Options) -> Check:
    """The paper drops products of click probabilities; counting every click does not."""
    single = fit(counts, replace(options, clicks="single"))
    numbers = _compared(every, single, options.reference)
    # The default does not lean on the assumption, so this is never serious.
    verdict = GOOD if _judge(numbers) == GOOD else CAUTION
    advice = ""
    if verdict != GOOD:
        advice = (
            "Clicks are too frequent for the paper's likelihood (clicks='single'). Stay with "
            "clicks='every', which does not need them to be rare."
        )
    return Check(
        "click probabilities", verdict,
        f"Curves from every click and from pairs with a single click: {_told(numbers)}.",
        advice, numbers,
    )  # fmt: skip


def _halves(
    counts: Counts, options: Options, name: str, one: tuple[int, ...], two: tuple[int, ...],
    words: tuple[str, str], advice: str,
) -> Check:  # fmt: skip
    first, second = counts.drifting(one), counts.drifting(two)
    if not len(first.pairs) or not len(second.pairs):
        return Check(
            name, UNKNOWN,
            "The counts do not tell when a pair was shown.",
            "Harvest with a day column that holds the time of day, or with --time.",
        )  # fmt: skip
    curve = _coarser(options.curve, min(first.n_clicks, second.n_clicks))
    a = fit(first, replace(options, curve=curve))
    b = fit(second, replace(options, curve=curve))
    numbers = _compared(a, b, options.reference)
    verdict = _judge(numbers)
    told = f"Curves from {words[0]} and from {words[1]}: {_told(numbers)}."
    return Check(name, verdict, told, advice if verdict != GOOD else "", numbers)


def _coarser(curve: Any, clicks: int) -> Curve:
    """Half the data bear fewer knots."""
    knots = (1, 3, 10, 50, 200) if clicks < 20_000 else (1, 2, 4, 8, 20, 50, 100, 200)
    more = curve.parts[1:] if isinstance(curve, Curve) else ()
    return Curve((Part("loglog", knots), *more))


def _direction(counts: Counts, options: Options) -> Check:
    return _halves(
        counts, options, "moved up against moved down", (1, 2), (3, 4),
        ("pairs whose item moved up", "pairs whose item moved down"),
        "Relevance seems to rise or fall between appearances. Add columns that must be equal "
        "(--same price), leave out items whose relevance changes by itself (--where), or take "
        "appearances closer in time.",
    )  # fmt: skip


def _gap(counts: Counts, options: Options) -> Check:
    return _halves(
        counts, options, "short against long gaps", (1, 3), (2, 4),
        ("pairs shown within an hour", "pairs shown over longer"),
        "Appearances far apart give another curve than those close together: relevance seems to "
        "change within a day. Trust the short gaps (Counts.drifting), or add columns that must be "
        "equal (--same).",
    )  # fmt: skip


def _goodness(base: Fitted) -> Check:
    """Observed against expected wins between blocks of ranks."""
    theta, terms = base.fit.theta, base.likelihood
    in_block, many = block_of(terms.ranks, DOUBLING), len(DOUBLING)
    residual = np.zeros((terms.buckets, many * many))
    expected = np.zeros(many * many)
    weight = np.zeros(many * many)
    slope = np.zeros((many * many, len(base.fit.phi)))
    basis = base.fit.basis
    for block in terms.blocks:
        if len(block.shown) != 2:
            continue
        share = shares(block.shown, theta)[0]
        first, second = block.shown
        cell = in_block[first] * many + in_block[second]
        np.add.at(residual, (block.bucket, cell), block.won[0] - block.weight * share)
        expected += np.bincount(cell, weights=block.weight * share, minlength=many * many)
        weight += np.bincount(cell, weights=block.weight, minlength=many * many)
        change = (block.weight * share * (1 - share))[:, None] * (basis[first] - basis[second])
        np.add.at(slope, cell, change)
    scores = terms.bucket_scores(theta) @ basis
    adjusted = residual - scores @ np.linalg.solve(base.fit.information, slope.T)
    # Two blocks that a parameter is there for alone fit exactly, and what is left is rounding.
    free = (adjusted**2).sum(axis=0) > 1e-9 * (residual**2).sum(axis=0)
    used = (weight >= 50) & free
    if used.sum() < 2:
        return Check("fit", UNKNOWN, "Too few comparisons between blocks of ranks.", "Add days.")
    total = residual.sum(axis=0)
    by_cluster = adjusted[terms.touched][:, used]
    statistic, df, df_error, p_value = hotelling(
        total[used], len(by_cluster) * np.cov(by_cluster, rowvar=False), len(by_cluster)
    )
    off = total[used] / weight[used]
    worst = int(np.argmax(np.abs(off) * np.sqrt(weight[used])))
    a, b = divmod(int(np.flatnonzero(used)[worst]), many)
    numbers = {
        "statistic": statistic, "df": df, "df_error": df_error, "p_value": p_value,
        "observed": float((total[used] + expected[used])[worst] / weight[used][worst]),
        "expected": float(expected[used][worst] / weight[used][worst]),
    }  # fmt: skip
    far = abs(numbers["observed"] - numbers["expected"]) > 0.03
    verdict = SERIOUS if p_value < SURE and far else CAUTION if p_value < LIKELY else GOOD
    names = [ranges(range(first, min(last, int(terms.ranks[-1])) + 1)) for first, last in DOUBLING]
    fits = "fit" if verdict == GOOD else "do not fit"
    words = (
        f"Wins between blocks of ranks {fits} the model (p = {p_value:.2g}); furthest off are "
        f"ranks {names[a]} against {names[b]}: {numbers['observed']:.1%} of clicks on the former, "
        f"{numbers['expected']:.1%} expected."
    )
    advice = (
        "Try curve='auto' or 'direct'; if the misfit stays, the position-based model itself is in "
        "doubt: split by segment, or filter more (--same, --where)."
    )
    return Check("fit", verdict, words, advice if verdict != GOOD else "", numbers)


def _sufficiency(counts: Counts, base: Fitted, options: Options) -> Check:
    """Does one parameter a rank say more than the curve?"""
    from scipy.special import chdtrc

    direct = fit(counts, replace(options, curve="direct"))
    inside = direct.likelihood.ranks
    basis = base.fit.basis[np.searchsorted(base.likelihood.ranks, inside)]
    curve = maximise(direct.likelihood, basis[:, basis.any(axis=0)])
    df = len(direct.fit.phi) - len(curve.phi)
    if df <= 0:
        return Check("curve", GOOD, "The curve has a parameter for every rank.")
    gain = 2 * (direct.fit.log_likelihood - curve.log_likelihood)
    # Clicks of one pair are not independent: scale by how much more than the model they vary.
    scores = direct.likelihood.bucket_scores(direct.fit.theta)[:, 1:]
    variance = np.einsum("gi,gi->i", scores, scores)
    scale = float((variance / np.diag(direct.fit.information)).mean()) or 1.0
    scale = max(scale, 1.0)
    p_value = float(chdtrc(df, gain / scale))
    # Mean square, over all comparisons, of how differently the two fits compare their ranks.
    off = direct.fit.theta - curve.theta
    information = direct.likelihood.at(direct.fit.theta).information()
    excess = max(0.0, float(off @ information @ off) - df * scale)
    beyond = float(np.expm1(np.sqrt(excess / (0.5 * np.trace(information)))))
    numbers = {"statistic": gain, "df": df, "p_value": p_value, "beyond_noise": beyond}
    sure = p_value < SURE and beyond > MATTERS / 2
    verdict = SERIOUS if sure and beyond > MATTERS else CAUTION if p_value < LIKELY else GOOD
    if verdict == GOOD:
        words = f"says no more than {base.curve} (p = {p_value:.2g})."
    else:
        words = (
            f"says more than {base.curve} (p = {p_value:.2g}): beyond noise they differ by "
            f"{beyond:.1%} in a typical comparison."
        )
    return Check(
        "curve", verdict, f"One parameter a rank {words}",
        "" if verdict == GOOD else "The curve is too stiff: use curve='auto' or more knots.",
        numbers,
    )  # fmt: skip


def _support(counts: Counts, base: Fitted) -> Check:
    supported = base.supported
    weak = base.likelihood.ranks[~supported]
    unclicked = base.likelihood.ranks[supported & (base.likelihood.wins == 0)]
    linked = connection(counts)
    numbers = {"weak": weak.tolist(), "without_clicks": unclicked.tolist(),
               "unconnected": list(linked.alone),
               "blocks": [list(b) for b in linked.blocks]}  # fmt: skip
    share = len(weak) / base.likelihood.size
    verdict = SERIOUS if share > 0.5 else CAUTION if share > 0 else GOOD
    words = f"{base.likelihood.size - len(weak)} of {base.likelihood.size} ranks are well supported"
    if len(unclicked):
        words += (
            f", {len(unclicked):,} of them only by others between the same knots of the curve, for "
            "they have no click of their own"
        )
    words += f"; thin: {ranges(weak.tolist())}." if len(weak) else "."
    advice = ""
    if share:
        advice = (
            "Add days, use a curve with fewer parameters (loglog, fewer knots), or stop at a "
            "smaller --max-rank."
        )
    return Check("support", verdict, words, advice, numbers)


def _period(base: Fitted) -> Check:
    from rankdrift.estimation.auto_curve import best_period

    period, gain = best_period(base.fit)
    numbers = {"period": period, "gain": gain}
    if period is None or gain <= 0:
        return Check("period", GOOD, "No further period in the curve.", "", numbers)
    return Check(
        "period", CAUTION,
        f"Propensities repeat every {period} ranks (BIC better by {gain:.0f}): results seem to be "
        f"loaded or paged {period} at a time.",
        f"Use curve='auto' or 'loglog + periodic({period})'.", numbers,
    )  # fmt: skip


def _segments(counts: Counts, options: Options) -> Check:
    from rankdrift.estimation.segments import estimate_by

    curve = estimate_by(counts, counts.segment_columns, options)
    found = curve.difference
    assert found
    numbers = {"statistic": found.statistic, "df": found.df, "p_value": found.p_value,
               "spread": found.spread}  # fmt: skip
    differ = found.p_value < SURE and found.spread > MATTERS / 2
    verdict = CAUTION if differ else GOOD
    by = ",".join(counts.segment_columns)
    return Check(
        "segments", verdict,
        f"By {by}. {segments_words(curve)}",
        f"Give each its own curve: --by {by}." if differ else "", numbers,
    )  # fmt: skip
