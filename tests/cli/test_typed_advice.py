"""What a message says to type can be typed, whatever columns and files are called."""

import json
import re
import shlex
import subprocess
import sys

import duckdb
import pytest

from rankdrift.cli.options import _is_result
from rankdrift.cli.screen import join
from rankdrift.diagnosis.ways import flags

NAMES = ("my query", "doc", "the 'rank'", "click", "day", "search")
PLAIN = ("query", "doc", "rank", "click", "day", "search")
QUERY = ("--query", "my query", "--rank", "the 'rank'")


def write(path, rows, names=NAMES):
    head = ",".join(f'"{name}"' for name in names)
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def rows(*ranks, page=()):
    return [
        (f"q{q}", f"d{q}", rank, int(rank == 1), "2024-01-01", 10 * q + place, *page)
        for q in range(5)
        for place, rank in enumerate(ranks)
    ]


def typed(message, flag):
    """The words after a flag, as a shell reads them."""
    words = shlex.split(re.search(rf"{flag} .*?(?=\.$|\.\s|; |, so )", message, re.M)[0])
    return words[:2]


@pytest.mark.parametrize("zeros", [1, 5])
def test_rank_zero_is_left_out_as_told(rankdrift, tmp_path, zeros):
    odd = [("x", "y", 0, 0, "2024-01-01", 900 + n) for n in range(zeros)]
    log = write(tmp_path / "log.csv", rows(1, 2) + odd)
    refused = rankdrift("inspect", log, *QUERY)
    assert refused.code == 2
    assert (f"{zeros} of {10 + zeros} rows ha{'s' if zeros == 1 else 've'} rank 0") in refused.err
    flag, condition = typed(refused.err, "--where")
    assert "rank 0" not in rankdrift("inspect", log, *QUERY, flag, condition).err


def test_a_plain_name_needs_no_quotes_of_its_own(rankdrift, tmp_path):
    log = write(
        tmp_path / "log.csv", rows(0, 1), ("query", "doc", "rank", "click", "day", "search")
    )
    assert '--where "rank > 0".' in rankdrift("inspect", log).err


def test_ways_are_typed_with_quotes_where_needed():
    told = flags({"query": ["my query", "b"], "day": "", "window": "7d", "same": None})
    assert shlex.split(told) == ["--query", "my query,b", "--day", "", "--window", "7d"]


def test_a_result_that_was_given_for_a_log(rankdrift, tmp_path):
    log = write(
        tmp_path / "log.csv", rows(1, 2), ("query", "doc", "rank", "click", "day", "search")
    )
    counts = tmp_path / "my counts.parquet"
    assert rankdrift("harvest", log, "-o", counts).code == 0
    command = re.search(r"try `(.*)`", _is_result(str(counts)))[1]
    assert shlex.split(command) == ["rankdrift", "estimate", str(counts)]


def test_results_that_were_not_shown_are_left_out_as_told(rankdrift, tmp_path):
    shown = [(*row, "yes") for row in rows(1, 2)]
    candidates = [(f"q{n}", "other", 50 + n, 0, "2024-01-01", 10 * n, "no") for n in range(3)]
    log = write(tmp_path / "log.csv", shown + candidates, (*PLAIN, "is_shown"))
    said = rankdrift("harvest", log, "-o", tmp_path / "all").err
    assert "3 of the first 13 rows with a rank were not shown" in said
    flag, condition = typed(said, "--where")
    told = rankdrift("harvest", log, "-o", tmp_path / "some", flag, condition, "--json")
    assert "not shown" not in told.err
    assert told.json["funnel"]["dropped"]["where"] == {"rows": 3, "clicks": 0}
    unranked = [(*row[:2], "", *row[3:]) for row in candidates]  # left out as it is
    for more in ([], unranked):  # nothing to say
        plain = write(tmp_path / "plain.csv", shown + more, (*PLAIN, "is_shown"))
        assert "Leave such rows" not in rankdrift("harvest", plain, "-o", tmp_path / "plain").err


@pytest.mark.parametrize(("name", "first"), [("page", 0), ("page", 1), ("Seite", 1)])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ranks_that_start_again_are_told_with_two_ways_out(rankdrift, tmp_path, name, first, kind):
    paged = [
        (f"q{q}", f"d{q}-{n}-{rank}", rank, int(rank == 1), "2024-01-01", q, first + n)
        for q in range(5) for n in range(3) for rank in (1, 2)
    ]  # fmt: skip
    log = write(tmp_path / "log.csv", paged, (*PLAIN, name))
    if kind == "parquet":
        table = duckdb.read_csv(str(log))
        table.write_parquet(str(log := tmp_path / "log.parquet"))
    refused = rankdrift("inspect", log)
    assert refused.code == 2
    assert f"10 rows on later pages (column '{name}') are at the first rank" in refused.err
    wanted = f"--page {name} --page-size 2" + ("" if first else " --first-page 0")
    assert f"Give {wanted}, so that" in refused.err
    used = rankdrift("harvest", log, "-o", tmp_path / "all", "--json", *wanted.split())
    assert used.code == 1 and used.json["funnel"]["input"]["rows"] == 30  # no doc moved
    some = rankdrift(
        "harvest", log, "-o", tmp_path / "top", "--json", *typed(refused.err, "--where")
    )
    assert some.json["funnel"]["dropped"]["where"]["rows"] == 20


def test_a_condition_is_quoted_as_one_types_it():
    assert join(["rankdrift", "--where", "a = 'b'"]) == """rankdrift --where "a = 'b'\""""
    for word in ("a b", "it's $5", "'\"'", "", "*", "~"):
        assert shlex.split(join([word])) == [word]


@pytest.mark.parametrize(
    ("column", "value", "seen"),
    [(2, "#{}", "'#1'"), (3, "was {}", "'was 0', 'was 1'"), (4, "31/12/{}", "'31/12/2024-01-01'")],
)
def test_what_cannot_be_read_is_shown_as_it_stands(rankdrift, tmp_path, column, value, seen):
    odd = [
        tuple(value.format(each) if i == column else each for i, each in enumerate(row))
        for row in rows(1, 2)
    ]
    found = rankdrift("inspect", write(tmp_path / "log.csv", odd, PLAIN))
    words = " ".join(found.out.split())
    assert found.code == 1 and seen in words and "Add days" not in words


def test_a_list_of_results_is_spread_out_as_told(rankdrift, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    searches = [
        {"query": "q", "search": n, "results": [{"doc": f"d{(n + i) % 3}", "rank": i + 1,
         "click": int(i == n % 2)} for i in range(3)]} for n in range(6)
    ]  # fmt: skip
    (tmp_path / "log.json").write_text(json.dumps(searches))
    said = rankdrift("inspect", "log.json").err
    command = re.search(r"python -c .*\"$", said, re.M)[0].replace("LOG", "log.json")
    program = shlex.split(command)[2]
    subprocess.run([sys.executable, "-c", program], check=True)
    assert rankdrift("harvest", "results.parquet", "-o", "counts", "--json").json["counts"]["pairs"]
