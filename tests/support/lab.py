"""Worlds of the lab, counted: `rankdrift.simulate.world` through `read_log` and `harvest`."""

import tempfile

from rankdrift import harvest, read_log
from rankdrift.simulate import world

ALL = ("score", "ranker", "user", "outcome")


def lab_world(name, pairs, seed, columns=ALL, **options):
    """The world and its counts."""
    made = world(name, pairs=pairs, seed=seed, columns=columns, **options)
    with tempfile.TemporaryDirectory() as folder:
        counts = harvest(read_log(made.write(folder, by_day=False), time="time", threads=1))
    return made, counts


def lab_counts(name, pairs, seed, columns=ALL, **options):
    """Its counts alone."""
    return lab_world(name, pairs, seed, columns, **options)[1]
