"""How often `drift` raises an alarm for nothing, and how soon it sees a change of the page.

Days are made of those of the demo: who was shown what at which ranks on four days of its market,
and how relevant it truly was. Clicks are drawn anew for each day from a known curve, so that a year
takes seconds. Settings and seeds are fixed here, and were before anything was looked at.

python -m benchmarks.accuracy.drift years --years 100   false alarms in years without a change
python -m benchmarks.accuracy.drift other --years 50    the same in half-years of another market
python -m benchmarks.accuracy.drift changes             days until changes are seen
python -m benchmarks.accuracy.drift told --seeds 20     whether they are told where they are
python -m benchmarks.accuracy.drift best --seeds 100    what a test sees that knows the change
python -m benchmarks.accuracy.drift market --seeds 3    the same in the market itself
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from rankdrift import drift, harvest_by_day, read_log
from rankdrift.core.database import connect
from rankdrift.core.types import Floats, Ints
from rankdrift.counts.counts import BUCKETS, Counts, merge
from rankdrift.estimation.fitting import Options, fit
from rankdrift.estimation.likelihood import likelihood_of
from rankdrift.monitoring.drift_changes import page_change
from rankdrift.monitoring.drift_evidence import evidence_of
from rankdrift.monitoring.drift_scores import Scores, Shapes, shapes_of
from rankdrift.monitoring.drifting import LOOKS_A_YEAR, SMALLEST
from rankdrift.propensities.drift import BlockChange
from rankdrift.simulate import market
from rankdrift.simulate.counting import count_pairs
from rankdrift.simulate.marketplace import MARKET_QUERY, SAME_QUERY_SAME_RELEVANCE
from rankdrift.simulate.true_curves import TrueCurve, dipping, dips, in_twenties, steady, steep

RANKS = np.arange(1, 501)
ROWS, DAYS, SEED = 900_000, 4, 2  # those of the demo
SHOP: Mapping[str, Any] = {"queries": 200, "click_rate": 0.2}
REFERENCE, WINDOW, FALSE_ALARMS = 7, 28, 0.1  # the defaults of `drift`
TRUTH: Mapping[str, TrueCurve] = {"web": steady, "mobile": dipping}
# A market that no setting was made on.
OTHER: Mapping[str, TrueCurve] = {"web": steep, "mobile": in_twenties}
OTHER_SHOP: Mapping[str, Any] = {"queries": 600, "click_rate": 0.1}
OTHER_SEED = 5
FIRST = date(2024, 1, 1).toordinal()
WEEKENDS, THIN, MISSING = 0.4, 0.02, 0.03
"""Traffic at weekends; the share of days with hardly any, which have THIN of it; and with none."""
APP = 120
"""The day on which a new segment begins."""
BEFORE, AFTER = 28, 14
"""Days before and after a change."""


def carousel(curve: TrueCurve) -> TrueCurve:
    """Results are four further down than they are said to be."""
    return lambda ranks: curve(ranks + 4)


def batches_of_24(ranks: Floats) -> Floats:
    """Mobile with results loaded 24 at a time instead of 40."""
    return steady(ranks) * dips(ranks, 24)


CHANGES: Mapping[str, Mapping[str, TrueCurve]] = {
    "batches of 40 become 24, mobile": {"mobile": batches_of_24},
    "a carousel of 4, web and mobile": {name: carousel(curve) for name, curve in TRUTH.items()},
    "a carousel of 4, mobile": {"mobile": carousel(dipping)},
    "a carousel of 4, web": {"web": carousel(steady)},
}


# -- days ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pool:
    """What was shown on a day to those on one platform: pairs that appeared at two ranks or more.

    rank, pair (A,): of each appearance, the pair ascending; relevance, bucket, depth (N,): of each
    pair, the depth its mean log rank.
    """

    rank: Ints
    pair: Ints
    relevance: Floats
    bucket: Ints
    depth: Floats

    def some(self, random: np.random.Generator, share: float, deeper: bool) -> Pool:
        """About a share of the pairs; `deeper` takes rather those further down."""
        chance = np.full(len(self.relevance), share)
        if deeper:
            chance *= np.exp(0.4 * (self.depth - self.depth.mean()))
        kept = random.random(len(chance)) < chance
        inside = kept[self.pair]
        place = np.cumsum(kept) - 1
        pairs = (self.relevance[kept], self.bucket[kept], self.depth[kept])
        return Pool(self.rank[inside], place[self.pair[inside]], *pairs)


def pools(seed: int = SEED, shop: Mapping[str, Any] = SHOP) -> dict[str, list[Pool]]:
    """The days of a market, the demo's, by platform."""
    with tempfile.TemporaryDirectory() as folder, connect() as database:
        market(folder, rows=ROWS, days=DAYS, seed=seed, labels=True, features=False, **shop)
        query, found = ", ".join(MARKET_QUERY), {}
        for platform in TRUTH:
            found[platform] = [
                _pool(
                    database.execute(
                        f"SELECT list(rank ORDER BY rank) AS ranks, min(relevance) AS relevance,"
                        f" hash({query}) % {BUCKETS} AS bucket FROM read_parquet(?) WHERE"
                        f" {SAME_QUERY_SAME_RELEVANCE} AND platform = ? GROUP BY {query}, doc,"
                        " price HAVING count(DISTINCT rank) > 1 ORDER BY ALL",
                        [str(path), platform],
                    ).fetchall()
                )
                for path in sorted(Path(folder).glob("*.parquet"))
            ]
    return found


