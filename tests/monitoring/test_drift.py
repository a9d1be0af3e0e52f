"""Evidence of a change: against plain mathematics, on known changes, and looked at every day."""

import json
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from support.worlds import simulate

import rankdrift
from rankdrift.cli import run
from rankdrift.core.errors import BadCounts, BadOption, NoUsablePairs
from rankdrift.counts.counts import merge
from rankdrift.estimation.fitting import Options, fit
from rankdrift.monitoring import drift_scores, drifting
from rankdrift.monitoring.days import DayFiles
from rankdrift.monitoring.drift_evidence import PRIOR, SIZES, _between_days, evidence_of
from rankdrift.monitoring.drift_scores import KNOWN, Scores, Shapes, scores_of, shapes_of
from rankdrift.monitoring.record import Outcome
from rankdrift.monitoring.steps import Job, Night, look_for_drift
from rankdrift.pipeline import make_report
from rankdrift.report.page.drift_svg import drift_picture
from rankdrift.simulate.true_curves import dips, steady

CHANGED = 14  # the first day, from 0, of the other page
DAYS = 17
PUSHED_DOWN = "pushed down"


def one_day(number, pairs=1500, batch=None, **more):
    """Counts of a day of pages whose results are loaded so many at a time."""
    batch = batch or (40 if number < CHANGED else 24)
    found = simulate(pairs, 100, number, curve=lambda r: steady(r) * dips(r, batch), **more)
    day = str(date(2024, 5, 1) + timedelta(number))
    return replace(found.counts, days=(day,), sources=(day,), options={})


@pytest.fixture(scope="module")
def days():
    return [one_day(number) for number in range(DAYS)]


@pytest.fixture(scope="module")
def found(days):
    return rankdrift.drift(days)


@pytest.fixture(scope="module")
def folder(days, tmp_path_factory):
    """The same as files, whose names are in another order."""
    folder = tmp_path_factory.mktemp("drift") / "days"
    for number, part in enumerate(reversed(days)):
        part.save(folder / f"{number:02}.parquet")
    return folder


# -- the mathematics -------------------------------------------------------------------------------


def plain_shapes(size, **kinds):
    tested = kinds or {"all": slice(0, size)}
    return Shapes(np.arange(1, 3), np.zeros(2), np.zeros((2, size)), tested)


def known_scores(score, information):
    """Of clicks whose scatter is what independent ones would have, known for certain."""
    many = len(score)
    return Scores(score, information, information, np.full(many, 1e9), np.ones(many))


def log_normal(x, covariance):
    return -0.5 * (
        np.linalg.slogdet(2 * np.pi * covariance)[1] + x @ np.linalg.solve(covariance, x)
    )


def test_evidence_is_the_ratio_of_two_normal_densities():
    """All scores at once are normal, with a change and without: nothing of H⁻¹ in here. A change is
    of any shape and either direction, or it is known but for two sizes of it."""
    random, many, size = np.random.default_rng(5), 4, 3
    root = random.normal(size=(many, size, size))
    information = root @ root.transpose(0, 2, 1) * 20
    score = 0.3 * np.einsum(
        "tkl,tl->tk", np.linalg.cholesky(information), random.normal(size=(4, 3))
    )
    shapes = plain_shapes(size, all=slice(0, size), **{PUSHED_DOWN: slice(1, 2)})
    found = evidence_of(
        known_scores(score, information), shapes, np.arange(many), reference=1, window=9
    )
    stacked = np.concatenate(information)  # (T K, K)
    noise = np.zeros((many * size, many * size))
    for t in range(many):
        noise[t * size : (t + 1) * size, t * size : (t + 1) * size] = information[t]
    without = noise + stacked @ stacked.T
    for t in range(1, many):
        upto = (t + 1) * size
        ratios = []
        for j in range(1, t + 1):
            since = stacked.copy()
            since[: j * size] = 0
            by_size = [
                log_normal(score.ravel()[:upto], (without + s**2 * since @ since.T)[:upto, :upto])
                - log_normal(score.ravel()[:upto], without[:upto, :upto])
                for s in SIZES
            ]
            x, covariance = score.ravel()[:upto], without[:upto, :upto]
            by_size += [
                log_normal(x - a * since[:upto, 1], covariance) - log_normal(x, covariance)
                for a in KNOWN[PUSHED_DOWN]
            ]
            ratios.append(np.logaddexp.reduce(by_size) - np.log(len(by_size)))
        assert found.log[t] == pytest.approx(np.logaddexp.reduce(ratios), abs=1e-6)
        assert found.began[t] == 1 + int(np.argmax(ratios))
    assert found.log[0] == -np.inf


