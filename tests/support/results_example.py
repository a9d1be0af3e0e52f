"""One small result of every kind, from a world with a known truth and a nasty segment."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from support.search_lists import made_searches
from support.worlds import power, simulate

from rankdrift.clickmodels.comparing import compare_models
from rankdrift.clickmodels.dynamic_bayesian import DynamicBayesian
from rankdrift.estimation import estimate
from rankdrift.methods.comparing import MethodComparison
from rankdrift.methods.distance import measure
from rankdrift.methods.method import Estimate, Kind
from rankdrift.ranking.comparison import AtRank, Comparison, Improvement

EVIL = "<script>alert(1)</script>"
RANKS = 30
SLOPES = {EVIL: 0.8, "web": 0.4}


@cache
def made():
    """counts, curve by device, the three comparisons, truth as a simulated market writes it."""
    curves = {name: power(slope) for name, slope in SLOPES.items()}
    world = simulate(3000, RANKS, 5, segments=curves, shares=[0.5, 0.5], drift=True)
    curve = estimate(world.counts, by=["device"])
    return SimpleNamespace(
        counts=world.counts, curve=curve, methods=_methods(world.counts), rankers=_rankers(),
        click_models=_click_models(),
        truth={
            "propensities": {
                name: {"best_match": curves[name](np.arange(1, RANKS + 1)).tolist()}
                for name in SLOPES
            },
            "options": {},
        },
    )  # fmt: skip


def every():
    """All of them, as `make_report` takes them."""
    return list(vars(made()).values())


def _methods(counts):
    curves = {name: estimate(counts, curve=name) for name in ("loglog", "direct")}
    two = [Estimate(name, Kind.DRIFT, curve) for name, curve in curves.items()]
    return MethodComparison(curves, (measure(*two, 0.95),), {EVIL: "It needs features."}, 0.95)


def _click_models():
    """Of users who stop after a click; one model is left out."""
    rng = np.random.default_rng(1)
    data = DynamicBayesian(rng.beta(1, 3, 160), rng.beta(4, 2, 160), 0.9).sample(
        made_searches(4_000, 20, seed=1), rng
    )
    log = {
        "search": data.lists.list_of_rows(), "query": data.query_of_pair[data.pair],
        "doc": data.pair, "rank": data.rank, "click": data.click,
    }  # fmt: skip
    found = compare_models(pa.table(log), models=["cm", "dbn"])
    return replace(found, left_out={EVIL: "It would not end."}, remarks=("Mind the step.",))


def _rankers():
    pair = ("unbiased", EVIL)
    better, luck = Improvement(0.05, 0.01, 0.001, 200), Improvement(-0.02, 0.03, 0.4, 200)
    return Comparison(
        models=(EVIL, "unbiased"), baselines=(EVIL,),
        at_rank=(
            AtRank(1, 900, 90, None, {EVIL: 0.6, "unbiased": 0.63}, {pair: better}),
            AtRank(2, 900, 60, None, {EVIL: 0.61, "unbiased": 0.60}, {pair: luck}),
            AtRank(4, 9, 0, "no click", {}, {}),
        ),
        overall={pair: better}, measures=(), bootstrap=200, seed=0, queries=321,
    )  # fmt: skip
