"""Experiments: rows whose order was drawn at random, or docs swapped at random."""

from __future__ import annotations

from dataclasses import replace

from rankdrift.methods.estimators.drift import curve_method
from rankdrift.methods.method import METHODS, Estimate, Inputs, Kind, Method, Option

FAMILY = "experiments"


def _experiment(method: Method, inputs: Inputs) -> Estimate:
    from rankdrift.methods.experiments import experiment
    from rankdrift.methods.tallies import tally

    rows = tally(inputs.log, randomised=inputs.randomised)
    curve = experiment(rows, reference=inputs.reference)
    return method.made(curve, by_bucket=curve.deviations)


def _combined(method: Method, inputs: Inputs) -> Estimate:
    """The drift of all rows but the randomised ones, and the experiment of these."""
    import numpy as np

    from rankdrift.methods.experiments import combine, weights

    auto = curve_method("auto")
    drift, drawn = auto.run(auto, inputs.once(_apart)), _experiment(method, inputs)
    curve = combine(drift.curve, drawn.curve)
    if drift.by_bucket is None or drawn.by_bucket is None:
        return method.made(curve)
    weight = weights(drift.curve, drawn.curve)
    of_drift = drift.by_bucket[np.isin(drift.curve.ranks, curve.ranks)]
    of_drawn = drawn.by_bucket[np.isin(drawn.curve.ranks, curve.ranks)]
    return method.made(curve, by_bucket=of_drift + weight @ (of_drawn - of_drift))


def _apart(inputs: Inputs) -> Inputs:
    """The same inputs without the randomised rows, unless they are without them already."""
    log = inputs.log
    if log.rules.randomised_apart:
        return inputs
    roles = replace(log.roles, randomised=inputs.randomised)
    apart = replace(log, roles=roles, rules=replace(log.rules, randomised_apart=True))
    return replace(inputs, source=apart, asked=inputs.reference, _read={})


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
METHODS.register(
    Method(
        "combined",
        "the experiment and the drift of all other rows, each by how sure it is",
        FAMILY,
        Kind.COMBINED,
        assumes="the order was drawn at random, and a pair's relevance does not go with its rank",
        needs="a column that says of which rows, and pairs that moved and were clicked",
        fails="one of the two does",
        run=_combined,
        option=Option("randomised", "Name the column that tells which rows were in random order."),
    )
)
