"""Searches answered: candidates sorted by the ranker's score, looked at, clicked, bought."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankdrift.core.types import Bools, Ints
from rankdrift.simulate.worlds.scene import Change, Looked, Scene, Shown, Singles

MOST = 0.95  # z, and no more
ROUNDS = 12  # of a day: clicks of one move docs in the next
BOUGHT = 0.2  # share of clicks that an outcome follows on a doc whose z is the world's level
MOST_BOUGHT = 0.8


@dataclass(frozen=True, eq=False)
class Served:
    """What came of the searches of a scene: item, score and outcome are (S, R)."""

    item: Ints
    score: Singles
    outcome: Bools
    looked: Looked


def serve(scene: Scene, change: Change, seed: tuple[int, ...], order: Ints | None = None) -> Served:
    """Answer all searches of a scene.

    Parameters
    ----------
    scene
        Docs and searches.
    change
        What goes on.
    seed
        Another makes other noise and other clicks.
    order
        (S, R): at which place, from 0, the ranker has what is shown at each rank, if an experiment
        reorders results.
    """
    noise, clicks, bought = (np.random.default_rng([*seed, stream]) for stream in range(3))
    score = _scores(noise, scene, change)
    if change.boost:
        shown, looked = _in_rounds(clicks, scene, change, score, order)
    else:
        shown, looked = _answer(clicks, scene, change, np.arange(len(score)), score, order)
    # Who got what they were after buys: the better the doc, the more often.
    chance = BOUGHT * np.sqrt(shown.z / np.float32(scene.level))
    chance = np.minimum(chance, MOST_BOUGHT)
    if looked.genuine is not None:
        chance = chance * looked.genuine
    return Served(
        item=shown.item,
        score=_at(score, shown.item),
        outcome=looked.click & (bought.random(chance.shape, dtype=np.float32) < chance),
        looked=looked,
    )


def _scores(random: np.random.Generator, scene: Scene, change: Change) -> Singles:
    """(S, C), what rankers sort by."""
    score = random.standard_normal(scene.shape, dtype=np.float32)
    score *= np.float32(scene.drift)
    if change.drift is not None:
        score *= change.drift
    score += scene.base[scene.arm, scene.query]
    if change.score is not None:
        score += change.score
    return score


def _answer(
    random: np.random.Generator,
    scene: Scene,
    change: Change,
    search: Ints,
    score: Singles,
    order: Ints | None,
) -> tuple[Shown, Looked]:
    """Results and clicks of some searches (N,), whose candidates have scores (N, C)."""
    item = np.argsort(-score, axis=1)[:, : len(scene.p)]
    if order is not None:
        item = np.take_along_axis(item, order[search], axis=1)
    log_z = _at(scene.log_z, item, scene.query[search])
    if change.log_z is not None:
        log_z += _at(change.log_z, item, search)
    z = np.minimum(np.exp(log_z), np.float32(MOST))
    shown = Shown(scene, random, search, item, z, z * scene.p.astype(np.float32))
    return shown, change.look(shown) if change.look else Looked(shown.draw(shown.chance))


def _in_rounds(
    random: np.random.Generator, scene: Scene, change: Change, score: Singles, order: Ints | None
) -> tuple[Shown, Looked]:
    """The same round by round: what was clicked before on that day rises. Adds to the scores."""
    turn = scene.day * ROUNDS + (scene.moment * ROUNDS).astype(np.int64)
    ends = [*(np.flatnonzero(np.diff(turn)) + 1), len(turn)]
    done, tally, first = [], np.zeros(scene.log_z.shape, np.int64), 0
    for end in ends:
        search = np.arange(first, end)
        if first and scene.day[first] > scene.day[first - 1]:
            tally[:] = 0
        query = scene.query[search]
        score[search] += np.float32(change.boost) * np.log2(1 + tally[query]).astype(np.float32)
        shown, looked = _answer(random, scene, change, search, score[search], order)
        row, rank = np.nonzero(looked.click)
        np.add.at(tally, (query[row], shown.item[row, rank]), 1)
        done.append((shown.item, shown.z, shown.chance, looked.click))
        first = end
    item, z, chance, click = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return Shown(scene, random, np.arange(len(item)), item, z, chance), Looked(click)


def _at(values: Singles, item: Ints, row: Ints | None = None) -> Singles:
    """(N, R): of values (M, C) those of the items (N, R), in these rows (N,) or each its own."""
    first = np.arange(len(item)) if row is None else row
    found: Singles = values.take(item + (first * values.shape[1])[:, None])
    return found
