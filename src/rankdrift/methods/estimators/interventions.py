"""Intervention harvesting: the pairs shown at both of two ranks, for every two, as experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method

if TYPE_CHECKING:
    from rankdrift.methods.interventions import Interventions

FAMILY = "intervention harvesting"
DEEPEST = 50  # the rank down to which interventional sets are collected
ASSUMES = "a pair's relevance does not go along with its rank"
FAILS = "docs rise when they become better"


def _sets(inputs: Inputs) -> Interventions:
    from rankdrift.methods.interventions import find_interventions

    return find_interventions(inputs.log, max_rank=min(DEEPEST, inputs.log.rules.max_rank))


def _all_pairs(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.intervention_harvesting import all_pairs

    curve = all_pairs(inputs.once(_sets), reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


def _pivot_one(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.intervention_harvesting import pivot_one

    curve = pivot_one(inputs.once(_sets), reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


def _adjacent_chain(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.intervention_harvesting import adjacent_chain

    curve = adjacent_chain(inputs.once(_sets), reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


METHODS.register(
    Method(
        "all-pairs",
        "intervention harvesting, every two ranks",
        FAMILY,
        Kind.INTERVENTIONS,
        assumes=ASSUMES,
        needs="pairs that moved, with and without clicks",
        fails=FAILS,
        run=_all_pairs,
        default=True,
    )
)
METHODS.register(
    Method(
        "pivot-one",
        "intervention harvesting, each rank with the reference",
        FAMILY,
        Kind.INTERVENTIONS,
        assumes=ASSUMES,
        needs="clicked pairs that moved between the reference and each other rank",
        fails=FAILS,
        run=_pivot_one,
    )
)
METHODS.register(
    Method(
        "adjacent-chain",
        "intervention harvesting, neighbours",
        FAMILY,
        Kind.INTERVENTIONS,
        assumes=ASSUMES,
        needs="clicked pairs that moved between every two neighbours",
        fails=FAILS,
        run=_adjacent_chain,
    )
)