def _pool(rows: list[tuple[list[int], float, int]]) -> Pool:
    ranks = [np.array(each) for each, _, _ in rows]
    pair = np.repeat(np.arange(len(rows)), [len(each) for each in ranks])
    rank = np.concatenate(ranks)
    depth = np.bincount(pair, np.log(rank)) / np.bincount(pair)
    relevance, bucket = np.array([r for _, r, _ in rows]), np.array([b for _, _, b in rows])
    return Pool(rank, pair, relevance, bucket, depth)


def clicked(random: np.random.Generator, pool: Pool, p: Floats) -> tuple[Pool, Ints]:
    """The pairs that got a click, and which of their appearances did."""
    click = random.random(len(pool.rank)) < p[pool.rank - 1] * pool.relevance[pool.pair]
    times = np.bincount(pool.pair[click], minlength=len(pool.relevance))
    kept = times > 0
    inside, place = kept[pool.pair], np.cumsum(kept) - 1
    pairs = (pool.relevance[kept], pool.bucket[kept], pool.depth[kept])
    return Pool(pool.rank[inside], place[pool.pair[inside]], *pairs), np.flatnonzero(click[inside])


def scored(pool: Pool, click: Ints, shapes: Shapes) -> tuple[Floats, Floats, Floats, float, float]:
    """What `Scores` has of a day with these pairs, all of them listed."""
    many, size = len(pool.relevance), len(shapes.ranks)
    p = np.exp(shapes.theta)[pool.rank - 1]
    share = p / np.bincount(pool.pair, p)[pool.pair]
    times = np.bincount(pool.pair[click], minlength=many).astype(float)
    expected = share * times[pool.pair]
    place = pool.bucket[pool.pair] * size + pool.rank - 1
    more = np.bincount(place[click], minlength=BUCKETS * size)
    by_bucket = (more - np.bincount(place, expected, BUCKETS * size)).reshape(BUCKETS, size)
    scores = by_bucket @ shapes.basis
    from scipy.sparse import csr_array

    table = csr_array((share, (pool.pair, pool.rank - 1)), (many, size)) @ shapes.basis
    by_rank = np.bincount(pool.rank - 1, expected, size)
    information = (shapes.basis.T * by_rank) @ shapes.basis - (table.T * times) @ table
    clicks = np.bincount(pool.bucket, times, BUCKETS)
    touched = scores[clicks > 0]
    off = touched - touched.mean(axis=0)
    scatter = off.T @ off * (len(touched) / max(len(touched) - 1, 1))
    return scores.sum(axis=0), information, scatter, clicks.sum(), (clicks**2).sum()


def counted(pool: Pool, click: Ints) -> Counts:
    """The same pairs as a harvest would count them."""
    many, first = np.bincount(pool.pair), np.searchsorted(pool.pair, np.arange(pool.pair[-1] + 1))
    rank = np.zeros((len(many), many.max()), np.int32)
    clicks = np.zeros(rank.shape, bool)
    column = np.arange(len(pool.pair)) - first[pool.pair]
    rank[pool.pair, column] = pool.rank
    clicks[pool.pair[click], column[click]] = True
    return count_pairs(rank, clicks, pool.bucket, buckets=BUCKETS, max_rank=len(RANKS))


