"""Dates with the year last, and what is said where they cannot be read."""

from pathlib import Path

import pytest

from rankdrift import harvest, inspect, read_log
from rankdrift.core.errors import BadLog, BadOption

ROWS = [("a", 1, 2, 1), ("a", 1, 1, 0), ("b", 2, 1, 1), ("b", 2, 3, 0)]


def log(path: Path, dates: list[str], sep: str = ";") -> Path:
    """A German log: each row of ROWS on each of these days."""
    head = sep.join(("Suchanfrage", "Artikel", "Rang", "Klick", "Datum", "Preis"))
    rows = [sep.join([*map(str, row), date, "3,50"]) for date in dates for row in ROWS]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["31.12.2024", "1.1.2025"], ("2024-12-31", "2025-01-01")),
        (["03.04.2024"], ("2024-04-03",)),  # nobody puts the month first before a point
        (["3/4/2024 23:59", "13/4/2024 00:01"], ("2024-04-03", "2024-04-13")),
        (["4/3/2024", "4/13/2024"], ("2024-04-03", "2024-04-13")),
        (["03-04-2024", "13-04-2024"], ("2024-04-03", "2024-04-13")),
        (["2024-04-03", "2024-04-13"], ("2024-04-03", "2024-04-13")),
    ],
)
def test_days_are_read_however_they_are_written(tmp_path, dates, days):
    counts = harvest(read_log(log(tmp_path / "log.csv", dates)))
    assert counts.days == days
    assert counts.n_pairs == 2 * len(days)


@pytest.mark.parametrize("dates", [["03/04/2024"], ["31/12/2024", "12/31/2024"]])
def test_days_that_may_be_months_are_not_guessed(tmp_path, dates):
    path = log(tmp_path / "log.csv", dates)
    with pytest.raises(BadLog, match=r"Say it with --dates d/m/y or --dates m/d/y\."):
        read_log(path)
    found = inspect(read_log(path, dates="m/d/y"))
    assert found.sizes["last_day"] in ("2024-03-04", "2024-12-31")
    with pytest.raises(BadOption, match="d/m/y"):
        read_log(path, dates="dmy")


def test_the_order_is_kept_with_the_counts(tmp_path):
    options = harvest(read_log(log(tmp_path / "log.csv", ["31.12.2024"]))).options
    assert options["dates"] == "d.m.y"
    assert options["query"] == ["Suchanfrage"]
    assert "dates" not in harvest(read_log(log(tmp_path / "log.csv", ["2024-12-31"]))).options


@pytest.mark.parametrize("text", ["[]", " [\n]\n"])
def test_an_empty_list_is_told_as_such(tmp_path, text):
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(BadLog, match="an empty list"):
        read_log(path)
