"""What an estimate with trust needs: all pairs of the log, clicked or not, on every engine."""

import hashlib
import math
from collections import Counter, defaultdict
from itertools import permutations

import pytest
from support.harness import random_log, splits_of, write_parquet

from rankdrift.core.errors import BadOption
from rankdrift.counts.counts import Counts, merge

UNIT, RATE = 2**32, 2**30
OPTIONS = {"day": "on", "search": "sid", "segment": "device"}


def oracle(rows, buckets):
    """The table by plain loops: {key as in `splits_of`: [weight, 0, value]}."""
    shows = Counter(
        (row["sid"], row["on"], row["query"], row["doc"], row["device"]) for row in rows
    )
    seen, clicked = Counter(), Counter()
    pairs = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for row in rows:
        seen[row["rank"]] += 1
        clicked[row["rank"]] += row["click"] > 0
        if shows[row["sid"], row["on"], row["query"], row["doc"], row["device"]] == 1:
            cell = pairs[row["device"], row["query"], row["doc"], row["on"]][row["rank"]]
            cell[0] += 1
            cell[1] += row["click"] > 0
    rate = {rank: math.floor(clicked[rank] * float(RATE) / n + 0.5) for rank, n in seen.items()}
    found = defaultdict(lambda: [0, 0, 0])
    for key, cells in pairs.items():
        others = [c for k, c in pairs.items() if k[:3] == key[:3] and k != key]
        if len(cells) < 2 or not others:
            continue
        clicks = sum(c for each in others for _, c in each.values())
        usual = sum(n * rate[rank] for each in others for rank, (n, _) in each.items())
        ratio = (clicks * RATE + 5.0 * RATE) / (usual + 5.0 * RATE)
        group = min(16, max(-16, math.floor(4 * math.log(ratio) + 0.5))) + 16
        bucket = int(hashlib.md5(key[1].encode()).hexdigest()[:3], 16) % buckets
        m = sum(n for n, _ in cells.values())
        for a, b in permutations(cells, 2):
            sums = found[(key[0],), "trust", group, bucket, a, b]
            sums[0] += math.floor(float(cells[a][1] * cells[b][0]) * UNIT / (m - 1) + 0.5)
            sums[2] += math.floor(float(cells[a][0] * cells[b][0]) * UNIT / (m - 1) + 0.5)
    return {key: sums for key, sums in found.items() if any(sums)}


def trust_of(counts):
    return {key: sums for key, sums in splits_of(counts).items() if key[1] == "trust"}


def test_all_pairs_are_compared(engine, tmp_path):
    """Clicked or not; docs that are twice in a search left out."""
    rows = random_log(5, searches=200)
    again = [{**row, "rank": 13} for row in rows[::40] if row["rank"] < 3]
    rows += again  # shown twice in one search
    path = write_parquet(tmp_path / "log.parquet", rows)
    counts = engine.harvest(path, buckets=16, trust=True, **OPTIONS)
    expected = oracle(rows, 16)
    assert len(expected) > 300
    assert sum(sums[0] == 0 for sums in expected.values()) > 50  # those without clicks
    assert trust_of(counts) == expected
    plain = engine.harvest(path, buckets=16, **OPTIONS)
    assert counts.pairs.equals(plain.pairs) and not trust_of(plain)
    if engine.name == "duckdb":
        counts.save(tmp_path / "counts.parquet")
        assert Counts.load(tmp_path / "counts.parquet").equals(counts)
        # A part without it is merged with one that has it: sums of what there is.
        with pytest.raises(Exception, match="counted twice"):
            merge([counts, counts])
        fewer = counts.restrict(max_rank=6)
        assert max(max(key[4:]) for key in trust_of(fewer)) <= 6
        assert {k: v for k, v in trust_of(counts).items() if max(k[4:]) <= 6} == trust_of(fewer)


def test_it_needs_days(duckdb_engine, tmp_path):
    path = write_parquet(tmp_path / "log.parquet", random_log(5))
    with pytest.raises(BadOption, match="must tell days"):
        duckdb_engine.harvest(path, trust=True, day="")
