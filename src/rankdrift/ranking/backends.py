"""LambdaMART in two libraries, made to optimise DCG of given gains exactly, at native speed.

Both minimise over pairs of a search the logistic loss log(1 + exp(-(s_i - s_j))), weighted by how
much swapping the two changes the metric. Both only know NDCG, which divides by the search's
ideal DCG; a weight of the ideal DCG on the search takes that back, and the metric is DCG, Eq. (5).

A library is one `Backend` in BACKENDS: everything that is said or done differently for LightGBM and
for XGBoost is asked of it. A new one is a class here or elsewhere and `BACKENDS.register`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.errors import BadOption, MissingExtra
from rankdrift.core.plain import parsed
from rankdrift.core.registry import Registry
from rankdrift.core.types import Floats, Ints
from rankdrift.ranking.gains import Lists, gain_table, labels
from rankdrift.ranking.lightgbm_text import is_whole
from rankdrift.ranking.matrix import Feature, Matrix

# Of the logistic loss: both libraries' default, and fixed in XGBoost.
SIGMOID = 1.0
# LightGBM keeps a table of so many discounts.
LONGEST = 10_000
# What to install, by library.
EXTRAS = {"lightgbm": "rank", "xgboost": "xgboost"}
# Of all libraries: changing one of these would be another method.
METHOD_PARAMS = (
    "objective",
    "label_gain",
    "lambdarank_truncation_level",
    "sigmoid",
    "ndcg_exp_gain",
    "lambdarank_pair_method",
    "lambdarank_num_pair_per_sample",
    "metric",
    "eval_metric",
)
# Of all libraries: what has an option of its own in `train`.
OPTION_OF_PARAM = {
    "num_iterations": "trees",
    "n_estimators": "trees",
    "num_leaves": "leaves",
    "max_leaves": "leaves",
    "eta": "learning_rate",
    "learning_rate": "learning_rate",
    "min_data_in_leaf": "min_rows",
    "lambdarank_norm": "norm",
    "lambdarank_normalization": "norm",
    "lambdarank_score_normalization": "norm",
    "seed": "seed",
    "random_state": "seed",
    "num_threads": "threads",
    "nthread": "threads",
}

EachTree = Callable[[int], None]
"""Called after each tree with its number, from 1."""
Booster = Any
"""A library's own model: neither library says its types."""


@dataclass(frozen=True)
class Settings:
    """How trees are grown, checked; `train` tells what each option means."""

    trees: int = 100
    learning_rate: float = 0.1
    leaves: int = 31
    min_rows: int = 20
    early_stopping: int | None = None
    seed: int = 0
    threads: int | None = None
    norm: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        least = {"trees": 1, "leaves": 2, "min_rows": 0, "early_stopping": 1}
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < lowest):
                raise BadOption(
                    f"{name} must be a whole number of {lowest} or more, not {value!r}."
                )
        if not 0 < self.learning_rate <= 1:
            raise BadOption(
                f"learning_rate must be above 0 and at most 1, not {self.learning_rate}."
            )
        if not 0 <= self.seed < 2**31:
            raise BadOption(f"seed must be from 0 to {2**31 - 1}, not {self.seed}.")
        for name in self.params:
            if name in METHOD_PARAMS:
                raise BadOption(
                    f"params may not set {name!r}: it is what makes gains count by propensity."
                )
            if name in OPTION_OF_PARAM:
                raise BadOption(f"Set {OPTION_OF_PARAM[name]}= rather than {name!r} in params.")


@dataclass(frozen=True)
class Grown:
    """The model's text, how many of its trees to use, and the metric after each tree; log_p (R,)
    of ranks from 1 where propensities were learnt along with it."""

    text: str
    trees: int
    history: tuple[float, ...]
    log_p: Floats | None = None


@dataclass(frozen=True)
class Contents:
    """What a model tells of itself: the names of its features, its trees, and whether some of
    the features are categories, whose names no model has."""

    names: tuple[str, ...]
    trees: int
    has_categories: bool


