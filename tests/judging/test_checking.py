"""Agreement with human labels, and which pairs are worth labelling."""

import json

import numpy as np
import pytest
from scipy.stats import kendalltau
from support.judgments_example import DOCS, QUERIES, by_hand

from rankdrift.core.errors import BadOption, MissingColumns
from rankdrift.core.frames import objects
from rankdrift.judging.checking import check_judgments, expected_gain, worth_a_look


def labels(path, rows, names=("query", "doc", "label")):
    path.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    return path


def some_labels(seed=0):
    rng = np.random.default_rng(seed)
    return [
        (q, d, int(g)) for q in QUERIES for d, g in zip(DOCS, rng.integers(0, 3, 4), strict=True)
    ]


def test_kendall_and_auc_are_those_of_scipy_and_by_hand(tmp_path):
    judgments, given = by_hand(), some_labels()
    found = check_judgments(judgments, labels(tmp_path / "l.json", given))
    assert (found.labelled, found.matched) == (12, 10)  # d4 was judged for the first query only
    table = found.table()
    for query, tau, auc, docs in zip(*(table[n] for n in ("query", "kendall", "auc", "docs")),
                                     strict=True):  # fmt: skip
        seen = judgments.of(query)
        label = {d: g for q, d, g in given if q == query}
        pairs = [(z, label[d]) for z, d in zip(seen["relevance"], seen["doc"], strict=True)]
        assert docs == len(pairs)
        assert tau == pytest.approx(kendalltau(*zip(*pairs, strict=True)).statistic)
        apart = [(a, b) for a in pairs for b in pairs if a[1] > b[1]]
        assert auc == pytest.approx(np.mean([a[0] > b[0] for a, b in apart]))
    assert table["kendall"] == sorted(table["kendall"])  # those that agree least first
    mean = found.mean_kendall
    assert mean.value == pytest.approx(np.mean(table["kendall"]))
    assert mean.low < mean.value < mean.high
    assert json.loads(json.dumps(found.to_dict()))["matched"] == 10


def test_labels_are_read_by_the_names_they_usually_have(tmp_path):
    best = [(q, d, 3 - i) for q in QUERIES for i, d in enumerate(DOCS[:3])]
    path = tmp_path / "quepid.csv"
    by_hand().export(path, "quepid", grades=by_hand().grades(enough=0))
    assert check_judgments(by_hand(), path).mean_auc.value == 1
    several = labels(tmp_path / "l.jsonl", best, ("Query", "DocID", "grade"))
    found = check_judgments(by_hand(), several)
    assert found.mean_kendall.value == 1 and repr(found).startswith("<Agreement: 9 of 9 labels")
    two = objects([("lamp", "home"), ("lamp", None), (None, "home")], 2)
    judgments = by_hand(query_columns=("words", "kind"), queries=two)
    rows = [(w, k, d, 3 - i) for w, k in two.tolist() for i, d in enumerate(DOCS[:3])]
    path = labels(tmp_path / "two.json", rows, ("words", "kind", "doc", "label"))
    assert check_judgments(judgments, path).matched == 9


@pytest.mark.parametrize("missing", ["nan", "inf", "-inf", "", None])
def test_what_is_no_number_is_no_label(tmp_path, missing):
    given = some_labels()
    holes = [(*row[:2], missing) if i % 4 == 1 else row for i, row in enumerate(given)]
    less = [row for i, row in enumerate(given) if i % 4 != 1]
    found, expected = (
        check_judgments(by_hand(), labels(tmp_path / "l.json", rows)) for rows in (holes, less)
    )
    assert found.table() == expected.table() and found.matched == expected.matched


def test_labels_that_will_not_do(tmp_path):
    with pytest.raises(BadOption, match="no file of labels"):
        check_judgments(by_hand(), tmp_path / "no.csv")
    bad = labels(tmp_path / "a.json", some_labels(), ("query", "document", "label"))
    with pytest.raises(MissingColumns, match="no column 'doc' or 'docid'"):
        check_judgments(by_hand(), bad)
    same = labels(tmp_path / "b.json", [(q, d, 1) for q in QUERIES for d in DOCS])
    with pytest.raises(BadOption, match="12 labels, 10 are of pairs that were judged"):
        check_judgments(by_hand(), same)
    (tmp_path / "c.parquet").write_text("no table")
    with pytest.raises(BadOption, match="cannot be read as a table of labels"):
        check_judgments(by_hand(), tmp_path / "c.parquet")


def test_the_gain_is_what_knowing_would_win_on_average():
    judgments, draws = by_hand(), np.random.default_rng(0).normal(size=400_000)
    gain = expected_gain(judgments)
    first = judgments.query == 0
    z = judgments.relevance[first]
    sd = (judgments.logit_sd * judgments.relevance * (1 - judgments.relevance))[first]
    for i in range(4):
        # With z_i known the better of it and the best other is shown; without, the best.
        others = np.delete(z, i).max()
        known = np.maximum(z[i] + sd[i] * draws, others).mean()
        wanted = (known - max(z[i], others)) * judgments.exposure[first].sum()
        assert gain[first][i] == pytest.approx(wanted, abs=0.05)  # of 400 looks, by draws
    look = worth_a_look(judgments, 3)
    assert look["doc"][0] == "d4" and look["query"][0] == QUERIES[0]  # most open, near the best
    assert look["expected_gain"] == sorted(look["expected_gain"], reverse=True)
    assert len(look["doc"]) == 3


def test_a_query_with_one_doc_has_nothing_to_gain():
    one = by_hand()
    kept = one.query > 0
    alone = by_hand(**{
        name: getattr(one, name)[kept][:1] for name in (
            "doc", "relevance", "low", "high", "known", "clicks", "appearances", "exposure",
            "days", "logit", "logit_sd", "features",
        )
    }, query=np.zeros(1, int), queries=one.queries[:1])  # fmt: skip
    assert expected_gain(alone).tolist() == [0.0]
