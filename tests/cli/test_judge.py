"""judge, as typed."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.judged_logs import RANKS, true_curve, world

from rankdrift import Judgments
from rankdrift.cli.judge import judge
from rankdrift.judging.grades import ENOUGH, SCALES
from rankdrift.judging.statistics import MIN_EXPOSURE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("judge")
    table, names = world(queries=30, shows=80)
    pq.write_table(table, where / "log.parquet")
    true_curve(0.1).save(where / "p.json")
    rows = [{"query": q, "doc": d, "label": round(4 * z)} for (q, d), z in names.items()]
    (where / "labels.json").write_text("\n".join(map(json.dumps, rows)))
    return where


def test_all_of_it(rankdrift, folder, tmp_path):
    done = rankdrift(
        "judge", folder / "log.parquet", "--propensities", folder / "p.json", "-o",
        tmp_path / "j.parquet", "--export", f"trec={tmp_path / 'qrels.txt'}", "--export",
        f"quepid={tmp_path / 'q.csv'}", "--check", folder / "labels.json", "--look", 4, "--last", 3,
        "--half-life", 20, "--features", "f_*", "--by-query", "--grades", "better", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    judgments = Judgments.load(tmp_path / "j.parquet")
    found = done.json
    assert found["judgments"]["pairs"] == len(judgments)
    assert found["judgments"]["options"]["last"] == 3 and found["grades"]["by"] == "better"
    assert found["judgments"]["options"]["features"] == ["f_told"]
    assert len(found["files"]) == 3 and (tmp_path / "qrels.txt").exists()
    assert found["agreement"]["auc"]["low"] > 0.5
    assert len(found["look"]["doc"]) == 4
    assert sum(found["grades"]["pairs"].values()) == len(judgments)


def test_what_people_see_and_what_is_private(rankdrift, folder):
    words = ["judge", folder / "log.parquet", "--propensities", folder / "p.json", "--look", 2,
             "--check", folder / "labels.json"]  # fmt: skip
    shown = rankdrift(*words)
    assert shown.code == 0
    for text in ("Best and worst docs", "Beside human labels", "Worth a human look", "not enough",
                 "q0"):  # fmt: skip
        assert text in shown.out, text
    assert shown.err.splitlines()[-1].endswith("--export trec=qrels.txt")
    private = rankdrift(*words, "--no-queries")
    assert private.code == 0 and "Kendall" in private.out
    assert "q0" not in private.out and "d0" not in private.out
    assert rankdrift(*words, "--no-queries", "--json").json["look"] is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--export", "trec"], "FORM=PATH"),
        (["--export", "trek=x"], "Did you mean 'trec'"),
        (["-o", "j.csv"], "named .parquet"),
        (["--grades", "stars"], "No scale 'stars'"),
        (["--thresholds", "1,x"], "four numbers"),
        (["--same", "price"], "No such option"),
        (["--export", "trec=LOG"], "is also an input"),
        (["--export", "trec=x.txt", "--export", "quepid=./x.txt"], "is named twice"),
        (["-o", "x.parquet", "--export", "trec=x.parquet"], "is named twice"),
    ],
)
def test_requests_that_would_not_do(rankdrift, folder, more, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = folder / "log.parquet"
    before = log.read_bytes()
    more = [word.replace("LOG", str(log)) for word in more]
    done = rankdrift("judge", log, "--propensities", folder / "p.json", *more)
    assert done.code == 2 and told in done.err
    assert log.read_bytes() == before


def test_if_one_file_cannot_be_written_none_is(rankdrift, folder, tmp_path, monkeypatch):
    kept = tmp_path / "j.parquet"
    kept.write_text("as it was")
    more = ["-o", kept, "--export", "svmlight=x.txt"]  # there are no features to write
    monkeypatch.chdir(tmp_path)
    done = rankdrift("judge", folder / "log.parquet", "--propensities", folder / "p.json", *more)
    assert done.code == 2 and kept.read_text() == "as it was"
    assert not (tmp_path / "x.txt").exists()


def test_days_are_counted_once_and_judged_as_the_log_is(rankdrift, folder, tmp_path):
    days, curve = tmp_path / "days", folder / "p.json"
    counted = rankdrift("judge", folder / "log.parquet", "--by", "day", "-o", days, "--json")
    assert counted.code == 0, counted.err
    assert [day["state"] for day in counted.json["days"]] == ["written"] * 4
    again = rankdrift("judge", folder / "log.parquet", "--by", "day", "-o", days)
    assert "0 days written" in again.err and again.err.rstrip().endswith(
        f"judge {days} --propensities propensities.json"
    )
    whole, by_day = tmp_path / "whole.parquet", tmp_path / "by_day.parquet"
    more = ["--propensities", curve, "--half-life", 2]
    assert rankdrift("judge", folder / "log.parquet", *more, "-o", whole).code == 0
    assert rankdrift("judge", days, *more, "-o", by_day).code == 0
    one, two = Judgments.load(whole), Judgments.load(by_day)
    assert one.table() == two.table() and one.funnel == two.funnel and one.prior == two.prior
    for words, told in (
        (["--by", "day", "--last", 3, "-o", days], "leave out --last"),
        (["--by", "day"], "needs a folder"),
        ([], "needs --propensities"),
        (["--propensities", curve, "--query", "query"], "Leave out --query"),
        (["--propensities", curve, "--features", "f_*"], "have no features"),
    ):
        done = rankdrift("judge", days, *words)
        assert done.code == 2 and told in done.err, done.err
    done = rankdrift("judge", days, folder / "log.parquet", "--propensities", curve)
    assert done.code == 2 and "log.parquet holds no appearances, as other files" in done.err


def test_by_a_click_model(rankdrift, folder, tmp_path):
    log, table = tmp_path / "log.parquet", pq.read_table(folder / "log.parquet")
    search = np.arange(table.num_rows) // RANKS
    pq.write_table(table.append_column("search", pa.array(search)), log)
    words = ["judge", log, "--model", "dbn"]
    done = rankdrift(
        *words, "-o", tmp_path / "j.parquet", "--export", f"trec={tmp_path / 'qrels.txt'}",
        "--check", folder / "labels.json", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    judgments = Judgments.load(tmp_path / "j.parquet")
    assert judgments.options["model"] == "dbn" and judgments.propensities is None
    assert (tmp_path / "qrels.txt").read_text().count("\n") > 100
    assert done.json["agreement"]["auc"]["low"] > 0.5
    for more, told in (
        (["--propensities", folder / "p.json"], "one of the two"),
        (["--last", 3], "leave out --last"),
        (["--search", ""], "does not tell searches apart"),
    ):
        refused = rankdrift(*words, *more)
        assert refused.code in (1, 2) and told in refused.err, refused.err
    counted = rankdrift("judge", log, "--by", "day", "-o", tmp_path / "days")
    assert counted.code == 0
    refused = rankdrift("judge", tmp_path / "days", "--model", "dbn")
    assert refused.code == 2 and "whole searches" in refused.err
    unfit = rankdrift("judge", log, "--model", "rctr")
    assert unfit.code == 2 and "Take one of dctr" in unfit.err


def test_defaults_and_choices_are_those_of_python():
    options = {option.name: option for option in judge.params}
    assert options["min_exposure"].default == MIN_EXPOSURE
    assert options["enough"].default == ENOUGH
    assert all(scale.name in options["scale"].help for scale in SCALES)
