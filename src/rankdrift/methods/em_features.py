"""Regression EM: the position-based model with relevance a function of features.

Wang et al., "Position Bias Estimation for Unbiased Learning to Rank in Personal Search", WSDM 2018.
P(click) = p_rank z(x), z from a sum of LightGBM's trees. In turn: for given p, z is boosted from
nothing on the cross-entropy with the expected relevance as a soft label, which is renewed before
every tree; for given z, each p_rank is solved for. Trees split or do not, so p moves in small jumps
and settles to a tolerance, not to the last digit.

It is right if z can be learnt from the features and nothing but the features and chance decides
where a result is shown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.errors import BadOption, NoUsablePairs
from rankdrift.core.types import Bools, Floats, Indices, Ranks
from rankdrift.core.words import many
from rankdrift.counts.counts import BUCKETS
from rankdrift.methods.click_rates import NO_CLICKS
from rankdrift.methods.making_propensities import About, Evidence, by_deviations, place_of
from rankdrift.methods.rank_times_stratum import not_converged, solve_factor
from rankdrift.propensities.propensities import ENOUGH_CLICKS, Propensities
from rankdrift.ranking.backends import library
from rankdrift.ranking.matrix import Matrix

# What LightGBM keeps of a value and of a row, and what a round of EM keeps of a row, in bytes.
_VALUE, _ROW = 1, 100
_LEAST = np.float32(1e-6)  # chance of a miss
_LONGEST = 10.0  # times a step of EM
_SLOWEST = 0.02  # of what is left, a round
_FEW_ROWS = 50_000  # threads would wait for each other longer than they work


@dataclass(frozen=True)
class Options:
    """trees a round, leaves a tree, rounds at most; tolerance: how far log p may still have to go,
    relative to the reference, root of the mean square over clicks."""

    trees: int = 40
    leaves: int = 31
    learning_rate: float = 0.1
    rounds: int = 60
    tolerance: float = 0.005
    seed: int = 0
    threads: int | None = None

    def params(self) -> dict[str, Any]:
        """For LightGBM; the same trees in every run. The curvature of a leaf is what its rows tell
        of z, in clicks."""
        return {
            "objective": "none",
            "metric": "none",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
            "num_threads": self.threads or 0,
            "min_sum_hessian_in_leaf": ENOUGH_CLICKS,
        }


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as EM sees them: rank (N,) index into the ranks in use, click (N,), bucket (N,)."""

    rank: Indices
    click: Bools
    bucket: Indices
    ranks: int


@dataclass(frozen=True, eq=False)
class _Fit:
    """log_p (R,), the log-likelihood by round, and how far log p still had to go."""

    log_p: Floats
    path: tuple[float, ...]
    ahead: float


