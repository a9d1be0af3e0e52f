"""Worlds in which the assumptions hold: the curve comes out right, though not all is easy."""

from dataclasses import replace

import numpy as np

from rankdrift.simulate.true_curves import in_twenties, inverse_log, steep
from rankdrift.simulate.worlds.scene import (
    WORLDS,
    Change,
    Looked,
    Recipe,
    Scene,
    Shown,
    WorldKind,
    power,
)

PLAIN = Recipe()
RISE = 1.2  # of log z over a day
TOP, STILL, EVENING = 6, 0.1, 0.85  # docs at the top move so much less, but after that moment
SOLD_OUT, STEADY, LAST = 0.15, 0.05, 100.0  # share of docs; drift; how far their scores fall
DEPTHS = 0.6  # deviation, between users, of the log of how steep their curve is


def rise(scene: Scene, strength: float) -> Change:
    """All docs get more relevant over the day, and none gets another rank for it."""
    log_z = np.float32(strength * RISE) * (scene.moment[:, None] - np.float32(0.5))
    return Change(log_z=log_z.repeat(scene.shape[1], axis=1))


def hold_the_top(scene: Scene, strength: float) -> Change:
    """The best docs of a query keep their places until the evening."""
    still = scene.base[0] > np.log(scene.shape[1] / TOP)
    held = still[scene.query] & (scene.moment < EVENING)[:, None]
    return Change(drift=np.where(held, np.float32(STILL**strength), np.float32(1)))


def sell_out(scene: Scene, strength: float) -> Change:
    """Docs are sold out where the searcher lives, each for reasons of its own: others move up."""
    sold_out = scene.uniform(*scene.shape) < min(strength * SOLD_OUT, 0.9)
    return Change(score=np.where(sold_out, np.float32(-LAST), np.float32(0)))


def look_less_or_more(scene: Scene, strength: float) -> Change:
    """Users differ in how deep they look, whatever they search for."""
    steepness = np.exp(strength * DEPTHS * scene.normal(int(scene.user.max()) + 1))
    p = power(scene.p, steepness[scene.user])

    def look(shown: Shown) -> Looked:
        return Looked(shown.draw(shown.z * p[shown.search]), truth=p.mean(axis=0, dtype=float))

    return Change(look=look)


for kind in (
    WorldKind(
        "valid",
        "Ranks drift by themselves, and relevance stays.",
        valid=True,
    ),
    WorldKind(
        "thin-top",
        "The first ranks hardly move but in the evening, so that few pairs tell of them.",
        valid=True,
        happens=hold_the_top,
        recipe=replace(PLAIN, arms=0.05),
    ),
    WorldKind(
        "rising",
        "All docs get more relevant over the day, and ranks have no part in it.",
        valid=True,
        happens=rise,
    ),
    WorldKind(
        "large-clicks",
        "Nearly half of the searches get a click at rank 1.",
        valid=True,
        recipe=replace(PLAIN, level=0.36, spread=0.4, pairs_a_query=60.0),
    ),
    WorldKind(
        "steep",
        "Few look further than the first results.",
        valid=True,
        recipe=replace(PLAIN, curve=steep, level=0.25),
    ),
    WorldKind(
        "kinked",
        "The curve of Appendix D: two ranks alike, then a sudden fall.",
        valid=True,
        recipe=replace(PLAIN, curve=inverse_log),
    ),
    WorldKind(
        "batches",
        "Results load 20 at a time, and the last of every 20 are looked at less.",
        valid=True,
        recipe=replace(PLAIN, curve=in_twenties),
    ),
    WorldKind(
        "depth",
        "Users differ in how deep they look, whatever they search for.",
        valid=True,
        happens=look_less_or_more,
    ),
    WorldKind(
        "stock",
        "Docs move because others are sold out for some searchers; their own scores hardly change.",
        valid=True,
        happens=sell_out,
        recipe=replace(PLAIN, drift=STEADY, arms=STEADY),
    ),
    WorldKind(
        "few-queries",
        "All pairs are of a few queries, over more days.",
        valid=True,
        recipe=replace(PLAIN, pairs_a_query=450.0, days=18),
    ),
    WorldKind(
        "heads",
        "A few queries are searched so often that their pairs are shown hundreds of times a day.",
        valid=True,
        recipe=replace(PLAIN, pairs_a_query=60.0, zipf=0.8),
    ),
):
    WORLDS.register(kind)
