"""Experiments: rows whose order was drawn at random, or docs swapped at random."""

from __future__ import annotations

from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method, Option

FAMILY = "experiments"


def _experiment(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.experiments import experiment
    from rankdrift.methods.tallies import tally

    rows = tally(inputs.log, randomised=inputs.randomised)
    curve = experiment(rows, reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


def _swaps(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.experiments import swaps

    assert inputs.original is not None
    curve = swaps(
        inputs.log,
        original=inputs.original,
        randomised=inputs.randomised,
        reference=inputs.reference,
    )
    return method.made(curve, by_bucket=curve.deviations)


METHODS.register(
    Method(
        "experiment",
        "clicks per impression of randomised rows",
        FAMILY,
        Kind.EXPERIMENT,
        assumes="the order was drawn at random",
        needs="a column that says of which rows",
        fails="it was not",
        run=_experiment,
        option=Option("randomised", "Name the column that tells which rows were in random order."),
    )
)
METHODS.register(
    Method(
        "swaps",
        "docs swapped between ranks at random",
        FAMILY,
        Kind.EXPERIMENT,
        assumes="docs were moved between ranks at random",
        needs="a column with the rank before",
        fails="they were not",
        run=_swaps,
        option=Option("original", "Name the column with the rank before the swap."),
    )
)