Traffic = Callable[[np.random.Generator, int], tuple[float, bool]]
"""The share of the demo's traffic on a day, and whether results further down are looked at."""


def uneven(random: np.random.Generator, day: int) -> tuple[float, bool]:
    """A day of a year: weekends, thin and missing days."""
    weekend, kind = day % 7 in (5, 6), random.random()
    share = 0.9 * np.exp(0.1 * random.standard_normal()) * (WEEKENDS if weekend else 1.0)
    if kind < THIN + MISSING:
        return (0.0 if kind < MISSING else THIN), weekend
    return min(share, 1.0), weekend


def even(random: np.random.Generator, day: int) -> tuple[float, bool]:
    """As the demo."""
    return 1.0, False


def evidence(
    random: np.random.Generator,
    platform: list[Pool],
    truth: Sequence[Floats],
    days: range,
    traffic: Traffic,
) -> dict[int, float]:
    """The logarithm of the evidence on each day, from the true propensities (R,) of each."""
    shapes, scores, known = None, [], []
    first: list[Counts] = []
    waiting: list[tuple[Pool, Ints]] = []
    for day in days:
        share, deeper = traffic(random, day)
        if not share:
            continue
        pool = platform[random.integers(len(platform))]
        if share < 1 or deeper:
            pool = pool.some(random, share, deeper)
        drawn = clicked(random, pool, truth[day])
        if not len(drawn[1]):
            continue
        known.append(FIRST + day)
        if shapes is None:
            waiting.append(drawn)
            first.append(counted(*drawn))
            if len(first) == REFERENCE:
                shapes = shapes_of(fit(merge(first), Options()), len(RANKS))
                scores = [scored(*each, shapes) for each in waiting]
        else:
            scores.append(scored(*drawn, shapes))
    assert shapes is not None
    found = Scores(*(np.array(each) for each in zip(*scores, strict=True)))
    log = evidence_of(found, shapes, np.array(known), reference=REFERENCE, window=WINDOW).log
    return {day - FIRST: value for day, value in zip(known, log.tolist(), strict=True)}


