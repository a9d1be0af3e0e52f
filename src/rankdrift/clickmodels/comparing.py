"""Is the position-based model good enough here? Click models side by side, on searches held out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rankdrift.clickmodels.chain import ChainModel
from rankdrift.clickmodels.measures import Forecast, buckets_of_queries, drawn_weights, forecast
from rankdrift.clickmodels.model import STRENGTH, ClickModel
from rankdrift.clickmodels.models import MODELS, browsing_models
from rankdrift.clickmodels.reading import HELD_OUT, MOST_SEARCHES, Read, Split, read_searches
from rankdrift.core.errors import BadOption, NotConverged
from rankdrift.core.frames import Tabular
from rankdrift.core.naming import names_checked
from rankdrift.core.notebook import brief, html_table
from rankdrift.core.types import Floats
from rankdrift.core.verdicts import Verdict
from rankdrift.core.version import __version__
from rankdrift.core.words import many
from rankdrift.counts.funnel import Funnel
from rankdrift.diagnosis.diagnosing import Check
from rankdrift.harvesting.taking import take_log
from rankdrift.log.engines.engine import Progress
from rankdrift.log.log import Log
from rankdrift.propensities.intervals import check_level

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

REFERENCE, FLOOR = "pbm", "rcm"
"""The models that others are set beside: the one behind propensities, and one that is blind."""
SLIGHT, MUCH = 0.02, 0.1
"""How much more than the position-based model another must explain to matter, and to matter much;
and how sure one must be that none does."""
FEWEST_QUERIES = 10
"""Held out, for intervals that come from how queries differ."""
_ADVICE = {
    Verdict.CAUTION: "Use the curve for how often a rank is looked at. For what one result does to "
    "another, look at the models (rankdrift models){judge}.",
    Verdict.CANNOT_TELL: "Read more searches with rankdrift models, or log more of them.",
}
_SEE = "see “Click models” in the documentation"


@dataclass(frozen=True, eq=False)
class Score:
    """How well one model forecasts.

    Parameters
    ----------
    model
        As it was fitted.
    log_likelihood
        The mean over results held out, natural, given the clicks above each.
    perplexity, conditional_perplexity
        Means over ranks: 1 is certainty, 2 the toss of a coin; the second given the clicks above.
    difference, low, high
        Of the log-likelihood to the position-based model's, and its interval over queries.
    more, more_low, more_high
        The same as a share of what the position-based model explains, that is, of how far it is
        above random clicks; None if it explains nothing.
    by_rank
        Columns: rank, perplexity and conditional_perplexity, of ranks that were shown.
    """

    model: ClickModel
    log_likelihood: float
    perplexity: float
    conditional_perplexity: float
    difference: float
    low: float
    high: float
    more: float | None
    more_low: float | None
    more_high: float | None
    by_rank: Mapping[str, Sequence[float]]

    @property
    def name(self) -> str:
        """Of the model."""
        return self.model.name

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("model", "by_rank")
        }
        return {
            "name": self.name,
            "title": self.model.title,
            **plain,
            "parameters": self.model.parameters(),
            "by_rank": {name: list(values) for name, values in self.by_rank.items()},
        }


@dataclass(frozen=True, eq=False)
class ModelComparison(Tabular):
    """Click models of one log, and how well each forecasts searches it has not seen: what
    `compare_models` gives.

    Parameters
    ----------
    scores
        By model, in the order of the registry.
    verdict, words
        Whether the position-based model is good enough, and why.
    level
        Of the intervals.
    searches, results, clicks
        (to learn from, held out)
    left_out
        Models that could not be fitted, with the reason.
    funnel
        What became of the log's rows.
    options, source
        How it was made, and of which log.
    remarks
        What to keep in mind.
    version
        Of rankdrift that made it.
    """

    scores: Mapping[str, Score]
    verdict: Verdict
    words: str
    level: float
    searches: tuple[int, int]
    results: tuple[int, int]
    clicks: tuple[int, int]
    left_out: Mapping[str, str] = field(default_factory=dict)
    funnel: Funnel = field(default_factory=Funnel)
    options: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    version: str = __version__

    @property
    def best(self) -> str:
        """The model with the best log-likelihood."""
        return max(self.scores.values(), key=lambda score: score.log_likelihood).name

    @property
    def rival(self) -> str | None:
        """The best of the models in which clicks above change what is looked at, which alone can
        speak against the position-based one; None where none was asked for."""
        found = _browsing(self.scores)
        return max(found, key=lambda score: score.log_likelihood).name if found else None

    @property
    def to_judge_by(self) -> str | None:
        """The rival, where it explains clearly more than the position-based model: what to judge
        docs by."""
        return self.rival if self.verdict in (Verdict.CAUTION, Verdict.SERIOUS) else None

    def as_check(self) -> Check:
        """For `Diagnosis.with_check`. It calls for caution at most: where another model explains
        more, propensities are still those of the average user."""
        verdict = Verdict.CAUTION if self.verdict == Verdict.SERIOUS else self.verdict
        numbers: dict[str, Any] = {"best": self.best, "rival": self.rival}
        numbers |= {"searches": sum(self.searches)}
        if self.rival:
            rival = self.scores[self.rival]
            numbers |= {name: getattr(rival, name) for name in ("more", "more_low", "more_high")}
        judge = (
            f", and judge docs by {self.to_judge_by} (rankdrift judge --model {self.to_judge_by})"
        )
        told = _ADVICE.get(verdict, "")
        advice = told.format(judge=judge if self.to_judge_by else "")
        return Check("models", verdict, self.words, advice, numbers)

    def table(self) -> dict[str, list[Any]]:
        """Columns of plain values, a row for each model."""
        names = [n for n in Score.__dataclass_fields__ if n not in ("model", "by_rank")]
        rows = list(self.scores.values())
        return {"model": [row.name for row in rows]} | {
            name: [getattr(row, name) for row in rows] for name in names
        }

    def plot(self) -> Figure:
        """How much more than the position-based model each explains; `save` writes .png, .svg or
        .html."""
        from rankdrift.charts.clickmodels import models_chart
        from rankdrift.charts.style import Figure

        return Figure(models_chart(self))

    def to_dict(self) -> dict[str, Any]:
        """As plain values; `rankdrift models --json` prints it."""
        both = {"searches": self.searches, "results": self.results, "clicks": self.clicks}
        return {
            "verdict": self.verdict,
            "words": self.words,
            "best": self.best,
            "rival": self.rival,
            "reference": REFERENCE,
            "level": self.level,
            **{name: {"train": a, "test": b} for name, (a, b) in both.items()},
            "models": [score.to_dict() for score in self.scores.values()],
            "left_out": dict(self.left_out),
            "funnel": self.funnel.to_dict(),
            "options": dict(self.options),
            "remarks": list(self.remarks),
        }

    def __repr__(self) -> str:
        return brief(self, self.verdict, self.words, f"models {', '.join(self.scores)}")

    def _repr_html_(self) -> str:
        heads = ["model", "log-likelihood", "perplexity", "given clicks above", "beside pbm"]
        rows = (
            (
                s.name,
                f"{s.log_likelihood:.5f}",
                f"{s.perplexity:.4f}",
                f"{s.conditional_perplexity:.4f}",
                f"{s.difference:+.5f} ({s.low:+.5f} to {s.high:+.5f})",
            )
            for s in self.scores.values()
        )
        return html_table(heads, rows, self.words)


@names_checked
def compare_models(
    log: Log | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    models: str | Sequence[str] | None = None,
    split: Split = "search",
    held_out: float = HELD_OUT,
    searches: int | None = MOST_SEARCHES,
    strength: float = STRENGTH,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> ModelComparison:
    """Fit click models to a log, and see which forecasts searches best that it has not seen.

    Parameters
    ----------
    log
        From `read_log`, or where a log is. It must tell searches apart.
    models
        Names of models; None: all. The position-based model and random clicks are always among
        them, to set the others beside.
    split
        "search": searches are held out at random. "time": those of the last days are.
    held_out
        The share of searches that is held out.
    searches
        How many to read at most, about: queries are drawn, with all their searches. None: all.
    strength
        How many results the prior of a probability counts for. It is a Beta prior at the mean of
        its kind, pooled over the log.
    level
        Of the intervals.
    seed
        Of the draw of searches that are held out, and of the bootstrap over queries.
    progress
        Called with the name of each step and the share of it that is done, 0 to 1.

    Returns
    -------
    ModelComparison

    Raises
    ------
    BadLog
        If the log does not tell searches apart, or too little of it can be used.
    """
    check_level(level)
    if not 0 < strength < np.inf:
        raise BadOption(f"strength must be above 0, not {strength!r}.")
    wanted = _wanted(models)
    taken = take_log(log)
    read = read_searches(
        taken, split=split, held_out=held_out, searches=searches, seed=seed, progress=progress
    )
    bucket, buckets = buckets_of_queries(read.test)
    fitted: dict[str, ClickModel] = {}
    found: dict[str, Forecast] = {}
    left_out: dict[str, str] = {}
    for i, kind in enumerate(wanted):
        try:
            fitted[kind.name] = kind.fit(read.train, strength=strength)
        except NotConverged as error:
            left_out[kind.name] = str(error)
            continue
        found[kind.name] = forecast(fitted[kind.name], read.test, bucket, buckets)
        if progress:
            progress("fitting", (i + 1) / len(wanted))
    for name in (FLOOR, REFERENCE):
        if name in left_out:
            raise NotConverged(left_out[name])
    rows = np.bincount(bucket[read.test.pair], minlength=buckets).astype(float)
    queries = len(np.unique(read.test.query_of_pair[read.test.pair]))
    draws = drawn_weights(buckets, seed) if queries >= FEWEST_QUERIES else None
    scores = _scores(fitted, found, rows, draws, level)
    verdict, words = _verdict(scores, queries)
    return ModelComparison(
        scores=scores,
        verdict=verdict,
        words=words,
        level=level,
        searches=(len(read.train), len(read.test)),
        results=(read.train.rows, read.test.rows),
        clicks=(int(read.train.click.sum()), int(read.test.click.sum())),
        left_out=left_out,
        funnel=read.funnel,
        options={
            "split": split,
            "held_out": held_out,
            "searches": searches,
            "strength": strength,
            "seed": seed,
        },
        source={"log": taken.engine.fingerprint(), "read": taken.describe()},
        remarks=(*read.remarks, *_remarks(read)),
    )


def _wanted(models: str | Sequence[str] | None) -> list[type[ClickModel]]:
    if models is None:
        return list(MODELS)
    names = [models] if isinstance(models, str) else list(models)
    asked = {MODELS.get(name).name for name in names} | {FLOOR, REFERENCE}
    return [model for model in MODELS if model.name in asked]


def _remarks(read: Read) -> list[str]:
    known = np.zeros(read.train.pairs, bool)
    known[read.train.pair] = True
    new = 1 - float(known[read.test.pair].mean())
    return [
        f"{new:.0%} of the results held out are pairs that were never learnt from: they have the "
        "mean of all."
    ] * (new >= 0.05)


def _scores(
    fitted: Mapping[str, ClickModel],
    found: Mapping[str, Forecast],
    rows: Floats,
    weights: Floats | None,
    level: float,
) -> dict[str, Score]:
    """Differences and their intervals: queries are drawn again and again, by their buckets; without
    weights there are none."""
    names = list(found)
    sums = np.stack([found[name].by_bucket for name in names], axis=1)
    mean = dict(zip(names, (sums.sum(axis=0) / rows.sum()).tolist(), strict=True))
    drawn_anew = np.ones((1, len(rows))) if weights is None else weights
    of_draw = np.divide(drawn_anew @ sums, np.maximum(drawn_anew @ rows, 1.0)[:, None])
    drawn = {name: of_draw[:, i] for i, name in enumerate(names)}
    ends = ((1 - level) / 2, (1 + level) / 2)
    explained = mean[REFERENCE] - mean[FLOOR]
    explained_drawn = drawn[REFERENCE] - drawn[FLOOR]
    sound = weights is not None and explained > 0 and bool((explained_drawn > 0).all())
    scores = {}
    for name in names:
        difference = mean[name] - mean[REFERENCE]
        away = drawn[name] - drawn[REFERENCE]
        low, high = np.quantile(away, ends).tolist()
        more: list[float | None] = [None, None, None]
        if sound:
            more = [difference / explained, *np.quantile(away / explained_drawn, ends).tolist()]
        shown = np.flatnonzero(~np.isnan(found[name].given))
        by_rank = {
            "perplexity": found[name].perplexity[shown],
            "conditional_perplexity": found[name].conditional_perplexity[shown],
        }
        scores[name] = Score(
            fitted[name],
            mean[name],
            float(by_rank["perplexity"].mean()),
            float(by_rank["conditional_perplexity"].mean()),
            difference,
            low,
            high,
            more[0],
            more[1],
            more[2],
            {"rank": shown.tolist()} | {n: values.tolist() for n, values in by_rank.items()},
        )
    return scores


# -- words -----------------------------------------------------------------------------------------


def _verdict(scores: Mapping[str, Score], queries: int) -> tuple[Verdict, str]:
    if queries < FEWEST_QUERIES:
        return Verdict.CANNOT_TELL, (
            f"What was held out is of {many(queries, 'query', 'queries')}, and how models do is "
            f"told by how queries differ: {FEWEST_QUERIES} would do. Read more of the log."
        )
    others = _browsing(scores)
    reference = scores[REFERENCE]
    if reference.more is None:
        return Verdict.CANNOT_TELL, (
            "The position-based model explains no more than random clicks do: pairs are too rare "
            "here to be known. Read more searches, or more of the log."
        )
    if not others:
        return Verdict.CANNOT_TELL, (
            "There is no model to set it beside in which clicks above change what is looked at: "
            f"name some of {', '.join(browsing_models())}."
        )
    best = max(others, key=lambda s: s.log_likelihood)
    if _clearly(best):
        verdict = Verdict.SERIOUS if (best.more_low or 0.0) >= MUCH else Verdict.CAUTION
        return verdict, f"{_reason(best)}: {_more(best)} than the position-based model. {_THEN}"
    widest = max((s.more_high or 0.0) for s in others)
    if widest >= MUCH:
        return Verdict.CANNOT_TELL, (
            f"No model explains clearly more than the position-based one, but up to {widest:.0%} "
            "more cannot be ruled out. Read more searches, or more of the log."
        )
    more = f"clearly more ({widest:.1%} at most)" if widest >= 0.0005 else "more"
    words = f"The position-based model is good enough: no other way of looking explains {more}."
    rates = [s for s in scores.values() if _clearly(s)]
    return Verdict.GOOD, " ".join([words, *map(_of_rate, rates)])


def _browsing(scores: Mapping[str, Score]) -> list[Score]:
    names = browsing_models()
    return [score for score in scores.values() if score.name in names]


def _clearly(score: Score) -> bool:
    """Whether it explains more than the position-based model, beyond noise and enough to matter."""
    return score.low > 0 and (score.more or 0.0) >= SLIGHT


def _of_rate(score: Score) -> str:
    """A plain rate that forecasts better, and why."""
    why = {
        "rctr": "docs are too much alike, or too rare, to be known",
        "dctr": "ranks hardly matter, or docs hardly move",
        "drctr": "the same lists come again and again",
    }
    told = f": {why[score.name]}" if score.name in why else ""
    return f"{_more(score)}{told}. It says nothing of looks, so that is no objection."


_THEN = (
    "Propensities are then those of the average user: right for how often a rank is looked at, "
    f"not for what a click above it changes; {_SEE}."
)


def _more(score: Score) -> str:
    low, high = score.more_low or 0.0, score.more_high or 0.0
    return f"{score.name} explains {score.more or 0.0:.0%} ({low:.0%} to {high:.0%}) more"


def _reason(score: Score) -> str:
    """What it means that this model is the best, in a few words."""
    if isinstance(score.model, ChainModel):
        click, none = score.model.going_on()
        if click < none - 0.1:
            return (
                f"Users stop after a click ({click:.0%} go on reading, {none:.0%} after a result "
                "they did not click)"
            )
        return "Users read from the top until they give up"
    if score.name == "ubm":
        return "What users look at hangs on where they clicked last"
    return f"Users do what the model {score.name} says"
