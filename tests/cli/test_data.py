"""Real logs through the command line."""

import os
from pathlib import Path

import pytest

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
    assert done.code == 0
    assert "no day column: the whole log counts as one day" in " ".join(done.out.split())
    assert "60,000" in done.out and "Ranks 1–3 can be compared" in done.out
    assert "\n  weak\n" in done.out
    done = rankdrift("harvest", logs, "-o", tmp_path / "counts.parquet")
    assert done.code == 0
    assert "Guessed the columns: query = query, doc = doc, rank = rank, click = click" in done.err
    assert "Next: rankdrift counts" in done.err


def test_user_behavior_insights(rankdrift, data, tmp_path):
    """Events, joined to what was shown; in this sample nothing moves."""
    log = data / "ubi" / "ubi_queries_events.ndjson.gz"
    done = rankdrift("inspect", log, *UBI, "--html", tmp_path / "report.html")
    assert done.code == 1
    for words in (
        "Layout: events, a row per event. A day: the date in UTC.",
        "event_attributes.position.ordinal",
        "more columns:",
        "clicks on results that were not shown",
        "No pair appeared at two different ranks and got a click",
    ):
        assert words in " ".join(done.out.split())
    path = tmp_path / "counts.parquet"
    done = rankdrift("harvest", log, *UBI, "-o", path)
    assert done.code == 1 and path.exists()
    assert "There are no usable pairs." in done.err
    done = rankdrift("inspect", log, "--click-events", "click,item_click")
    assert done.code == 2 and "--first-rank 0" in done.err
