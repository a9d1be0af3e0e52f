"""One file a check of the assumptions. Importing this package registers all of them, in order."""

from rankdrift.diagnosis.assumption import ASSUMPTIONS

# In the order in which they are made and told.
# isort: off
from rankdrift.diagnosis.checks import click_probabilities
from rankdrift.diagnosis.checks import direction
from rankdrift.diagnosis.checks import gaps
from rankdrift.diagnosis.checks import fit_of_blocks
from rankdrift.diagnosis.checks import curve_shape
from rankdrift.diagnosis.checks import support
from rankdrift.diagnosis.checks import period
from rankdrift.diagnosis.checks import segments
# isort: on

__all__ = [
    "ASSUMPTIONS",
    "click_probabilities",
    "curve_shape",
    "direction",
    "fit_of_blocks",
    "gaps",
    "period",
    "segments",
    "support",
]
