"""Counts -> Propensities with a prior on relevance: draws of the posterior, or NotConverged."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from rankdrift.core.errors import (
    BadOption,
    NotConverged,
    NotIdentified,
    NoUsablePairs,
    Remark,
    did_you_mean,
)
from rankdrift.core.rank_blocks import half_octave_of
from rankdrift.core.types import Bools, Floats, Indices, Ranks
from rankdrift.core.version import __version__
from rankdrift.core.words import many, ranges, verb
from rankdrift.counts.counts import Counts, Pairs, Singles
from rankdrift.estimation.bayes.cells import Terms, join, moved_terms, single_terms
from rankdrift.estimation.bayes.convergence import (
    LEAST_ESS,
    MOST_R_HAT,
    Convergence,
    convergence,
)
from rankdrift.estimation.bayes.model import Layout, Posterior, knots_of
from rankdrift.estimation.bayes.sampling import Sampler, find_mode
from rankdrift.estimation.fitted_curve import counts_provenance
from rankdrift.propensities.propensities import ENOUGH_CLICKS, Propensities

Relevance = Literal["rank", "column", "same"]
"""What the prior mean of a pair's relevance depends on."""
RELEVANCE: tuple[Relevance, ...] = get_args(Relevance)
WORDS = {
    "rank": "relevance by usual rank",
    "column": "relevance of pairs at one rank by {}",
    "same": "one prior of relevance for all pairs",
}
DRAWS = 2000
CHAINS = 4
WARM_UP = 300  # draws of each chain
LONGEST = 4  # times as many draws as were asked for, before it is given up
FEWEST, MOST = 800, 100_000  # draws that may be asked for