@pytest.mark.parametrize("times", [3.0, 30.0])
def test_scores_that_scatter_more_count_less(times):
    """Queries that scatter so many times what chance would are as so many times fewer clicks."""
    random, many, size = np.random.default_rng(8), 5, 3
    root = random.normal(size=(many, size, size))
    information = root @ root.transpose(0, 2, 1) * 1e5 + 1e5 * np.eye(size)
    noise = np.linalg.cholesky(information) @ random.normal(size=(many, size, 1))
    shift = np.where(np.arange(many) < 3, 0.0, 0.05)[:, None]
    score = np.sqrt(times) * noise[:, :, 0] + information.sum(axis=2) * shift
    scattered = replace(known_scores(score, information), scatter=times * information)
    fewer = known_scores(score / times, information / times)
    more = {"days": np.arange(many), "reference": 1, "window": 9}
    found, wanted = (evidence_of(s, plain_shapes(size), **more) for s in (scattered, fewer))
    assert abs(wanted.log[1:]).min() > 0.2
    np.testing.assert_allclose(found.log[1:], wanted.log[1:], rtol=2e-3)
    np.testing.assert_array_equal(found.began, wanted.began)


def test_days_that_differ_by_more_than_chance_are_told_so_the_more_the_surer():
    """In 20 days that differ by three times what chance would, and in those that hardly tell."""
    many, size = 20, 3
    sure, hardly = (np.tile(each * np.eye(size), (many, 1, 1)) for each in (1e6, 1e-6))
    once = np.ones(many)
    before = size * np.arange(many)  # degrees of freedom of the days before each
    found = _between_days(np.full((many, size), np.sqrt(3e6)), sure, once)
    np.testing.assert_allclose(found, (PRIOR + 3 * before) / (PRIOR + before), rtol=1e-3)
    found = _between_days(np.full((many, size), np.sqrt(3e-6)), hardly, once)
    np.testing.assert_allclose(found, 1, rtol=1e-3)


def plain_scores(day, segment, shapes):
    """Of one day, from its choices, one after the other: see `Scores`."""
    choices, place = day.choices("every"), day.segments.index(segment)
    p, size = np.exp(shapes.theta), len(shapes.ranks)
    score, information = np.zeros((day.buckets, size)), np.zeros((size, size))
    clicks = np.zeros(day.buckets)
    for i in np.flatnonzero(choices.segment == place):
        shown = choices.shown[i][choices.shown[i] > 0] - 1
        share, weight = p[shown] / p[shown].sum(), choices.weight[i]
        expected = np.zeros(size)
        np.add.at(expected, shown, share)
        own = -expected
        own[choices.clicked[i] - 1] += 1
        score[choices.bucket[i]] += weight * own
        information += weight * (np.diag(expected) - np.outer(expected, expected))
        clicks[choices.bucket[i]] += weight
    by_bucket = score[clicks > 0] @ shapes.basis
    scatter = np.atleast_2d(np.cov(by_bucket, rowvar=False)) * len(by_bucket)
    return (
        by_bucket.sum(axis=0),
        shapes.basis.T @ information @ shapes.basis,
        scatter,
        clicks.sum(),
        (clicks**2).sum(),
    )


