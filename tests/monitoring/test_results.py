"""Folders of results: which is the oldest."""

import os

import pytest

from rankdrift.core.artefacts import RUN_RECORD
from rankdrift.monitoring.results import prune

SECOND = "2024-01-02T033000Z-"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (f"{SECOND}aaaaaa", f"{SECOND}bbbbbb"),
        (f"{SECOND}bbbbbb", f"{SECOND}aaaaaa"),  # the letters are by chance
    ],
)
def test_of_two_within_a_second_the_older_goes(tmp_path, older, newer):
    for when, name in enumerate([older, newer]):
        record = tmp_path / name / RUN_RECORD
        record.parent.mkdir()
        record.write_text("{}")
        os.utime(record, (1e9 + when / 4,) * 2)
    assert prune(tmp_path, 1, []) == [older]
    assert [path.name for path in tmp_path.iterdir()] == [newer]


def test_a_name_goes_before_when_its_files_were_written(tmp_path):
    for when, day in enumerate(["03", "02"]):  # as if copied back from elsewhere
        record = tmp_path / f"2024-01-{day}T033000Z-abcdef" / RUN_RECORD
        record.parent.mkdir()
        record.write_text("{}")
        os.utime(record, (1e9 + when,) * 2)
    assert prune(tmp_path, 1, []) == ["2024-01-02T033000Z-abcdef"]
