"""Ranker: a trained model that scores results, with all that says where it comes from."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankdrift.core.artefacts import BESIDE
from rankdrift.core.digests import sealed, what_changed
from rankdrift.core.errors import BadOption, MissingExtra
from rankdrift.core.files import read_text, together, write_text
from rankdrift.core.notebook import cut, html_table
from rankdrift.core.plain import parsed
from rankdrift.core.types import Floats
from rankdrift.core.version import __version__
from rankdrift.propensities.propensities import Propensities
from rankdrift.ranking.backends import (
    BACKENDS,
    Backend,
    Booster,
    LightGBM,
    XGBoost,
    plain_names,
)
from rankdrift.ranking.gains import fingerprint
from rankdrift.ranking.matrix import Feature, Matrix
from rankdrift.ranking.trying import try_apart

if TYPE_CHECKING:
    from rankdrift.charts.style import Figure

# Hashes of training queries that are kept, the smallest: enough to notice those in a test set.
SKETCH = 1024
# Propensities that a model learnt are in one with this at its end.
LEARNT = ".propensities.json"

_SHOWN = 20  # features in a table for notebooks
_LONG_NAME = 90  # characters


@dataclass(frozen=True, eq=False)
class Ranker:
    """A trained model that scores results, and all that says where it comes from.

    `train` makes one and `Ranker.load` reads one.

    Parameters
    ----------
    name
        What tables call it.
    backend
        Whose trees they are, one of BACKENDS.
    text
        The model in its library's format: LightGBM's text, or XGBoost's JSON.
    features
        What a row is to have, in this order.
    options
        Those of `train`.
    gains
        What clicks were worth, as `Gains.to_dict` has it.
    training
        The rows it learnt from, as `Matrix.describe` has them.
    propensities
        The fingerprint of those it was trained with; None: without.
    queries
        The smallest hashes of the queries it was trained on, at most SKETCH, ascending.
    trees
        How many of its trees are used.
    history
        The metric after each tree, if rows were set apart to validate.
    learnt
        The propensities that it learnt along with its trees; None if they were given, or none.
    """

    name: str
    backend: str
    text: str
    features: tuple[Feature, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    gains: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    propensities: str | None = None
    queries: tuple[int, ...] = ()
    trees: int = 0
    history: tuple[float, ...] = ()
    learnt: Propensities | None = None

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
        return self._backend.predict(self.booster, x, self.features, self.trees)

    @property
    def _backend(self) -> Backend:
        return BACKENDS.get(self.backend)

    @cached_property
    def booster(self) -> Booster:
        """The library's own model."""
        booster = self._backend.open(self.text)
        found = self._backend.contents(booster, self.text)
        names = plain_names([Feature(name) for name in found.names])
        if plain_names(self.features) != names or self.trees > found.trees:
            raise BadOption(
                f"The record of {self.name!r} tells of {self.trees} trees and the features "
                f"{_listed(self.features)}; the model has {found.trees} trees and "
                f"{_listed(map(Feature, found.names))}. Train again."
            )
        return booster

    @property
    def choice(self) -> Mapping[str, Any]:
        """How leaves, rows a leaf, norm and clip came about, with all that was tried, as
        `Choice.to_dict` has it; nothing for a model that does not tell."""
        found = self.options.get("choice")
        return found if isinstance(found, dict) else {}

    @property
    def importance(self) -> dict[str, float]:
        """How much each feature lowered the loss, as shares of the whole, largest first."""
        gain = self._backend.importance(self.booster, self.features)
        share = gain / gain.sum() if gain.sum() else gain
        names = [feature.name for feature in self.features]
        return dict(sorted(zip(names, share.tolist(), strict=True), key=lambda item: -item[1]))

    def plot(self) -> Figure:
        """The importance of each feature, drawn; its `save` writes .png, .svg or .html."""
        from rankdrift.charts.importance import importance_chart
        from rankdrift.charts.style import Figure

        return Figure(importance_chart(self.importance, self.name))

    def save(self, path: str | os.PathLike[str]) -> None:
        """The model in its library's format, and what is known about it in `PATH.meta.json`;
        propensities that it learnt are in `PATH.propensities.json`."""
        plain = json.loads(json.dumps(self._record()))
        record = json.dumps(sealed(plain), indent=1, ensure_ascii=False)
        with together():
            write_text(path, self.text)
            write_text(os.fspath(path) + BESIDE, record + "\n")
            if self.learnt is not None:
                self.learnt.save(os.fspath(path) + LEARNT)

    def _record(self) -> dict[str, Any]:
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
        """What `save` wrote, or any LightGBM text model or XGBoost JSON model of numbers.

        Without `name` the ranker is called as its file is, without the ending.
        """
        file = Path(path)
        try:
            text = read_text(file)
        except OSError as error:
            raise BadOption(f"Cannot read the model {str(file)!r}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise BadOption(
                f"{str(file)!r} is no model: LightGBM's are text, XGBoost's JSON (not binary)."
            ) from None
        beside = Path(os.fspath(path) + BESIDE)
        if beside.exists():
            return _with_record(text, _read_record(beside), file, name or file.stem)
        return _without_record(text, file, name or file.stem)

    def __repr__(self) -> str:
        how = "with" if self.propensities else "without"
        return (
            f"Ranker({cut(self.name, _LONG_NAME)!r}: {self.trees} trees of {self.backend}, "
            f"{len(self.features)} features, {how} propensities)"
        )

    def _repr_html_(self) -> str:
        gains = sorted(self.importance.items(), key=lambda item: -item[1])[:_SHOWN]
        rows = [(name, f"{gain:,.3g}") for name, gain in gains]
        return html_table(["feature", "importance"], rows, repr(self))


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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read_record(path: Path) -> dict[str, Any]:
    found = None
    with suppress(OSError, ValueError):
        found = parsed(read_text(path))
    if isinstance(found, dict) and {"model", "backend", "features"} <= found.keys():
        changed = what_changed(found)
        if changed:
            raise BadOption(f"{str(path)!r}, which tells of the model beside it: {changed}")
        return found
    raise BadOption(
        f"Cannot read {str(path)!r}, which tells of the model beside it. Train again, or delete it "
        "to use the model as it is."
    )


