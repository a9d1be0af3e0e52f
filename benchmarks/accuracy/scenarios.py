"""The worlds of the lab, and what each is to show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.accuracy import worlds
from benchmarks.accuracy.worlds import World
from rankdrift.simulate import pairs
from rankdrift.simulate.true_curves import dipping

SMOOTH = ("loglog", "loglog, single", "click rates")
# `auto` is to be near the best of these wherever the truth is one curve.
FIXED = ("loglog", "direct", "loglog + periodic(40)", "loglog + batch(40)")
AUTO = ("auto", *FIXED)
TOP = ("auto", "loglog", "direct")  # where there are fewer ranks than a batch of 40


@dataclass(frozen=True)
class Scenario:
    """draw: seed -> World. holds: the estimators whose assumptions hold here, which must not be
    biased. bound: options of `bounds.information`, where there is a bound."""

    title: str
    draw: Callable[[int], World]
    estimators: tuple[str, ...]
    holds: tuple[str, ...]
    bound: Mapping[str, Any] | None = None
    note: str = ""
    truth_of: str | None = None  # the segment whose curve is wanted


def appendix(n: int, **options: Any) -> dict[str, Any]:
    """draw and bound of pairs as in Appendix D."""

    def draw(seed: int) -> World:
        made = pairs(n, seed=seed, **options)
        return World(made.counts, np.log(made.propensities))

    two = options.get("appearances", 2) == 2
    return {"draw": draw, "bound": {"n": n, **options} if two else None}


def size(n: int) -> Scenario:
    return Scenario(
        title=f"{n:,} pairs, 100 ranks",
        estimators=AUTO,
        holds=FIXED,
        **appendix(n, ranks=100, propensities=worlds.on_knots(100)),
    )


def mobile(n: int) -> Scenario:
    return Scenario(
        title=f"The demo's mobile profile, dips every 40 ranks: {n:,} pairs, 100 ranks",
        estimators=AUTO,
        holds=("direct", "loglog + periodic(40)"),
        note="the dips begin at place 25, between two knots of batch(40)",
        **appendix(n, ranks=100, relevance=0.3, propensities=dipping),
    )


SCENARIOS: dict[str, Scenario] = {
    "appendix-d": Scenario(
        title="Appendix D: 40,000 pairs, 500 ranks",
        estimators=(*AUTO, "direct, single", "choix", "click rates"),
        holds=("direct",),
        note="the truth has a kink at rank e, and loglog is straight between knots where it is not",
        **appendix(40_000),
    ),
    "appendix-d-knots": Scenario(
        title="Appendix D with a truth that is straight between the knots",
        estimators=(*AUTO, "loglog, single", "choix", "click rates"),
        holds=FIXED,
        **appendix(40_000, propensities=worlds.on_knots(500)),
    ),
    "appendix-d-plenty": Scenario(
        title="Appendix D with 1,000 pairs a rank: 100,000 pairs, 100 ranks",
        estimators=(*AUTO, "direct, single", "choix"),
        holds=("direct",),
        note="the bound is asymptotic: here there is enough for it to be met",
        **appendix(100_000, ranks=100),
    ),
    "large-clicks": Scenario(
        title="Large click probabilities: relevance 0.6, 20,000 pairs, 100 ranks",
        estimators=(*AUTO, "loglog, single", "direct, single", "choix", "click rates"),
        holds=FIXED,
        **appendix(20_000, ranks=100, relevance=0.6, propensities=worlds.on_knots(100)),
    ),
    **{f"size-{n}": size(n) for n in (1_000, 10_000, 100_000, 1_000_000)},
    "deep-sparse": Scenario(
        title="Deep and sparse: 4,000 pairs over 500 ranks, drift of 10%",
        estimators=(*AUTO, "click rates"),
        holds=FIXED,
        **appendix(4_000, spread=0.1, relevance=0.05, propensities=worlds.on_knots(500)),
    ),
    "batch-dips": Scenario(
        title="Dips every 40 ranks: 40,000 pairs, 200 ranks",
        estimators=(*AUTO, "click rates"),
        holds=("loglog + periodic(40)", "direct"),
        note="loglog cannot follow the dips, as in the paper",
        **appendix(40_000, ranks=200, relevance=0.3, propensities=worlds.dipping(200)),
    ),
    "clustered": Scenario(
        title="Clicks of a query go together: 20,000 pairs of 400 queries, 100 ranks",
        estimators=AUTO,
        holds=FIXED,
        **appendix(
            20_000,
            ranks=100,
            relevance=0.2,
            query_effect=0.8,
            queries=400,
            propensities=worlds.on_knots(100),
        ),
    ),
    "repeats": Scenario(
        title="Pairs shown 2 to 8 times",
        draw=lambda seed: worlds.often(seed, 40_000, 100, 8),
        estimators=(*AUTO, "loglog, single", "click rates"),
        holds=FIXED,
    ),
    "heads": Scenario(
        title="Pairs shown 2 to 60 times, head queries held as comparisons",
        draw=lambda seed: worlds.often(seed, 15_000, 100, 60),
        estimators=(*AUTO, "loglog, single", "click rates"),
        holds=FIXED,
    ),
    "price-cuts": Scenario(
        title="A third of the docs change price and relevance; no filter",
        draw=lambda seed: worlds.changing(seed, 60_000, 100, filtered=False),
        estimators=SMOOTH,
        holds=(),
        note="assumption broken: the same price was not asked for",
    ),
    "price-cuts-filtered": Scenario(
        title="The same, with the price among the columns that must be equal",
        draw=lambda seed: worlds.changing(seed, 60_000, 100, filtered=True),
        estimators=(*AUTO, "loglog, single", "click rates"),
        holds=FIXED,
    ),
    "relevance-moves-ranks": Scenario(
        title="Relevance drifts, more over longer times, and ranks follow it",
        draw=lambda seed: worlds.rising_and_falling(seed, 60_000, 100, (0.1, 0.8)),
        estimators=("loglog",),
        holds=(),
        note="assumption broken: rank changes are caused by relevance",
    ),
    "clicks-move-ranks": Scenario(
        title="A click brings a doc up",
        draw=lambda seed: worlds.feedback(seed, 60_000, 100),
        estimators=("loglog",),
        holds=(),
        note="assumption broken: rank changes are caused by clicks",
    ),
    "steady": Scenario(
        title="The same world without either",
        draw=lambda seed: worlds.rising_and_falling(seed, 60_000, 100, (0.0, 0.0)),
        estimators=AUTO,
        holds=FIXED,
    ),
    "segments": Scenario(
        title="Two segments with different curves; the truth is that of the flat third",
        draw=lambda seed: worlds.two_kinds(seed, 60_000, 100),
        estimators=("loglog, by segment", "auto, by segment", "loglog"),
        holds=("loglog, by segment",),
        truth_of="flat",
        note="pooled, loglog estimates a mixture",
    ),
    "ten-ranks": Scenario(
        title="Ten ranks, 20,000 pairs shown, two appearances each",
        draw=lambda seed: worlds.ten_ranks(seed, 20_000),
        estimators=(*TOP, "our AllPairs", "direct, single", "choix", "click rates"),
        holds=("loglog", "direct", "our AllPairs"),
        note="the world of the peers that need few ranks",
    ),
    "ten-ranks-thin": Scenario(
        title="Ten ranks, 1,500 pairs shown, two appearances each",
        draw=lambda seed: worlds.ten_ranks(seed, 1_500),
        estimators=TOP,
        holds=("loglog", "direct"),
    ),
    "mobile-6000": mobile(6_000),
    "mobile-40000": mobile(40_000),
    "kink-100": Scenario(
        title="Appendix D's kink within 100 ranks: 40,000 pairs",
        estimators=AUTO,
        holds=("direct",),
        note="its 500 ranks are *appendix-d*",
        **appendix(40_000, ranks=100),
    ),
    "jump-25": Scenario(
        title="A jump behind rank 25: 20,000 pairs, 100 ranks",
        estimators=AUTO,
        holds=("direct",),
        **appendix(20_000, ranks=100, relevance=0.3, propensities=worlds.jumping),
    ),
    "root": Scenario(
        title="1 / √rank: 20,000 pairs, 100 ranks",
        estimators=AUTO,
        holds=FIXED,
        **appendix(20_000, ranks=100, relevance=0.3, propensities=lambda ranks: ranks**-0.5),
    ),
}
