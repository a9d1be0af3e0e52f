"""The paper's results, again, on simulated data with a known truth.

simulation.py   Appendix D: the truth, direct and loglog
platforms.py    Section 4: web beside mobile, on a made-up marketplace
drawing.py      the charts, and their numbers as CSV
"""

from rankdrift.reproduce.drawing import Figures
from rankdrift.reproduce.every_figure import figures

__all__ = ["Figures", "figures"]