class Backend(Protocol):
    """A library that grows trees for a ranker, and the format of its models."""

    name: str  # also of the library to import
    title: str  # as its makers write it
    unnamed_categories: (
        str  # what is said of a model without record; {model} and {record} are files
    )
    counts_rows: bool  # whether it heeds Settings.min_rows

    def method_params(self, sizes: Ints, table: Floats) -> dict[str, Any]:
        """The library's parameters that make it optimise DCG of the gains in `table` (see
        `gain_table`) over searches of these sizes (S,)."""
        ...

    def grow(
        self, train: Lists, valid: Lists | None, settings: Settings, each: EachTree | None
    ) -> Grown:
        """Learn from `train`, with the metric on `valid` after each tree; where it has exposure,
        counts of clicks by Poisson's likelihood."""
        ...

    def recognises(self, text: str) -> bool:
        """Whether a file begins like one of the library's models."""
        ...

    def is_whole(self, text: str) -> bool:
        """Whether nothing of such a model is missing, as far as its format shows."""
        ...

    def open(self, text: str) -> Booster:
        """The library's own model from its text."""
        ...

    def contents(self, booster: Booster, text: str) -> Contents:
        """What a model tells of itself."""
        ...

    def predict(
        self, booster: Booster, x: NDArray[np.float32], features: Sequence[Feature], trees: int
    ) -> Floats:
        """Scores (N,) of rows x (N, F) by the first `trees` trees."""
        ...

    def importance(self, booster: Booster, features: Sequence[Feature]) -> Floats:
        """(F,): how much each feature lowered the loss."""
        ...


BACKENDS: Registry[Backend] = Registry("backend")


def library(name: str) -> Any:
    """The library of this name; MissingExtra, with how to install it, if it cannot be had."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtra(
            f"Rankers of {name} need it installed: pip install 'rankdrift[{EXTRAS[name]}]'"
        ) from None
    except OSError as error:
        raise MissingExtra(
            f"{name} is installed, but cannot be loaded: {error}. On Debian and Ubuntu the library "
            "it usually lacks comes with: apt-get install libgomp1"
        ) from None


class LightGBM(Backend):
    """Models are LightGBM's text."""

    name = "lightgbm"
    title = "LightGBM"
    unnamed_categories = (
        "The model {model!r} uses categories, but what they are called is not known: {record!r} is "
        "missing."
    )
    counts_rows = True

    def method_params(self, sizes: Ints, table: Floats) -> dict[str, Any]:
        return {
            "objective": "lambdarank",
            "label_gain": table.tolist(),
            "lambdarank_norm": False,
            # Pairs whose better one is deeper than this would be left out.
            "lambdarank_truncation_level": int(sizes.max()),
            "sigmoid": SIGMOID,
        }

    def dataset(self, matrix: Matrix, label: ArrayLike, **more: Any) -> Any:
        """The rows as LightGBM takes them: searches as groups, words as categories."""
        return library(self.name).Dataset(
            matrix.x,
            label,
            group=np.diff(matrix.starts),
            feature_name=plain_names(matrix.features),
            categorical_feature=category_places(matrix.features),
            **more,
        )

    def grow(
        self, train: Lists, valid: Lists | None, settings: Settings, each: EachTree | None
    ) -> Grown:
        lightgbm = library(self.name)
        every = [train, valid] if valid else [train]
        table = gain_table(*(lists.gain for lists in every))
        sizes = np.concatenate([lists.sizes for lists in every])
        if sizes.max() > LONGEST:
            raise BadOption(
                f"A search has {sizes.max():,} results; LightGBM takes {LONGEST:,} at most. Leave "
                "deep ranks out (--max-rank), or name the column of searches (--search)."
            )
        method = self.method_params(sizes, table) | {"lambdarank_norm": settings.norm}
        params = (method if train.exposure is None else {"objective": "poisson"}) | {
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.leaves,
            "min_data_in_leaf": settings.min_rows,
            "seed": settings.seed,
            "num_threads": settings.threads or 0,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
            # Weighted by the ideal DCG, the mean NDCG is the sum of DCG over the ideal sum.
            "metric": ["ndcg"] if valid else ["none"],
            "eval_at": [int(sizes.max())],
            # Features that are of no use with these leaves may be with those of the next.
            **({"feature_pre_filter": False} if train.shared is not None else {}),
            **settings.params,
        }

        def dataset(lists: Lists, **more: Any) -> Any:
            if lists.exposure is not None:
                offset = np.log(lists.exposure)
                more |= {"init_score": offset, "params": {"verbosity": -1}}
                return self.dataset(lists.matrix, lists.gain, **more)
            label, weight = labels(lists.gain, table), lists.ideal[lists.matrix.search]
            if lists.shared and self.name in lists.shared:
                return lists.shared[self.name].set_label(label).set_weight(weight)
            made = self.dataset(
                lists.matrix, label, weight=weight, params={"verbosity": -1}, **more
            )
            if lists.shared is not None:
                lists.shared[self.name] = made
            return made

        history: dict[str, dict[str, list[float]]] = {}
        callbacks: list[Any] = [lightgbm.record_evaluation(history)] if valid else []
        if each:
            callbacks.append(lambda env: each(env.iteration + 1))
        if valid and settings.early_stopping:
            callbacks.append(lightgbm.early_stopping(settings.early_stopping, verbose=False))
        learnt = dataset(train)
        with refusals(self.title):
            booster = lightgbm.train(
                params,
                learnt,
                settings.trees,
                callbacks=callbacks,
                valid_sets=[dataset(valid, reference=learnt)] if valid else None,
                valid_names=[VALIDATION] if valid else None,
            )
        trees = booster.best_iteration or booster.num_trees()
        return Grown(booster.model_to_string(num_iteration=trees), trees, _metric(history))

    def recognises(self, text: str) -> bool:
        return text.startswith("tree\n")

    def is_whole(self, text: str) -> bool:
        return is_whole(text)

    def open(self, text: str) -> Booster:
        return library(self.name).Booster(model_str=text)

    def contents(self, booster: Booster, text: str) -> Contents:
        return Contents(
            tuple(booster.feature_name()),
            booster.num_trees(),
            has_categories=re.search(r"^num_cat=[1-9]", text, re.M) is not None,
        )

    def predict(
        self, booster: Booster, x: NDArray[np.float32], features: Sequence[Feature], trees: int
    ) -> Floats:
        return np.asarray(booster.predict(x), dtype=np.float64)

    def importance(self, booster: Booster, features: Sequence[Feature]) -> Floats:
        return np.asarray(booster.feature_importance("gain"), dtype=np.float64)