def highest(found: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """On each day the logarithm of the most evidence of a segment, over the number of segments
    that were under test by then."""
    began = {name: min(d for d, e in of.items() if np.isfinite(e)) for name, of in found.items()}
    return {
        day: max(of.get(day, -np.inf) for of in found.values())
        - np.log(max(sum(first <= day for first in began.values()), 1))
        for day in sorted({day for of in found.values() for day in of})
    }


# -- studies ---------------------------------------------------------------------------------------


def years(many: int, first: int) -> None:
    """False alarms in years without a change, with a new segment in the middle of it."""
    _quiet(pools(), TRUTH, 365, 23, many, first)


def other(many: int, first: int) -> None:
    """The same in half-years of another market."""
    _quiet(pools(OTHER_SEED, OTHER_SHOP), OTHER, 182, 26, many, first)


def _quiet(
    platforms: Mapping[str, list[Pool]],
    curves: Mapping[str, TrueCurve],
    days: int,
    study: int,
    many: int,
    first: int,
) -> None:
    limit, alarms, most, began = LOOKS_A_YEAR / FALSE_ALARMS, 0, [], time.process_time()
    truths = {name: curve(RANKS.astype(float)) for name, curve in curves.items()}
    app = [truths["mobile"] ** 1.2] * days
    for seed in range(first, first + many):
        random = np.random.default_rng([study, seed])
        found = {
            name: evidence(random, platforms[name], [truths[name]] * days, range(days), uneven)
            for name in curves
        }
        found["app"] = evidence(random, platforms["mobile"], app, range(APP, days), uneven)
        most.append(max(highest(found).values()))
        alarms += most[-1] >= np.log(limit)
        print(
            f"{days} days, {seed}: highest evidence {np.exp(most[-1]):,.0f} of {limit:,.0f}",
            flush=True,
        )
    seconds = time.process_time() - began
    promised = many * FALSE_ALARMS * days / 365
    print(
        f"{alarms} alarms in {many} × {days} days, at most {promised:g} promised; {seconds:.0f} s"
    )
    middle, highest_of_all = np.exp(np.median(most)), np.exp(max(most))
    print(f"  highest evidence: {middle:,.0f} in the middle and {highest_of_all:,.0f} at most")
    for share in (0.5, 1.0, 2.0, 5.0):
        passed = sum(h >= np.log(LOOKS_A_YEAR / share) for h in most)
        print(f"  with {share:g} a year: {passed} of {many} had one")


def changes(many: int, first: int) -> None:
    """Days from a change to the alarm, at the demo's traffic."""
    platforms = pools()
    limit = np.log(LOOKS_A_YEAR / FALSE_ALARMS)
    truths = {name: curve(RANKS.astype(float)) for name, curve in TRUTH.items()}
    for words, changed in CHANGES.items():
        after = {name: curve(RANKS.astype(float)) for name, curve in {**TRUTH, **changed}.items()}
        by_day = {name: [truths[name]] * BEFORE + [after[name]] * AFTER for name in TRUTH}
        delays = []
        for seed in range(first, first + many):
            random = np.random.default_rng([24, seed])
            found = highest(
                {
                    name: evidence(
                        random,
                        platforms[name],
                        by_day[name],
                        range(BEFORE + AFTER),
                        even,
                    )
                    for name in TRUTH
                }
            )
            seen = [day for day, value in found.items() if value >= limit]
            delays.append(seen[0] - BEFORE + 1 if seen else AFTER + 1)
        d = np.array(delays)
        print(
            f"{words}: day {np.median(d):g} in the middle, {(d <= 3).mean():.0%} by day 3, "
            f"{(d <= 7).mean():.0%} by day 7, {(d <= AFTER).mean():.0%} by day {AFTER}; "
            f"{(d < 1).mean():.0%} too early; {many} seeds",
            flush=True,
        )


TOLD = 3
"""Days after a change, in which it is told of."""


def told(many: int, first: int) -> None:
    """Of a change that began three days ago: do the intervals of all blocks of ranks hold the
    truth, and has what is named the right direction and size?"""
    platforms, r = pools(), RANKS.astype(float)
    for words, changed in {**CHANGES, "no change, web": {"web": steady}}.items():
        if len(changed) > 1:
            continue
        [(name, curve)] = changed.items()
        before, after = TRUTH[name](r), curve(r)
        held, named, right, sizes, large = 0, 0, 0, [], 0
        for seed in range(first, first + many):
            random = np.random.default_rng([27, seed])
            old, new = (
                merge([counted(*clicked(random, _any(random, platforms[name]), p)) for _ in days])
                for p, days in ((before, range(BEFORE)), (after, range(TOLD)))
            )
            found = page_change(old, new, 0.95)
            change = np.log(after / before)
            clicks = likelihood_of(old, ranks=RANKS.astype(np.int32)).wins
            change = change - np.average(change, weights=clicks)
            true = [float(change[b.first - 1 : b.last].mean()) for b in found.blocks]
            blocks = list(zip(found.blocks, true, strict=True))
            held += all(b.low <= np.exp(t) <= b.high for b, t in blocks)
            sure = sorted((each for each in blocks if each[0].sure), key=_size)[-2:]
            named += len(sure)
            right += sum((b.ratio > 1) == (t > 0) for b, t in sure)
            ratios = np.log([b.ratio for b in found.blocks])
            sizes.append((ratios @ true, np.dot(true, true)))
            large += found.size >= SMALLEST
        got, wanted = np.sum(sizes, axis=0)
        share = f"{got / wanted:.0%} of the true size" if wanted else "no size"
        print(
            f"{words}: all blocks held in {held} of {many}; {named} named, {right} in their "
            f"direction; {share}; {large} larger than {SMALLEST:.0%}",
            flush=True,
        )


def _any(random: np.random.Generator, days: list[Pool]) -> Pool:
    return days[random.integers(len(days))]


def _size(told_and_true: tuple[BlockChange, float]) -> float:
    return abs(told_and_true[0].ratio - 1)


def best(many: int, first: int) -> None:
    """What is seen by a test that knows both curves: with the day of the change, by the ratio of
    likelihoods on one look, as rarely wrong as one in LOOKS_A_YEAR / FALSE_ALARMS; without it, by
    the sum of these ratios over the days since when, the rule of `drift` itself."""
    platforms, limit = pools(), LOOKS_A_YEAR / FALSE_ALARMS
    alone = {words: changed for words, changed in CHANGES.items() if len(changed) == 1}
    for words, changed in alone.items():
        [(name, curve)] = changed.items()
        before, after = TRUTH[name](RANKS.astype(float)), curve(RANKS.astype(float))
        off, summed = np.zeros((many, AFTER)), np.zeros((many, AFTER))
        for place, seed in enumerate(range(first, first + many)):
            random = np.random.default_rng([25, seed])
            days = [platforms[name][random.integers(DAYS)] for _ in range(AFTER)]
            found = np.array([ratio(*clicked(random, day, after), before, after) for day in days])
            log, mean, variance = np.cumsum(found, axis=0).T
            off[place] = (log - mean) / np.sqrt(variance)
            total = -np.inf
            for day, each in enumerate(found[:, 0]):
                summed[place, day] = total = np.logaddexp(0.0, total) + each
        sure = -ndtri(1 / limit)
        passed = summed >= np.log(len(TRUTH) * limit)
        delay = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, AFTER + 1)
        print(
            f"{words}: {off[:, 2].mean():.1f} standard errors off by day 3; knowing the day"
            f", seen in {(off[:, 2] >= sure).mean():.0%}; not knowing it, day {np.median(delay):g}"
            f" in the middle, {(delay <= 3).mean():.0%} by day 3, {(delay <= 7).mean():.0%} by day"
            f" 7, {(delay <= AFTER).mean():.0%} by day {AFTER}; {many} seeds",
            flush=True,
        )


