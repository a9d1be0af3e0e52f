"""Addresses of things that are not on this machine: what they are, and what of them may be told."""

import re

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # Path makes one slash of two
_PERSON = re.compile(r"(?<=://)[^/?#@\s]*@")  # a name, perhaps with a password
_QUERY = re.compile(r"[?#]\S*")  # signatures and tokens go here


def is_address(path: str) -> bool:
    """Whether it names something by a scheme, such as s3://bucket/file, rather than a file here."""
    return "://" in path


def is_place_elsewhere(path: str) -> bool:
    """The same of a place to write to, which may have been a Path meanwhile."""
    return _SCHEME.match(path) is not None


def without_secrets(text: str) -> str:
    """The text with every address in it cut down to where it leads: no name, no password, and
    nothing after a question mark, where signed addresses carry their key.

    Examples
    --------
    >>> without_secrets("from https://me:word@host/log.csv?X-Signature=1f")
    'from https://host/log.csv'
    """
    return _ADDRESS.sub(lambda found: _QUERY.sub("", _PERSON.sub("", found[0])), text)
