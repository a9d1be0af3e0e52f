"""LightGBM's text of a model, looked at before LightGBM sees it.

LightGBM trusts the numbers in it: one that points outside of a tree, or back to where it came from,
makes it read memory of others. That may end the process at once, later or never, so that to try it
tells nothing for sure.
"""

from __future__ import annotations

import re

import numpy as np

_SIZES = re.compile(rb"^tree_sizes=([\d ]*)\n+", re.M)
_FEATURES = re.compile(rb"^max_feature_idx=(\d+)$", re.M)
# As many scores a row as LightGBM makes room for.
_SCORES = re.compile(rb"^num_class=(\d+)\nnum_tree_per_iteration=\1$", re.M)
_PARAMETER = re.compile(rb"\[\w+: [^\0]*\]")
_OF_SPLITS = (
    "split_feature split_gain threshold decision_type left_child right_child"
    " internal_value internal_weight internal_count"
).split()
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_NEEDED = ("split_feature", "threshold", "left_child", "right_child", "decision_type", "leaf_value")
_CATEGORY = 1  # in decision_type


def is_whole(text: str) -> bool:
    """Whether all trees are where the head says, each is a tree, and nothing has no end."""
    model = text.encode()
    sizes, deepest = _SIZES.search(model), _FEATURES.search(model)
    if not sizes or not deepest or not _SCORES.search(model):
        return False
    at = sizes.end()
    try:
        features = int(deepest[1]) + 1
        for place, size in enumerate(map(int, sizes[1].split())):
            block = model[at : at + size]
            if not block.startswith(b"Tree=%d\n" % place) or not _is_tree(block, features):
                return False
            at += size
    except (KeyError, IndexError, ValueError, OverflowError):  # something is missing, or no number
        return False
    return model[at:].startswith(b"end of trees") and _has_fine_parameters(model[at:])


def _has_fine_parameters(after: bytes) -> bool:
    """Whether there are none, or they have an end, and each has a name and a value."""
    _, there, rest = after.partition(b"\nparameters:")
    listed, end, _ = rest.partition(b"\nend of parameters")
    lines = [line for line in listed.split(b"\n") if line]
    return not there or bool(end and all(map(_PARAMETER.fullmatch, lines)))


def _is_tree(block: bytes, features: int) -> bool:
    """Whether every split has two parts that nothing else has, and a feature that there is."""
    lines = (line.partition(b"=") for line in block.splitlines() if line)
    found = {name.decode(): value.split() for name, _, value in lines}
    leaves, sets = int(found["num_leaves"][0]), int(found["num_cat"][0])
    splits = leaves - 1
    if leaves < 1 or len(found.get("leaf_value", ())) != leaves:
        return False
    if splits == 0:
        return True
    if any(name not in found for name in _NEEDED):
        return False
    if any(len(found[name]) != splits for name in _OF_SPLITS if name in found):
        return False
    if any(len(found[name]) != leaves for name in _OF_LEAVES if name in found):
        return False
    feature, kind, left, right = (
        np.array(found[name], np.int64)
        for name in ("split_feature", "decision_type", "left_child", "right_child")
    )
    if not ((feature >= 0) & (feature < features)).all() or not ((kind >= 0) & (kind < 16)).all():
        return False
    # A split comes after the one it is part of; leaves are counted from -1 down.
    child, parent = np.concatenate([left, right]), np.tile(np.arange(splits), 2)
    inner = child >= 0
    once = np.concatenate([np.arange(1, splits), -1 - np.arange(leaves)])
    if not np.array_equal(np.sort(child), np.sort(once)) or (child <= parent)[inner].any():
        return False
    return _has_sets(found, sets, kind & _CATEGORY > 0) and _is_linear_fine(found, leaves, features)


def _has_sets(found: dict[str, list[bytes]], sets: int, by_category: np.ndarray) -> bool:
    """Whether splits by category have a set of categories each, and the sets are there."""
    if sets == 0:
        return not by_category.any()
    bounds = np.array(found.get("cat_boundaries", ()), np.int64)
    if len(bounds) != sets + 1 or bounds[0] != 0 or (np.diff(bounds) < 1).any():
        return False
    which = np.array(found["threshold"], float)[by_category]
    told = len(found.get("cat_threshold", ())) == bounds[-1]
    return bool(told and ((which >= 0) & (which < sets) & (which == np.floor(which))).all())


def _is_linear_fine(found: dict[str, list[bytes]], leaves: int, features: int) -> bool:
    """Whether leaves that are linear in features have these, with a number each."""
    if found.get("is_linear", [b"0"]) == [b"0"]:
        return True
    each = np.array(found.get("num_features", ()), np.int64)
    of = np.array(found.get("leaf_features", ()), np.int64)
    whole = len(each) == leaves == len(found.get("leaf_const", ())) and (each >= 0).all()
    whole = whole and len(of) == each.sum() == len(found.get("leaf_coeff", ()))
    return bool(whole and ((of >= 0) & (of < features)).all())
