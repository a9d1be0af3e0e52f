"""The worst check is the verdict over all."""

import pytest

from rankdrift.core.verdicts import Verdict
from rankdrift.diagnosis.verdict import overall

GOOD, CAUTION, SERIOUS, UNKNOWN = Verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([], GOOD),
        ([GOOD, GOOD], GOOD),
        ([GOOD, UNKNOWN], GOOD),
        ([UNKNOWN, CAUTION, GOOD], CAUTION),
        ([CAUTION, SERIOUS, UNKNOWN, GOOD], SERIOUS),
    ],
)
def test_the_worst_of_those_that_could_be_made(found, verdict):
    assert overall(found) is verdict
