"""The command `rankdrift`: its verbs, and the help that teaches the flow."""

from importlib import import_module

import click

from rankdrift.core.version import __version__

# How the help calls options that are files.
FILES = ("FILE", "FOLDER", "PATH", "LOG|SHARE", "KIND|FILE")
# In flow order: verb -> the module it is in, what it does. Loaded when asked for.
VERBS = {
    "demo": ("demo", "Make up a log and go through all the steps."),
    "inspect": ("inspect", "Look a log over: what is in it, and will it do?"),
    "formats": ("formats", "List the formats of logs that are recognised."),
    "init": ("init", "Look a log over, and write what was understood to rankdrift.toml."),
    "harvest": ("harvest", "Count a log: big log in, small file of counts out."),
    "merge": ("counts", "Add counts up: a month is the sum of its days."),
    "counts": ("counts", "Show what is in a file of counts."),
    "estimate": ("estimate", "Estimate propensities from counts or a log."),
    "diagnose": ("estimate", "Check whether the assumptions behind them hold."),
    "compare": ("compare", "Estimate the same curve by several methods, side by side."),
    "models": ("models", "See whether the position-based model is good enough."),
    "train": ("train", "Train a ranker on clicks worth 1 / propensity each."),
    "evaluate": ("evaluate", "Judge rankers fairly: among results shown at the same rank."),
    "judge": ("judge", "Tell how relevant each doc is to each query."),
    "experiment": ("experiment", "When the log cannot tell: plan an experiment, run it, read it."),
    "drift": ("drift", "Test every day whether propensities have changed."),
    "report": ("report", "Tell all that was found on one page."),
    "run": ("nightly", "Bring everything up to date with a log that grows, every night."),
    "export-training": ("train", "Write the training data for other tools."),
    "sql": ("warehouse", "Print the harvest as SQL, to run in a warehouse."),
    "import-counts": ("warehouse", "Take in the result of that SQL."),
    "simulate": ("simulate", "Make up data whose true propensities are known."),
    "reproduce": ("reproduce", "Make the paper's figures and table anew."),
    "config": ("config", "Print every setting, and where it is from."),
}


class Verbs(click.Group):
    """The verbs as one command; each is loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"rankdrift.cli.{VERBS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        _complete_files(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, words) for name, (_, words) in VERBS.items()])


def _complete_files(command: click.Command) -> None:
    """The shell then offers files where the help asks for one: every argument is one."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument) or parameter.metavar in FILES:
            parameter.type = click.Path()
    for verb in command.commands.values() if isinstance(command, click.Group) else ():
        _complete_files(verb)


@click.group(
    cls=Verbs,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="rankdrift", message="%(prog)s %(version)s")
def rankdrift() -> None:
    """rankdrift reads the search logs you already have and tells how much a click at each rank
    is worth. The same result for the same query drifts between ranks by itself; which of its
    appearances gets the click tells the ranks apart.

    \b
        log --inspect--> a verdict: will it do?
         |
         +--harvest------------------------> counts --estimate--> propensities
         |                                   ^  |  \\--diagnose--> can I trust it?
         |                                   |  +--merge--> counts of all days
         |                                   |  +--drift--> changed of late?
         +--sql--> warehouse --import-counts-+
         |
         +--compare--> what do other methods say?
         +--models--> do clicks hang on what was clicked above?
         +--train, with propensities--> ranker --evaluate--> did it help?
         +--judge, with propensities--> how relevant is each doc to each query?

    \b
        all that was found --report--> one page
        all of it, every night --run--> results of the day, and a record

    \b
        log           a row a result shown: query, doc, rank (1: top), click, day
        pair          a query and a doc on a day; usable at two ranks, clicked
        counts        all that the estimate needs of a log, in a small file
        propensities  how likely each rank is looked at, compared with rank 1;
                      a click is worth 1 / propensity

    \b
    Begin with one of these:
        rankdrift demo                                a made-up log, all steps
        rankdrift inspect 'logs/*.parquet'            your log, nothing written
        rankdrift harvest 'logs/*.parquet' -o counts.parquet

    `rankdrift VERB --help` says more, --help-all everything. Results go to stdout; talk goes to
    stderr, and ends with the next command to try. Every verb takes --json and --quiet, and options
    from the file rankdrift.toml, which `init` writes. Exit code 0 is good, 1 means that the data
    will not do, 2 that the request would not.
    """
