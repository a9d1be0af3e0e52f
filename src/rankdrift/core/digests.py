"""Digests: whether what is read is what was written.

The digest is of the content, not of bytes: a file may be formatted anew, or written by another
version of a library, and is still the same. Files of versions that wrote none are read as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rankdrift.core.lineage import KEY as LINEAGE
from rankdrift.core.lineage import lineage

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY = "digest"
"""Under which a document keeps its digest."""
CHANGED = (
    "it was changed since it was written: its digest is {found}, but it says {said}. Copy it again "
    "from where it came, or make it again"
)
BY_HAND = f'. If the change is meant, take the entry "{KEY}" out of it, and it is read as it is.'


def digest(document: Mapping[str, Any], arrays: Iterable[NDArray[Any]] = ()) -> str:
    """Of plain values, but for the digest among them, and of arrays in this order."""
    plain = {name: value for name, value in document.items() if name != KEY}
    found = hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(_bytes(array))
    return found.hexdigest()[:32]


def sealed(document: Mapping[str, Any], arrays: Iterable[NDArray[Any]] = ()) -> dict[str, Any]:
    """The document with its digest at the end. What a run makes has its lineage before that: the
    run, digests of what it was made of, and that of the content, the same whichever run made it."""
    plain = {name: value for name, value in document.items() if name not in (KEY, LINEAGE)}
    made, content = lineage(), list(arrays)
    if made:
        plain[LINEAGE] = {**made.to_dict(), "content": digest(plain, content)}
    return {**plain, KEY: digest(plain, content)}


def what_changed(
    document: Mapping[str, Any], arrays: Iterable[NDArray[Any]] = (), by_hand: bool = True
) -> str | None:
    """Words for a document that is not what was sealed; None for one that is, or never was.

    Parameters
    ----------
    document, arrays
        As they were read.
    by_hand
        Whether people can edit such a file: then they are told how to have it read all the same.
    """
    if KEY not in document:
        return None
    found, said = digest(document, arrays), document[KEY]
    if found == said:
        return None
    return CHANGED.format(found=found, said=said) + (BY_HAND if by_hand else ".")


def _bytes(array: NDArray[Any]) -> memoryview:
    """The same for equal numbers: there are several zeros and many NaNs."""
    import numpy as np

    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array + 0.0)
    return np.ascontiguousarray(array).reshape(-1).data
