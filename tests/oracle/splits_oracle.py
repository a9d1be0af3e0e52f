"""The splits in plain Python, one appearance at a time and in fractions: slow, and easy to check by
eye. Written from the definitions, not from the SQL."""

import datetime
import math
from collections import Counter, defaultdict
from fractions import Fraction

from oracle.harvest_oracle import bucket_of

UNIT, FINE = 2**32, 2**20


def split_tally(found, buckets=64, several_days=True, has=()):
    """{(segment, split, group, bucket, clicked, other): [weight, away, value]}.

    `found` is what `tally` gave; `has` names the columns there are, of day, search, score, ranker,
    user and outcome; `several_days` says whether the days were counted together.
    """
    sums = defaultdict(lambda: [0, 0, 0])
    days = {pair[4] for pair, _ in found.clicked_pairs}
    other_days = "day" in has and several_days and len(days) > 1
    relevance = _relevance(found) if other_days else {}
    for pair, shown in found.clicked_pairs:
        if not any(row["click"] for row in shown) or len({row["rank"] for row in shown}) == 1:
            continue
        queries, _, _, segment, day = pair
        m, bucket = len(shown), bucket_of(queries, buckets)

        def add(
            split, group_of, bucket=bucket, block=half_octave, shown=shown, segment=segment, m=m
        ):
            """Every clicked appearance over every other at another rank, summed by ranks, each sum
            rounded."""
            cells = Counter()
            for i, k in enumerate(shown):
                for j, other in enumerate(shown):
                    if i != j and k["click"] and k["rank"] != other["rank"]:
                        group = group_of(k, other)
                        if group is not None:
                            cells[group, k["rank"], other["rank"]] += 1
            for (group, a, b), times in cells.items():
                row = sums[segment, split, group, bucket, block(a), block(b)]
                row[0] += rounded(Fraction(times, m - 1) * UNIT)
                row[1] += rounded(Fraction(times * (level(b) - level(a)), m - 1) * FINE)

        if pair in relevance:
            add("relevance", lambda k, other, pair=pair: relevance[pair])
        if "outcome" in has:
            add("outcome", lambda k, other: int(k["outcome"]))
        if "user" in has:
            add("user", _users)
        if "search" in has:
            clicked = found.searches
            add("neighbours", lambda k, other, day=day: _neighbours(clicked, day, k, other))
        if "day" in has:
            parity = datetime.date.fromisoformat(day).day % 2
            add("queries", lambda k, other, parity=parity: parity,
                bucket=bucket_of(queries, 4096), block=octave)  # fmt: skip
        if "score" in has:
            _add_scores(sums, segment, bucket, shown)
    if "ranker" in has and other_days:
        _add_rankers(sums, found, buckets)
    return {key: row for key, row in sums.items() if any(row)}


def rounded(number):
    return math.floor(number + Fraction(1, 2))


def half_octave(rank):
    """1 | 2 | 3 | 4-5 | 6-7 | 8-11 | 12-15 | …"""
    if rank == 1:
        return 0
    power = int(math.log2(rank))
    return 2 * power - 1 + (2 * rank >= 3 * 2**power)


def octave(rank):
    """The first half of the octave."""
    return half_octave(2 ** int(math.log2(rank)))


def level(rank):
    return math.floor(math.log2(rank) * 4096 + 0.5)


# -- which group -----------------------------------------------------------------------------------


def _users(k, other):
    if k["user"] is None or other["user"] is None:
        return None
    return int(k["user"] == other["user"])


def _neighbours(clicked, day, k, other):
    """1 if both searches had a click on another doc, 0 if neither had."""
    if k["search"] is None or other["search"] is None:
        return None
    two = {clicked[day, row["search"]] - bool(row["click"]) > 0 for row in (k, other)}
    return int(two.pop()) if len(two) == 1 else None


def _relevance(found):
    """Pair -> group, by the item's clicks on other days."""
    impressions, clicks = Counter(), Counter()
    for (_, rank), n in found.impressions.items():
        impressions[rank] += n
    for (_, rank), n in found.clicks.items():
        clicks[rank] += n
    by_day, expected, days = Counter(), Counter(), defaultdict(set)
    pairs = [(p, shown) for p, shown in found.clicked_pairs if any(row["click"] for row in shown)]
    n_days = len({pair[4] for pair, _ in pairs})
    for (queries, doc, _, segment, day), shown in pairs:
        item = queries, doc, segment
        by_day[item, day] += sum(bool(row["click"]) for row in shown)
        expected[item] += sum(Fraction(clicks[r["rank"]], impressions[r["rank"]]) for r in shown)
        days[item].add(day)
    groups = {}
    for pair, _ in pairs:
        queries, doc, _, segment, day = pair
        item = queries, doc, segment
        others = sum(by_day[item, other] for other in days[item] - {day})
        usual = expected[item] / len(days[item]) * (n_days - 1)
        groups[pair] = 8 + max(-8, min(8, round(2 * math.log((others + 2) / (usual + 2)))))
    return groups if n_days > 1 else {}


