"""Worlds in which users look or click in other ways than the position-based model says."""

import numpy as np

from rankdrift.simulate.worlds.scene import WORLDS, Change, Looked, Scene, Shown, WorldKind

TRUST = 0.1


def trust(scene: Scene, strength: float) -> Change:
    """P(click) = p_r (z + (1 - z) e_r): at the top, docs are clicked for being there.

    That is α_r z + β_r; the truth is α, by which relevance turns into clicks.
    """
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


WORLDS.register(
    WorldKind(
        "trust",
        "Docs at the top are clicked for being there, whether they are any good or not.",
        valid=False,
        happens=trust,
    )
)
