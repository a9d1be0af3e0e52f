"""Each form as its readers publish it, with names that each must quote in its own way."""

import csv
import json
import os
import subprocess
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pytest
from support.judgments_example import DOCS, QUERIES, by_hand, with_features

from rankdrift.core.errors import BadOption
from rankdrift.judging.exports import FORMS, export, forms_in_words

THRESHOLDS = {"by": "relevance", "thresholds": [0.04, 0.1, 0.3, 0.5]}
# (query, doc) -> grade, of the nine pairs that have one.
GRADES = {
    (0, 0): 4, (0, 1): 3, (0, 2): 2, (1, 0): 4, (1, 1): 2, (1, 2): 1, (2, 0): 3, (2, 1): 2,
    (2, 2): 0,
}  # fmt: skip


def write(tmp_path, form, make=by_hand, **options):
    judgments = make()
    return export(
        judgments, tmp_path / "out", form, grades=judgments.grades(**THRESHOLDS), **options
    )


def by_names(found):
    """(query, doc) -> grade, by their places."""
    return {(QUERIES.index(q), DOCS.index(d)): int(g) for (q, d), g in found.items()}


def test_trec(tmp_path):
    path, topics = write(tmp_path, "trec")
    with topics.open(newline="") as file:
        names = {row["topic"]: row["query"] for row in csv.DictReader(file, delimiter="\t")}
    lines = [line.split() for line in path.read_text().splitlines()]
    assert all(len(line) == 4 and line[1] == "0" for line in lines)
    found = {(names[topic], unquote(doc)): grade for topic, _, doc, grade in lines}
    assert by_names(found) == GRADES


def test_trec_files_are_what_ir_measures_reads(tmp_path):
    """Its own reader, and trec_eval's NDCG of the order of grades and of the order turned round."""
    import ir_measures

    path, _ = write(tmp_path, "trec")
    qrels = list(ir_measures.read_trec_qrels(str(path)))
    topics = {str(q + 1): q for q in range(3)}
    docs = [doc.replace("%", "%25").replace(" ", "%20") for doc in DOCS]
    found = {(topics[q.query_id], docs.index(q.doc_id)): q.relevance for q in qrels}
    assert found == GRADES
    best = [ir_measures.ScoredDoc(q.query_id, q.doc_id, float(q.relevance)) for q in qrels]
    worst = [run._replace(score=-run.score) for run in best]
    measure = ir_measures.nDCG @ 10
    assert ir_measures.calc_aggregate([measure], qrels, best)[measure] == pytest.approx(1.0)
    # 2 1 0 … turned round, with trec_eval's gains and discounts: by hand for each query.
    ideal = [(4, 3, 2), (4, 2, 1), (3, 2, 0)]
    worth = [sum(g / np.log2(i + 2) for i, g in enumerate(gs)) for gs in ideal]
    turned = [sum(g / np.log2(i + 2) for i, g in enumerate(gs[::-1])) for gs in ideal]
    expected = np.mean(np.array(turned) / np.array(worth))
    assert ir_measures.calc_aggregate([measure], qrels, worst)[measure] == pytest.approx(expected)


@pytest.mark.skipif("RANKDRIFT_RANX" not in os.environ, reason="no Python that has ranx is named")
def test_trec_files_are_what_ranx_reads(tmp_path):
    """It comes with numba and 700 MB, so it has an environment of its own."""
    path, _ = write(tmp_path, "trec")
    read = "import json, sys; from ranx import Qrels; q = Qrels.from_file(sys.argv[1], kind='trec')"
    told = (
        "print(json.dumps({t: {d: int(g) for d, g in v.items()} for t, v in q.to_dict().items()}))"
    )
    words = [os.environ["RANKDRIFT_RANX"], "-c", f"{read}; {told}", str(path)]
    found = json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
    docs = [doc.replace("%", "%25").replace(" ", "%20") for doc in DOCS]
    there = {(int(t) - 1, docs.index(d)): g for t, of in found.items() for d, g in of.items()}
    assert there == GRADES


def test_opensearch(tmp_path):
    [path] = write(tmp_path, "opensearch", name="mine")
    document = json.loads(path.read_text())
    assert list(document) == ["name", "description", "type", "judgmentRatings"]
    assert document["type"] == "IMPORT_JUDGMENT" and document["name"] == "mine"
    ratings = [(q["query"], r) for q in document["judgmentRatings"] for r in q["ratings"]]
    assert all(set(r) == {"docId", "rating"} and isinstance(r["rating"], str) for _, r in ratings)
    assert by_names({(q, r["docId"]): float(r["rating"]) for q, r in ratings}) == GRADES
    [path] = write(tmp_path, "opensearch", rating="relevance")
    first = json.loads(path.read_text())["judgmentRatings"][0]["ratings"]
    assert [r["rating"] for r in first] == ["0.500000", "0.300000", "0.100000"]
    with pytest.raises(BadOption, match="rating is 'grade' or 'relevance'"):
        write(tmp_path, "opensearch", rating="stars")


