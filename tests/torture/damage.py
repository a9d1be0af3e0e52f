"""Damage to bytes, and to what is inside a document."""

import copy
import json

STRANGE = (
    None, True, False, 0, 1, -1, 2, 10**12, 2**63, -(2**63) - 1, 0.5, -0.0, 1e308, 1e-320, "", " ",
    "x", "NaN", "1", "\x00", "é" * 400, "2024-02-30", [], [0], [[]], [None], ["a"], {}, {"a": 1},
)  # fmt: skip


def damaged(rng, content):
    """Bits flipped, cut short, blanked, added, mixed up."""
    content = bytearray(content)
    how = rng.choice(("flip", "flip", "flips", "cut", "zero", "insert", "swap", "repeat"))
    if how == "cut":
        return bytes(content[: rng.randrange(len(content))])
    for _ in range(rng.randint(2, 40) if how == "flips" else 1):
        at = rng.randrange(len(content))
        if how in ("flip", "flips"):
            content[at] ^= 1 << rng.randrange(8)
        elif how == "zero":
            content[at : at + 64] = bytes(len(content[at : at + 64]))
        elif how == "insert":
            content[at:at] = rng.randbytes(rng.randint(1, 30))
        elif how == "repeat":
            content[at:at] = content[at : at + rng.randint(1, 200)]
        else:
            other = rng.randrange(len(content))
            content[at : at + 16], content[other : other + 16] = (
                content[other : other + 16], content[at : at + 16],
            )  # fmt: skip
    return bytes(content)


def edited(rng, content):
    """A JSON document with a few of its values replaced, left out or doubled, which says so."""
    document = json.loads(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        inside = document
        while True:
            keys = list(inside) if isinstance(inside, dict) else range(len(inside))
            at = rng.choice(keys)
            if not isinstance(inside[at], dict | list) or not inside[at] or rng.random() < 0.15:
                break
            inside = inside[at]
        how = rng.random()
        if how < 0.15:
            del inside[at]
        elif how < 0.25 and isinstance(inside, list):
            inside.insert(rng.randrange(len(inside) + 1), copy.deepcopy(inside[at]))
        elif how < 0.4 and type(inside[at]) in (int, float):
            inside[at] *= rng.choice((-1, 0, 1e9, 1e300))
        else:
            inside[at] = copy.deepcopy(rng.choice(STRANGE))
        if not document:
            break
    if "digest" in document:
        document["digest"] = None
    return json.dumps(document).encode()
