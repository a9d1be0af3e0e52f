"""One file a check of the assumptions. Importing this package registers all of them, in order."""

from rankdrift.diagnosis.assumption import ASSUMPTIONS

# In the order in which they are made and told: why docs move first, then whom the curve is of, then
# the curve itself.
# isort: off
from rankdrift.diagnosis.checks import score
from rankdrift.diagnosis.checks import rankers
from rankdrift.diagnosis.checks import relevance
from rankdrift.diagnosis.checks import outcome
from rankdrift.diagnosis.checks import users
from rankdrift.diagnosis.checks import gaps
from rankdrift.diagnosis.checks import moves
from rankdrift.diagnosis.checks import feedback
from rankdrift.diagnosis.checks import kinds
from rankdrift.diagnosis.checks import queries
from rankdrift.diagnosis.checks import neighbours
from rankdrift.diagnosis.checks import segments
from rankdrift.diagnosis.checks import fit_of_blocks
from rankdrift.diagnosis.checks import curve_shape
from rankdrift.diagnosis.checks import period
from rankdrift.diagnosis.checks import support
from rankdrift.diagnosis.checks import direction
from rankdrift.diagnosis.checks import click_probabilities
from rankdrift.diagnosis.checks import prior
# isort: on

__all__ = [
    "ASSUMPTIONS",
    "click_probabilities",
    "curve_shape",
    "direction",
    "feedback",
    "fit_of_blocks",
    "gaps",
    "kinds",
    "moves",
    "neighbours",
    "outcome",
    "period",
    "prior",
    "queries",
    "rankers",
    "relevance",
    "score",
    "segments",
    "support",
    "users",
]