def test_scores_of_all_days_at_once_are_those_of_each_by_itself(monkeypatch):
    by_platform = {"segments": {"mobile": steady, "web": steady}, "shown": (2, 5), "max_shown": 3}
    counts = [simulate(400, 12, seed, **by_platform).counts for seed in range(3)]
    shapes = shapes_of(fit(merge(counts), Options()), 12)
    some = [counts[0], counts[1].restrict(buckets=16), counts[2]]
    for at_once in (1, 10**6):  # a day at a time, and all
        monkeypatch.setattr(drift_scores, "AT_ONCE", at_once)
        for segment in counts[0].segments:
            found = scores_of(some, segment, shapes)
            wanted = [plain_scores(day, segment, shapes) for day in some]
            for each, plain in zip(vars(found).values(), zip(*wanted, strict=True), strict=True):
                np.testing.assert_allclose(each, np.array(plain), rtol=1e-8, atol=1e-8)


def test_a_push_is_looked_for_at_half_and_all_of_what_the_curve_falls_by(days):
    shapes = shapes_of(fit(days[0], Options()), 100)
    half, whole = (
        size * shapes.basis[:, shapes.tested[PUSHED_DOWN]][:, 0] for size in KNOWN[PUSHED_DOWN]
    )
    np.testing.assert_allclose(whole[:-4], shapes.theta[4:] - shapes.theta[:-4], atol=1e-12)
    np.testing.assert_allclose(half, whole / 2)
    assert whole[:4].max() < 0  # by a carousel of four, the top loses


@pytest.mark.parametrize("kind, each", [("all", 40), (PUSHED_DOWN, 2)])
def test_evidence_grows_by_one_a_day_while_nothing_changes(kind, each):
    random, many, size, runs = np.random.default_rng(6), 12, 3, 400
    shapes = plain_shapes(size, **{kind: slice(0, 1 if kind in KNOWN else size)})
    information = np.tile(each * np.eye(size), (many, 1, 1))
    last = []
    for _ in range(runs):
        score = np.sqrt(each) * random.normal(size=(many, size))
        score += each * random.normal(size=size)
        found = evidence_of(
            known_scores(score, information), shapes, np.arange(many), reference=6, window=7
        )
        last.append(np.exp(found.log[-1]))
    # Days that differ by chance make φ larger, and the evidence less. Its mean has an error of 5%.
    assert 0.75 * 6 < np.mean(last) < 1.15 * 6


