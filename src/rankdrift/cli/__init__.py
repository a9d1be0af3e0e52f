"""The command line: the verbs of the Python API, thin. Parse, call, print.

running.py   a run, from its words to its exit code
verbs.py     the command and the list of its verbs
options.py   the options of read_log
screen.py    results to stdout, talk to stderr
progress.py  the bar
output.py    is the place to write to there?
and a file for each verb, or two that belong together
"""

from rankdrift.cli.running import main, run
from rankdrift.cli.verbs import VERBS, rankdrift

__all__ = ["VERBS", "main", "rankdrift", "run"]
