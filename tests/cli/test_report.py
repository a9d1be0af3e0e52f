"""rankdrift report"""

import json
from pathlib import Path

import duckdb
import pytest
from support.results_example import EVIL, made

from rankdrift import Counts
from rankdrift.cli.report import _by_kind, _lines, _next
from rankdrift.core.artefacts import ResultKind
from rankdrift.diagnosis.diagnosing import diagnose


@pytest.fixture
def files(tmp_path):
    made().counts.save(tmp_path / "counts.parquet")
    made().curve.save(tmp_path / "propensities.json")
    (tmp_path / "methods.json").write_text(json.dumps(made().methods.to_dict()))
    return [tmp_path / name for name in ("counts.parquet", "propensities.json", "methods.json")]


def test_report_writes_one_page(rankdrift, files, tmp_path):
    page = tmp_path / "pages" / "report.html"
    done = rankdrift("report", *files, "-o", page, "--title", "Autumn & winter")
    assert done.code == 0
    assert f"The report is in {page}." in done.err
    used = f"Next: rankdrift train LOG --propensities {files[1]} -o ranker.txt"
    assert done.err.splitlines()[-1] == used
    assert [line.split()[-1] for line in done.out.splitlines()] == [f.name for f in files]
    assert "<h1>Autumn &amp; winter</h1>" in page.read_text("utf-8")
    folder = rankdrift("report", tmp_path, "-o", page)  # that they are in
    assert folder.err.splitlines()[-1] == used
    told = rankdrift("report", *files, "-o", page, "--json").json
    assert told["file"] == str(page) and told["verdict"] == diagnose(made().counts).verdict
    assert told["results"][0] == {"file": "counts.parquet", "kind": "counts"}


def test_a_year_of_files_is_told_in_a_line():
    days = [(f"{i:03}.parquet", ResultKind.COUNTS) for i in range(365)]
    assert _lines([*days, ("p.json", ResultKind.PROPENSITIES)]) == [
        "counts        000.parquet to 364.parquet, 365 files",
        "propensities  p.json",
    ]
    assert (
        _next(("year",), _by_kind(days)) == "rankdrift estimate year -o propensities.json".split()
    )
    assert "COUNTS" in _next(("a", "b"), _by_kind(days))


def test_queries_can_be_left_out(rankdrift, tmp_path, monkeypatch):
    """Of a log that says the same nasty thing wherever it can, by way of every kind of result."""
    monkeypatch.chdir(tmp_path)
    nasty_log("log.parquet")
    read = ["log.parquet", "--segment", "who", "--where", f"note <> '{EVIL} '"]
    counts = ["counts.parquet", "-q", "--json"]
    assert rankdrift("harvest", *read, "-o", "counts.parquet").code == 0
    assert rankdrift("estimate", *counts, "--by", "who", "-o", "curve.json").code == 0
    Path("diagnosis.json").write_text(rankdrift("diagnose", *counts).out)
    done = rankdrift("compare", *read, "--methods", "loglog,ctr", "-q", "--json")
    methods = {**done.json, "left_out": {"experiment": f"The column 'note' says {EVIL!r}."}}
    methods["digest"] = None
    Path("methods.json").write_text(json.dumps(methods))
    model = ["--trees", "2", "--threads", "1", "-o", "model.txt"]
    assert rankdrift("train", *read, *model).code == 0
    judged = ["--model", "model.txt", "--bootstrap", "20", "-o", "rankers.json"]
    assert rankdrift("evaluate", *read, *judged).code == 0
    truth = {name: {"best_match": [1.0, 0.5, 0.3]} for name in (EVIL, "web")}
    Path("truth.json").write_text(json.dumps({"propensities": truth, "options": {}}))
    kinds = ["counts.parquet", "curve.json", "diagnosis.json", "methods.json", "rankers.json"]
    says_it = {"counts.parquet", "part.parquet", "curve.json", "methods.json"}
    Counts.load("counts.parquet").restrict(segments=[EVIL]).save("part.parquet")
    together = [["part.parquet"], ["curve.json", "truth.json"], [*kinds, "truth.json"]]
    for files in [*([kind] for kind in kinds), *together]:
        for option in ("--queries", "--no-queries"):
            assert rankdrift("report", *files, "-o", "report.html", option).code == 0
            page = Path("report.html").read_text("utf-8")
            assert (SAID in page) == (option == "--queries" and bool(says_it & {*files})), files
    assert "segment 2" in page and "Left out: experiment." in page


SAID = "alert(1)"  # of EVIL, the part that no form of escape changes


def nasty_log(path):
    """Docs move between ten ranks; query, doc, segment and words of every other search are EVIL."""
    text = f"CASE WHEN s % 2 = 0 THEN '{EVIL}' ELSE 'web' END"
    duckdb.sql(f"""
        COPY (
            SELECT s AS search, {text} || s % 50 AS query, {text} || (r + s // 50) % 12 AS doc,
                r AS rank, CAST(hash(s, r) % (3 + 2 * r) = 0 AS INTEGER) AS click, {text} AS who,
                {text} AS note, {text} AS f_word, hash(s + r) % 7 AS f_age
            FROM range(4000) AS searches(s), range(1, 11) AS ranks(r)
        ) TO '{path}'
    """)


def test_an_input_is_never_written_over(rankdrift, files):
    before = files[1].read_bytes()
    done = rankdrift("report", *files, "-o", files[1])
    assert done.code == 2 and "is also an input" in done.err
    assert files[1].read_bytes() == before


def test_what_is_no_result_is_refused(rankdrift, tmp_path):
    (tmp_path / "half.json").write_text('{"kind": "rankdrift prop')
    done = rankdrift("report", tmp_path / "half.json", "-o", tmp_path / "report.html")
    assert done.code == 2 and "cut short" in done.err
    assert not (tmp_path / "report.html").exists()
    done = rankdrift("report", tmp_path / "none.json", "-o", tmp_path / "report.html")
    assert done.code == 2 and "does not exist" in done.err
