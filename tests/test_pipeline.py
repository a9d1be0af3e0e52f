"""The whole story, on a small market."""

from rankdrift import read_log
from rankdrift.pipeline import run_pipeline
from rankdrift.simulate import market


def test_the_whole_story(tmp_path):
    columns = {"query": ["keywords", "category", "aspects"], "segment": "platform", "max_rank": 30}
    world = {"queries": 30, "click_rate": 0.3, "seed": 5}
    made = market(tmp_path / "log", rows=80_000, days=2, **world)
    after = market(tmp_path / "later", rows=30_000, days=1, start="2024-01-03", **world)
    found = run_pipeline(
        read_log(made.paths, **columns), read_log(after.paths, **columns), trees=10
    )
    assert found.counts.funnel.rows == made.rows
    assert {segment for (segment,) in found.propensities.by_segment} == {"web", "mobile"}
    assert found.comparison.models == ("biased", "fair")
    # A click deep down is worth more than one at the top to the fair ranker only.
    assert found.fair.gains["largest"] > 2 > found.biased.gains["largest"]
    assert found.checks.checks