def ratio(pool: Pool, click: Ints, before: Floats, after: Floats) -> tuple[float, float, float]:
    """How much likelier clicks are by the curve after a change than by the one before, in
    logarithms; and the mean and the variance of that while nothing changes."""
    shares = [
        p[pool.rank - 1] / np.bincount(pool.pair, p[pool.rank - 1])[pool.pair]
        for p in (before, after)
    ]
    each = np.log(shares[1] / shares[0])
    times = np.bincount(pool.pair[click], minlength=len(pool.relevance))
    mean = np.bincount(pool.pair, shares[0] * each)
    variance = np.bincount(pool.pair, shares[0] * each**2) - mean**2
    return float(each[click].sum()), float(times @ mean), float(times @ variance)


def markets(many: int, first: int) -> None:
    """The market itself, from log to alarm: 14 days, then a week of each change."""
    before, after = 14, 5
    quiet: Mapping[str, Mapping[str, TrueCurve]] = {"none": {}}
    for seed in range(first, first + many):
        with tempfile.TemporaryDirectory() as folder:
            start = date.fromordinal(FIRST)
            usual = _days(folder, "before", seed, start, before, {})
            for words, changed in {**quiet, **CHANGES}.items():
                new = _days(folder, words, seed, start + timedelta(before), after, changed)
                seen = []
                for upto in range(1, after + 1):
                    found = drift([*usual, *new[:upto]])
                    seen.append(found.alarm)
                day = seen.index(True) + 1 if any(seen) else None
                named = [s.name for s in found.segments if s.alarm]
                print(
                    f"market {seed}, {words}: alarm on day {day}; on the last {named}", flush=True
                )


def _days(
    folder: str, words: str, seed: int, start: date, days: int, changed: Mapping[str, TrueCurve]
) -> list[Counts]:
    place = Path(folder) / words.replace(" ", "-")
    market(
        place / "log",
        rows=ROWS // DAYS * days,
        days=days,
        seed=seed,
        start=str(start),
        curves={**TRUTH, **changed},
        features=False,
        **SHOP,
    )
    log = read_log(
        str(place / "log" / "*.parquet"),
        query=list(MARKET_QUERY),
        segment="platform",
        time="time",
        same="price",
        where=SAME_QUERY_SAME_RELEVANCE,
    )
    harvest_by_day(log, place / "days")
    return [Counts.load(path) for path in sorted((place / "days").glob("*.parquet"))]


def main() -> None:
    """Run one of the studies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["years", "other", "changes", "told", "best", "market"])
    parser.add_argument("--years", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    given = parser.parse_args()
    if given.study in ("years", "other"):
        {"years": years, "other": other}[given.study](given.years, given.first)
    else:
        studies = {"changes": changes, "told": told, "best": best, "market": markets}
        studies[given.study](given.seeds, given.first)


if __name__ == "__main__":
    main()
