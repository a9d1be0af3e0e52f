"""Things that users and other files may add to: layouts, methods, checks, curves, export formats.

An extension point is one `Registry`. Each thing in it is one object, in a file of its own if it
is an idea of its own, and registers itself there. Whatever lists the things (an error, the help
of a command, the documentation) reads the registry, so that adding one is one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from rankdrift.core.errors import BadOption, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind by name, in the order in which they were registered.

    A thing's name is its attribute `name`, or of a function or class without one, its own.

    Parameters
    ----------
    kind
        What one of them is called in messages, such as "curve".

    Examples
    --------
    >>> forms = Registry("form")
    >>> @forms.register
    ... def json(value): ...
    >>> forms.names
    ('json',)
    >>> forms.get("jsn")
    Traceback (most recent call last):
    rankdrift.core.errors.BadOption: No form 'jsn'. Did you mean 'json'? There are json.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def register(self, item: T) -> T:
        """Add `item`, and give it back, so that this is a decorator of classes and functions."""
        name = _name(item)
        if name in self._items:
            raise ValueError(f"There is a {self.kind} {name!r} already. Choose another name.")
        self._items[name] = item
        return item

    def remove(self, name: str) -> T:
        """Take the one of this name out again."""
        item = self.get(name)
        del self._items[name]
        return item

    @contextmanager
    def registered(self, item: T) -> Iterator[T]:
        """With `item` while the block runs: for tests, and to try something out."""
        self.register(item)
        try:
            yield item
        finally:
            self.remove(_name(item))

    def get(self, name: str) -> T:
        """The one of this name; BadOption if there is none, with the nearest and all there are."""
        if name not in self._items:
            raise self.unknown(name)
        return self._items[name]

    def unknown(self, name: str) -> BadOption:
        """The error to raise for a name that nothing has."""
        return BadOption(
            f"No {self.kind} {name!r}.{did_you_mean(name, self._items)} "
            f"There are {', '.join(self._items)}."
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order in which they were registered."""
        return tuple(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<Registry of {self.kind}: {', '.join(self._items)}>"


def _name(item: object) -> str:
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"{item!r} has no name. Give it an attribute `name`.")
    return name
