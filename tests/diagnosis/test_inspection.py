"""What an inspection advises has been tried, and is never what was just run."""

import io
import re
import shlex

import numpy as np
import pytest
from support.hotel_log import hotel_table, long_table, write_hotel_log

from rankdrift.core.errors import RankdriftError
from rankdrift.core.verdicts import Fitness
from rankdrift.counts.counts import Counts
from rankdrift.diagnosis import ways as trying
from rankdrift.diagnosis.inspection import inspect
from rankdrift.diagnosis.ways import FEW, changed, flags
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import read_log

HOTEL = {
    "query": "srch_destination_id", "doc": "prop_id", "rank": "position", "click": "click_bool",
    "day": "date_time", "search": "srch_id",
}  # fmt: skip
SAMPLED = 0.35  # of the pairs: 120 cities are few to draw a fourth of


@pytest.fixture(scope="module")
def hotel():
    return read_log(hotel_table(searches=2_000, cities=150, days=200), **HOTEL)


@pytest.fixture(scope="module")
def found(hotel):
    return inspect(hotel)


def test_few_repeats_in_a_day_and_many_across_days(hotel, found):
    assert found.verdict != Fitness.GOOD
    best = found.ways.best
    assert best is not None and best.enough and best.pairs > 4 * found.ways.tried[0].pairs
    assert found.advice[0].startswith(f"Read it with {flags(best.options)}: about {best.pairs:,}")
    assert [flags(way.options) for way in found.ways.tried if "same" not in way.options] == [
        "", "--window 7d", "--window 28d", '--day ""',
    ]  # fmt: skip


def test_what_is_printed_is_what_the_log_gives_that_way(hotel, found):
    for way in found.ways.tried[1:]:
        options = {**HOTEL, **{k: v for k, v in way.options.items() if v is not None}}
        log = read_log(hotel_table(searches=2_000, cities=150, days=200), **options)
        counts = harvest(log)
        assert (way.pairs, way.clicks) == (counts.n_pairs, counts.n_clicks)
        try:
            curve = estimate(counts, reference=1)
        except RankdriftError:
            assert way.rank is None
            continue
        low, high = (side[curve.ranks == way.rank] for side in curve.interval())
        assert (way.low, way.high) == pytest.approx((float(low[0]), float(high[0])))


