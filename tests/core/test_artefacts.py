"""Files are told apart by the marks they begin with, and results by their keys."""

import pytest
from support.curve_example import hand

from rankdrift.core.artefacts import (
    PROPENSITIES_COLUMNS,
    PROPENSITIES_KIND,
    ResultKind,
    kind_of_json,
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


DOCUMENTS = {
    ResultKind.PROPENSITIES: {"kind": PROPENSITIES_KIND, "table": {}, "summary": {}},
    ResultKind.METHODS: dict.fromkeys(("table", "distances", "left_out", "level", "names")),
    ResultKind.RANKERS: dict.fromkeys(("models", "baselines", "table", "verdicts", "seed")),
    ResultKind.CLICK_MODELS: dict.fromkeys(("models", "best", "reference", "words", "verdict")),
    ResultKind.DIAGNOSIS: {"verdict": "good", "checks": []},
    ResultKind.TRUTH: {"propensities": {}, "options": {}},
    # What is known about a ranker has propensities and options too.
    ResultKind.RANKER: dict.fromkeys(("backend", "features", "model", "propensities", "options")),
    ResultKind.PRINTED_ESTIMATE: {"table": {}, "summary": {}, "level": 0.95},
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_is_known_by_its_keys(kind):
    assert kind_of_json(DOCUMENTS[kind]) is kind


@pytest.mark.parametrize("document", [{}, {"table": 1}, [1, 2], "truth", None])
def test_what_is_none_of_them_is_nothing(document):
    assert kind_of_json(document) is None


def test_a_kind_is_its_words():
    assert f"{ResultKind.METHODS:22}|" == "comparison of methods |"
