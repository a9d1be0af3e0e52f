"""Whatever a command writes tells its settings, and where each was from."""

import json

import pytest
from support.clicklogs import curve, frame, power
from support.log_formats import WRITERS, plain_log

from rankdrift import Counts, Propensities
from rankdrift.core.settings_used import settings_of

SIGNED = "https://me:secret@host/log.csv?X-Signature=1f"


@pytest.fixture
def run(rankdrift, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(*words):
        done = rankdrift(*words)
        assert done.code in (0, 1), done.err
        return done

    return command


def test_every_file_tells_what_it_was_made_with(run, tmp_path, monkeypatch):
    with plain_log(300) as con:
        WRITERS["metarank"][0](con, tmp_path)
    (tmp_path / "rankdrift.toml").write_text("max_rank = 11\n")
    monkeypatch.setenv("RANKDRIFT_ESTIMATE_CURVE", "loglog")
    run("harvest", "events.jsonl", "--max-shown", 6, "-o", "counts.parquet", "-q")
    for name in ("curve.json", "curve.parquet"):
        run("estimate", "counts.parquet", "-o", name, "-q")
    run("judge", "events.jsonl", "--propensities", "curve.json", "-o", "judged.parquet", "-q")
    run("report", "counts.parquet", "-o", "report.html", "-q", "--title", 'Ours "<b>"')
    file, typed = {"from": "file", "place": "rankdrift.toml"}, "command line"
    counts = settings_of("counts.parquet")
    assert counts["max_rank"] == {"value": 11, **file}
    assert counts["max_shown"] == {"value": 6, "from": typed, "place": None}
    for name in ("curve.json", "curve.parquet"):
        assert settings_of(name)["curve"] == {
            "value": "loglog", "from": "environment", "place": "RANKDRIFT_ESTIMATE_CURVE",
        }  # fmt: skip
    assert settings_of("judged.parquet")["propensities"]["value"] == "curve.json"
    assert settings_of("report.html")["title"]["value"] == 'Ours "<b>"'
    # Read again, and told; what Python writes was made with no settings.
    told = run("config", "--of", "counts.parquet", "--changed", "--json").json
    assert set(told["settings"]) == {"max_rank", "max_shown"}
    Propensities.load("curve.json")
    Counts.load("counts.parquet").save("again.parquet")
    assert settings_of("again.parquet") is None


def test_models_and_comparisons_tell_them_too(run, tmp_path, monkeypatch):
    frame(searches=150).to_parquet(tmp_path / "log.parquet")
    curve(power(12)).save(tmp_path / "p.csv")
    (tmp_path / "rankdrift.toml").write_text("[train]\ntrees = 3\n")
    for verb in ("TRAIN", "EVALUATE"):
        monkeypatch.setenv(f"RANKDRIFT_{verb}_SEED", "5")
    common = ("log.parquet", "--threads", 1, "-q")
    run("train", *common, "--propensities", "p.csv", "--fixed", "-o", "model.txt")
    run("evaluate", *common, "--model", "model.txt", "--bootstrap", 20, "-o", "judged.json")
    seed = {"value": 5, "from": "environment"}
    model, comparison = settings_of("model.txt.meta.json"), settings_of("judged.json")
    assert model["trees"] == {"value": 3, "from": "file", "place": "rankdrift.toml"}
    assert model["propensities"]["value"] == "p.csv" and seed.items() <= model["seed"].items()
    assert comparison["bootstrap"] == {"value": 20, "from": "command line", "place": None}
    assert seed.items() <= comparison["seed"].items()
    told = run("config", "--of", "model.txt.meta.json", "--changed", "--json").json["settings"]
    assert set(told) >= {"trees", "propensities", "seed", "fixed"}


def test_no_key_is_kept(run, tmp_path):
    with plain_log(100) as con:
        WRITERS["metarank"][0](con, tmp_path)
    run("harvest", "events.jsonl", "--where", f"session <> '{SIGNED}'", "-o", "c.parquet", "-q")
    assert "secret" not in json.dumps(settings_of("c.parquet"))
    assert b"1f'" not in json.dumps(settings_of("c.parquet")).encode()


def test_what_tells_no_settings_is_refused(rankdrift, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("no JSON")
    for path, words in ((text, "does not tell its settings"), (tmp_path / "b", "There is no file")):
        done = rankdrift("config", "--of", path)
        assert done.code == 2 and words in " ".join(done.err.split())
