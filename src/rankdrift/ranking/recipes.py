"""Training in memory with other libraries: the code to copy, stated once.

The report page, docs/using-the-weights.md and the docstring of `Propensities.weights` show it; a
test compares the three, runs it, and compares its gains and ideals with those of `train`.
"""

import json

ROWS = """\
# Your training rows, those of one search together, but in random order within it: equal
# scores keep the order of rows, and that in which they were shown would bring ranks back in.
#   x (rows, features), rank (rows,), click (rows,) of bool, sizes (searches,){segments}
"""

GAIN = """\
import numpy as np
import rankdrift

p = rankdrift.Propensities.load({file})
gain = np.zeros(len(rank))
gain[click] = p.weights(rank[click], clip=50{by})
"""

IDEAL = """\
search = np.repeat(np.arange(len(sizes)), sizes)
best = gain[np.lexsort((-gain, search))]  # of each search, in the best order
place = np.arange(len(gain)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
ideal = np.bincount(search, best / np.log2(place + 2))  # the DCG that order has
"""

LIGHTGBM = """\

import lightgbm

table = np.unique(np.append(gain, 0))
rows = lightgbm.Dataset(x, np.searchsorted(table, gain), group=sizes, weight=ideal[search])
ranker = lightgbm.train(
    {
        "objective": "lambdarank",
        "label_gain": table.tolist(),
        "lambdarank_norm": False,
        "lambdarank_truncation_level": int(max(sizes)),
    },
    rows,
    num_boost_round=100,
)
"""

XGBOOST = """\

import xgboost

rows = xgboost.DMatrix(x, gain, qid=search, weight=ideal)
ranker = xgboost.train(
    {
        "objective": "rank:ndcg",
        "ndcg_exp_gain": False,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": int(max(sizes)),
        "lambdarank_normalization": False,
        "lambdarank_score_normalization": False,
    },
    rows,
    num_boost_round=100,
)
"""

LIBRARIES = {"LightGBM": LIGHTGBM, "XGBoost": XGBOOST}


def recipe(library: str, file: str, segments: bool) -> str:
    """The code that trains with a library.

    Parameters
    ----------
    library
        One of LIBRARIES.
    file
        Of the propensities.
    segments
        Whether they have curves by segment: then each click is worth what it is in its own.
    """
    named = (
        ",\n#   segment (rows,), or (rows, columns) if several columns tell it" if segments else ""
    )
    by = ", segments=segment[click]" if segments else ""
    rows, gain = ROWS.format(segments=named), GAIN.format(file=json.dumps(file), by=by)
    return rows + gain + IDEAL + LIBRARIES[library]
