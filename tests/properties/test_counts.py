"""Counts against a plain count of dictionaries, for whatever pairs a log may hold."""

import math
import random
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rankdrift.counts.counts import UNIT, ByRank, Counts, Overflow, Pairs, RankPairs, merge
from rankdrift.counts.funnel import Dropped, Funnel, Used

pytestmark = pytest.mark.slow
RANKS = [1, 2, 3, 5, 40, 90_000, 1_000_000]  # wide enough that a row is several 64-bit words
MAX_RANK = RANKS[-1]
HASHES = 32

# One pair of a log: (segment, hash of its query, [(rank, click) of each appearance]).
appearance = st.tuples(st.sampled_from(RANKS), st.booleans())
pair = st.tuples(
    st.sampled_from([None, "", "web", "o'é"]),
    st.integers(0, HASHES - 1),
    st.lists(appearance, min_size=1, max_size=7),
)
logs = st.lists(pair, max_size=25)
fineness = st.tuples(st.sampled_from([2, 3, 5, 100]), st.sampled_from([1, 4, 8, 32]))
quick = settings(max_examples=30, deadline=None)
writes_files = settings(
    quick, max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def tallies(log, max_shown, buckets, max_rank=MAX_RANK):
    """The tables as Counters, and the funnel, one pair at a time."""
    listed, compared, held = Counter(), Counter(), Counter()
    impressions, clicks = Counter(), Counter()
    lost = {name: [0, 0, 0] for name in ("deep_rank", "never_clicked", "one_rank")}
    used = [0, 0, 0]
    for segment, hashed, shown in log:
        deep = [(rank, click) for rank, click in shown if rank > max_rank]
        shown = [(rank, click) for rank, click in shown if rank <= max_rank]
        lost["deep_rank"][0] += len(deep)
        lost["deep_rank"][1] += sum(click for _, click in deep)
        for rank, click in shown:
            impressions[segment, rank] += 1
            clicks[segment, rank] += click
        m, all_clicks = len(shown), sum(click for _, click in shown)
        if all_clicks == 0:
            where = lost["never_clicked"]
        elif len({rank for rank, _ in shown}) == 1:
            where = lost["one_rank"]
        else:
            where = used
        where[0] += m
        where[1] += all_clicks
        where[2] += 1
        if where is not used:
            continue
        bucket = hashed % buckets
        if m <= max_shown:
            listed[segment, bucket, tuple(sorted(2 * rank + click for rank, click in shown))] += 1
            continue
        n = Counter(rank for rank, _ in shown)
        c = Counter(rank for rank, click in shown if click)
        for a in c:
            for b in n.keys() - {a}:
                weight = math.floor(float(c[a] * n[b]) * 4294967296.0 / float(m - 1) + 0.5)
                compared[segment, bucket, a, b, all_clicks == 1] += weight
        for rank in n:
            held[segment, rank, all_clicks == 1, "first"] += rank == min(n)
            held[segment, rank, all_clicks == 1, "pairs"] += 1
            held[segment, rank, all_clicks == 1, "clicks"] += c[rank]
    for name in ("deep_rank", "never_clicked"):
        lost[name][2] = None
    funnel = Funnel(
        rows=sum(len(shown) for _, _, shown in log),
        clicks=sum(click for _, _, shown in log for _, click in shown),
        dropped={name: Dropped(*numbers) for name, numbers in lost.items()},
        used=Used(*used),
    )
    return listed, compared, held, impressions, clicks, funnel


def halves(first, pairs, clicks):
    """Of a row of Overflow; none has more first pairs, or clicks of single ones, than pairs."""
    some = [min(n, pairs // 2) for n in (first, pairs, clicks)]
    return some, [n - m for n, m in zip((first, pairs, clicks), some, strict=True)]


def count(log, max_shown=100, buckets=HASHES, seed=None, **more):
    """The same as Counts; rows shuffled and split in two where `seed` is given."""
    listed, compared, held, impressions, clicks, funnel = tallies(log, max_shown, buckets)
    segments = sorted({segment for segment, *_ in log}, key=str)
    if seed is not None:
        random.Random(seed).shuffle(segments)
    place = {segment: i for i, segment in enumerate(segments)}
    pairs = [(place[s], b, codes, n) for (s, b, codes), n in listed.items()]
    cells = [(place[s], b, a, o, one, w) for (s, b, a, o, one), w in compared.items()]
    sums = ("first", "pairs", "clicks")
    by_rank = [
        (place[s], rank, one, *(held[s, rank, one, name] for name in sums))
        for s, rank, one in {key[:3] for key in held}
    ]
    ranks = [(place[s], r, n, clicks[s, r]) for (s, r), n in impressions.items()]
    if seed is not None:
        pairs = [
            row for s, b, codes, n in pairs for row in ((s, b, codes, n - 1), (s, b, codes, 1))
        ]
        cells = [row for *key, w in cells for row in ((*key, w - 3), (*key, 3))]
        by_rank = [(*key, *half) for *key, f, n, k in by_rank for half in halves(f, n, k)]
        for rows in (pairs, cells, by_rank, ranks):
            random.Random(seed).shuffle(rows)
    width = max((len(codes) for *_, codes, _ in pairs), default=2)
    shown = np.array([[*codes, *[0] * (width - len(codes))] for *_, codes, _ in pairs])
    given = {"segment_columns": ("device",), "segments": tuple((s,) for s in segments), **more}
    return Counts(
        pairs=Pairs(
            segment=[row[0] for row in pairs],
            bucket=[row[1] for row in pairs],
            drift=[0] * len(pairs),
            shown=shown.reshape(len(pairs), width),
            pairs=[row[3] for row in pairs],
        ),
        rank_pairs=RankPairs(*zip(*cells, strict=True)) if cells else RankPairs.empty(),
        overflow=Overflow(*zip(*by_rank, strict=True)) if by_rank else Overflow.empty(),
        by_rank=ByRank(*zip(*ranks, strict=True)) if ranks else ByRank.empty(),
        funnel=funnel,
        max_shown=max_shown,
        buckets=buckets,
        max_rank=MAX_RANK,
        **given,
    )


def contents(counts):
    """The tables of `counts` as the Counters that `tallies` makes."""
    names = [segment[0] if segment else None for segment in counts.segments]
    p, c, h, r, *_ = counts.tables.values()
    listed, compared, held = Counter(), Counter(), Counter()
    impressions, clicks = Counter(), Counter()
    for s, b, shown, n in zip(p.segment, p.bucket, p.shown.tolist(), p.pairs, strict=True):
        listed[names[s], b, tuple(code for code in shown if code)] += n
    for s, b, a, o, one, w in zip(*(column.tolist() for column in c.columns()), strict=True):
        compared[names[s], b, a, o, one] += w
    for s, rank, one, *sums in zip(*(column.tolist() for column in h.columns()), strict=True):
        for name, n in zip(("first", "pairs", "clicks"), sums, strict=True):
            held[names[s], rank, one, name] += n
    for s, rank, n, k in zip(*(column.tolist() for column in r.columns()), strict=True):
        impressions[names[s], rank] += n
        clicks[names[s], rank] += k
    return listed, compared, held, impressions, clicks


def same(a, b):
    """Equal, in the arrays themselves and not in content only."""
    return (
        a.equals(b)
        and b.equals(a)
        and a.sources == b.sources
        and all(
            x.dtype == y.dtype and x.shape == y.shape and (x == y).all()
            for name, table in a.tables.items()
            for x, y in zip(table.columns(), b.tables[name].columns(), strict=True)
        )
    )


@quick
@given(logs, fineness, st.integers(0, 9))
def test_canonical_whatever_the_order_and_the_splitting_of_rows(log, fine, seed):
    counts = count(log, *fine)
    assert contents(counts) == tallies(log, *fine)[:5]
    assert same(counts, count(log, *fine, seed=seed))
    assert list(counts.segments) == sorted(counts.segments, key=lambda s: (s[0] is not None, s))
    for table in counts.tables.values():
        keys = list(zip(*(key.tolist() for key in table.columns()[: -table.SUMS]), strict=True))
        assert keys == sorted(keys) and len(set(map(str, keys))) == len(keys)


@quick
@given(st.lists(st.tuples(logs, fineness), min_size=1, max_size=4))
def test_merged_counts_are_the_counts_of_the_merged_log(parts):
    together = count(
        [pair for log, _ in parts for pair in log],
        min(fine[0] for _, fine in parts),
        min(fine[1] for _, fine in parts),
    )
    assert same(merge(count(log, *fine) for log, fine in parts), together)


@quick
@given(*[st.tuples(logs, fineness)] * 3)
def test_addition_is_commutative_and_associative(x, y, z):
    a, b, c = (
        count(log, *fine, days=(f"2024-01-{i:02}",), sources=(f"day {i}",), version=f"0.{i}.0")
        for i, (log, fine) in enumerate((x, y, z), start=8)
    )
    assert same(a + b, b + a)
    assert same((a + b) + c, a + (b + c))
    assert same(merge([c, a, b]), a + b + c)
    assert (a + b + c).version == (c + b + a).version == "0.10.0"
    assert (c + b + a).days == ("2024-01-08", "2024-01-09", "2024-01-10")


@quick
@given(logs, fineness, fineness)
def test_coarser_later_is_coarser_from_the_start(log, fine, coarse):
    assume(coarse[0] <= fine[0] and coarse[1] <= fine[1])
    coarser = count(log, *fine).restrict(max_shown=coarse[0], buckets=coarse[1])
    assert same(coarser, count(log, *coarse))


@quick
@given(logs, st.sampled_from(RANKS[:-1]))
def test_a_smaller_max_rank_later_is_the_same_as_from_the_start(log, max_rank):
    shallow = count(log).restrict(max_rank=max_rank)
    assert contents(shallow) == tallies(log, 100, HASHES, max_rank)[:5]
    assert shallow.max_rank == max_rank
    assert shallow.funnel == count(log).funnel


@quick
@given(logs, st.sampled_from(RANKS[:-1]))
def test_a_smaller_max_rank_drops_the_cells_of_deeper_ranks(log, max_rank):
    _, compared, held, *_ = tallies(log, 2, HASHES)
    shallow = count(log, 2).restrict(max_rank=max_rank)
    assert contents(shallow)[1:3] == (
        {key: w for key, w in compared.items() if max(key[2], key[3]) <= max_rank},
        {key: n for key, n in held.items() if key[1] <= max_rank},
    )
    assert shallow.n_overflow == sum(
        n for key, n in held.items() if key[1] <= max_rank and "first" in key
    )


@quick
@given(logs, st.sampled_from([2, 100]))
def test_strict_is_two_appearances_at_two_ranks_with_one_click(log, max_shown):
    two = [
        (segment, hashed, shown)
        for segment, hashed, shown in log
        if len(shown) == 2 and shown[0][0] != shown[1][0] and shown[0][1] != shown[1][1]
    ]
    strict = count(log, max_shown).restrict(strict=True)
    assert contents(strict)[:3] == tallies(two, 100, HASHES)[:3]
    assert strict.n_pairs == strict.n_clicks == len(two)


@quick
@given(logs, st.sets(st.sampled_from([None, "", "web"])), st.sampled_from([2, 100]))
def test_segments_are_selected_by_value(log, wanted, max_shown):
    counts = count(log, max_shown)
    present = [segment for (segment,) in counts.segments if segment in wanted]
    chosen = counts.restrict(segments=present)
    of_wanted = [pair for pair in log if pair[0] in wanted]
    *expected, funnel = tallies(of_wanted, max_shown, HASHES)
    assert contents(chosen) == tuple(expected)
    assert (chosen.n_pairs, chosen.n_clicks) == (funnel.used.pairs, funnel.used.clicks)
    assert chosen.segments == tuple((segment,) for segment in present)


@quick
@given(st.lists(st.tuples(logs, st.booleans()), min_size=1, max_size=4), st.integers(0, 9))
def test_a_sum_knows_no_more_of_much_shown_pairs_than_its_parts(parts, seed):
    """A file of format 1 is like counts with comparisons and nothing held."""
    days = [
        count(log, 2) if known else replace(count(log, 2), overflow=Overflow.empty())
        for log, known in parts
    ]
    whole = count([pair for log, _ in parts for pair in log], 2)
    if not all(day.overflow_known for day in days):
        whole = replace(whole, overflow=Overflow.empty())
    random.Random(seed).shuffle(days)
    assert same(merge(days), whole)
    assert same(reduce(add, days), whole)


@quick
@given(logs, fineness)
def test_pooled_is_counted_without_segments(log, fine):
    pooled = count(log, *fine).pool()
    plain = count(
        [(None, hashed, shown) for _, hashed, shown in log],
        *fine,
        segment_columns=(),
        segments=((),),
    )
    assert same(pooled, plain)


@quick
@given(logs, fineness, st.sampled_from(["every", "single"]))
def test_choices_give_the_likelihood_of_the_log(log, fine, clicks):
    max_shown = fine[0]
    p = {0: 0.0, **{rank: 1 / (rank + 0.3) for rank in RANKS}}
    by_segment = Counter()
    for segment, _, shown in log:
        all_clicks = sum(click for _, click in shown)
        if clicks == "single" and all_clicks != 1:
            continue
        for i, (a, click) in enumerate(shown):
            if not click or len({rank for rank, _ in shown}) == 1:
                continue
            if len(shown) <= max_shown:
                by_segment[segment] += math.log(p[a] / sum(p[rank] for rank, _ in shown))
            else:
                others = [b for j, (b, _) in enumerate(shown) if j != i and b != a]
                by_segment[segment] += sum(
                    math.log(p[a] / (p[a] + p[b])) / (len(shown) - 1) for b in others
                )
    counts = count(log, *fine)
    choices = counts.choices(clicks)
    terms = np.array(
        [
            weight * math.log(p[clicked] / sum(p[rank] for rank in shown))
            for shown, clicked, weight in zip(
                choices.shown.tolist(), choices.clicked.tolist(), choices.weight, strict=True
            )
        ]
    )
    for i, (segment,) in enumerate(counts.segments):
        # Weights are rounded to 1/UNIT, so sums differ by far less than this.
        assert terms[choices.segment == i].sum() == pytest.approx(by_segment[segment], abs=1e-7)
    listed = choices.pair >= 0
    rows = choices.pair[listed]
    assert (counts.pairs.bucket[rows] == choices.bucket[listed]).all()
    assert (counts.pairs.shown[rows] >> 1 == choices.shown[listed]).all()
    assert ((choices.shown > 0).sum(axis=1)[~listed] == 2).all()


@quick
@given(logs)
def test_a_comparison_is_within_half_a_unit_of_its_weight(log):
    exact = Counter()
    for segment, hashed, shown in log:
        if len(shown) > 2 and len({rank for rank, _ in shown}) > 1:
            for a, click in shown:
                for b, _ in shown:
                    if click and a != b:
                        exact[segment, hashed, a, b] += UNIT / (len(shown) - 1)
    found = Counter()
    for (segment, bucket, a, b, _), weight in contents(count(log, 2))[1].items():
        found[segment, bucket, a, b] += weight
    assert found.keys() == exact.keys()
    assert all(abs(found[key] - exact[key]) <= 0.51 * len(log) for key in exact)


@writes_files
@given(logs, fineness, st.integers(0, 9))
def test_saved_and_loaded_is_the_same_and_equal_counts_are_equal_bytes(tmp_path, log, fine, seed):
    more = {"options": {"where": 'it\'s "odd" \\ é\n'}, "days": ("2024-02-29",), "version": "1"}
    one, two = count(log, *fine, **more), count(log, *fine, seed=seed, **more)
    one.save(tmp_path / "one.parquet")
    two.save(tmp_path / "two.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert same(Counts.load(tmp_path / "one.parquet"), one)
    assert Counts.load(tmp_path / "one.parquet").version == "1"


@writes_files
@given(*[st.tuples(logs, fineness)] * 2)
def test_restricted_counts_are_saved_too(tmp_path, x, y):
    counts = merge([count(*[x[0], *x[1]]), count(*[y[0], *y[1]])])
    for restricted in (counts.restrict(strict=True), counts.restrict(max_rank=3), counts.pool()):
        restricted.save(tmp_path / "file")
        assert same(Counts.load(tmp_path / "file"), restricted)
