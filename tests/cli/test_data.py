"""Real logs through the command line."""

import os
from pathlib import Path

import pytest

from rankdrift import harvest, read_log

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("RANKDRIFT_DATA" not in os.environ, reason="RANKDRIFT_DATA is not set"),
]
UBI = ("--first-rank", 0, "--click-events", "click,item_click")


@pytest.fixture
def data():
    return Path(os.environ["RANKDRIFT_DATA"])


def test_recommendations_in_three_slots(rankdrift, data, tmp_path):
    """Too few clicks for much, and the tool says so."""
    logs = data / "open-bandit" / "*.parquet"
    done = rankdrift("inspect", logs)
    assert done.code == 1
    assert "no day column: the whole log counts as one day" in " ".join(done.out.split())
    assert "60,000" in done.out and "Ranks 1–3 can be compared" in done.out
    assert "\n  unfit\n" in done.out and "Too wide to be of use" in done.out
    done = rankdrift("harvest", logs, "-o", tmp_path / "counts.parquet")
    assert done.code == 0
    assert "Guessed the columns: query = query, doc = doc, rank = rank, click = click" in done.err
    assert "Next: rankdrift estimate" in done.err


def test_user_behavior_insights(rankdrift, data, tmp_path):
    """Recognised by itself; what was taken for what is said."""
    log = data / "ubi" / "ubi_queries_events.ndjson.gz"
    done = rankdrift("inspect", log, "--html", tmp_path / "report.html")
    assert done.code == 1
    for words in (
        "Layout: events, a row per event. A day: the date in UTC.",
        "event_attributes.position.ordinal",
        "more columns:",
        "clicks on results that were not shown",
        "no two ranks each won a click over the other",
    ):
        assert words in " ".join(done.out.split())
    for words in (
        "Recognised User Behavior Insights",
        "Ranks are logged from 0, so 1 is added",
        "clicks: click (287), item_click (11)",
        "40 of 298 clicks are on a result that the log never shows",
    ):
        assert words in done.err
    path = tmp_path / "counts.parquet"
    done = rankdrift("harvest", log, "--click-events", "click", "-o", path)
    assert done.code == 0 and path.exists()
    assert "Read as ubi: query = user_query" in done.err


@pytest.mark.filterwarnings("ignore::rankdrift.core.errors.Remark")
def test_the_clicks_that_have_no_impression(data):
    """41 of 287, as the sample says of itself, where only impressions are taken for shown."""
    log = data / "ubi" / "ubi_queries_events.ndjson.gz"
    options = {"layout": "events", "first_rank": 0, "click_events": "click"}
    plain = harvest(read_log(log, **options)).funnel
    known = harvest(read_log(log, click_events="click")).funnel
    assert plain.clicks == known.clicks == 287
    assert plain.dropped["stray_click"].clicks == 41
    # Lists of hits stand in where a search has no impression at all: 12 clicks are found there.
    assert known.dropped["stray_click"].clicks == 29
    assert known.rows == 3_448 + 404
