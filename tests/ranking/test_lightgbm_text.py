"""What points outside of a tree is seen before LightGBM follows it."""

import re

import numpy as np
import pytest

from rankdrift.ranking.lightgbm_text import is_whole

lightgbm = pytest.importorskip("lightgbm")


def written(rows=400, labels=0, **params):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(rows, 5))
    x[:, 4] = rng.integers(0, 90, rows)
    y = x[:, 0] + 3 * (x[:, 4] % 3) + rng.normal(size=rows)
    if labels:
        y = np.digitize(y, np.quantile(y, np.arange(1, labels) / labels))
    own = {"verbosity": -1, "min_data_in_leaf": 3, "min_data_per_group": 1, "cat_smooth": 1}
    data = lightgbm.Dataset(x, y, categorical_feature=[4], params=own)
    given = {**own, "num_leaves": 7, "num_threads": 1, **params}
    return lightgbm.train(given, data, 6).model_to_string()


@pytest.fixture(scope="module")
def text():
    return written()


@pytest.mark.parametrize(
    "params", [{}, {"linear_tree": True}, {"num_leaves": 2}, {"min_gain_to_split": 1e9}]
)
def test_what_lightgbm_writes_is_whole(params):
    found = written(**params)
    assert is_whole(found)
    assert not is_whole(found[: found.index("end of trees")])


def test_there_are_categories_and_linear_leaves(text):
    assert re.search(r"^num_cat=[1-9]", text, re.M)
    assert "is_linear=1" in written(linear_tree=True)


def changed(text, line, place, value):
    """One number of a line of the second tree that has it, with the sizes of trees mended."""
    hits = list(re.finditer(rf"^{line}=(.*)$", text, re.M))
    hit = hits[min(1, len(hits) - 1)]
    words = hit[1].split(" ")
    words[place] = value
    new = text[: hit.start(1)] + " ".join(words) + text[hit.end(1) :]
    starts = [m.start() for m in re.finditer(r"^Tree=", new, re.M)]
    ends = [*starts[1:], new.index("end of trees")]
    sizes = " ".join(str(b - a) for a, b in zip(starts, ends, strict=True))
    before = re.search(r"^tree_sizes=(.*)$", new, re.M)
    # The head grows or shrinks with its line of sizes; the trees do not.
    return new[: before.start(1)] + sizes + new[before.end(1) :]


@pytest.mark.parametrize(
    ("line", "place", "value"),
    [
        ("left_child", 0, "0"),
        ("left_child", 0, "99"),
        ("right_child", 0, "-99"),
        ("right_child", -1, "-1"),
        ("split_feature", 0, "5"),
        ("split_feature", 0, "-1"),
        ("split_feature", 0, "9" * 30),
        ("num_leaves", 0, "8"),
        ("num_leaves", 0, "x"),
        ("num_leaves", 0, "-4"),
        ("num_cat", 0, "9"),
        ("cat_boundaries", 1, "7"),
        ("decision_type", 0, "77"),
        ("leaf_value", 0, "1 2"),
    ],
)
def test_numbers_that_point_elsewhere(text, line, place, value):
    assert is_whole(changed(text, "leaf_value", 0, "0.5"))
    assert not is_whole(changed(text, line, place, value))


def test_linear_leaves_of_features_that_are_not_there():
    found = written(linear_tree=True)
    assert not is_whole(changed(found, "leaf_features", 0, "7"))


@pytest.mark.parametrize("line", ["[max_bin> 255]", "[max_bin", "max_bin: 255", "[max_bin: 1]x"])
def test_parameters_without_a_name_or_a_value(text, line):
    assert "\n[max_bin: 255]\n" in text
    assert is_whole(text.replace("[max_bin: 255]", "[max_bin: 63]"))
    assert not is_whole(text.replace("[max_bin: 255]", line))
    assert not is_whole(text.replace("end of parameters", ""))
    before, after = text.split("\nparameters:")
    assert is_whole(before + after.split("end of parameters")[1])  # which is fine without


def test_trees_without_a_line(text):
    assert not is_whole(changed(text.replace("num_cat=", "num_cats="), "leaf_value", 0, "1"))


def test_more_scores_than_there_is_room_for(text):
    assert not is_whole(text.replace("num_tree_per_iteration=1\n", "num_tree_per_iteration=3\n"))
    assert is_whole(written(objective="multiclass", num_class=3, labels=3))


@pytest.mark.parametrize("line", ["tree_sizes", "max_feature_idx", "Tree", "num_class"])
def test_a_head_that_does_not_fit(text, line):
    assert not is_whole(re.sub(rf"^{line}=", f"{line}s=", text, count=1, flags=re.M))