class XGBoost(Backend):
    """Models are XGBoost's JSON. What it says of damaged ones is not for users."""

    name = "xgboost"
    title = "XGBoost"
    unnamed_categories = "The model {model!r} uses categories of unknown names."
    counts_rows = False

    # As LightGBM: leaf by leaf, no penalty. XGBoost cannot count the rows of a leaf.
    TREES: ClassVar[Mapping[str, Any]] = {
        "grow_policy": "lossguide",
        "max_depth": 0,
        "tree_method": "hist",
        "verbosity": 0,
    }

    def method_params(self, sizes: Ints, table: Floats) -> dict[str, Any]:
        return {
            "objective": "rank:ndcg",
            "ndcg_exp_gain": False,
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": int(sizes.max()),
            "lambdarank_normalization": False,
            "lambdarank_score_normalization": False,
        }

    def data(self, x: NDArray[np.float32], features: Sequence[Feature], **more: Any) -> Any:
        """Rows as XGBoost takes them, words as categories."""
        return library(self.name).DMatrix(
            x,
            feature_names=plain_names(features),
            feature_types=xgboost_types(features),
            enable_categorical=True,
            missing=np.nan,
            **more,
        )

    def dataset(self, matrix: Matrix, label: ArrayLike, **more: Any) -> Any:
        """The rows as XGBoost takes them: searches as queries, words as categories."""
        return self.data(
            matrix.x,
            matrix.features,
            label=np.asarray(label, dtype=np.float32),
            qid=matrix.search,
            **more,
        )

    def grow(
        self, train: Lists, valid: Lists | None, settings: Settings, each: EachTree | None
    ) -> Grown:
        xgboost = library(self.name)
        every = [train, valid] if valid else [train]
        sizes = np.concatenate([lists.sizes for lists in every])
        table = gain_table(*(lists.gain for lists in every))
        method = self.method_params(sizes, table) | {
            "lambdarank_normalization": settings.norm,
            "lambdarank_score_normalization": settings.norm,
            "base_score": 0.0,
            "eval_metric": "ndcg",
        }
        counts = {"objective": "count:poisson", "base_score": 1.0}
        params = (method if train.exposure is None else counts) | {
            **self.TREES,
            "learning_rate": settings.learning_rate,
            "max_leaves": settings.leaves,
            "reg_lambda": 0.0,
            "min_child_weight": 1e-3,
            "seed": settings.seed,
            **({"nthread": settings.threads} if settings.threads else {}),
            **settings.params,
        }

        def dataset(lists: Lists) -> Any:
            if lists.exposure is not None:
                offset = np.log(lists.exposure)
                return self.data(
                    lists.matrix.x, lists.matrix.features, label=lists.gain, base_margin=offset
                )
            return self.dataset(lists.matrix, lists.gain, weight=lists.ideal)

        # Ignored because xgboost is imported where it is used: mypy knows no base.
        class Count(xgboost.callback.TrainingCallback):  # type: ignore[misc,name-defined]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                if each:
                    each(epoch + 1)
                return False

        history: dict[str, dict[str, list[float]]] = {}
        with refusals(self.title):
            booster = xgboost.train(
                params,
                dataset(train),
                settings.trees,
                evals=[(dataset(valid), VALIDATION)] if valid else [],
                evals_result=history,
                verbose_eval=False,
                callbacks=[Count()],
                early_stopping_rounds=settings.early_stopping if valid else None,
            )
        trees = settings.trees
        if valid and settings.early_stopping:
            trees = int(booster.best_iteration) + 1
        text = booster[:trees].save_raw("json").decode()
        return Grown(text, trees, _metric(history))

    def recognises(self, text: str) -> bool:
        return text.lstrip().startswith("{") and '"learner"' in text

    def is_whole(self, text: str) -> bool:
        try:
            return isinstance(parsed(text), dict)
        except ValueError:
            return False

    def open(self, text: str) -> Booster:
        booster = library(self.name).Booster()
        booster.load_model(bytearray(text.encode()))
        return booster

    def contents(self, booster: Booster, text: str) -> Contents:
        names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
        return Contents(
            tuple(names),
            booster.num_boosted_rounds(),
            has_categories="c" in (booster.feature_types or []),
        )

    def predict(
        self, booster: Booster, x: NDArray[np.float32], features: Sequence[Feature], trees: int
    ) -> Floats:
        found = booster.predict(self.data(x, features), iteration_range=(0, trees))
        return np.asarray(found, dtype=np.float64)

    def importance(self, booster: Booster, features: Sequence[Feature]) -> Floats:
        found = booster.get_score(importance_type="total_gain")
        return np.array([found.get(name, 0.0) for name in plain_names(features)], dtype=np.float64)


