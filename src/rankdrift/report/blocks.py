"""The columns of a log as a table."""

from rankdrift.harvesting.inspection import Inspection

Used = tuple[str, str, str, str]


def column_roles(found: Inspection) -> tuple[list[Used], list[tuple[str, str]]]:
    """Columns in use as (name, kind, roles, "guessed" or "named"); the others as (name, kind)."""
    roles: dict[str, list[str]] = {}
    for role, value in found.roles.items():
        if role != "layout":
            for name in value if isinstance(value, list) else [value]:
                roles.setdefault(str(name), []).append(role)
    used = [
        (
            name,
            found.columns.get(name, ""),
            ", ".join(parts),
            "guessed" if name in found.guessed.values() else "named",
        )
        for name, parts in roles.items()
    ]
    return used, [(name, kind) for name, kind in found.columns.items() if name not in roles]
