"""The paper's figures: drawn whole, with the numbers behind them."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from rankdrift import cli, estimate
from rankdrift.core.errors import NotConverged
from rankdrift.methods import em_features
from rankdrift.reproduce import paper_figures
from rankdrift.reproduce.drawing import error_of, line_of, panel, save, true_line
from rankdrift.simulate import market, pairs

PNG = b"\x89PNG\r\n"
# 6,000 pairs over 60 ranks: the root mean square error of log p is about 0.06 for loglog.
CLOSE = 0.2


@pytest.fixture(scope="module")
def world():
    return pairs(6_000, ranks=60, seed=1)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_scaled_line_has_the_truths_mean(world):
    found = estimate(world.counts)
    line = line_of("loglog", found, "red", band=True, scaled_to=world.propensities)
    true = np.log(world.propensities)
    assert np.log(line.values).mean() == pytest.approx(true.mean())
    assert np.all((line.low < line.values) & (line.values < line.high))
    assert error_of(line, world.propensities) < CLOSE
    # Relative to the mean of all ranks the error is less than relative to the noisy first.
    plain = line_of("loglog", found, "red", band=True)
    assert np.log(line.high / line.low).mean() < np.log(plain.high / plain.low).mean()


def test_a_chart_and_its_numbers(world, tmp_path):
    found = estimate(world.counts)
    lines = [true_line(world.propensities), line_of("loglog", found, "#D55E00", band=True)]
    paths = save(tmp_path, "one", panel(lines, "Title", "words", 1.2), {"one": lines})
    assert [path.name for path in paths] == ["one.svg", "one.png", "one.csv"]
    assert "Title" in paths[0].read_text() and "loglog" in paths[0].read_text()
    assert paths[1].read_bytes().startswith(PNG)
    rows = read(paths[2])
    assert len(rows) == 2 * 60
    last = rows[-1]
    assert (last["panel"], last["curve"], last["rank"]) == ("one", "loglog", "60")
    assert float(last["propensity"]) == pytest.approx(found.values[-1], rel=1e-4)
    assert float(last["low"]) < float(last["propensity"]) < float(last["high"])
    assert rows[0]["low"] == ""


def test_two_panels_beside_each_other(world, tmp_path):
    line = line_of("loglog", estimate(world.counts), "#D55E00")
    words = {"web": "left words", "mobile": "right words"}
    paths = paper_figures._draw(tmp_path, "two", {"web": [line], "mobile": [line]}, words)
    text = paths[0].read_text()
    assert all(told in text for told in (*words.values(), "Web, 50", "Mobile, 40"))
    assert {row["panel"] for row in read(paths[2])} == {"web", "mobile"}


def test_em_learns_from_the_rows_that_the_others_count(tmp_path, monkeypatch):
    """An auction is more relevant the nearer its end, which no feature tells: with auctions EM
    would be too steep."""
    paths = market(tmp_path, rows=20_000, days=2, queries=50, seed=1).paths
    read, said = [], []

    def stop(matrix, **options):
        assert options["tolerance"] == paper_figures.EM_TOLERANCE
        read.append(len(matrix))
        raise NotConverged("Only looking.")

    monkeypatch.setattr(em_features, "regression_em", stop)
    assert paper_figures._by_em(paths, said.append) == {}
    files = ", ".join(f"'{path}'" for path in paths)
    for rows, name in zip(read, ("web", "mobile"), strict=True):
        kept = f"{paper_figures.SAME_QUERY_SAME_RELEVANCE} AND platform = '{name}' AND rank <= 200"
        there = duckdb.sql(f"SELECT count(*) FROM read_parquet([{files}]) WHERE {kept}").fetchall()
        assert rows == there[0][0] > 2_000
        assert f"EM, {name}: {rows:,} results down to rank 200 with their features ..." in said
        assert f"No EM curve for {name}: Only looking." in said
    assert "NOT auction" in paper_figures.SAME_QUERY_SAME_RELEVANCE


def test_the_chart_says_how_much_em_has_seen(world):
    curve = replace(estimate(world.counts), provenance={"rows": 12_345})
    words = f"; EM: {curve.clicks.sum():,} clicks on 12,345 results"
    assert (paper_figures._size_of(curve), paper_figures._size_of(None)) == (words, "")


def test_the_simulation_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(paper_figures, "PAIRS", 5_000)
    monkeypatch.setattr(paper_figures, "RANKS", 50)
    said = []
    paths, errors = paper_figures.simulation(tmp_path, 1, said.append)
    assert len(paths) == 6 and all(path.stat().st_size for path in paths)
    assert said == ["Appendix D: 5,000 pairs ..."]
    found = errors["simulation"]
    assert set(found) == {"direct", "loglog", "auto, every click", "loglog, every click"}
    # As in the paper: interpolation reduces the noise.
    assert found["loglog"] < found["direct"]
    assert found["loglog, every click"] < CLOSE
    curves = {row["curve"] for row in read(tmp_path / "simulation.csv")}
    assert curves == {"truth", "direct", "loglog"}


@pytest.mark.slow
def test_all_figures_by_the_command(tmp_path, monkeypatch, capsys):
    """With EM that ends early, as most of the time is its own: its curves are not judged."""
    monkeypatch.setattr(paper_figures, "EM_TOLERANCE", 0.5)
    asked = ["reproduce", "figures", "--rows", "1000000", "-o", str(tmp_path), "--json", "-q"]
    assert cli.run(asked) == 0
    made = json.loads(capsys.readouterr().out)
    assert all(Path(path).stat().st_size for path in made["files"]) and len(made["files"]) == 12
    assert {path.stem for path in tmp_path.glob("*.svg")} == {
        "simulation", "simulation-every", "platforms", "platforms-every",
    }  # fmt: skip
    curves = {(row["panel"], row["curve"]) for row in read(tmp_path / "platforms.csv")}
    assert {("web", "EM"), ("mobile", "EM")} <= curves
    assert made["errors"]["simulation"]["loglog"] < CLOSE