LIGHTGBM = LightGBM()
XGBOOST = XGBoost()
BACKENDS.register(LIGHTGBM)
BACKENDS.register(XGBOOST)
# What the libraries are to call the rows set apart.
VALIDATION = "validation"


def plain_names(features: Sequence[Feature]) -> list[str]:
    """Names that both libraries take, each of its own; features keep theirs beside the model."""
    names: list[str] = []
    for feature in features:
        name = plain = re.sub(r'[\s",:\[\]{}<>]', "_", feature.name) or "_"
        while name in names:
            name += "_"
            plain = name
        names.append(plain)
    return names


def category_places(features: Sequence[Feature]) -> list[int]:
    """Which of the features are categories, counted from 0: as LightGBM takes it."""
    return [place for place, feature in enumerate(features) if feature.is_category]


def xgboost_types(features: Sequence[Feature]) -> list[str]:
    """Which of the features are categories: as XGBoost takes it."""
    return ["c" if feature.is_category else "q" for feature in features]


def _metric(history: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[float, ...]:
    """What the libraries noted after each tree; nothing without rows set apart."""
    noted = history.get(VALIDATION, {"": ()})
    return tuple(map(float, next(iter(noted.values()))))


@contextmanager
def refusals(name: str) -> Iterator[None]:
    """What a library refuses, such as an unknown value of one of its params, said as our own."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in ("LightGBMError", "XGBoostError"):
            raise
        first = next(line for line in [*str(error).splitlines(), "no reason"] if line.strip())
        raise BadOption(f"{name} refuses: {first.strip()[:300]}") from None
