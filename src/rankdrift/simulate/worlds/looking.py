"""Worlds in which users look or click in other ways than the position-based model says.

Some of them have no single right answer: `truth` is then the effect of rank on a click, relative
to rank 1, averaged over those it differs between (pairs or searches, each counted once), but for
trust, where it is what a click says of relevance.
"""

import numpy as np

from rankdrift.core.types import Floats
from rankdrift.simulate.true_curves import dips
from rankdrift.simulate.worlds.scene import (
    PLATFORMS,
    WORLDS,
    Change,
    Looked,
    Scene,
    Shown,
    Singles,
    WorldKind,
    power,
)

TRUST = 0.085  # chance that a doc at rank 1 that is no good is clicked all the same, if seen
ATTENTION = 2.5  # steepness is (level / z) to this power
BOTS, BOT_CLICKS = 0.05, 0.2  # share of users, and how often they click, wherever
STEEPER, SHARPER = 0.8, 0.5  # of queries for one thing: the log of steepness, the slope of log z
BATCH = 10  # results that mobile loads at a time
STOP = 0.5  # share of users who stop after their first click
SATISFIED = 0.3  # chance that a clicked doc whose z is the world's level was all one wanted


def trust(scene: Scene, strength: float) -> Change:
    """P(click) = p_r (z + (1 - z) e_r), e_r falling as 1 / r: docs at the top are clicked for
    being there. That is alpha_r z + beta_r; the truth is alpha, by which relevance turns into
    clicks."""
    fooled = np.minimum(strength * TRUST / np.arange(1, len(scene.p) + 1), 1)
    alpha, beta = scene.p * (1 - fooled), scene.p * fooled
    slope, base = alpha.astype(np.float32), beta.astype(np.float32)

    def look(shown: Shown) -> Looked:
        chance = slope * shown.z + base
        return Looked(
            shown.draw(chance),
            genuine=slope * shown.z / chance,
            truth=alpha,
            parts={"alpha": alpha, "beta": beta},
        )

    return Change(look=look)


def attend(scene: Scene, strength: float) -> Change:
    """Attractive docs catch the eye further down; the truth is the mean over pairs."""

    def steepness(z: Singles) -> Singles:
        return (np.float32(scene.level) / z) ** np.float32(strength * ATTENTION)

    p = power(scene.p, steepness(np.exp(scene.log_z)).ravel())
    truth = p.mean(axis=0, dtype=float)
    log_p = np.log(scene.p).astype(np.float32)

    def look(shown: Shown) -> Looked:
        return Looked(shown.draw(shown.z * np.exp(log_p * steepness(shown.z))), truth=truth)

    return Change(look=look)


def let_bots_in(scene: Scene, strength: float) -> Change:
    """Some users are bots, which click anywhere."""
    users = int(scene.user.max()) + 1
    bot = scene.user < min(strength * BOTS, 1) * users

    def look(shown: Shown) -> Looked:
        one = bot[shown.search, None]
        return Looked(
            shown.draw(np.where(one, np.float32(BOT_CLICKS), shown.chance)),
            genuine=np.broadcast_to(~one, shown.z.shape).astype(np.float32),
        )

    return Change(look=look)


def mix_classes(scene: Scene, strength: float) -> Change:
    """Every other query is for one thing, and few look further; the others are for looking
    around. The truth is the mean over searches."""
    one_thing = scene.query % 2 == 1
    by_class = power(scene.p, np.exp(strength * STEEPER * np.array([-1.0, 1.0])))
    p = by_class[one_thing.astype(int)]
    below = scene.base[0] - scene.base[0].max(axis=1, keepdims=True)
    sharper = np.where(one_thing, np.float32(strength * SHARPER), 0)

    def look(shown: Shown) -> Looked:
        return Looked(
            shown.draw(shown.z * p[shown.search]),
            truth=p.mean(axis=0, dtype=float),
            parts=dict(zip(("exploratory", "navigational"), by_class.astype(float), strict=True)),
        )

    return Change(log_z=sharper[:, None] * below[scene.query], look=look)


def mix_platforms(scene: Scene, strength: float) -> Change:
    """Mobile loads ten results at a time, and the last of them are looked at less; the web not."""
    dipped = scene.p * dips(np.arange(1.0, len(scene.p) + 1), BATCH) ** strength
    by_platform = np.stack([scene.p, dipped])
    p = by_platform.astype(np.float32)[scene.platform]

    def look(shown: Shown) -> Looked:
        return Looked(
            shown.draw(shown.z * p[shown.search]),
            truth=p.mean(axis=0, dtype=float),
            parts=dict(zip(PLATFORMS, by_platform, strict=True)),
        )

    return Change(look=look)


def stop_after_a_click(scene: Scene, strength: float) -> Change:
    """Some users look no further once they have clicked."""
    users = int(scene.user.max()) + 1
    stopping = (scene.user < min(strength * STOP, 1) * users).astype(np.float32)

    def look(shown: Shown) -> Looked:
        return _until(shown, np.broadcast_to(stopping[shown.search, None], shown.z.shape))

    return Change(look=look)


def stop_when_satisfied(scene: Scene, strength: float) -> Change:
    """Users look no further once a doc was what they wanted, the more likely the better it is."""

    def look(shown: Shown) -> Looked:
        satisfied = strength * SATISFIED * np.sqrt(shown.z / np.float32(scene.level))
        return _until(shown, np.minimum(satisfied, 1))

    return Change(look=look)


def _until(shown: Shown, stop: Singles) -> Looked:
    """Users who go down the list and stop after a click with the chance `stop` (S, R)."""
    tried = shown.draw(shown.chance)
    stopped = np.logical_or.accumulate(tried & shown.draw(stop), axis=1)
    click = tried.copy()
    click[:, 1:] &= ~stopped[:, :-1]
    still = np.cumprod(1 - shown.chance * stop, axis=1)
    seen: Floats = shown.scene.p.copy()
    seen[1:] *= still[:, :-1].mean(axis=0, dtype=float)
    return Looked(click, truth=seen)


for kind in (
    WorldKind(
        "trust",
        "Docs at the top are clicked for being there, whether they are any good or not.",
        valid=False,
        bias=-0.39,
        happens=trust,
    ),
    WorldKind(
        "attention",
        "Attractive docs catch the eye further down the page.",
        valid=False,
        bias=0.5,
        happens=attend,
    ),
    WorldKind(
        "bots",
        "Some users are bots, which click anywhere.",
        valid=False,
        bias=0.08,
        happens=let_bots_in,
    ),
    WorldKind(
        "classes",
        "Queries for one thing have a steep curve, queries for looking around a flat one.",
        valid=False,
        bias=0.15,
        happens=mix_classes,
    ),
    WorldKind(
        "dips-unsegmented",
        "Mobile loads 10 results at a time and looks less at the last of them, the web does not.",
        valid=False,
        bias=-0.02,
        happens=mix_platforms,
    ),
    WorldKind(
        "cascade",
        "Some users go down the page and stop after their first click.",
        valid=False,
        bias=-0.01,
        happens=stop_after_a_click,
    ),
    WorldKind(
        "dbn",
        "Users go down the page and stop once a doc was what they wanted.",
        valid=False,
        bias=0.01,
        happens=stop_when_satisfied,
    ),
):
    WORLDS.register(kind)