def test_quepid(tmp_path):
    [path] = write(tmp_path, "quepid")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query", "docid", "rating"]
    assert by_names({(r["query"], r["docid"]): r["rating"] for r in rows}) == GRADES


def test_elasticsearch(tmp_path):
    [path] = write(tmp_path, "elasticsearch", index="shop", field="title")
    document = json.loads(path.read_text())
    assert set(document) == {"requests", "metric"} and "dcg" in document["metric"]
    found = {}
    for request in document["requests"]:
        assert set(request) == {"id", "request", "ratings"}
        query = request["request"]["query"]["match"]["title"]
        for rating in request["ratings"]:
            assert rating["_index"] == "shop" and isinstance(rating["rating"], int)
            found[query, rating["_id"]] = rating["rating"]
    assert by_names(found) == GRADES
    assert len({request["id"] for request in document["requests"]}) == 3


def test_rre(tmp_path):
    [path] = write(tmp_path, "rre", index="shop", id_field="sku", template="q.json")
    document = json.loads(path.read_text())
    assert (document["index"], document["id_field"]) == ("shop", "sku")
    found = {}
    for group in document["query_groups"]:
        [query] = group["queries"]
        assert query["template"] == "q.json" and group["name"] == query["placeholders"]["$query"]
        for gain, docs in group["relevant_documents"].items():
            found |= {(group["name"], doc): gain for doc in docs}
    assert by_names(found) == {pair: grade for pair, grade in GRADES.items() if grade}


def test_files_with_features(tmp_path):
    [path] = write(tmp_path, "svmlight", with_features)
    lines = path.read_text().splitlines()
    assert lines[0] == "4 qid:1 1:0.0" and lines[1] == "3 qid:1 1:1.0 2:0.5"
    path, group = write(tmp_path, "xgboost", with_features)
    assert path.read_text().splitlines()[1] == "3 1:1.0 2:0.5"
    assert group.name == "out.group" and group.read_text() == "3\n3\n3\n"
    path, sizes = write(tmp_path, "lightgbm", with_features)
    rows = list(csv.DictReader(path.open(newline=""), delimiter="\t"))
    assert list(rows[0]) == ["label", "f one", "f_2"] and rows[0]["f_2"] == "nan"
    assert sizes.name == "out.query" and sizes.read_text() == "3\n3\n3\n"
    for form in ("svmlight", "xgboost", "lightgbm"):
        with pytest.raises(BadOption, match="made without"):
            write(tmp_path, form)


def test_xgboost_and_lightgbm_read_them(tmp_path):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    path, _ = write(tmp_path, "xgboost", with_features)
    assert xgboost.DMatrix(f"{path}?format=libsvm").num_row() == 9
    path, sizes = write(tmp_path, "lightgbm", with_features)
    data = lightgbm.Dataset(str(path), params={"header": True, "label_column": "name:label",
                                               "verbose": -1}).construct()  # fmt: skip
    assert data.get_label().tolist() == [4, 3, 2, 4, 2, 1, 3, 2, 0]
    assert data.get_group().tolist() == [int(size) for size in sizes.read_text().split()]


def test_preferences(tmp_path):
    judgments = by_hand()
    [path] = write(tmp_path, "preferences")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query", "better", "worse", "probability"]
    for row in rows:
        chance = judgments.better(row["query"], row["better"], row["worse"])
        assert float(row["probability"]) == pytest.approx(chance, abs=1e-4) and chance >= 0.95
    told = {(r["query"], r["better"], r["worse"]) for r in rows}
    every = {
        (q, a, b) for q in QUERIES for a in DOCS[:3] for b in DOCS[:3]
        if a != b and judgments.better(q, a, b) >= 0.95
    }  # fmt: skip
    assert told == every and every
    [fewer] = write(tmp_path, "preferences", sure=0.9999)
    assert 1 < len(fewer.read_text().splitlines()) < len(rows) + 1
    with pytest.raises(BadOption, match="sure is a probability"):
        write(tmp_path, "preferences", sure=0.2)


def test_no_cell_of_preferences_is_a_formula(tmp_path):
    plain = by_hand()
    evil = replace(plain, docs=np.array([f"={doc}" for doc in plain.docs], dtype=object))
    [path] = write(tmp_path, "preferences", lambda: evil)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row[name][:2] for row in rows for name in ("better", "worse")} == {"\\="}


def test_what_it_will_not_do(tmp_path):
    with pytest.raises(BadOption, match="Did you mean 'trec'"):
        write(tmp_path, "trek")
    with pytest.raises(BadOption, match="takes no option 'index'; it takes: none"):
        write(tmp_path, "trec", index="shop")
    nothing = by_hand(known=np.zeros(10))
    with pytest.raises(BadOption, match="No pair has enough data"):
        export(nothing, tmp_path / "out", "trec")
    assert not list(tmp_path.iterdir())
    assert all(form.name in forms_in_words() for form in FORMS)
