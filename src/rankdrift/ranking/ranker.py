"""Ranker: a trained model that scores results, with all that says where it comes from."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.errors import BadOption, MissingExtra
from rankdrift.core.files import write_text
from rankdrift.core.types import Floats
from rankdrift.core.version import __version__
from rankdrift.ranking.matrix import Feature, Matrix

if TYPE_CHECKING:
    from rankdrift.charts.curve import Figure

BACKENDS = ("lightgbm", "xgboost")
EXTRAS = {"lightgbm": "rank", "xgboost": "xgboost"}
# Hashes of training queries that are kept, the smallest: enough to notice those in a test set.
SKETCH = 1024
BESIDE = ".meta.json"


@dataclass(frozen=True, eq=False)
class Ranker:
    """A model as text (LightGBM's format, or XGBoost's JSON) and what it expects.

    queries: the smallest hashes of the queries it was trained on, at most SKETCH, ascending;
    history: the validation metric after each tree, if there was a validation set.
    """

    name: str
    backend: str
    text: str
    features: tuple[Feature, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    gains: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    propensities: str | None = None  # their fingerprint
    queries: tuple[int, ...] = ()
    trees: int = 0
    history: tuple[float, ...] = ()

    def predict(self, data: Matrix | ArrayLike) -> Floats:
        """Scores (N,), higher is better. Only their order within a search means anything."""
        if isinstance(data, Matrix):
            x = data.with_features(self.features).x
        else:
            x = np.asarray(data, dtype=np.float32)
            if x.ndim != 2 or x.shape[1] != len(self.features):
                raise BadOption(
                    f"The model {self.name!r} takes {len(self.features)} features a row, but the "
                    f"array has shape {x.shape}."
                )
        if self.backend == "lightgbm":
            return np.asarray(self.booster.predict(x), dtype=np.float64)
        xgboost = library("xgboost")
        found = self.booster.predict(
            xgboost.DMatrix(x, **xgboost_types(self.features), missing=np.nan),
            iteration_range=(0, self.trees),
        )
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def booster(self) -> Any:
        """The library's own model."""
        if self.backend == "lightgbm":
            return library("lightgbm").Booster(model_str=self.text)
        booster = library("xgboost").Booster()
        booster.load_model(bytearray(self.text.encode()))
        return booster

    @property
    def importance(self) -> dict[str, float]:
        """How much each feature lowered the loss, as shares of the whole, largest first."""
        if self.backend == "lightgbm":
            gain = np.asarray(self.booster.feature_importance("gain"), float)
        else:
            found = self.booster.get_score(importance_type="total_gain")
            gain = np.array([found.get(n, 0.0) for n in plain_names(self.features)])
        share = gain / gain.sum() if gain.sum() else gain
        names = [feature.name for feature in self.features]
        return dict(sorted(zip(names, share.tolist(), strict=True), key=lambda item: -item[1]))

    def plot(self) -> Figure:
        """What the model goes by; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.checks import importance_chart
        from rankdrift.charts.curve import Figure

        return Figure(importance_chart(self.importance, self.name))

    def save(self, path: str | os.PathLike[str]) -> None:
        """The model in its library's format, and what is known about it in `PATH.meta.json`."""
        told = json.dumps(self._meta(), indent=1, ensure_ascii=False)
        write_text(os.fspath(path) + BESIDE, told + "\n")
        write_text(path, self.text)

    def _meta(self) -> dict[str, Any]:
        return {
            "rankdrift": __version__,
            "model": _digest(self.text),
            "name": self.name,
            "backend": self.backend,
            "features": [
                {"name": f.name} | ({"categories": list(f.categories)} if f.categories else {})
                for f in self.features
            ],
            "options": dict(self.options),
            "gains": dict(self.gains),
            "training": dict(self.training),
            "propensities": self.propensities,
            "trees": self.trees,
            "history": list(self.history),
            "queries": [f"{q:016x}" for q in self.queries],
        }

    @staticmethod
    def load(path: str | os.PathLike[str], name: str | None = None) -> Ranker:
        """What `save` wrote, or any LightGBM text model or XGBoost JSON model of numbers."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise BadOption(f"Cannot read the model {str(file)!r}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise BadOption(
                f"{str(file)!r} is no model: LightGBM's are text, XGBoost's JSON (not binary)."
            ) from None
        beside = Path(os.fspath(path) + BESIDE)
        if beside.exists():
            return _with_meta(text, _read_meta(beside), file, name or file.stem)
        return _without_meta(text, file, name or file.stem)

    def __repr__(self) -> str:
        how = "with" if self.propensities else "without"
        return (
            f"Ranker({self.name!r}: {self.trees} trees of {self.backend}, "
            f"{len(self.features)} features, {how} propensities)"
        )


def library(name: str) -> Any:
    from importlib import import_module

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


def sketch(query_keys: NDArray[np.uint64]) -> tuple[int, ...]:
    """The smallest hashes: whether a query whose hash is no larger was among them is known."""
    return tuple(np.sort(query_keys)[:SKETCH].tolist())


def shared_queries(ranker: Ranker, query_keys: NDArray[np.uint64]) -> float:
    """The share of these queries that the ranker was trained on, estimated from its sketch."""
    if not ranker.queries or not len(query_keys):
        return 0.0
    whole = len(ranker.queries) < SKETCH
    judged = query_keys if whole else query_keys[query_keys <= np.uint64(ranker.queries[-1])]
    if not len(judged):
        return 0.0
    return float(np.isin(judged, np.array(ranker.queries, np.uint64)).mean())


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


def xgboost_types(features: Sequence[Feature]) -> dict[str, Any]:
    return {
        "feature_names": plain_names(features),
        "feature_types": ["c" if f.is_category else "q" for f in features],
        "enable_categorical": True,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and {"model", "backend", "features"} <= found.keys():
            return found
    except (OSError, ValueError):
        pass
    raise BadOption(
        f"Cannot read {str(path)!r}, which tells of the model beside it. Train again, or delete it "
        "to use the model as it is."
    )


def _with_meta(text: str, meta: dict[str, Any], path: Path, name: str) -> Ranker:
    if meta["model"] != _digest(text):
        raise BadOption(
            f"{path.name + BESIDE!r} belongs to another model than {str(path)!r}: one of the two "
            "was changed. Train again, or delete the former to use the model as it is."
        )
    try:
        features = tuple(
            Feature(f["name"], tuple(f["categories"]) if "categories" in f else None)
            for f in meta["features"]
        )
        return Ranker(
            name, meta["backend"], text, features, meta["options"], meta["gains"],
            meta["training"], meta["propensities"], tuple(int(q, 16) for q in meta["queries"]),
            meta["trees"], tuple(meta["history"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise BadOption(f"{path.name + BESIDE!r} is damaged ({error}). Train again.") from None


def _without_meta(text: str, path: Path, name: str) -> Ranker:
    if text.startswith("tree\n"):
        _refuse_cut(text, path)
        booster = _opened(text, path, "lightgbm")
        if re.search(r"^num_cat=[1-9]", text, re.M):
            raise BadOption(
                f"The model {str(path)!r} uses categories, but what they are called is not known: "
                f"{path.name + BESIDE!r} is missing."
            )
        names = booster.feature_name()
        return Ranker(name, "lightgbm", text, tuple(map(Feature, names)), trees=booster.num_trees())
    if text.lstrip().startswith("{") and '"learner"' in text:
        _refuse_cut(text, path)
        booster = _opened(text, path, "xgboost")
        names = booster.feature_names or [f"f{i}" for i in range(booster.num_features())]
        if "c" in (booster.feature_types or []):
            raise BadOption(f"The model {str(path)!r} uses categories of unknown names.")
        rounds = booster.num_boosted_rounds()
        return Ranker(name, "xgboost", text, tuple(map(Feature, names)), trees=rounds)
    raise BadOption(
        f"{str(path)!r} is no model: neither LightGBM's text nor XGBoost's JSON. Give the file "
        "that `rankdrift train` wrote."
    )


def _refuse_cut(text: str, path: Path) -> None:
    """LightGBM ends the whole process when its trees are not where `tree_sizes` says, or when its
    parameters have no end; what XGBoost says is not for users."""
    if not (_is_whole_json(text) if text.lstrip().startswith("{") else _is_whole_tree(text)):
        raise BadOption(
            f"The model {str(path)!r} is cut short or was changed. Train again, or copy it again "
            "from where it came."
        )


def _is_whole_tree(text: str) -> bool:
    model = text.encode()
    sizes = re.search(rb"^tree_sizes=([\d ]*)\n+", model, re.M)
    after = model[sizes.end() + sum(map(int, sizes[1].split())) :] if sizes else b""
    ended = b"\nparameters:" not in after or b"\nend of parameters" in after
    return ended and after.startswith(b"end of trees")


def _is_whole_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _opened(text: str, path: Path, backend: str) -> Any:
    try:
        return Ranker("", backend, text, ()).booster
    except MissingExtra:
        raise
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise BadOption(f"{backend} cannot read the model {str(path)!r}: {first}") from None