def test_a_flat_curve_that_is_pushed_is_the_same_curve():
    """Rank 2 is clicked as often as rank 1: of a push nothing is to be told, and that is no NaN."""
    pair = np.repeat(np.arange(60), 2)
    rank = np.tile([1, 2], 60)
    flat = {"query": pair // 2, "doc": pair, "rank": rank, "click": (pair + rank) % 2}
    days = {
        f"2024-05-0{number}": rankdrift.harvest(
            rankdrift.read_log(pa.table({**flat, "day": [date(2024, 5, number)] * len(pair)}))
        )
        for number in range(1, 10)
    }
    found = rankdrift.drift(days)
    assert not found.alarm and all(np.isfinite(e) for e in found.segments[0].evidence[7:])


# -- known changes ---------------------------------------------------------------------------------


def test_a_change_of_the_page_is_seen_and_where_it_is(found):
    (one,) = found.segments
    assert found.alarm and one.alarm and one.newest == ("2024-05-15", "2024-05-17")
    assert one.reference == ("2024-05-01", "2024-05-14")
    beyond = [day for day, e in zip(one.days, one.evidence, strict=True) if e and e >= 3650]
    assert "2024-05-15" <= beyond[0] <= "2024-05-17"  # within three days, not before
    # Ranks 16 to 23 were in the middle of a batch of 40 and end one of 24; 36 to 40 the reverse.
    at = {change.first: change for change in one.changes}
    worse, better = (next(at[k] for k in sorted(at) if k >= first) for first in (17, 31))
    assert worse.high < 1 < better.low
    table = found.table()
    assert table["first"] == [change.first for change in one.changes]
    assert len(found.to_pandas()) == len(table["ratio"])
    assert "ALARM" in one.words and "2024-05-15" in one.words and "ALARM" in repr(found)


def test_days_to_come_do_not_change_what_was_seen_before(days, found):
    before = rankdrift.drift(days[:CHANGED])
    assert not before.alarm and before.segments[0].newest == ("2024-05-08", "2024-05-14")
    assert before.segments[0].evidence == pytest.approx(found.segments[0].evidence[:CHANGED])
    assert max(e for e in before.segments[0].evidence if e) < 100


def test_files_in_any_order_are_the_same(folder, found):
    again = rankdrift.drift(folder)
    assert again.segments[0].evidence == found.segments[0].evidence
    assert again.to_dict() == found.to_dict()


def test_a_known_change_is_begun_anew_with(days):
    since = rankdrift.drift(days, since="2024-05-15", reference=2)
    assert not since.alarm and since.days == ("2024-05-15", "2024-05-16", "2024-05-17")


def test_a_change_too_small_to_matter_is_no_alarm(days):
    found = rankdrift.drift(days, smallest=5)
    assert not found.alarm and "but the change is small" in found.segments[0].words


# -- segments, thin and missing days ---------------------------------------------------------------


def test_segments_share_what_is_allowed_and_new_ones_wait():
    web, mobile = (lambda r: steady(r) for _ in range(2))
    parts = []
    for number in range(10):
        names = {"web": web} if number < 4 else {"web": web, "mobile": mobile}
        pairs = 3 if number == 5 else 800
        if number != 8:  # a day without a log
            parts.append(
                one_day(number, pairs, segments=names, shares=[1 / len(names)] * len(names))
            )
    found = rankdrift.drift(parts, reference=3)
    by_name = {one.name: one for one in found.segments}
    assert set(by_name) == {"web", "mobile"} and not found.alarm
    assert by_name["web"].limits[3] == 3650 and by_name["web"].limits[-1] == 7300
    assert (
        by_name["mobile"].days[0] >= "2024-05-05" and by_name["mobile"].evidence[:3] == (None,) * 3
    )
    assert all(np.isfinite(e) for one in found.segments for e in one.evidence if e is not None)
    named, numbered = (drift_picture(found, queries) for queries in (True, False))
    assert [name for name, *_ in named["segments"]] == [one.name for one in found.segments]
    assert [name for name, *_ in numbered["segments"]] == ["segment 1", "segment 2"]
    assert len(named["lines"]) == 2 and all(line["truth"] for line in named["lines"])
    late = rankdrift.drift(parts, reference=7)
    told = {one.name: one.why for one in late.segments}
    assert told["web"] == "" and "add " in told["mobile"] and "--reference" in told["mobile"]


def test_of_many_segments_those_with_the_most_clicks_are_tested(monkeypatch):
    monkeypatch.setattr(drifting, "MOST_SEGMENTS", 1)
    named = {"segments": {"mobile": steady, "tablet": steady, "web": steady}}
    parts = [one_day(number, 600, **named, shares=[0.2, 0.6, 0.2]) for number in range(3)]
    found = rankdrift.drift(parts, reference=2)
    assert [one.name for one in found.segments] == ["tablet"]
    assert found.remarks == ("2 segments with fewer clicks are not tested.",)


# -- bad input -------------------------------------------------------------------------------------


def test_what_cannot_be_told_is_said(days):
    with pytest.raises(BadCounts, match=r"1 part of counts with 3 days.*--by day"):
        rankdrift.drift(rankdrift.merge(days[:3]))
    with pytest.raises(BadCounts, match=r"Found 1 day of counts with pairs.*or add days"):
        rankdrift.drift(days[:1])
    with pytest.raises(BadCounts, match=r"Found 1 day of counts from 2024-05-10 on with pairs"):
        rankdrift.drift(days[:10], since="2024-05-10")
    with pytest.raises(BadCounts, match=r"Found 0 parts of counts from 2024-05-02 on.*--by day"):
        rankdrift.drift(rankdrift.merge(days[:3]), since="2024-05-02")
    with pytest.raises(BadCounts, match=rf"newest day of these counts is {days[9].days[-1]}"):
        rankdrift.drift(days[:10], since="2090-01-01")
    assert rankdrift.drift(days[:3], since="20240502", reference=2).days[0] == "2024-05-02"
    rows = pa.table({"query": ["q"] * 2, "doc": ["d"] * 2, "rank": [1, 2], "click": [0, 0]})
    nothing = rankdrift.harvest(rankdrift.read_log(rows))
    with pytest.raises(NoUsablePairs, match=r"2 parts of counts, none of which has a day"):
        rankdrift.drift([nothing, nothing])
    with pytest.raises(BadCounts, match="cannot be merged"):
        rankdrift.drift([*days[:8], replace(days[8], options={"same": ["price"]})])
    for wrong, words in (
        ({"since": "May"}, "2024-01-31"),
        ({"reference": 1}, "2 days"),
        ({"window": 0}, "1 day"),
        ({"false_alarms": 0}, "more than 0"),
        ({"smallest": -1}, "share"),
        ({"level": 1}, "0.95"),
    ):
        with pytest.raises(BadOption, match=words):
            rankdrift.drift(days, **wrong)


# -- the command line and the report ---------------------------------------------------------------


def test_the_verb_exits_with_1_at_an_alarm_and_takes_settings(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    assert run(["drift", folder.name, "--json", "--chart", "drift.svg"]) == 1
    raised = capsys.readouterr()
    assert json.loads(raised.out)["alarm"] and "--since 2024-05-15" in raised.err
    assert "<svg" in (folder.parent / "drift.svg").read_text()
    (folder.parent / "rankdrift.toml").write_text("[drift]\nsmallest = 5.0\nreference = 9\n")
    assert run(["drift", folder.name]) == 0
    quiet = capsys.readouterr()
    assert "No alarm" in quiet.out and "smallest" in quiet.err
    assert run(["config", "drift", "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]["drift"]
    assert settings["reference"]["value"] == 9 and settings["false_alarms"]["value"] == 0.1
    assert run(["drift", f"{folder.name}/00.parquet"]) == 2
    assert "--by day" in capsys.readouterr().err


def test_the_report_tells_of_it(days):
    page = make_report(days).html
    assert 'id="drift"' in page and "The change seems to have begun on 2024-05-15" in page
    assert 'id="drift"' not in make_report(days[:6]).html


def test_the_report_of_days_on_which_nothing_moved_says_so():
    at_one_rank = {"query": ["q"] * 2, "doc": ["d"] * 2, "rank": [1, 1], "click": [0, 1]}
    days = [
        rankdrift.harvest(
            rankdrift.read_log(pa.table({**at_one_rank, "day": [date(2024, 5, number)] * 2}))
        )
        for number in range(1, 10)
    ]
    assert all(len(part.days) == 1 for part in days)
    with pytest.raises(NoUsablePairs, match="No day has a usable pair"):
        rankdrift.drift(days)
    page = make_report(days).html
    assert "bear no estimate" in page and 'id="drift"' not in page


def test_the_night_job_raises_the_alarm(days, tmp_path):
    paths = tuple(tmp_path / "days" / f"{part.days[0]}.parquet" for part in days)
    for part, path in zip(days, paths, strict=True):
        part.save(path)

    def night(known, **drift):
        files = DayFiles(known[-2:], "", 0, 0, 0, 0, known=known)
        return look_for_drift(Night(Job(drift=drift), None, tmp_path, files))

    told = night(paths)
    assert told.outcome == Outcome.DRIFT and told.files == ("drift.json",)
    assert "ALARM" in told.reason and 'since = "2024-05-15"' in told.reason
    assert "[run]" in told.reason
    assert json.loads((tmp_path / "drift.json").read_text())["alarm"] is True
    quiet = night(paths[:CHANGED])
    assert quiet.outcome == Outcome.GOOD and "No alarm" in quiet.words
    waiting = night(paths, since="2024-05-15")
    assert (
        waiting.state == "skipped"
        and waiting.words == "3 days with usable pairs since 2024-05-15; it takes 8"
    )
