"""The lab's worlds: logs with a known truth, in which the curve comes out right, or does not.

Importing this package registers all of them, in the order in which they are listed.
"""

from rankdrift.simulate.worlds.scene import WORLDS

# isort: off
from rankdrift.simulate.worlds import valid
from rankdrift.simulate.worlds import moving
from rankdrift.simulate.worlds import looking
# isort: on

__all__ = ["WORLDS", "looking", "moving", "valid"]
