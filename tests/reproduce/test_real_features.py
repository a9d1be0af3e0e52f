"""Ranking sets with labels, and rankers that learn from made-up clicks on them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from rankdrift.core.errors import BadLog
from rankdrift.reproduce.real_features import as_text, judge, read_svmlight, reproduce_real

DATA = os.environ.get("RANKDRIFT_DATA")


def test_svmlight_is_read_with_its_queries(tmp_path):
    (tmp_path / "a").write_text("2 0:1.5 2:3\n0 1:4\n1 2:-1 9:1\n")
    (tmp_path / "a.query").write_text("2\n1\n")
    found = read_svmlight(tmp_path / "a", features=3)
    assert found.x.tolist() == [[1.5, 0, 3], [0, 4, 0], [0, 0, -1]]
    assert found.label.tolist() == [2, 0, 1] and found.query.tolist() == [0, 0, 1]
    assert found.gain.tolist() == [3, 0, 1]
    (tmp_path / "a.query").write_text("2\n")
    with pytest.raises(BadLog, match="3 rows, but its queries 2"):
        read_svmlight(tmp_path / "a")
    with pytest.raises(BadLog, match="Cannot read"):
        read_svmlight(tmp_path / "b")
    for rows, sizes, words in (
        ("hello world\n", "1\n", "a is no ranking set"), ("1 0:1\n", "x\n", "is no ranking set"),
        ("1 0:1\n0 0:2\n", "2\n", "has 1 query and 2 values"), ("", "", "has 0 queries"),
        ("1 -1:1\n0 0:2\n", "1\n1\n", "count from 0"),
        ("9 0:1\n0 0:2\n", "1\n1\n", "labels from 0 to 9"),
    ):  # fmt: skip
        (tmp_path / "a").write_text(rows)
        (tmp_path / "a.query").write_text(sizes)
        with pytest.raises(BadLog, match=words):
            read_svmlight(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"\xdf\xff")
    with pytest.raises(BadLog, match="is no ranking set"):
        read_svmlight(tmp_path / "a")
    (tmp_path / "z.gz").write_bytes(gzip.compress(b"1 0:1\n" * 99)[:-9])
    with pytest.raises(BadLog, match="Cannot read"):
        read_svmlight(tmp_path / "z.gz")


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="RANKDRIFT_DATA is not set")
def test_real_features_with_simulated_clicks():
    """All models learn from clicks what helps by labels; 50 test queries do not tell them apart."""
    folder = Path(DATA) / "lambdarank"
    found = reproduce_real(
        folder / "rank.train.gz", folder / "rank.test.gz", seeds=(1,),
        models=("biased", "ours", "oracle"), trees=15, searches=8, threads=1,
    )  # fmt: skip
    test = read_svmlight(folder / "rank.test.gz")
    by_lot = np.random.default_rng(0).random(len(test.label))
    chance = judge(test, by_lot)
    assert set(found) == {"shown", "biased", "ours", "oracle", "labels"}
    for model in ("biased", "ours", "oracle", "labels"):
        assert found[model][0] > chance + 0.05
    assert as_text(found).splitlines()[2].split() == ["biased", f"{found['biased'][0]:.4f}"]