@dataclass(frozen=True)
class Options:
    """relevance: what its prior mean depends on; draws of all chains together; reference: the rank
    whose propensity is 1; seed: of all that is drawn."""

    relevance: str = "rank"
    draws: int = DRAWS
    reference: int = 1
    seed: int = 0

    def check(self) -> None:
        """Raise BadOption for what cannot be done."""
        if self.relevance not in RELEVANCE:
            raise BadOption(
                f"relevance is {self.relevance!r}.{did_you_mean(str(self.relevance), RELEVANCE)} "
                f"Use {', '.join(map(repr, RELEVANCE))}."
            )
        if not FEWEST <= self.draws <= MOST:
            raise BadOption(
                f"draws is {self.draws:,}. Use {FEWEST:,} to {MOST:,}: fewer cannot be checked for "
                "convergence."
            )


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the posterior is of: cells of groups, and by rank (R,) how many pairs were shown there,
    how many clicks they got and how many misses they had. concentration, shares: as of `Layout`;
    rates (G,): clicks an appearance of pairs at one rank, where there are such."""

    ranks: Ranks
    terms: Terms
    pairs: Floats
    clicks: Floats
    misses: Floats
    concentration: Indices
    shares: Floats
    rates: Floats

    def layout(self) -> Layout:
        """Where the parameters of its posterior are."""
        return Layout(self.ranks, knots_of(self.ranks), self.concentration, self.shares)

    def start(self, layout: Layout) -> Floats:
        """Parameters in the middle of the prior, but for click rates, which are known."""
        x = np.zeros(layout.size)
        x[layout.at_knots] = -0.3 * np.log(layout.knots[1:] / layout.knots[0])
        x[layout.groups] = np.where(layout.given, -2.0, np.log(self.rates))
        return x

    def posterior(self) -> Posterior:
        """The density of its posterior."""
        return Posterior(self.layout(), self.terms, self.clicks)


def estimate_posterior(counts: Counts, options: Options) -> Propensities:
    """The propensities as the mean of their posterior, with draws of it.

    Parameters
    ----------
    counts
        Of one curve; their segments are taken together.
    options
        Checked.
    """
    evidence = evidence_of(counts, options.relevance)
    ranks = evidence.ranks
    if options.reference not in ranks:
        raise NotIdentified(
            f"The reference rank {options.reference} is none of the ranks that can be compared "
            f"({ranges(ranks.tolist())}). Choose one of them with --reference."
        )
    posterior = evidence.posterior()
    layout = posterior.layout
    mode = find_mode(posterior, evidence.start(layout))
    sampler = Sampler(posterior, mode, chains=CHAINS, seed=options.seed)
    sampler.warm_up(WARM_UP)
    each = -(-options.draws // CHAINS)
    place = int(np.searchsorted(ranks, options.reference))
    drawn = np.empty((0, CHAINS, layout.size))
    for _ in range(LONGEST):
        drawn = np.concatenate([drawn, sampler.draw(each)])
        log_p = layout.log_p(drawn)
        log_p -= log_p[..., [place]]
        reached = convergence(np.concatenate([drawn, log_p], axis=2))
        if reached.reached:
            break
    found = _propensities(counts, evidence, log_p, reached, options)
    if not reached.reached:
        raise _not_converged(found, reached, log_p.shape[0] * CHAINS)
    return found


def evidence_of(counts: Counts, relevance: str) -> Evidence:
    """What the posterior is of, from counts whose segments are taken together."""
    if counts.options.get("restrict", {}).get("strict"):
        raise BadOption(
            "These counts were restricted to pairs with exactly one click. A posterior needs pairs "
            "chosen by where they were shown, not by how often they were clicked: use the counts "
            "as they were harvested."
        )
    if relevance == "column" and _prior(counts) is None:
        raise BadOption(
            "relevance 'column' needs counts that have pairs at one rank by a column. Harvest with "
            "--prior NAME --prior-cuts N,…, or use relevance 'rank'."
        )
    pairs = counts.pairs
    if not len(pairs) and len(counts.rank_pairs):
        raise NoUsablePairs(
            f"All usable pairs were shown more than {counts.max_shown} times: counts keep such two "
            "ranks at a time, which is no likelihood. Harvest with a larger --max-shown, up to 16, "
            "or over fewer days; the plain curve (--method likelihood) uses them as they are."
        )
    if not len(pairs):
        raise NoUsablePairs(
            f"The counts list no usable pair ({many(counts.funnel.rows, 'row')} "
            f"{verb(counts.funnel.rows, 'was', 'were')} read). A pair must appear at two ranks and "
            "get a click: see `rankdrift inspect`, or add days."
        )
    singles = counts.singles.take(counts.singles.shown > 0)
    _tell_left_out(counts)
    of = pairs.shown >> 1
    ranks = np.unique(of[of > 0]).astype(np.int32)
    if relevance == "rank":
        singles = singles.take(np.isin(singles.rank, ranks))
    else:
        ranks = np.union1d(ranks, singles.rank).astype(np.int32)
    moved, at_one = _groups(pairs, singles, relevance)
    terms = [moved_terms(pairs, moved, ranks)]
    shown, clicks, misses = _by_rank(pairs, ranks)
    if len(singles):
        of_singles = (singles.rank, at_one, singles.shown, singles.clicked, singles.pairs)
        terms.append(single_terms(*of_singles, ranks))
        place = np.searchsorted(ranks, singles.rank)
        for total, each in (
            (shown, np.ones(len(singles))),
            (clicks, singles.clicked),
            (misses, singles.shown - singles.clicked),
        ):
            total += np.bincount(place, singles.pairs * each, len(ranks))
    groups = int(max(moved.max(), at_one.max(initial=0))) + 1
    shares = np.zeros((groups, len(ranks)))
    np.add.at(shares, (at_one, np.searchsorted(ranks, singles.rank)), singles.shown * singles.pairs)
    won = np.bincount(at_one, singles.clicked * singles.pairs, groups)
    rates = (won + 1) / (shares.sum(axis=1) + 10)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    return Evidence(
        ranks,
        join(terms),
        shown,
        clicks,
        misses,
        (~np.isin(np.arange(groups), moved)).astype(np.intp),
        shares,
        rates,
    )


def _groups(pairs: Pairs, singles: Singles, relevance: str) -> tuple[Indices, Indices]:
    """(P,) and (S,): the group of each row's relevance, places from 0, those of pairs that moved
    first. Whether these are as relevant as pairs that did not is not taken for granted, unless all
    are taken to be the same."""
    if relevance == "same":
        return np.zeros(len(pairs), np.intp), np.zeros(len(singles), np.intp)
    names, moved = np.unique(usual_block(pairs), return_inverse=True)
    by = singles.rank if relevance == "rank" else singles.group
    _, at_one = np.unique(by, return_inverse=True)
    return moved, len(names) + at_one


def usual_block(pairs: Pairs) -> Indices:
    """(P,): the half octave of the mean log rank that each row's pairs were shown at."""
    logs = np.log(np.maximum(pairs.shown >> 1, 1)).sum(axis=1) / pairs.appearances
    return half_octave_of(np.rint(np.exp(logs)).astype(np.int64))


