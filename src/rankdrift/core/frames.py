"""Tables for those who work with data frames: pandas, Polars or Arrow, none of which is needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankdrift.core.errors import MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Tabular(ABC):
    """A value that is, among other things, a table: columns of plain values, as `table` gives them.

    Options of `to_pandas`, `to_polars` and `to_arrow` are those of `table`.
    """

    @abstractmethod
    def table(self) -> dict[str, list[Any]]:
        """Column -> values."""

    def to_pandas(self, **options: Any) -> Any:
        """The table as a pandas.DataFrame; needs pandas."""
        return _library("pandas").DataFrame(self.table(**options))

    def to_polars(self, **options: Any) -> Any:
        """The table as a polars.DataFrame; needs Polars."""
        return _library("polars").DataFrame(self.table(**options), infer_schema_length=None)

    def to_arrow(self, **options: Any) -> Any:
        """The table as a pyarrow.Table; needs PyArrow."""
        return _library("pyarrow").table(self.table(**options))


def objects(rows: Sequence[tuple[Any, ...]], columns: int) -> NDArray[Any]:
    """(rows, columns) of Python values, from what a database fetched."""
    import numpy as np

    found = np.empty((len(rows), columns), object)
    for i in range(columns):
        found[:, i] = [row[i] for row in rows]
    return found


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"{name} is not installed, and rankdrift does not need it: `pip install {name}`, or "
            "take the columns as they are from `table()`."
        ) from error
