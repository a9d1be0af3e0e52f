"""Table 1 of the paper on a made-up marketplace: rankers trained with and without propensities,
judged at fixed ranks, and by the truth, which the paper could not know.

Sizes are the paper's, and the ways in which queries may differ were written down before there were
results: nothing here was chosen by what comes out.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from rankdrift.core.errors import BadOption, did_you_mean
from rankdrift.core.files import write_text
from rankdrift.core.types import Floats
from rankdrift.core.words import many
from rankdrift.estimation import estimate
from rankdrift.harvesting.counting import harvest
from rankdrift.log.log import Log, read_log
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.comparison import Comparison, tabular
from rankdrift.ranking.evaluation import evaluate
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.matrix_reading import read_matrix
from rankdrift.ranking.ranker import Ranker
from rankdrift.reproduce.fixed_ranks import FixedRanks, judge_fixed_ranks
from rankdrift.reproduce.models import (
    BIASED,
    EM,
    MODELS,
    NORMED,
    ORACLE,
    OURS,
    trained,
    true_curve,
)
from rankdrift.simulate import market as make_market
from rankdrift.simulate.marketplace import MARKET_QUERY, SAME_QUERY_SAME_RELEVANCE

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

# Improvement of AUC in percent by rank: (over biased, its deviation, over EM, its deviation).
PAPER = {
    1: (3.4, 1.0, 1.0, 0.4), 2: (2.4, 1.1, 0.6, 0.4), 4: (4.2, 1.2, 0.7, 0.4),
    8: (3.3, 1.3, 1.2, 0.5), 16: (6.8, 1.7, 1.1, 0.6), 32: (0.8, 1.8, 0.8, 0.7),
}  # fmt: skip
ENDINGS = (".json", ".txt", ".tex")
TEST_START, TRAIN_START = "2024-01-05", "2024-01-01"
Order = Literal["shown", "centred", "mixed"]
"""Results as they were shown, the same without the level of each query's scores, or in random
order."""
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Size:
    """Searches to train on (with a click) and to test on, four days each; rows of all platforms
    and sorts that hold so many, the market's queries, and the deepest rank that is read:
    the few clicks below it cost more time than all above."""

    train: int
    test: int
    train_rows: int
    test_rows: int
    queries: int
    max_rank: int = 100
    bootstrap: int = 1000
    trees: int = 100


SIZES = {
    "paper": Size(40_000, 10_000, 16_000_000, 3_000_000, 10_000),
    "small": Size(10_000, 5_000, 4_000_000, 1_500_000, 2_500),
}


MARKETS: Mapping[str, Mapping[str, float]] = {
    # As `simulate market` has it: every query finds as much, with the same ladder of scores.
    "alike": {},
    # Catalogues have much of some things and little of others: half of the queries find fewer
    # than 360 of 700 items, one in twenty fewer than 100.
    "candidates": {"candidate_spread": 1.0},
    # How well texts match depends on the words of the query as much as on the doc.
    "levels": {"level_spread": 1.0},
    # Rankers in use know sales and past clicks, which no exported feature has: as much of them
    # as of popularity.
    "hidden": {"hidden_knowledge": 0.35},
    # All of it, as real queries do.
    "mixed": {"candidate_spread": 1.0, "level_spread": 1.0, "hidden_knowledge": 0.35},
}
"""How queries differ, by name: options of `market`."""
USUAL = "mixed"


@dataclass(frozen=True)
class Run:
    """One seed: the propensities that models were trained with, and how the models did."""

    seed: int
    propensities: Mapping[str, Propensities]
    comparison: Comparison
    fixed_ranks: FixedRanks


@dataclass(frozen=True)
class Table:
    """Runs of several seeds; numbers are means over seeds, ± the deviation of one seed.

    market: one of MARKETS.
    """

    size: Size
    runs: tuple[Run, ...]
    market: str = USUAL

    @property
    def models(self) -> tuple[str, ...]:
        """Their names."""
        return self.runs[0].comparison.models

    @property
    def baselines(self) -> tuple[str, ...]:
        """Those of the models that the paper improves on."""
        return tuple(model for model in (BIASED, EM) if model in self.models)

    def improvements(self, model: str, baseline: str, rank: int | None) -> Floats:
        """How much better a model is than a baseline, at one rank or over all, by AUC.

        (S, 2): mean and standard deviation of each seed, in percent; NaN where there is a gap.
        """
        found = [run.comparison.improvement(model, baseline, rank) for run in self.runs]
        return np.array([(100 * i.mean, 100 * i.sd) if i else (np.nan, np.nan) for i in found])

    def measure(self, name: str, model: str) -> Floats:
        """(S,): a measure of whole lists, such as "true NDCG", by seed."""
        measures = [{m.name: m.value for m in run.comparison.measures} for run in self.runs]
        return np.array([by_name[name][model] for by_name in measures])

    def expected(self, model: str, order: Order) -> Floats:
        """(S,): how much better than biased by AUC at fixed ranks, in percent, without the luck of
        clicks."""
        by_seed = [getattr(run.fixed_ranks, order) for run in self.runs]
        return np.array([100 * (auc[model] / auc[BIASED] - 1) for auc in by_seed])

    def plot(self) -> Figure:
        """True NDCG by model; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.style import Figure
        from rankdrift.charts.true_ndcg import true_ndcg_chart

        ndcg = {model: self.measure("true NDCG", model) for model in self.models}
        return Figure(true_ndcg_chart(ndcg, [run.seed for run in self.runs]))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        others = [model for model in self.models if model != BIASED]
        return {
            "market": self.market,
            "size": vars(self.size),
            "seeds": [run.seed for run in self.runs],
            "paper": {str(rank): list(numbers) for rank, numbers in PAPER.items()},
            "ours": {
                base: {
                    str(rank or "all"): _over_seeds(self.improvements(OURS, base, rank))
                    for rank in (*PAPER, None)
                }
                for base in self.baselines
            },
            "over biased, all ranks": {
                model: _over_seeds(self.improvements(model, BIASED, None)) for model in others
            },
            "over biased, without the luck of clicks": {
                model: {order: _over_seeds(self.expected(model, order)) for order in ORDERS}
                for model in others
            },
            "slope of relevance on rank": {
                name: [run.fixed_ranks.slopes[i] for run in self.runs]
                for i, name in enumerate(("alone", "given features"))
            },
            **{
                name: {model: _over_seeds(self.measure(name, model)) for model in self.models}
                for name in ("true NDCG", "true DCG")
            },
            "runs": [run.comparison.to_dict() for run in self.runs],
        }

    def to_text(self) -> str:
        """The table beside the paper's, and the truth below."""
        return "\n".join([*_beside(self), "", *_truth(self)]) + "\n"


