"""Worlds in which relevance and rank move together, so that the curve comes out too steep."""

import numpy as np

from rankdrift.simulate.worlds.scene import WORLDS, Change, Scene, WorldKind

CUT, CUT_RISE, CUT_GAIN = 0.3, 0.5, 0.5
TASTE, KNOWN, PERSONAL = 0.35, 0.7, 0.3


def cut_prices(scene: Scene, strength: float) -> Change:
    """A share of the docs of a day gets cheaper at some moment: they rise, and are wanted more."""
    size = int(scene.day.max()) + 1, *scene.log_z.shape
    when = scene.uniform(*size)
    when[scene.uniform(*size) > CUT] = np.inf
    cut = scene.of_days(when) < scene.moment[:, None]
    usual = np.exp(3 + scene.normal(*scene.log_z.shape))[scene.query]
    return Change(
        score=np.float32(CUT_RISE) * cut,
        log_z=np.float32(strength * CUT_GAIN) * cut,
        price=np.where(cut, np.float32(0.8), np.float32(1)) * usual,
    )


def personalise(scene: Scene, strength: float) -> Change:
    """Users have tastes, and the ranker knows a part of them."""
    which, many = scene.user_query
    taste = scene.normal(many, scene.shape[1])
    guess = KNOWN * taste + np.float32((1 - KNOWN**2) ** 0.5) * scene.normal(*taste.shape)
    return Change(
        score=(np.float32(PERSONAL) * guess)[which],
        log_z=(np.float32(strength * TASTE) * taste)[which],
    )


WORLDS.register(
    WorldKind(
        "price-cuts",
        "Some docs get cheaper during the day: they rise and are wanted more.",
        valid=False,
        happens=cut_prices,
    )
)
WORLDS.register(
    WorldKind(
        "personalised",
        "The ranker knows part of each user's taste: docs are higher for those who want them.",
        valid=False,
        happens=personalise,
    )
)
