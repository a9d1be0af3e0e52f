"""The splits in plain Python, one appearance at a time and in fractions: slow, and easy to check by
eye. Written from the definitions, not from the SQL."""

import datetime
import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import partial

from oracle.harvest_oracle import bucket_of

UNIT, FINE = 2**32, 2**20


def split_tally(found, has, buckets=64, several_days=True):
    """{(segment, split, group, bucket, clicked, other): [weight, away, value]}.

    `found` is what `tally` gave; `has` names the columns there are, of day, search, score, ranker,
    user and outcome; `several_days` says whether days are counted together.
    """
    sums = defaultdict(lambda: [0, 0, 0])
    pairs = [(p, shown) for p, shown in found.clicked_pairs if any(row["click"] for row in shown)]
    other_days = "day" in has and several_days and len({pair[4] for pair, _ in pairs}) > 1
    relevance = _relevance(found, pairs) if other_days else {}
    for pair, shown in pairs:
        if len({row["rank"] for row in shown}) == 1:
            continue
        queries, _, _, segment, day = pair
        bucket = bucket_of(queries, buckets)
        add = partial(_add, sums, segment, shown, bucket, half_octave)
        if pair in relevance:
            add("relevance", lambda k, other, pair=pair: relevance[pair])
        if "outcome" in has:
            add("outcome", lambda k, other: int(k["outcome"]))
        if "user" in has:
            add("user", _users)
        if "search" in has:
            add("neighbours", partial(_neighbours, found.searches, day))
        if "score" in has or "time" in has:
            _add_scores(sums, segment, bucket, shown, has)
        if "day" in has:
            parity = _parity(datetime.date.fromisoformat(day), found.window)
            add = partial(_add, sums, segment, shown, bucket_of(queries, 4096), octave)
            add("queries", lambda k, other, parity=parity: parity)
    if "ranker" in has and other_days:
        _add_rankers(sums, pairs, buckets)
    return {key: row for key, row in sums.items() if any(row)}


def _parity(day, window):
    """Odd or even: the day of the month, or the number of the window."""
    since = (day - datetime.date(1900, 1, 1)).days
    return day.day % 2 if window == 1 else since // window % 2


def _add(sums, segment, shown, bucket, block, split, group_of):
    """Every clicked appearance over every other at another rank, summed by ranks and rounded."""
    cells = Counter()
    for k in shown:
        for other in shown:
            if k["click"] and k["rank"] != other["rank"]:
                group = group_of(k, other)
                if group is not None:
                    cells[group, k["rank"], other["rank"]] += 1
    for (group, a, b), times in cells.items():
        row = sums[segment, split, group, bucket, block(a), block(b)]
        share = Fraction(times, len(shown) - 1)
        row[0] += rounded(share * UNIT)
        row[1] += rounded(share * (level(b) - level(a)) * FINE)


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
    """log2, in 1/4096."""
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


def _relevance(found, pairs):
    """Pair -> group, by the item's clicks on other days."""
    impressions, clicks = Counter(), Counter()
    for (_, rank), n in found.impressions.items():
        impressions[rank] += n
    for (_, rank), n in found.clicks.items():
        clicks[rank] += n
    by_day, expected, days = Counter(), Counter(), defaultdict(set)
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
        groups[pair] = 16 + max(-16, min(16, round(4 * math.log((others + 5) / (usual + 5)))))
    return groups


# -- scores ----------------------------------------------------------------------------------------


def _add_scores(sums, segment, bucket, shown, has):
    """Every clicked appearance over every other; of many, some stand for all."""
    instead = {} if "score" in has else {"score": 0}
    if "score" not in has or "ranker" not in has:
        instead["ranker"] = None
    scored = [row | instead for row in shown if (row | instead)["score"] is not None]
    m = 32 if len(scored) > 32 else len(shown)
    if len(shown) > 32:
        kept = list(_thinned(scored))
    else:
        kept = [(row, 1, Fraction(bool(row["click"]))) for row in scored]
    for i, (a, _, clicks) in enumerate(kept):
        for j, (b, times, _) in enumerate(kept):
            group, ratio = _difference(a["score"] - b["score"], a["seconds"], b["seconds"])
            group += 1024 * (a["ranker"] != b["ranker"])
            blocks = half_octave(a["rank"]), half_octave(b["rank"])
            row, share = sums[segment, "score", group, bucket, *blocks], clicks / (m - 1)
            row[0] += rounded(share * times * UNIT)
            if i == j:  # not with itself
                row[0] -= rounded(share * UNIT)
            row[1] += rounded(share * times * (level(b["rank"]) - level(a["rank"])) * FINE)
            row[2] += rounded(share * times * ratio * FINE) * (UNIT // FINE)


def _thinned(scored):
    """(appearance, how many like it are kept, the clicks of these): the first of every 32nd part,
    in order. Of those alike in all but the click each has the same share of the clicks."""
    parts = min(32, len(scored))
    kept = {math.ceil(Fraction(j * len(scored), parts)) for j in range(parts)}
    alike = defaultdict(list)
    for i, row in enumerate(sorted(scored, key=_order)):
        alike[_order(row)].append((row, i in kept))
    for rows in alike.values():
        times, clicks = sum(keep for _, keep in rows), sum(bool(row["click"]) for row, _ in rows)
        if times:
            share = rounded(Fraction(clicks * times, len(rows)) * FINE)
            yield rows[0][0], times, Fraction(share, FINE)


def _order(row):
    seconds, search = row["seconds"], row["search"]
    ranker = row["ranker"]
    return (
        seconds is None, seconds or 0, row["rank"], row["score"], search is None, search or "",
        ranker is None, ranker or "",
    )  # fmt: skip


def _difference(score, seconds, other_seconds):
    """The group, and how far into its bin the difference of scores is."""
    late = 0
    if seconds is not None and other_seconds is not None:
        hours = abs(seconds - other_seconds) / 3600
        far = sum(hours > limit for limit in (1, 6, 24))
        late = far if seconds > other_seconds else -far
    if score == 0:
        return 64 * 8 + late + 3, Fraction(0)
    size = abs(score) * 1.37
    k = max(-30, min(30, math.floor(math.log2(size) / 2)))
    place = (k + 32) * (1 if score > 0 else -1)
    return (place + 64) * 8 + late + 3, min(Fraction(16), Fraction(size) / Fraction(4) ** k)


# -- rankers ---------------------------------------------------------------------------------------


def _add_rankers(sums, pairs, buckets):
    depth = defaultdict(list)  # (item, ranker) -> [(day, log2 of rank)]
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
        bucket = bucket_of(queries, buckets)
        deep = sum(i * hats[row["ranker"]][i] for row in known for i in range(7))
        usual = rounded(Fraction(3 * deep, len(known) * FINE))
        for i in range(7):
            mean = Fraction(sum(hats[row["ranker"]][i] for row in known), len(known))
            for row in known:
                if row["click"]:
                    weight = rounded(hats[row["ranker"]][i] - mean) * (UNIT // FINE)
                    sums[segment, "ranker", i, bucket, row["rank"], usual][0] += weight
