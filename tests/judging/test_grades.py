"""Grades, and pairs that have none."""

import numpy as np
import pytest
from support.judgments_example import by_hand

from rankdrift.core.errors import BadOption
from rankdrift.judging.grades import NOT_ENOUGH, grade, grade_words

UNKNOWN = 3  # the pair of which next to nothing is known


def test_by_relevance_with_thresholds_of_ones_own():
    grades = grade(by_hand(), by="relevance", thresholds=[0.1, 0.2, 0.4, 0.5])
    #     relevance 0.5, 0.3, 0.1, ?, 0.6, 0.2, 0.05, 0.4, 0.15, 0.02; a grade begins at its own
    wanted = [4, 2, 1, NOT_ENOUGH, 4, 2, 0, 3, 1, 0]
    assert grades.grade.tolist() == wanted
    assert grades.counts == {"not enough data": 1, "0": 2, "1": 2, "2": 2, "3": 1, "4": 2}
    assert sum(pairs for *_, pairs in grade_words(grades)) == 10


def test_by_quantile_of_those_that_have_a_grade():
    judgments = by_hand()
    grades = grade(judgments)
    told = np.delete(judgments.relevance, UNKNOWN)
    assert grades.cuts == pytest.approx(np.quantile(told, [0.5, 0.75, 0.9, 0.97]))
    assert grades.grade[np.argmax(judgments.relevance)] == 4 and grades.grade.min() == NOT_ENOUGH
    # Whatever is enough: with nothing asked for every pair has a grade.
    assert (grade(judgments, enough=0).grade >= 0).all()


def test_by_the_probability_of_being_better_than_a_reference():
    judgments = by_hand()
    grades = grade(judgments, by="better", reference=0.2, enough=0)
    at = judgments.relevance == 0.2  # as good as the reference: one half, whatever is known of it
    assert set(grades.grade[at]) == {2}
    assert grades.grade[judgments.relevance == 0.6] == 4
    assert grades.grade[judgments.relevance == 0.02] == 0
    default = grade(judgments, by="better", enough=0)  # against 0.2, the relevance of any pair
    assert (default.grade == grades.grade).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"by": "quantil"}, "Did you mean 'quantile'"),
        ({"by": "relevance"}, "needs thresholds"),
        ({"thresholds": [0.5, 0.4, 0.6, 0.7]}, "4 ascending numbers"),
        ({"thresholds": [0.5, 0.6]}, "4 ascending numbers"),
        ({"thresholds": [0.1, 0.5, 0.9, 1.5]}, "between 0 and 1"),
        ({"enough": 2}, "from 0 to 1"),
        ({"reference": 0.5}, "of the scale 'better'"),
        ({"by": "better", "reference": 1.0}, "between 0 and 1"),
    ],
)
def test_what_it_will_not_do(options, told):
    with pytest.raises(BadOption, match=told):
        grade(by_hand(), **options)
