"""When a log cannot tell: the smallest experiment that can. Plan it, run it, read its log.

designs      ways of reordering results at random, and how often each rank's docs go where
assigning    who takes part and what they see: a pure function, also as assign.js and as SQL
experiment   a design with its guard rails, in a file
planning     Counts, or click rates -> what each design costs and tells; page has what is known now
analysing    Log -> Propensities, and whether the experiment was drawn as planned
preferring   Log of FairPairs -> which of two neighbours is preferred
interleaving two rankers in one list, and what clicks on it are worth to each
winning      Log of interleaved lists, or credits -> which ranker wins
bandits      rankers that learn while they serve, and what they lose on the way
off_policy   what a ranking would be worth, by the log of another that was drawn
"""

from rankdrift.experiments.analysing import Analysis, analyse
from rankdrift.experiments.bandits import BanditRun, run_bandit
from rankdrift.experiments.designs import fairpairs, random_pair, shuffle, swap, swaps
from rankdrift.experiments.experiment import Experiment
from rankdrift.experiments.interleaving import Interleaved, credit, interleave
from rankdrift.experiments.off_policy import PolicyValue, policy_value
from rankdrift.experiments.planning import Plan, plan
from rankdrift.experiments.preferring import Preferences, prefer
from rankdrift.experiments.winning import Wins, count_wins, wins

__all__ = [
    "Analysis",
    "BanditRun",
    "Experiment",
    "Interleaved",
    "Plan",
    "PolicyValue",
    "Preferences",
    "Wins",
    "analyse",
    "count_wins",
    "credit",
    "fairpairs",
    "interleave",
    "plan",
    "policy_value",
    "prefer",
    "random_pair",
    "run_bandit",
    "shuffle",
    "swap",
    "swaps",
    "wins",
]