def regression_em(
    matrix: Matrix,
    *,
    reference: int = 1,
    trees: int = 40,
    leaves: int = 31,
    learning_rate: float = 0.1,
    rounds: int = 60,
    tolerance: float = 0.005,
    bootstrap: int = 10,
    seed: int = 0,
    threads: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Propensities:
    """Propensities by regression EM: relevance is a function of features, learnt by trees.

    It assumes that features tell all that relevance and rank have in common. Starts at the click
    rates by rank, and alternates between relevance for given p and p for given relevance. Too few
    trees leave relevance to the rank, and the curve is too steep; too many take chance for
    relevance, and it is too flat.

    Parameters
    ----------
    matrix
        Rows with features, from `rankdrift.read_matrix`.
    reference
        The rank whose propensity is 1.
    trees, leaves, learning_rate
        LightGBM's trees a round, leaves a tree, and what of each counts.
    rounds
        At most.
    tolerance
        Stops when log p has less than this to go, root of the mean square over clicks.
    bootstrap
        Refits with queries reweighted, for the intervals, from where the estimate is: each costs a
        few rounds; 0 gives no intervals.
    seed
        Of the bootstrap, and of LightGBM.
    threads
        Of LightGBM; by default one for few rows, else all.
    say
        Called with lines of text: the memory needed before it is taken, and how it went.

    Returns
    -------
    Propensities
        Its `provenance["path"]` has the log-likelihood by round.

    Raises
    ------
    NotConverged
        After `rounds`, with what there was.
    """
    threads = threads or (1 if len(matrix) < _FEW_ROWS else None)
    options = Options(trees, leaves, learning_rate, rounds, tolerance, seed, threads)
    _check(options, bootstrap)
    lgb = library("lightgbm")
    rows, keep, about, evidence, inside = _clicked_ranks(matrix, reference)
    if say:
        say(
            f"{many(len(rows.rank), 'row')} with {many(len(matrix.features), 'feature')}: "
            f"training takes about {_bytes(len(rows.rank), len(matrix.features)) / 1e6:,.0f} MB "
            "besides the matrix."
        )
    data = _dataset(lgb, matrix, inside, options)
    ones = np.ones(len(rows.rank), np.float32)
    clicks, shown = (np.bincount(rows.rank, w, minlength=rows.ranks) for w in (rows.click, ones))
    ranks = np.flatnonzero(keep).astype(np.int32) + 1
    place = place_of(reference, ranks, about.gaps)
    fit = _alternate(lgb, data, rows, np.log(clicks / shown), ones, place, options)
    provenance = {
        **about.provenance,
        "start": "click rates by rank",
        "trees": trees,
        "leaves": leaves,
        "learning_rate": learning_rate,
        "tolerance": tolerance,
        "rounds": len(fit.path),
        "seed": seed,
        "path": list(fit.path),
        "change": fit.ahead,
        "bootstrap": bootstrap,
    }
    if say:
        say(
            f"From the click rates by rank in {many(len(fit.path), 'round')} of "
            f"{many(trees, 'tree')}: the log "
            f"likelihood went from {fit.path[0]:,.1f} to {fit.path[-1]:,.1f}, and p has "
            f"{fit.ahead:.2%} to go."
        )
    about = replace(about, log_likelihood=fit.path[-1], provenance=provenance)
    drawn = np.empty((bootstrap, len(ranks)))
    for sample, weight in enumerate(bucket_weights(bootstrap, evidence.clicks.shape[0], seed)):
        by_row = weight[rows.bucket].astype(np.float32)
        drawn[sample] = _alternate(lgb, data, rows, fit.log_p, by_row, place, options).log_p
        if say and (sample + 1) % 5 == 0:
            say(f"{sample + 1} of {bootstrap} refits for the intervals are done.")
    drawn -= drawn[:, [place]]
    off = drawn - drawn.mean(axis=0) if bootstrap else np.zeros((1, len(ranks)))
    return by_deviations(
        ranks,
        fit.log_p - fit.log_p[place],
        off.T / np.sqrt(max(bootstrap - 1, 1)),
        evidence.at(keep),
        about,
        errors="bootstrap" if bootstrap else "none",
        df=float(bootstrap - 1) if bootstrap else np.inf,
    )


def bucket_weights(samples: int, buckets: int, seed: int) -> Floats:
    """(samples, G) unit exponentials: how much each bucket of queries counts in a refit."""
    return np.random.default_rng(seed).exponential(size=(samples, buckets))


def _alternate(
    lgb: Any, data: Any, rows: _Rows, start: Floats, weight: Any, place: int, options: Options
) -> _Fit:
    """z for p, p for z, until next to nothing is left to go.

    What is left is extrapolated, for EM creeps: where a step leaves the share `left` of the last
    one, steps like it would add up to 1 / (1 - left) times as much. That far it goes at once.
    Where trees split now here, now there, steps go back and forth, and become shorter. Two rounds
    must say that it is done, for what creeps is hidden at first by what does not.
    """
    log_p = np.minimum(start - start.max(), 0.0)
    click, miss = weight * rows.click, weight * ~rows.click
    clicks = np.bincount(rows.rank, click, minlength=rows.ranks)
    level = _log_odds(click.sum() / float(weight @ np.exp(log_p)[rows.rank]))
    path: list[float] = []
    last, reach, ahead, done = np.zeros(rows.ranks), 1.0, np.inf, False
    for _ in range(options.rounds):
        log_z = np.log(_boost(lgb, data, rows, np.exp(log_p), weight, level, options))
        found = np.minimum(solve_factor(rows.rank, rows.ranks, log_z, click, miss), 0.0)
        chance = np.exp(found[rows.rank] + log_z)
        path.append(float(click @ np.log(chance) + miss @ np.log1p(-chance)))
        move = found - log_p
        off = (move - move[place]) * np.sqrt(clicks / clicks.sum())
        if len(path) > 1:
            left = float(off @ last) / max(float(last @ last), 1e-300)
            reach /= max(1 - left, _SLOWEST)
            ahead = reach * float(np.linalg.norm(off))
            before, done = done, ahead < options.tolerance
            if before and done:
                return _Fit(np.minimum(log_p + reach * move, 0.0), tuple(path), ahead)
            reach = min(reach, _LONGEST)
        log_p, last = np.minimum(log_p + reach * move, 0.0), off
    raise not_converged(
        f"Propensities still had {ahead:.2%} to go after {many(options.rounds, 'round')} of EM "
        f"(tolerance {options.tolerance:.2%}): allow more rounds, or a larger tolerance.",
        log_p - log_p[place],
        path,
    )


def _boost(
    lgb: Any, data: Any, rows: _Rows, p: Floats, weight: Any, level: float, options: Options
) -> Floats:
    """z (N,) by trees on the soft label E[relevant | click, p, z]: 1 after a click, else
    z (1 - p) / (1 - p z). So each tree follows the gradient of the likelihood of the clicks."""
    from scipy.special import expit

    seen = p.astype(np.float32)[rows.rank]
    unseen = 1 - seen

    def slopes(raw: Any, _: Any) -> tuple[Any, Any]:
        z = raw.astype(np.float32)
        z += np.float32(level)
        expit(z, out=z)
        missed = np.maximum(1 - seen * z, _LEAST)
        label = z * unseen
        label /= missed
        label[rows.click] = 1
        np.subtract(z, label, out=label)
        label *= weight
        # Of the clicks, not of the labels, which are surer of themselves than clicks can be.
        curvature = 1 - z
        curvature *= curvature
        curvature *= z
        curvature *= seen
        curvature /= missed
        curvature *= weight
        return label, curvature

    booster = lgb.Booster(options.params(), data)
    for _ in range(options.trees):
        booster.update(fobj=slopes)
    kept: list[Any] = []

    def keep(raw: Any, _: Any) -> tuple[str, float, bool]:
        kept.append(raw)
        return "", 0.0, False

    booster.eval_train(keep)  # hands over the scores of the rows it was trained on
    return np.asarray(np.clip(expit(kept[0].astype(np.float64) + level), 1e-9, 1 - 1e-9))


def _clicked_ranks(matrix: Matrix, reference: int) -> tuple[_Rows, Bools, About, Evidence, Bools]:
    """The rows at ranks with clicks, which ranks and rows those are, and what there is to say."""
    size = int(matrix.rank.max())
    bucket = (matrix.query_keys >> np.uint64(52)).astype(np.intp)[matrix.query] % BUCKETS
    clicks = np.zeros((BUCKETS, size), np.int64)
    np.add.at(clicks, (bucket[matrix.click], matrix.rank[matrix.click] - 1), 1)
    shown = np.bincount(matrix.rank - 1, minlength=size)
    if not clicks.any():
        raise NoUsablePairs(f"There is not a single click in {many(len(matrix), 'row')}.")
    if clicks.sum() < 2 * ENOUGH_CLICKS:
        raise NoUsablePairs(
            f"{many(int(clicks.sum()), 'click')} in {many(len(matrix), 'row')}: too few to learn "
            f"relevance from. A tree with two leaves needs {2 * ENOUGH_CLICKS}. Add days."
        )
    keep = np.asarray(clicks.any(axis=0))
    gaps = dict.fromkeys((np.flatnonzero(~keep & (shown > 0)) + 1).tolist(), NO_CLICKS)
    inside = keep[matrix.rank - 1]
    rank = (np.cumsum(keep) - 1)[matrix.rank[inside] - 1]
    _refuse_constant(matrix)
    _refuse_ranks(matrix)
    rows = _Rows(rank, matrix.click[inside], bucket[inside], int(keep.sum()))
    about = About(
        "regression EM",
        reference,
        parameters=None,
        gaps=gaps,
        provenance={"features": list(matrix.names), "rows": len(rank), **matrix.source},
    )
    return rows, keep, about, Evidence(shown, clicks), inside


def _refuse_constant(matrix: Matrix) -> None:
    with np.errstate(invalid="ignore"):
        varies = ~((matrix.x == matrix.x[0]) | np.isnan(matrix.x)).all(axis=0)
    if not varies.any():
        raise BadOption(
            f"No feature ({', '.join(matrix.names[:5])}{', …' if len(matrix.names) > 5 else ''}) "
            "ever varies, so they tell nothing of relevance, and EM would give the click rates "
            "back. Name features that say how good a result is."
        )


def _refuse_ranks(matrix: Matrix) -> None:
    """A feature with few values, each seen at one rank only, tells the rank: then p z is the same
    for any p with a z to match."""
    some = slice(0, _FEW_ROWS)
    for place, feature in enumerate(matrix.features):
        few, values = matrix.x[some, place], matrix.x[:, place]
        if _tells(few, matrix.rank[some]) and _tells(values, matrix.rank):
            raise BadOption(
                f"The feature {feature.name!r} tells the rank of every result, so nobody can say "
                "what of a click is due to the one and what to the other. Leave it out, or add "
                "days or traffic from another ranker, whose order differs."
            )


def _tells(values: NDArray[np.float32], rank: Ranks) -> bool:
    """Do these values (N,) tell the rank (N,)?"""
    known, value = np.unique(values, return_inverse=True)
    low, high = np.full(len(known), rank.max()), np.zeros(len(known), np.int32)
    np.minimum.at(low, value, rank)
    np.maximum.at(high, value, rank)
    few = len(known) <= 2 * int(rank.max())
    return bool(few and (low == high).all() and low.min() < low.max())


def _dataset(lgb: Any, matrix: Matrix, inside: Bools, options: Options) -> Any:
    x = matrix.x if inside.all() else matrix.x[inside]
    words = [i for i, feature in enumerate(matrix.features) if feature.is_category]
    data = lgb.Dataset(
        x,
        label=np.zeros(len(x), np.float32),
        categorical_feature=words,
        params={**options.params(), "num_threads": options.threads or 0},
    )
    return data.construct()


def _log_odds(chance: float) -> float:
    chance = min(max(chance, 1e-6), 1 - 1e-6)
    return float(np.log(chance / (1 - chance)))


def _bytes(rows: int, features: int) -> int:
    return rows * (_VALUE * features + _ROW)


def _check(options: Options, bootstrap: int) -> None:
    for name, least in (("trees", 1), ("leaves", 2), ("rounds", 3)):
        if getattr(options, name) < least:
            raise BadOption(f"{name} must be {least} or more, not {getattr(options, name)}.")
    if bootstrap and bootstrap < 5:
        raise BadOption(f"bootstrap must be 0, for no intervals, or 5 or more, not {bootstrap}.")
    if not options.tolerance > 0 or not options.learning_rate > 0:
        raise BadOption("tolerance and learning_rate must be above 0.")
