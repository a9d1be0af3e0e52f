"""Files are told apart by the marks they begin with."""

import pytest
from support.curve_example import hand

from rankdrift.core.artefacts import (
    PROPENSITIES_COLUMNS,
    PROPENSITIES_KIND,
    looks_like_propensities,
)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_what_is_saved_as_text_is_recognised(ending, tmp_path):
    hand().save(tmp_path / f"p.{ending}")
    assert looks_like_propensities(tmp_path / f"p.{ending}")


@pytest.mark.parametrize(
    "text", ["", "{}", "rank,propensity\n1,1\n", f"[{PROPENSITIES_KIND!r}]", '{"kind": "x"}']
)
def test_other_text_is_not(text, tmp_path):
    (tmp_path / "other").write_text(text)
    assert not looks_like_propensities(tmp_path / "other")


def test_the_columns_are_the_format_of_files():
    assert (
        *("segment", "rank", "propensity", "low", "high", "std_error"),
        *("pairs", "clicks", "supported"),
    ) == PROPENSITIES_COLUMNS
