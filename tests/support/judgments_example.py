"""Judgments made by hand, with names that are hard to write."""

import numpy as np

from rankdrift.core.frames import objects
from rankdrift.counts.funnel import Funnel, Used
from rankdrift.judging.judgments import Judgments

QUERIES = ("<script>alert(1)</script>", 'a "quoted", one', "lamp\tshade")
DOCS = ("d 1", "d%2", "d,3", "d4")


def by_hand(**more):
    """Three queries; the docs of each from best to worst are d 1, d%2, d,3, and d4 of the first
    query, of which next to nothing is known."""
    query = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    doc = np.array([0, 1, 2, 3, 0, 1, 2, 0, 1, 2])
    relevance = np.array([0.5, 0.3, 0.1, 0.2, 0.6, 0.2, 0.05, 0.4, 0.15, 0.02])
    sd = np.where(doc == 3, 1.5, 0.3)
    logit = np.log(relevance / (1 - relevance))
    given = {
        "query_columns": ("query",),
        "queries": objects([(q,) for q in QUERIES], 1),
        "docs": np.array(DOCS, object),
        "query": query, "doc": doc, "relevance": relevance,
        "low": 1 / (1 + np.exp(-logit + 2 * sd)), "high": 1 / (1 + np.exp(-logit - 2 * sd)),
        "known": np.where(doc == 3, 0.01, 0.9),
        "clicks": np.round(relevance * 100), "appearances": np.full(10, 200.0),
        "exposure": np.full(10, 100.0), "days": np.full(10, 3), "logit": logit, "logit_sd": sd,
        "prior": {"mean": 0.25, "relevance": 0.2, "shift": -0.1, "spread": 1.5},
        "rest": {"pairs": 7.0, "appearances": 9.0, "exposure": 3.5},
        "level": 0.95, "features": np.zeros((10, 0)),
        "funnel": Funnel(2009, 252, {}, Used(2009, 252, 17)),
        "options": {"last": None}, "source": {"log": "abc"}, "remarks": ("Mind the gap.",),
    }  # fmt: skip
    return Judgments(**{**given, **more})


def with_features():
    """The same with two features, one of them missing here and there."""
    x = np.column_stack([np.arange(10.0), np.where(np.arange(10) % 3, 0.5, np.nan)])
    return by_hand(features=x, feature_names=("f one", "f_2"))
