"""The rankers that are compared, each trained in few trees."""

import numpy as np
import pytest
from support.clicklogs import curve, frame, matrix, power

from rankdrift.reproduce.models import BIASED, MODELS, NORMED, OURS, trained, true_curve

OPTIONS = {"trees": 5, "seed": 1, "threads": 1}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_trained_and_scores(model):
    rows = matrix(frame(searches=120)).only_clicked()
    used = curve(power(12)) if model not in (BIASED, *MODELS[-3:]) else None
    made = trained(model, rows, used, OPTIONS)
    assert made.name == model and made.trees == 5
    assert made.queries and made.training["rows"] == len(rows)
    again = trained(model, rows, used, OPTIONS)
    assert made.text == again.text
    scores = made.predict(rows)
    assert np.ptp(scores) > 0 and np.isfinite(scores).all()
    assert made.options.get("norm", False) == (model == NORMED)


def test_ours_and_biased_differ_by_what_clicks_are_worth():
    rows = matrix(frame(searches=120)).only_clicked()
    texts = {name: trained(name, rows, used, OPTIONS).text
             for name, used in ((BIASED, None), (OURS, curve(power(12))))}  # fmt: skip
    assert texts[BIASED] != texts[OURS]


def test_the_truth_in_the_form_of_an_estimate():
    found = true_curve(np.array([0.8, 0.4, 0.2]))
    assert found.values == pytest.approx([1, 0.5, 0.25])
    assert found.reference == 1 and (found.std_error == 0).all()
