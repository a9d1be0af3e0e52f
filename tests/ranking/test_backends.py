"""A backend is one object: whoever registers another can train with it, save, load and judge."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.clicklogs import curve, frame, matrix, power

from rankdrift import Ranker, evaluate, train
from rankdrift.cli import rankdrift
from rankdrift.core.errors import BadOption
from rankdrift.ranking.backends import BACKENDS, Contents, Grown, Settings
from rankdrift.ranking.exporting import FORMS, Form, export_training


class MeanGain:
    """Scores a row by one feature, whose sign is that of its covariance with the gains."""

    name = "mean_gain"
    title = "Mean gain"
    counts_rows = False
    unnamed_categories = "{model!r} has categories, and {record!r} is missing."

    def method_params(self, sizes, table):
        return {}

    def grow(self, train, valid, settings, each):
        if each:
            each(1)
        x = train.matrix.x[:, 0]
        sign = float(np.sign(np.cov(x, train.gain)[0, 1]))
        return Grown(json.dumps({"sign": sign, "names": list(train.matrix.names)}), 1, ())

    def recognises(self, text):
        return text.startswith('{"sign"')

    def is_whole(self, text):
        return text.endswith("}")

    def open(self, text):
        return json.loads(text)

    def contents(self, booster, text):
        return Contents(tuple(booster["names"]), 1, has_categories=False)

    def predict(self, booster, x, features, trees):
        return booster["sign"] * x[:, 0].astype(np.float64)

    def importance(self, booster, features):
        return np.eye(len(features))[0]


def test_a_backend_of_ones_own(tmp_path):
    rows, grown = matrix(frame()), []
    with BACKENDS.registered(MeanGain()):
        made = train(
            rows, propensities=curve(power(12)), backend="mean_gain", name="mine", each=grown.append
        )
        assert grown == [1] and made.trees == 1 and made.options["backend"] == "mean_gain"
        assert np.array_equal(np.abs(made.predict(rows)), np.abs(rows.x[:, 0]).astype(float))
        assert made.importance["f_1"] == 1.0
        made.save(tmp_path / "mine.json")
        again = Ranker.load(tmp_path / "mine.json")
        assert np.array_equal(again.predict(rows), made.predict(rows))
        (tmp_path / "mine.json.meta.json").unlink()
        plain = Ranker.load(tmp_path / "mine.json")
        assert plain.backend == "mean_gain" and plain.features == made.features
        other = train(rows, trees=2, fixed=True, threads=1)
        assert evaluate([other, made], rows, bootstrap=20).models == ("biased", "mine")
        with pytest.raises(BadOption, match="There are lightgbm and xgboost and mean_gain"):
            train(rows, backend="nothing")
    with pytest.raises(BadOption, match="No backend 'mean_gain'"):
        train(rows, backend="mean_gain")


def test_every_backend_makes_models_that_it_alone_recognises():
    rows = matrix(frame(searches=60))
    texts = {
        name: train(rows, trees=2, fixed=True, threads=1, backend=name).text
        for name in BACKENDS.names
    }
    for backend in BACKENDS:
        assert [name for name, text in texts.items() if backend.recognises(text)] == [backend.name]
        assert backend.is_whole(texts[backend.name])
        found = backend.contents(backend.open(texts[backend.name]), texts[backend.name])
        assert found == Contents(("f_1", "f_2", "f_3"), 2, has_categories=False)


def test_settings_are_checked_wherever_they_are_made():
    assert Settings().trees == 100
    with pytest.raises(BadOption, match="trees must be a whole number of 1 or more"):
        Settings(trees=0)
    with pytest.raises(BadOption, match="Set trees= rather than 'n_estimators'"):
        Settings(params={"n_estimators": 3})


def test_a_form_of_training_data_of_ones_own(tmp_path):
    def write(lists, path):
        path.write_text(f"{len(lists.matrix)} rows worth {lists.gain.sum():.0f}")
        return [path]

    rows = matrix(frame())
    with FORMS.registered(Form("count", "PATH alone", write)):
        (path,) = export_training(rows, tmp_path / "count", form="count")
        assert "or count." in CliRunner().invoke(rankdrift, ["export-training", "--help"]).output
    learnt = rows.only_clicked()
    assert path.read_text() == f"{len(learnt)} rows worth {learnt.n_clicks}"
    with pytest.raises(BadOption, match="There are lightgbm, xgboost, svmlight, weights"):
        export_training(rows, tmp_path / "count", form="count")
