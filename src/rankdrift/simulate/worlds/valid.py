"""Worlds in which the assumptions hold: the curve comes out right, though not all is easy."""

from rankdrift.simulate.worlds.scene import WORLDS, Change, Scene, WorldKind

RISE = 1.2  # of log z over a day


def rise(scene: Scene, strength: float) -> Change:
    """All docs get more relevant over the day, and none gets another rank for it."""
    log_z = strength * RISE * (scene.moment[:, None] - 0.5)
    return Change(log_z=log_z.repeat(scene.shape[1], axis=1))


WORLDS.register(
    WorldKind(
        "valid",
        "Ranks drift by themselves, and relevance stays.",
        valid=True,
    )
)
WORLDS.register(
    WorldKind(
        "rising",
        "All docs get more relevant over the day, and ranks have no part in it.",
        valid=True,
        happens=rise,
    )
)
