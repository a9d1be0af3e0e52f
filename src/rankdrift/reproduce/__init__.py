"""The paper's results, again, on simulated data with a known truth.

paper_figures   Appendix D: the truth, direct and loglog; Section 4: web beside mobile
drawing         the charts, and their numbers as CSV
table           Table 1: rankers with and without propensities, with models and fixed_ranks
real_features   the same rankers on features and labels of one's own
"""

from rankdrift.reproduce.drawing import Figures
from rankdrift.reproduce.paper_figures import figures

__all__ = ["Figures", "figures"]
