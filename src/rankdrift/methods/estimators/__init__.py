"""The methods of `compare`, a file a family: what each assumes, needs and fails by, and its call.

Importing this package registers all of them, in order, and nothing heavy: the numbers happen in
the modules of `rankdrift.methods` and `rankdrift.estimation`, imported when a method is run.
"""

from rankdrift.methods.method import METHODS

# In the order in which they are listed.
# isort: off
from rankdrift.methods.estimators import drift
from rankdrift.methods.estimators import ratios
from rankdrift.methods.estimators import em
from rankdrift.methods.estimators import bayes
from rankdrift.methods.estimators import interventions
from rankdrift.methods.estimators import click_rates
from rankdrift.methods.estimators import experiments
from rankdrift.methods.estimators import dual
# isort: on

__all__ = [
    "METHODS",
    "bayes",
    "click_rates",
    "drift",
    "dual",
    "em",
    "experiments",
    "interventions",
    "ratios",
]