def _listed(features: Iterable[Feature]) -> str:
    return cut(", ".join(feature.name for feature in features), _LONG_NAME)


def _is_feature(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return False
    words = value.get("categories", [])
    return isinstance(words, list) and all(isinstance(word, str) for word in words)


def _is_list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# What each entry of a record must be: where the digest is null, any of them may have been changed.
_ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "backend": ("one of those there are", lambda value: value in [b.name for b in BACKENDS]),
    "features": ("a list of features with names", _is_list(_is_feature)),
    "options": ("a table", lambda value: isinstance(value, dict)),
    "gains": ("a table", lambda value: isinstance(value, dict)),
    "training": ("a table", lambda value: isinstance(value, dict)),
    "propensities": ("text or nothing", lambda value: value is None or isinstance(value, str)),
    "queries": (
        "a list of hashes",
        _is_list(lambda q: isinstance(q, str) and bool(re.fullmatch("[0-9a-f]{16}", q))),
    ),
    "trees": ("a whole number", lambda value: _is_number(value) and value == int(value) >= 0),
    "history": ("a list of numbers", _is_list(_is_number)),
}


def _with_record(text: str, record: dict[str, Any], path: Path, name: str) -> Ranker:
    if record["model"] != _digest(text):
        raise BadOption(
            f"{path.name + BESIDE!r} belongs to another model than {str(path)!r}: one of the two "
            "was changed. Train again, or delete the former to use the model as it is."
        )
    for entry, (what, fits) in _ENTRIES.items():
        if not fits(record.get(entry, ...)):
            raise BadOption(
                f"{path.name + BESIDE!r} is damaged: {entry!r} is not {what}. Train again."
            )
    return Ranker(
        name=name,
        backend=record["backend"],
        text=text,
        features=tuple(
            Feature(f["name"], tuple(f["categories"]) if "categories" in f else None)
            for f in record["features"]
        ),
        options=record["options"],
        gains=record["gains"],
        training=record["training"],
        propensities=record["propensities"],
        queries=tuple(int(query, 16) for query in record["queries"]),
        trees=record["trees"],
        history=tuple(record["history"]),
        learnt=_learnt(path, record),
    )


def _learnt(path: Path, record: Mapping[str, Any]) -> Propensities | None:
    """Those that the model learnt, if their file is beside it."""
    beside = Path(os.fspath(path) + LEARNT)
    if record["options"].get("gains") != "dual" or not beside.exists():
        return None
    found = Propensities.load(beside)
    if fingerprint(found) != record["propensities"]:
        raise BadOption(
            f"{str(beside)!r} are not the propensities that the model beside it learnt. Train "
            "again, or delete them to use the model without."
        )
    return found


def _without_record(text: str, path: Path, name: str) -> Ranker:
    """A model that another program made, or whose record was lost."""
    backend = next((backend for backend in BACKENDS if backend.recognises(text)), None)
    if backend is None:
        raise BadOption(
            f"{str(path)!r} is no model: neither LightGBM's text nor XGBoost's JSON. Give the file "
            "that `rankdrift train` wrote."
        )
    if not backend.is_whole(text):
        raise BadOption(
            f"The model {str(path)!r} is cut short or was changed. Train again, or copy it again "
            "from where it came."
        )
    if isinstance(backend, LightGBM | XGBoost):
        try:
            try_apart(backend, text)
        except BadOption as error:
            raise BadOption(
                f"{backend.name} cannot read the model {str(path)!r}: {error}. It is damaged, or "
                "of another version. Train again, or copy it again from where it came."
            ) from None
    found = backend.contents(_opened(backend, text, path), text)
    if found.has_categories:
        record = path.name + BESIDE
        raise BadOption(backend.unnamed_categories.format(model=str(path), record=record))
    features = tuple(Feature(feature) for feature in found.names)
    return Ranker(name, backend.name, text, features, trees=found.trees)


def _opened(backend: Backend, text: str, path: Path) -> Booster:
    try:
        return backend.open(text)
    except MissingExtra:
        raise
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise BadOption(f"{backend.name} cannot read the model {str(path)!r}: {first}") from None
