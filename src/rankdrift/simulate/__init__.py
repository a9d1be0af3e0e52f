"""Made-up data whose true propensities are known, for demos, tests and benchmarks.

appendix_d    pairs as in the paper's simulation, as a log or straight to Counts
marketplace   a whole marketplace: a log that looks like a real one
searches      a plain log, as large as asked
replay        one's own counts with clicks made up anew
worlds        the lab's worlds: logs in which the curve is right, and logs in which it is wrong
"""

from rankdrift.simulate.appendix_d import World, pairs, pairs_log
from rankdrift.simulate.marketplace import Market, market
from rankdrift.simulate.replay import Replay, like
from rankdrift.simulate.searches import Searches, searches
from rankdrift.simulate.true_curves import inverse_log
from rankdrift.simulate.worlds.drawing import LabWorld, world

__all__ = [
    "LabWorld",
    "Market",
    "Replay",
    "Searches",
    "World",
    "inverse_log",
    "like",
    "market",
    "pairs",
    "pairs_log",
    "searches",
    "world",
]
