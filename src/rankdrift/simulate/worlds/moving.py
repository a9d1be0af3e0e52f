"""Worlds in which rank and relevance move together, or clicks move ranks.

Docs that rise just when they are wanted more look as if ranks were worth more than they are: the
curve comes out too steep. `strength` is by how much they are wanted more; at 0 they move as much,
for no reason.
"""

from dataclasses import replace

import numpy as np

from rankdrift.core.types import Bools, Ints
from rankdrift.simulate.worlds.scene import (
    WORLDS,
    Change,
    Recipe,
    Scene,
    Singles,
    WorldKind,
)

# Of each: by how much a doc's score moves, and by how much its log z does.
CUT, CHANGED, CUT_RISE, CUT_GAIN = 0.3, 0.4, 0.5, 0.37  # first the shares of docs on a day
AUCTIONS, END_RISE, END_GAIN = 0.5, 0.8, 1.7  # the first is the share of docs
POPULAR_RISE, POPULAR_GAIN = 0.25, 0.07
KNOWN, TASTE_RISE, TASTE_GAIN = 0.7, 0.3, 0.35  # the first is the correlation of guess and taste
NEW, NEW_RISE, NEW_GAIN = 0.5, 0.8, 1.2  # the first is the share of places with new docs
CLICK_RISE = 0.04

SHELF_LIFE = 3.0  # days that an auction lasts, or until a doc is replaced by a new one
SOON, FRESH = 0.15, 0.15  # days in which the end of an auction, or being new, matters most
CYCLE = 10 / 24  # days of a wave of popularity
FALL = 0.8  # what is left of a price that is cut; one that is raised goes the other way


def cut_prices(scene: Scene, strength: float) -> Change:
    """Some docs of a day get cheaper at some moment: they rise, and are wanted more."""
    return _change_prices(scene, strength, CUT, np.ones(scene.log_z.shape, np.float32))


def change_prices(scene: Scene, strength: float) -> Change:
    """Some docs of a day get cheaper at some moment, and others dearer."""
    cheaper = np.where(scene.uniform(*scene.log_z.shape) < 0.5, np.float32(1), np.float32(-1))
    return _change_prices(scene, strength, CHANGED, cheaper)


def _change_prices(scene: Scene, strength: float, share: float, cheaper: Singles) -> Change:
    """A share of docs changes its price on a day: down where `cheaper` (Q, C) is 1, up at -1."""
    size = int(scene.day.max()) + 1, *scene.log_z.shape
    when = scene.uniform(*size)
    when[scene.uniform(*size) > share] = np.inf
    changed = np.where(scene.of_days(when) < scene.moment[:, None], cheaper[scene.query], 0)
    usual = np.exp(3 + scene.normal(*scene.log_z.shape))[scene.query]
    return Change(
        score=np.float32(CUT_RISE) * changed,
        log_z=np.float32(strength * CUT_GAIN) * changed,
        price=usual * np.float32(FALL) ** changed,
    )


def end_auctions(scene: Scene, strength: float) -> Change:
    """Docs whose auction ends soon rise, and are wanted more; another follows in their place."""
    auction, listing, age = _shelf(scene, AUCTIONS)
    urgency = np.where(auction, np.exp((age - np.float32(SHELF_LIFE)) / np.float32(SOON)), 0)
    return Change(
        score=np.float32(END_RISE) * urgency,
        log_z=np.float32(strength * END_GAIN) * urgency,
        listing=listing,
    )


def list_new_docs(scene: Scene, strength: float) -> Change:
    """New docs are shown higher for some hours, and are wanted more at first."""
    replaced, listing, age = _shelf(scene, NEW)
    newness = np.where(replaced, np.exp(-age / np.float32(FRESH)), 0)
    return Change(
        score=np.float32(NEW_RISE) * newness,
        log_z=np.float32(strength * NEW_GAIN) * newness,
        listing=listing,
    )


def _shelf(scene: Scene, share: float) -> tuple[Bools, Ints, Singles]:
    """(S, C) each: whether the doc in this place is replaced now and then, as a share of them are;
    how often it was; and for how many days it has been there."""
    size = scene.log_z.shape
    replaced = (scene.uniform(*size) < share)[scene.query]
    since = (scene.day + scene.moment.astype(float)) / SHELF_LIFE
    turns = since[:, None].astype(np.float32) + scene.uniform(*size)[scene.query]
    listing = np.floor(turns)
    age = (turns - listing) * np.float32(SHELF_LIFE)
    return replaced, np.where(replaced, listing, 0).astype(np.int64), age


def follow_popularity(scene: Scene, strength: float) -> Change:
    """The popularity of a doc goes up and down within hours, and its rank with it."""
    phase = scene.uniform(*scene.log_z.shape)[scene.query]
    waves = (scene.day + scene.moment.astype(float)) / CYCLE % 1
    popular = np.cos(np.float32(2 * np.pi) * (phase + waves[:, None].astype(np.float32)))
    popular *= np.float32(2**0.5)
    return Change(
        score=np.float32(POPULAR_RISE) * popular,
        log_z=np.float32(strength * POPULAR_GAIN) * popular,
    )


def personalise(scene: Scene, strength: float) -> Change:
    """Users have tastes, and the ranker knows a part of them."""
    which, many = scene.user_query
    taste = scene.normal(many, scene.shape[1])
    guess = np.float32(KNOWN) * taste
    guess += np.float32((1 - KNOWN**2) ** 0.5) * scene.normal(*taste.shape)
    return Change(
        score=(np.float32(TASTE_RISE) * guess)[which],
        log_z=(np.float32(strength * TASTE_GAIN) * taste)[which],
    )


def reward_clicks(scene: Scene, strength: float) -> Change:
    """A click raises its doc for the later searches of the day."""
    return Change(boost=strength * CLICK_RISE)


for kind in (
    WorldKind(
        "price-cuts",
        "Some docs get cheaper during the day: they rise and are wanted more.",
        valid=False,
        bias=-0.15,
        happens=cut_prices,
    ),
    WorldKind(
        "prices-both-ways",
        "Some docs get cheaper during the day and rise, others get dearer and fall.",
        valid=False,
        bias=-0.18,
        happens=change_prices,
    ),
    WorldKind(
        "auctions",
        "Docs whose auction ends soon rise and are wanted more.",
        valid=False,
        bias=-0.25,
        happens=end_auctions,
    ),
    WorldKind(
        "popularity",
        "A popularity that no column shows goes up and down within hours, and ranks with it.",
        valid=False,
        bias=-0.23,
        happens=follow_popularity,
    ),
    WorldKind(
        "personalised",
        "The ranker knows part of each user's taste: docs are higher for those who want them.",
        valid=False,
        bias=-0.8,
        happens=personalise,
    ),
    WorldKind(
        "personalised-only",
        "What the ranker knows of each user's taste moves ranks, and nothing else does.",
        valid=False,
        bias=-1.52,
        happens=personalise,
        recipe=replace(Recipe(), drift=0.0, arms=0.0),
    ),
    WorldKind(
        "fresh",
        "New docs are shown higher for some hours, and are wanted more at first.",
        valid=False,
        bias=-0.18,
        happens=list_new_docs,
    ),
    WorldKind(
        "clicks-move-ranks",
        "A click raises its doc for the later searches of the day.",
        valid=False,
        bias=0.3,
        happens=reward_clicks,
    ),
):
    WORLDS.register(kind)