# -- scores ----------------------------------------------------------------------------------------


def _add_scores(sums, segment, bucket, shown):
    scored = [row for row in shown if row["score"] is not None]
    m = len(shown)
    # (seconds, rank, score) -> [appearances, clicks]
    cells = defaultdict(lambda: [0, Fraction(0)])
    if len(scored) <= 32:
        for row in scored:
            cell = cells[row["seconds"], row["rank"], row["score"]]
            cell[0] += 1
            cell[1] += bool(row["click"])
    else:
        m = 32
        ordered = sorted(scored, key=_order)
        kept = {math.ceil(Fraction(j * len(scored), 32)) for j in range(32)}
        alike = defaultdict(lambda: [0, 0, 0])
        for i, row in enumerate(ordered):
            one = alike[row["seconds"], row["rank"], row["score"], row["search"]]
            one[0] += 1
            one[1] += i in kept
            one[2] += bool(row["click"])
        for (*cell, _), (n, t, c) in alike.items():
            if t:
                cell = cells[tuple(cell)]
                cell[0] += t
                cell[1] += Fraction(rounded(Fraction(c * t, n) * FINE), FINE)
    for a, (_, c) in cells.items():
        for b, (n, _) in cells.items():
            others = n - (a == b)
            if not c or not others:
                continue
            group, ratio = _difference(a[2] - b[2], a[0], b[0])
            row = sums[segment, "score", group, bucket, half_octave(a[1]), half_octave(b[1])]
            times = c * others / (m - 1)
            row[0] += rounded(times * UNIT)
            row[1] += rounded(times * (level(b[1]) - level(a[1])) * FINE)
            row[2] += rounded(times * ratio * FINE) * (UNIT // FINE)


def _order(row):
    seconds, search = row["seconds"], row["search"]
    return seconds is None, seconds or 0, row["rank"], row["score"], search is None, search or ""


def _difference(score, seconds, other_seconds):
    """The group, and how far into its bin the difference of scores is."""
    late = 0
    if seconds is not None and other_seconds is not None:
        hours = abs(seconds - other_seconds) / 3600
        far = 0 if hours <= 1 else 1 if hours <= 6 else 2
        late = far if seconds > other_seconds else -far
    if score == 0:
        return 64 * 8 + late + 2, Fraction(0)
    size = abs(score) * 1.37
    k = max(-30, min(30, math.floor(math.log2(size) / 2)))
    place = (k + 32) * (1 if score > 0 else -1)
    return (place + 64) * 8 + late + 2, min(Fraction(16), Fraction(size) / Fraction(4) ** k)


# -- rankers ---------------------------------------------------------------------------------------


def _add_rankers(sums, found, buckets):
    depth = defaultdict(list)  # (item, ranker) -> [(day, log2 of rank)]
    pairs = [(p, shown) for p, shown in found.clicked_pairs if any(row["click"] for row in shown)]
    for (queries, doc, _, segment, day), shown in pairs:
        for row in shown:
            if row["ranker"] is not None:
                depth[(queries, doc, segment), row["ranker"]].append((day, level(row["rank"])))
    for (queries, doc, _, segment, day), shown in pairs:
        hats = {}
        for ranker in {row["ranker"] for row in shown} - {None}:
            seen = depth[(queries, doc, segment), ranker]
            others = [deep for other, deep in seen if other != day]
            if others:
                h = min(9.0, sum(others) / (4096 * len(others)))
                hats[ranker] = [
                    math.floor(max(0.0, 1 - abs(h / 1.5 - i)) * FINE + 0.5) for i in range(7)
                ]
        known = [row for row in shown if row["ranker"] in hats]
        if len(hats) < 2:
            continue
        bucket, cells = bucket_of(queries, buckets), Counter()
        for row in known:
            cells[row["ranker"], row["rank"]] += bool(row["click"])
        for (ranker, rank), clicks in cells.items():
            for i in range(7):
                mean = Fraction(sum(hats[row["ranker"]][i] for row in known), len(known))
                weight = rounded(clicks * (hats[ranker][i] - mean))
                sums[segment, "ranker", i, bucket, rank, 0][0] += weight * (UNIT // FINE)
