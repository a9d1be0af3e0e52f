"""Digests: whether what is read is what was written.

The digest is of the content, not of bytes: a file may be formatted anew, or written by another
version of a library, and is still the same. What is sealed says so in a second place: without its
digest it is damaged. Files of versions that wrote none are read as they are, and so is a digest of
null, by which people say that they have edited a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rankdrift.core.lineage import KEY as LINEAGE
from rankdrift.core.lineage import lineage
from rankdrift.core.settings_used import with_settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY = "digest"
"""Under which a document keeps its digest."""
MARK = "sealed"
"""Under which it says that it has one: damage to the name of the digest is then noticed."""
CHANGED = (
    "it was changed since it was written: its digest is {found}, but it says {said}. Copy it again "
    "from where it came, or make it again"
)
LOST = (
    f'its entry "{KEY}" is missing, which it was written with. Copy it again from where it came, '
    "or make it again"
)
BY_HAND = f'. If somebody edited it and means it, write "{KEY}": null in it: it is read as it is.'


def digest(document: Mapping[str, Any], arrays: Iterable[NDArray[Any]] = ()) -> str:
    """Of plain values, but for the digest and the mark among them, and of arrays in this order."""
    plain = {name: value for name, value in document.items() if name not in (KEY, MARK)}
    found = hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(_bytes(array))
    return found.hexdigest()[:32]


def sealed(document: Mapping[str, Any], arrays: Iterable[NDArray[Any]] = ()) -> dict[str, Any]:
    """The document with its mark and the settings of the command that writes it, and its digest at
    the end. What a run makes has its lineage before that: the run, digests of what it was made of,
    and that of the content, the same whichever run made it."""
    plain = {name: value for name, value in document.items() if name not in (KEY, MARK, LINEAGE)}
    made, content = lineage(), list(arrays)
    if made:
        plain[LINEAGE] = {**made.to_dict(), "content": digest(plain, content)}
    plain = with_settings(plain)
    return {MARK: True, **plain, KEY: digest(plain, content)}


def what_changed(
    document: Mapping[str, Any], arrays: Iterable[NDArray[Any]] = (), by_hand: bool = True
) -> str | None:
    """Words for a document that is not what was sealed; None for one that is, never was, or says
    that it was edited.

    Parameters
    ----------
    document, arrays
        As they were read.
    by_hand
        Whether people can edit such a file: then they are told how to have it read all the same.
    """
    said = document.get(KEY)
    if said is None and (KEY in document or MARK not in document):
        return None
    if said is None:
        return LOST + (BY_HAND if by_hand else ".")
    found = digest(document, arrays)
    if found == said:
        return None
    return CHANGED.format(found=found, said=said) + (BY_HAND if by_hand else ".")


def _bytes(array: NDArray[Any]) -> memoryview:
    """The same for equal numbers: there are several zeros and many NaNs."""
    import numpy as np

    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array + 0.0)
    return np.ascontiguousarray(array).reshape(-1).data
