"""rankdrift report"""

import json

import pytest
from browser.results_example import EVIL, made

from rankdrift.diagnosis import diagnose


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
    assert [line.split()[-1] for line in done.out.splitlines()] == [f.name for f in files]
    assert "<h1>Autumn &amp; winter</h1>" in page.read_text("utf-8")
    told = rankdrift("report", *files, "-o", page, "--json").json
    assert told["file"] == str(page) and told["verdict"] == diagnose(made().counts).verdict
    assert told["results"][0] == {"file": "counts.parquet", "kind": "counts"}


def test_queries_can_be_left_out(rankdrift, files, tmp_path):
    page = tmp_path / "report.html"
    name = EVIL.replace("<", "&lt;").replace(">", "&gt;")
    assert rankdrift("report", *files[:2], "-o", page).code == 0
    assert name in page.read_text("utf-8")
    assert rankdrift("report", *files[:2], "-o", page, "--no-queries").code == 0
    assert name not in page.read_text("utf-8") and "segment 2" in page.read_text("utf-8")


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
