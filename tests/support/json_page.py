"""The keys that docs/reference/json.md names, by verb."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def inside() -> dict[tuple[str, str], set[str]]:
    """The fields named of each (verb, key)."""
    fields: dict[tuple[str, str], set[str]] = {}
    for verbs, key, told in re.findall(
        r"^\| ([a-z, -]+) `([^`]+)` \| (.+) \|$", PAGE.read_text(), re.M
    ):
        for verb in verbs.split(", "):
            fields[verb, key] = set(re.findall(r"`([^`]+)`", told))
    return fields


def documented() -> dict[str, set[str]]:
    keys: dict[str, set[str]] = {}
    for verbs, key in re.findall(r"^\| ([a-z, -]+) \| `([^`]+)` \|", PAGE.read_text(), re.M):
        for verb in verbs.split(", "):
            keys.setdefault(verb, set()).add(key)
    return keys