def _by_rank(pairs: Pairs, ranks: Ranks) -> tuple[Floats, Floats, Floats]:
    """(R,) each: pairs shown at a rank, clicks and misses there."""
    row, column = np.nonzero(pairs.shown)
    code, weight = pairs.shown[row, column], pairs.pairs[row].astype(np.float64)
    place = np.searchsorted(ranks, code >> 1)
    first = np.ones(len(row), bool)
    first[1:] = (row[1:] != row[:-1]) | (place[1:] != place[:-1])
    clicked = (code & 1).astype(np.float64)
    shown, clicks, misses = (
        np.bincount(place, weight * each, len(ranks)).astype(np.float64)
        for each in (first.astype(np.float64), clicked, 1 - clicked)
    )
    return shown, clicks, misses


def _prior(counts: Counts) -> str | None:
    """The column that counts have pairs at one rank by."""
    found = counts.options.get("singles", {}).get("prior")
    return None if found is None else str(found)


def _tell_left_out(counts: Counts) -> None:
    if not len(counts.rank_pairs):
        return
    known = counts.n_overflow
    some = "Pairs" if known is None else many(known, "pair")
    warnings.warn(
        f"{some} shown more than {counts.max_shown} times {verb(known or 2, 'is', 'are')} left "
        "out: counts keep them two ranks at a time, which is no likelihood. A harvest with a "
        "larger --max-shown, up to 16, lists more of them.",
        Remark,
        stacklevel=5,
    )


def _supported(evidence: Evidence, layout: Layout) -> Bools:
    """(R,): enough clicks and misses at the ranks that its knots serve."""
    logs = np.log(layout.ranks.astype(float))
    edges = np.log(layout.knots.astype(float))
    left = np.clip(np.searchsorted(edges, logs, side="right") - 1, 0, len(edges) - 2)
    serves = np.zeros((len(logs), len(edges)), bool)
    serves[np.arange(len(logs)), left] = serves[np.arange(len(logs)), left + 1] = True
    exact = np.isin(layout.ranks, layout.knots)
    serves[exact] = layout.knots == layout.ranks[exact, None]
    enough = np.minimum(evidence.clicks, evidence.misses) @ serves >= ENOUGH_CLICKS
    return np.asarray((~serves | enough).all(axis=1))


def _propensities(
    counts: Counts, evidence: Evidence, log_p: Floats, reached: Convergence, options: Options
) -> Propensities:
    """From draws of log p (S, C, R) relative to the reference."""
    flat = log_p.reshape(-1, log_p.shape[2])
    kept = flat[np.linspace(0, len(flat) - 1, min(options.draws, len(flat))).round().astype(int)]
    mean = kept.mean(axis=0)
    layout = evidence.layout()
    shown = counts.by_rank.rank[counts.by_rank.impressions > 0]
    outside = np.setdiff1d(shown, evidence.ranks)
    return Propensities(
        ranks=evidence.ranks,
        log_p=mean,
        deviations=((kept - mean) / np.sqrt(len(kept))).T,
        pairs=np.rint(evidence.pairs).astype(np.int64),
        clicks=np.rint(evidence.clicks).astype(np.int64),
        supported=_supported(evidence, layout),
        reference=options.reference,
        method=f"bayes, {WORDS[options.relevance].format(_prior(counts))}",
        errors="posterior",
        parameters=layout.size,
        gaps=dict.fromkeys(outside.tolist(), "no clicked pair moved there or away"),
        provenance={
            "version": __version__,
            "method": "bayes",
            "relevance": options.relevance,
            "pairs_at_one_rank": int(counts.singles.pairs[counts.singles.shown > 0].sum()),
            "knots": layout.knots.tolist(),
            "draws": len(flat),
            "chains": CHAINS,
            "seed": options.seed,
            **reached.worst,
            "counts": counts_provenance(counts),
        },
    )


def _not_converged(found: Propensities, reached: Convergence, draws: int) -> NotConverged:
    worst = reached.worst
    error = NotConverged(
        f"After {draws:,} draws the posterior has not converged: the largest R-hat is "
        f"{worst['r_hat']:.3f} (below {MOST_R_HAT} wanted) and the smallest effective sample size "
        f"{min(worst['ess_bulk'], worst['ess_tail']):.0f} (above {LEAST_ESS:.0f} wanted). Ask for "
        "more draws, another seed, or fewer ranks (--max-rank); the error's `partial` has what was "
        "drawn."
    )
    error.partial = found
    return error