@dataclass(frozen=True)
class Tables:
    """The same table in one or several of MARKETS."""

    tables: tuple[Table, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON: the first, and a list of the others."""
        first, *others = (table.to_dict() for table in self.tables)
        return first | {"others": others}

    def to_text(self) -> str:
        """A line for each market: what fixed ranks say, what is true, and what decides it; of a
        single one its own text."""
        if len(self.tables) == 1:
            return self.tables[0].to_text()
        head = (
            "market",
            "true NDCG",
            "AUC, clicks",
            "AUC, chances",
            "no levels",
            "random",
            "slope",
        )
        lines = [f"{OURS} over {BIASED}", _line(head)]
        for table in self.tables:
            ndcg = [table.measure("true NDCG", model) for model in (OURS, BIASED)]
            true = 100 * (ndcg[0] / ndcg[1] - 1)
            by_order = [_percents(table.expected(OURS, order)) for order in ORDERS]
            given = np.array([run.fixed_ranks.slopes[1] for run in table.runs])
            clicks = table.improvements(OURS, BIASED, None)[:, 0]
            cells = (_percents(true), _percents(clicks), *by_order, f"{given.mean():+.2f}")
            lines.append(_line((table.market, *cells)))
        lines += ["", f"AUC of {OURS} at fixed ranks, by clicks, beside the paper's"]
        for base in self.tables[0].baselines:
            lines.append(_line((f"over {base}", *(f"rank {rank}" for rank in PAPER))))
            of_paper = (PAPER[rank][2 * (base == EM)] for rank in PAPER)
            lines.append(_line(("paper", *(f"+{mean:.1f}%" for mean in of_paper))))
            for table in self.tables:
                found = (table.improvements(OURS, base, rank)[:, 0] for rank in PAPER)
                lines.append(_line((table.market, *map(_percents, found))))
        return "\n".join([*lines, "", *MEANING]) + "\n"


MEANING = (
    "Means over seeds ± the deviation of one seed. No levels: without the mean score of each",
    "query. Random: the results in random order. Slope: of the log odds of relevance against the",
    "log of the rank, among results with like features.",
)


def reproduce_table(
    *,
    market: str = USUAL,
    size: str | Size = "paper",
    seeds: Sequence[int] | None = None,
    models: Sequence[str] = MODELS,
    folder: str | Path | None = None,
    threads: int | None = None,
    say: Callable[[str], None] | None = None,
) -> Table:
    """Make the paper's Table 1 anew: a market for each seed, estimates, rankers, and how they do.

    Parameters
    ----------
    market
        How its queries differ, one of MARKETS.
    size
        "paper" (40,000 training searches with a click, 10,000 test searches), "small" (10,000
        and 5,000), or a Size.
    seeds
        A market for each; by default 1, 2 and 3, of "small" 1.
    models
        Some of MODELS, "biased" and "ours" among them.
    folder
        Where logs are made; they are removed afterwards.
    threads
        Of the trees; None: all cores.
    say
        Called with what is being done.

    Returns
    -------
    Table
        A run for each seed.
    """
    if seeds is None:
        seeds = (1,) if size == "small" else (1, 2, 3)
    if isinstance(size, str):
        if size not in SIZES:
            raise BadOption(
                f"No size {size!r}.{did_you_mean(size, SIZES)} There are {', '.join(SIZES)}."
            )
        size = SIZES[size]
    if market not in MARKETS:
        raise BadOption(
            f"No market {market!r}.{did_you_mean(market, MARKETS)} There are {', '.join(MARKETS)}."
        )
    for model in models:
        if model not in MODELS:
            raise BadOption(
                f"No model {model!r}.{did_you_mean(model, MODELS)} There are {', '.join(MODELS)}."
            )
    if not {BIASED, OURS} <= set(models):
        raise BadOption(f"The table needs the models {BIASED!r} and {OURS!r}.")
    if not seeds:
        raise BadOption("Give one seed or more.")
    say = say or (lambda _: None)
    runs = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="rankdrift-table-", dir=folder) as scratch:
            runs.append(_run(Path(scratch), market, size, seed, models, threads, say))
    return Table(size, tuple(runs), market)


def is_ours_better(table: Table) -> bool:
    """Than the biased model, by the true NDCG of every seed, beyond what samples of queries do."""
    return all(
        measure.improvements[OURS, BIASED].mean > 0
        and measure.improvements[OURS, BIASED].is_more_than_luck
        for run in table.runs
        for measure in run.comparison.measures
        if measure.name == "true NDCG"
    )


def save_table(table: Table | Tables, path: str | os.PathLike[str]) -> None:
    """Write .json, which holds everything, .txt, or .tex."""
    every = table.tables if isinstance(table, Tables) else (table,)
    forms: dict[str, Callable[[], str]] = {
        ".json": lambda: json.dumps(table.to_dict(), indent=1, allow_nan=False) + "\n",
        ".txt": table.to_text,
        ".tex": lambda: "\n".join(map(_latex, every)),
    }
    write_text(path, forms[check_ending(path)]())


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file, if the table can be written as such; BadOption if not."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise BadOption(f"The table is written as {', '.join(ENDINGS)}, not {ending!r}.")
    return ending


def _run(
    folder: Path,
    name: str,
    size: Size,
    seed: int,
    models: Sequence[str],
    threads: int | None,
    say: Callable[[str], None],
) -> Run:
    say(f"Seed {seed}: making the market.")
    options: dict[str, Any] = {
        "queries": size.queries, "seed": seed, "days": 4, "labels": True, **MARKETS[name],
    }  # fmt: skip
    made = make_market(folder / "train", rows=size.train_rows, start=TRAIN_START, **options)
    options |= {"rows": size.test_rows, "start": TEST_START}
    later = make_market(folder / "test", **options)
    mixed = make_market(folder / "mixed", randomised=1.0, **options)
    log = _log(made.paths, size)
    rows = _first(read_matrix(log, searches="clicked"), size.train)
    curves: dict[str, Propensities] = {}
    say(f"Seed {seed}: estimating.")
    curves[OURS] = curves[NORMED] = estimate(harvest(log), curve="loglog", errors="model")
    if ORACLE in models:
        curves[ORACLE] = true_curve(made.propensities["web"])
    if EM in models:
        from rankdrift.methods.em_features import regression_em

        every = _first(read_matrix(log), size.train)
        curves[EM] = regression_em(every, bootstrap=0, seed=seed, threads=threads)
    rankers: dict[str, Ranker] = {}
    for model in models:
        say(f"Seed {seed}: training {model} on {many(rows.n_searches, 'search', 'searches')}.")
        rankers[model] = trained(
            model, rows, curves.get(model), {"seed": seed, "threads": threads, "trees": size.trees}
        )
    say(f"Seed {seed}: judging.")
    test, in_random_order = (
        _first(read_matrix(_log(paths, size), relevance="relevance"), size.test)
        for paths in (later.paths, mixed.paths)
    )
    comparison = evaluate(
        rankers,
        test,
        baseline=[b for b in (BIASED, EM) if b in rankers],
        seed=seed,
        bootstrap=size.bootstrap,
    )
    fixed = judge_fixed_ranks(rankers, test, in_random_order, made.propensities["web"])
    return Run(seed, curves, comparison, fixed)


def _log(paths: Sequence[Path], size: Size) -> Log:
    return read_log(
        paths,
        query=MARKET_QUERY,
        doc="doc",
        rank="rank",
        click="click",
        same="price",
        day="day",
        time="time",
        search="search",
        where=f"{SAME_QUERY_SAME_RELEVANCE} AND platform = 'web'",
        max_rank=size.max_rank,
    )


def _first(matrix: Matrix, searches: int) -> Matrix:
    """As many searches as asked for, spread evenly over all there are."""
    if matrix.n_searches < searches:
        raise BadOption(
            f"The market has {many(matrix.n_searches, 'usable search', 'usable searches')}, but "
            f"{searches:,} were asked "
            "for. Make more rows."
        )
    chosen = np.zeros(matrix.n_searches, bool)
    chosen[np.random.default_rng(0).permutation(matrix.n_searches)[:searches]] = True
    return matrix.take(chosen[matrix.search])


# -- as text ---------------------------------------------------------------------------------------


def _over_seeds(values: Floats) -> dict[str, Any]:
    """Mean and deviation over seeds, and each seed's."""
    first = values[:, 0] if values.ndim == 2 else values
    if np.isnan(first).any():
        return {"gap": True}
    numbers: dict[str, Any] = {"mean": float(first.mean()), "by_seed": first.tolist()}
    if values.ndim == 2:
        numbers["bootstrap_sd"] = values[:, 1].tolist()
    return numbers | {"spread": float(first.std(ddof=1)) if len(first) > 1 else None}


def _cell(values: Floats) -> str:
    if np.isnan(values).any():
        return "gap"
    return f"{values[:, 0].mean():+.1f} ± {values[:, 1].mean():.1f}%"


def _grid(table: Table) -> list[list[str]]:
    """Ranks down; here and in the paper, over each baseline, across."""
    bases = table.baselines
    rows = [["rank", *(f"over {b}{who}" for b in bases for who in (", here", ", paper"))]]
    for rank in (*PAPER, None):
        cells = []
        for b in bases:
            mean, sd = PAPER[rank][2 * (b == EM) :][:2] if rank else (0.0, 0.0)
            in_paper = f"+{mean:.1f} ± {sd:.1f}%" if rank else ""
            cells += [_cell(table.improvements(OURS, b, rank)), in_paper]
        rows.append([str(rank or "all"), *cells])
    return rows


def _beside(table: Table) -> list[str]:
    return [
        (f"{first:>4}  " + "  ".join(f"{cell:>18}" for cell in cells)).rstrip()
        for first, *cells in _grid(table)
    ]


def _latex(table: Table) -> str:
    head, *rows = _grid(table)
    return tabular(
        head,
        [[cell.replace("±", r"$\pm$").replace("%", r"\%") for cell in row] for row in rows],
    )


def _truth(table: Table) -> list[str]:
    heads = ("by clicks", "by chances", "no levels", "random order")
    lines = [
        f"{'':<20}{'':>18}{'AUC at fixed ranks over biased':>64}",
        f"{'model':<20}{'true NDCG':>18}{''.join(f'{head:>16}' for head in heads)}",
    ]
    for model in table.models:
        ndcg = table.measure("true NDCG", model)
        cells = [f"{ndcg.mean():.4f}{_spread(ndcg, 4)}"]
        if model != BIASED:
            by_chance = [table.expected(model, order) for order in ORDERS]
            cells += [_cell(table.improvements(model, BIASED, None))]
            cells += map(_percents, by_chance)
        aligned = "".join(f"{cell:>{16 if i else 18}}" for i, cell in enumerate(cells))
        lines.append(f"{model:<20}{aligned}")
    alone, given = np.mean([run.fixed_ranks.slopes for run in table.runs], axis=0)
    return [
        *lines,
        "",
        f"Log odds of relevance against the log of the rank: slope {alone:+.2f}, among results "
        f"with like features {given:+.2f}.",
    ]


def _line(cells: Sequence[str]) -> str:
    first, *others = cells
    return f"{first:<12}" + "".join(f"{cell:>14}" for cell in others)


def _percents(values: Floats) -> str:
    if np.isnan(values).any():
        return "gap"
    return f"{values.mean():+.1f}{_spread(values, 1)}%"


def _spread(values: Floats, digits: int) -> str:
    return f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
