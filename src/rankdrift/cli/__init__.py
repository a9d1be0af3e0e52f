"""The command line: the verbs of the Python API, thin. Parse, call, print.

running.py   a run, from its words to its exit code
stopping.py  Ctrl-C at any moment
verbs.py     the command and the list of its verbs
options.py   the options of read_log, and help that is short
settings.py  options in a file and in the environment; settings_schema.py, what may stand there
screen.py    results to stdout, talk to stderr
progress.py  the bar
output.py    is the place to write to there?
nightly.py   the verb `run`, which may not be called like the function of running.py
and a file for each other verb, or two that belong together
"""

from typing import TYPE_CHECKING, Any, NoReturn

from rankdrift.cli import stopping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankdrift.cli.running import run
    from rankdrift.cli.verbs import VERBS, rankdrift

__all__ = ["VERBS", "main", "rankdrift", "run"]


def main(args: "Sequence[str] | None" = None) -> NoReturn:
    """Run the command line and exit."""
    stopping.listen()  # before anything else is imported, which takes longest in a short run
    from rankdrift.cli.running import run_and_exit

    run_and_exit(args)


def __getattr__(name: str) -> Any:
    if name == "run":
        from rankdrift.cli.running import run

        return run
    if name in ("VERBS", "rankdrift"):
        from rankdrift.cli import verbs

        return getattr(verbs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