def test_a_large_log_is_sampled(hotel, found, monkeypatch):
    monkeypatch.setattr(trying, "MOST_ROWS", 50_000 // 4)
    sampled = inspect(hotel)
    assert sampled.ways.sample == 4
    whole = {flags(way.options): way for way in found.ways.tried}
    many = [way for way in sampled.ways.tried[1:] if way.pairs > FEW]
    assert len(many) >= 2
    for way in many:
        assert way.pairs == pytest.approx(whole[flags(way.options)].pairs, rel=SAMPLED)
        assert way.pairs % 4 == 0
    # One in four queries is read, all of each.
    log = changed(hotel, {"day": ""}, 4)
    left_out = harvest(log).funnel.dropped["where"].rows
    assert left_out == pytest.approx(0.75 * 50_000, rel=SAMPLED)


def test_a_log_with_pairs_enough_is_read_once(monkeypatch):
    def never(*_):
        raise AssertionError("there was no need to")

    monkeypatch.setattr("rankdrift.diagnosis.inspection.try_ways", never)
    monkeypatch.setattr("rankdrift.diagnosis.inspection.THIN", 1_000)
    log = read_log(hotel_table(searches=3_000, cities=5, days=3), **HOTEL)
    [asked] = inspect(log).ways.tried
    assert asked.enough and not asked.options


def test_the_verdict_follows_the_interval(monkeypatch):
    rng = np.random.default_rng(3)
    rows = [
        (f"q{q}", f"d{doc}", rank, int(rng.random() < 0.5 / rank), day)
        for q in range(60)
        for day in range(4)
        for _ in range(4)
        for doc, rank in enumerate(rng.permutation([1, 2, 3]).tolist())
    ]
    found = inspect(read_log(long_table(rows)))
    asked = found.ways.tried[0]
    assert not asked.wide and found.verdict == Fitness.GOOD, found.reasons
    assert f"for rank {asked.rank} beside rank 1, at 95%." in found.reasons[-1]
    monkeypatch.setattr(trying, "WIDEST", (asked.high / asked.low) * 0.99)
    found = inspect(read_log(long_table(rows)))
    assert found.verdict != Fitness.GOOD and "Too wide to be of use" in found.reasons[-1]


def test_what_estimate_refuses_is_unfit():
    rows = [
        ("q", f"d{(i + r) % 7}", r, int(i % r == 0), 1) for i in range(900) for r in range(1, 6)
    ]
    log = read_log(long_table(rows))
    with pytest.raises(RankdriftError) as refused:
        estimate(harvest(log))
    found = inspect(log)
    assert found.verdict == Fitness.UNFIT and str(refused.value) in found.reasons


def test_what_must_be_equal_may_be_too_much():
    options = {**HOTEL, "same": ["price_usd", "f1"], "segment": "random_bool"}
    log = read_log(hotel_table(searches=600, cities=10, days=2), **options)
    found = inspect(log)
    assert [flags(way.options) for way in found.ways.tried] == [
        "", '--day ""', "--same f1", "--same price_usd", '--segment ""',
    ]  # fmt: skip
    assert found.ways.best is not None and found.ways.best.options == {"same": ["price_usd"]}
    assert found.ways.best.assumes == "f1 does not change how good a doc is"


ODD = {
    "no repeats": [(f"q{i}", f"d{i}-{r}", r, int(r == 1), i % 9) for i in range(90)
                   for r in (1, 2)],
    "one query": [("q", f"d{(i + r) % 7}", r, int(r == 1), i // 2) for i in range(60)
                  for r in range(1, 6)],
    "one day": [(f"q{i % 40}", f"d{r}", r, int(r == i % 2 + 1), 0) for i in range(60)
                for r in (1, 2, 3)],
    "one rank": [(f"q{i % 5}", f"d{i % 9}", 1, i % 2, i % 4) for i in range(200)],
    "no clicks": [(f"q{i % 5}", f"d{(i + r) % 9}", r, 0, i % 4) for i in range(60) for r in (1, 2)],
    "one pair": [("q", "d", 1, 1, 0), ("q", "d", 2, 0, 0)],
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_logs_get_advice_of_their_own(name):
    found = inspect(read_log(long_table(ODD[name])))
    said = " ".join((*found.reasons, *found.advice))
    assert found.verdict == Fitness.UNFIT and found.advice
    assert not re.search(r"\b1 (ranks|pairs|clicks|days|queries|comparisons)\b", said), said
    assert "--max-rank 1 " not in said and "--max-rank 2 " not in said
    if name == "one rank":
        assert "Every result was shown at rank 1" in said and not found.ways.tried
        assert "(--rank)" in said and "Add days" not in said
    if name == "no repeats":
        assert found.advice[0].endswith("ids that are new in every search would do that.")
    if name in ("no repeats", "no clicks", "one pair"):
        assert found.ways.best is None


def test_a_log_of_few_queries_does_not_need_days():
    rng = np.random.default_rng(1)
    rows = [
        (f"q{i % 3}", f"d{d}", r + 1, int(r < 2 or rng.random() < 0.1), i % 20)
        for i in range(3_000)
        for r, d in enumerate(rng.permutation(3) if i % 2 else range(3))
    ]
    rows += [("q0", "d9", 7, 0, 1), ("q0", "d9", 1, 1, 1)]
    found = inspect(read_log(long_table(rows)))
    said = " ".join(found.advice)
    assert "log more queries: all clicks are of 3 queries" in said and "add days" not in said


def test_no_line_is_broken_inside_a_word(rankdrift_text, found):
    whole = set(rankdrift_text(found, 400).split())
    words = set(rankdrift_text(found, 80).split())
    assert not [word for word in words - whole if word.isascii()]


def test_unused_columns_are_one_line(rankdrift_text, hotel, found):
    text = rankdrift_text(found)
    assert "27 more columns: price_usd, f1, f2, f3, f4, f5, f6, f7, …" in text
    assert "comp_rate" not in text


@pytest.fixture
def rankdrift_text():
    from rich.console import Console

    from rankdrift.report.terminal.inspection import inspection_report

    def text(found, width=80):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(inspection_report(found))
        return console.export_text()

    return text


def test_the_next_command_is_another_and_does_what_it_says(tmp_path, monkeypatch, capsys):
    from rankdrift.cli import run

    monkeypatch.chdir(tmp_path)
    write_hotel_log("hotel.parquet", searches=2_000, cities=150, days=200)
    words = ["inspect", "hotel.parquet", *(w for k, v in HOTEL.items() for w in (f"--{k}", v))]
    run(words)
    printed = capsys.readouterr()
    [_, command] = printed.err.rstrip().rsplit("Next: rankdrift ", 1)
    given = shlex.split(command)
    assert given[0] == "harvest" and "--window" in given
    assert run(given) == 0
    counts = Counts.load("counts.parquet")
    assert float(counts.choices("every").weight.sum()) >= FEW
    assert f"{counts.n_pairs:,}" in printed.out


def test_a_slice_in_random_order_is_a_gift():
    table = hotel_table(searches=300, random=0.5)
    said = [remark for remark in inspect(read_log(table)).remarks if "random order" in remark]
    drawn = int(np.sum(table["random_bool"]))
    assert len(said) == 1 and said[0].startswith(f"{drawn:,} rows (")
    apart = inspect(read_log(table, randomised_apart=True))
    assert not [remark for remark in apart.remarks if "random order" in remark]
    assert apart.counts.funnel.dropped["randomised"].rows == drawn


def test_a_column_that_is_empty_is_as_good_as_none():
    table = hotel_table(searches=100)
    table = table.append_column("user_id", table["comp_rate"].cast("string"))
    found = inspect(read_log(table))
    assert "The column 'user_id' (user) is empty in every row." in found.remarks
    assert "user" in found.worth_logging
