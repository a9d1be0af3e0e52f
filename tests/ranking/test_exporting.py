"""Training elsewhere on the files gives the model that `train` gives."""

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import load_svmlight_file
from support.clicklogs import curve, frame, matrix, power

from rankdrift import export_training, read_log, train
from rankdrift.core.errors import BadOption
from rankdrift.ranking.gains import weigh

P = curve(power(12))
# Files hold the shortest text that reads back as the same 32-bit number, so that only
# LightGBM's own reading of text differs, in the last digit.
LAST_DIGIT = 1e-6


@pytest.fixture(scope="module")
def rows():
    table = frame()
    table["f_2"] = table.f_2.where(table.f_2 < 1)
    return matrix(table, ("f_1", "f_2", "f_word"))


def test_lightgbm_files_train_the_same_model(rows, tmp_path, monkeypatch):
    written = export_training(rows, tmp_path / "t.tsv", propensities=P)
    assert [p.name for p in written] == ["t.tsv", "t.tsv.query", "t.tsv.weight", "t.tsv.conf"]
    conf = dict(line.strip().split(" = ") for line in written[3].read_text().splitlines())
    assert conf["categorical_feature"] == "2" and conf["data"] == "t.tsv"
    for name in ("task", "data", "num_iterations", "categorical_feature"):
        conf.pop(name)
    data = lightgbm.Dataset(
        str(tmp_path / "t.tsv"), categorical_feature=[2],
        params={"header": True, "label_column": "name:label", "verbosity": -1},
    )  # fmt: skip
    own = {"verbosity": -1, "deterministic": True, "force_row_wise": True, "num_threads": 1}
    elsewhere = lightgbm.train(conf | own | {"seed": 0}, data, 10).predict(rows.x)
    here = train(rows, propensities=P, trees=10, fixed=True, threads=1).predict(rows)
    assert elsewhere == pytest.approx(here, abs=LAST_DIGIT)


def test_xgboost_files_train_the_same_model(tmp_path):
    rows = matrix(frame())
    written = export_training(rows, tmp_path / "x.svm", form="xgboost", propensities=P)
    x, gain = load_svmlight_file(str(written[0]), n_features=3)
    data = xgboost.DMatrix(x, gain, weight=np.loadtxt(written[2]))
    data.set_group(np.loadtxt(written[1]).astype(int))
    told = json.loads(written[3].read_text())
    ours = {"grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0, "reg_lambda": 0,
            "min_child_weight": 1e-3, "base_score": 0, "seed": 0, "nthread": 1}  # fmt: skip
    booster = xgboost.train(told["params"] | ours, data, 10)
    elsewhere = booster.predict(xgboost.DMatrix(rows.x))
    here = train(rows, propensities=P, trees=10, fixed=True, threads=1, backend="xgboost").predict(
        rows
    )
    assert elsewhere == pytest.approx(here, abs=LAST_DIGIT)


def test_svmlight_has_gains_searches_and_no_missing_values(rows, tmp_path):
    (path,) = export_training(rows, tmp_path / "s.txt", form="svmlight", propensities=P)
    x, gain, qid = load_svmlight_file(str(path), query_id=True, n_features=3)
    learnt = rows.only_clicked().shuffled()
    assert gain == pytest.approx(weigh(learnt, P).gain)
    assert np.array_equal(qid, learnt.search)
    assert x.nnz == (~np.isnan(learnt.x)).sum()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_weights_are_those_of_each_row(rows, tmp_path, ending):
    path = tmp_path / f"w.{ending}"
    export_training(rows, path, form="weights", propensities=P, clip=3)
    found = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    learnt = rows.only_clicked()
    assert np.array_equal(found["rank"], learnt.rank) and np.array_equal(found.click, learnt.click)
    assert np.array_equal(found.weight, weigh(learnt, P, clip=3).gain)


def test_logs_and_bad_requests(tmp_path):
    log = read_log(frame(searches=30))
    export_training(log, tmp_path / "a.tsv", features="f_1")
    assert (tmp_path / "a.tsv").read_text().splitlines()[0] == "label\tf_1"
    with pytest.raises(BadOption, match="Did you mean 'xgboost'"):
        export_training(log, tmp_path / "a.tsv", form="xgbost")
    with pytest.raises(BadOption, match=r"\.csv or \.parquet"):
        export_training(log, tmp_path / "a.tsv", form="weights")
