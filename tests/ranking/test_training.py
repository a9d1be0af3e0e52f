"""What a click is worth, and that the libraries' trees follow from exactly that."""

import errno
import json
import os
import re
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from support.clicklogs import curve, frame, matrix, power
from support.lambdas_by_hand import ideal, lambdas

from rankdrift import read_log
from rankdrift.core.errors import BadLog, BadOption, CannotWrite, MissingExtra, NotIdentified
from rankdrift.ranking import backends, training, trying
from rankdrift.ranking.backends import plain_names
from rankdrift.ranking.gains import fingerprint, ideal_dcg, weigh
from rankdrift.ranking.matrix import Matrix
from rankdrift.ranking.measures import measures
from rankdrift.ranking.ranker import SKETCH, Ranker, shared_queries, sketch
from rankdrift.ranking.training import train

# LightGBM keeps lambdas and histograms in 32 bits and reads the logistic function from a table;
# XGBoost rounds gradients to 32 bits.
SINGLE = 2e-6
SEED = 7
BACKENDS = ("lightgbm", "xgboost")
# XGBoost doubles the second derivative.
CURVATURE = {"lightgbm": 1.0, "xgboost": 2.0}


def uneven(seed=3, searches=40, longest=45):
    """Searches of many lengths, one feature of five values: leaves mix searches."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, longest, searches)
    n = sizes.sum()
    search = np.repeat(np.arange(searches), sizes)
    return Matrix.from_arrays(
        rng.integers(0, 5, (n, 1)).astype(float),
        rank=np.concatenate([np.arange(1, s + 1) for s in sizes]),
        click=rng.random(n) < 0.2, query=search, search=search,
        segment=np.where(search % 2 == 0, "web", "mobile"),
    )  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("given", ["no", "one curve", "segments", "clipped"])
def test_first_leaves_are_those_of_brute_force_delta_dcg(backend, given):
    rows = uneven().only_clicked().shuffled(SEED)  # the order in which `train` takes them
    p = {
        "no": None, "one curve": curve(power(45)), "clipped": curve(power(45, 1.5)),
        "segments": curve(power(45), segment_columns=("segment",), by_segment={
            ("web",): curve(power(45, 0.3)), ("mobile",): curve(power(45, 1.1))}),
    }[given]  # fmt: skip
    clip = 5.0 if given == "clipped" else None
    gain = np.where(rows.click, 1.0, 0.0)
    if p is not None:
        slopes = {"one curve": (0.7, 0.7), "clipped": (1.5, 1.5), "segments": (1.1, 0.3)}[given]
        assert rows.segments == (("mobile",), ("web",))
        gain = gain * rows.rank ** np.array(slopes)[rows.segment]
        gain = np.minimum(gain, clip) if clip else gain
    g, h = lambdas(gain, rows.starts)
    small = {"lightgbm": {"min_sum_hessian_in_leaf": 0}, "xgboost": {"min_child_weight": 0}}
    found = train(
        uneven(), propensities=p, trees=1, learning_rate=0.1, min_rows=1, backend=backend,
        fixed=True, clip=clip, params=small[backend], threads=1, seed=SEED,
    )  # fmt: skip
    scores = found.predict(rows)
    leaves = np.unique(scores)
    assert len(leaves) >= 4
    for value in leaves:
        inside = scores == value
        assert len(np.unique(rows.search[inside])) > 10
        expected = -0.1 * g[inside].sum() / h[inside].sum() / CURVATURE[backend]
        assert value == pytest.approx(expected, rel=SINGLE, abs=SINGLE * np.abs(leaves).max())


@pytest.mark.parametrize("backend", BACKENDS)
def test_norm_damps_searches_that_pull_much(backend):
    """While all scores are equal: by log2(1 + S) / S, S the pull of all pairs, in NDCG."""
    rows = uneven().only_clicked().shuffled(SEED)
    gain = np.where(rows.click, rows.rank**0.7, 0.0)
    g, h = lambdas(gain, rows.starts)
    # At equal scores a pair pulls with half its change of DCG, and h is a quarter of it, twice.
    pull = 2 * np.bincount(rows.search, h) / ideal(gain, rows.starts)
    factor = (np.log2(1 + pull) / pull)[rows.search]
    small = {"lightgbm": {"min_sum_hessian_in_leaf": 0}, "xgboost": {"min_child_weight": 0}}
    found = train(
        uneven(), propensities=curve(power(45)), trees=1, min_rows=1, backend=backend, norm=True,
        fixed=True, params=small[backend], threads=1, seed=SEED,
    )  # fmt: skip
    assert found.options["norm"]
    scores = found.predict(rows)
    leaves = np.unique(scores)
    assert len(leaves) >= 4
    for value in leaves:
        inside = scores == value
        expected = -0.1 * (g * factor)[inside].sum() / (h * factor)[inside].sum()
        expected /= CURVATURE[backend]
        assert value == pytest.approx(expected, rel=SINGLE, abs=SINGLE * np.abs(leaves).max())


def test_row_weights_in_lightgbm_are_not_propensity_weights():
    """What one would try first: weight 1 / p on clicked rows. It weighs the sum of a row's lambdas,
    so that results which lost against a click are not pushed down any harder."""
    rows = uneven().only_clicked()
    gain = np.where(rows.click, rows.rank**0.7, 0.0)
    g, h = lambdas(gain, rows.starts)
    data = lightgbm.Dataset(
        rows.x, rows.click.astype(int), group=np.diff(rows.starts),
        weight=np.where(rows.click, gain, 1.0),
    )  # fmt: skip
    naive = lightgbm.train(
        {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 1, "num_threads": 1},
        data, 1,
    ).predict(rows.x)  # fmt: skip
    exact = np.array([
        -0.1 * g[rows.x[:, 0] == v].sum() / h[rows.x[:, 0] == v].sum() for v in range(5)
    ])  # fmt: skip
    wrong = np.array([naive[rows.x[:, 0] == v][0] for v in range(5)])
    assert np.abs(wrong - exact).max() > 0.25 * np.abs(exact).max()


def test_500_ranks_in_three_segments_are_so_many_gains():
    rng = np.random.default_rng(0)
    n = 3 * 500 * 4
    names = np.array(["a", "b", "c"])[np.arange(n) // 500 % 3]
    rows = Matrix.from_arrays(
        rng.normal(size=(n, 2)), rank=np.arange(n) % 500 + 1, click=rng.random(n) < 0.9,
        query=np.arange(n) // 500, segment=names,
    )  # fmt: skip
    slopes = {"a": 0.5, "b": 0.8, "c": 1.1}
    p = curve(power(500), segment_columns=("segment",), by_segment={
        (name,): curve(power(500, slope)) for name, slope in slopes.items()})  # fmt: skip
    weighed = weigh(rows, p)
    assert len(weighed.table) > 1400
    found = train(rows, propensities=p, trees=2, fixed=True, threads=1)
    assert found.gains["different"] == len(weighed.table) - 1
    assert np.ptp(found.predict(rows)) > 0


def test_ideal_dcg_is_that_of_the_best_order():
    rows = uneven()
    gain = np.where(rows.click, rows.rank**0.5, 0.0)
    assert ideal_dcg(gain, rows.search, rows.n_searches) == pytest.approx(ideal(gain, rows.starts))


def test_effective_sample_size_and_clipping():
    rows = matrix(frame())
    p = curve(power(12, 1.0))
    whole, clipped = weigh(rows, p), weigh(rows, p, clip=3)
    w = rows.rank[rows.click].astype(float)
    assert whole.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert clipped.largest == 3 and clipped.clipped == (w > 3).sum()
    assert whole.effective < clipped.effective < rows.n_clicks
    assert weigh(rows, None).effective == rows.n_clicks


def test_a_rank_without_propensity_is_an_error_or_takes_the_nearest():
    rows = matrix(frame())
    p = curve(power(8))
    lost = int((rows.rank[rows.click] > 8).sum())
    with pytest.raises(NotIdentified, match=f"{lost} of .* clicks .* 9.12; the curve covers 1.8"):
        train(rows, propensities=p)
    found = weigh(rows, p, beyond="clip")
    deep = rows.click & (rows.rank > 8)
    assert found.borrowed == lost
    assert found.gain[deep] == pytest.approx(8**0.7)
    # Rows that were not clicked need no propensity.
    top = rows.take(~(rows.click & (rows.rank > 8)))
    assert weigh(top, p).borrowed == 0


def test_segments_that_do_not_fit_are_explained():
    table = frame()
    by = {("web",): curve(power(12))}
    p = curve(power(12), segment_columns=("segment",), by_segment=by)
    with pytest.raises(BadOption, match="do not tell their segment"):
        weigh(matrix(table), p)
    split = matrix(table, segment=table.platform)
    clicks = int(((table.platform == "mobile") & (table.click == 1)).sum())
    with pytest.raises(NotIdentified, match=rf"segment mobile \({clicks} clicks\)"):
        weigh(split, p)
    assert weigh(split, p, pool=True).clicks == split.n_clicks


def test_propensities_remove_what_ranks_did(tmp_path):
    """f_3 decides the rank, and says nothing of relevance: the biased model believes in it."""
    p = power(12, 1.0)
    table = frame(seed=4, searches=3000, presort=3.0, p=p)
    rows, test = matrix(table), matrix(frame(seed=5, searches=1000, p=p))
    biased, fair = (train(rows, propensities=q, threads=1, fixed=True) for q in (None, curve(p)))
    share = [model.importance["f_3"] for model in (biased, fair)]
    ndcg = [measures(test, m.predict(test), None)["true NDCG"].value for m in (biased, fair)]
    assert share[0] > 2 * share[1] and ndcg[1] > ndcg[0] + 0.01


@pytest.mark.parametrize("backend", BACKENDS)
def test_saved_models_load_here_and_in_their_library(backend, tmp_path):
    table = frame().rename(columns={"f_2": 'f "two": [x]'})
    rows = matrix(table, ("f_1", 'f "two": [x]', "f_word"))
    made = train(
        rows, propensities=curve(power(12)), trees=7, fixed=True, backend=backend, seed=5, threads=1
    )
    path = tmp_path / "model.txt"
    made.save(path)
    again = Ranker.load(path)
    assert np.array_equal(again.predict(rows), made.predict(rows))
    assert again.features == rows.features and again.name == "model" and again.trees == 7
    assert again.options == made.options and again.gains == made.gains
    meta = json.loads((tmp_path / "model.txt.meta.json").read_text())
    assert meta["training"]["fingerprint"] == rows.only_clicked().fingerprint()
    assert meta["propensities"] == fingerprint(curve(power(12))) != fingerprint(curve(power(11)))
    if backend == "lightgbm":
        plain = lightgbm.Booster(model_file=str(path)).predict(rows.x)
        assert np.array_equal(plain, made.predict(rows))
    else:
        other = xgboost.Booster(model_file=str(path.rename(tmp_path / "model.json")))
        assert other.num_boosted_rounds() == 7


def test_a_model_that_cannot_be_written_leaves_the_old_one_with_its_record(tmp_path, monkeypatch):
    old, new = (
        Ranker(name, "lightgbm", text, ())
        for name, text in (("old", "tree\n1"), ("new", "tree\n2"))
    )
    path = tmp_path / "model.txt"
    old.save(path)

    def replace(source, target, of=os.replace):
        if str(target) == str(path) and b"2" in Path(source).read_bytes():
            raise OSError(errno.EACCES, "no", target)
        of(source, target)

    with monkeypatch.context() as patch, pytest.raises(CannotWrite, match="is unchanged"):
        patch.setattr(os, "replace", replace)
        new.save(path)
    assert Ranker.load(path).text == old.text
    new.save(path)
    assert Ranker.load(path).text == new.text


def test_the_same_seed_gives_the_same_model():
    rows = matrix(frame())
    one, two = (train(rows, trees=5, fixed=True, threads=1).text for _ in range(2))
    assert one == two


@pytest.mark.parametrize("backend", BACKENDS)
def test_early_stopping_follows_the_weighted_dcg_of_the_validation_set(backend):
    rows, apart = matrix(frame(searches=400)), matrix(frame(seed=9, searches=300, prefix="v"))
    p = curve(power(12))
    found = train(rows, propensities=p, validation=apart, early_stopping=5, trees=60, fixed=True,
                  learning_rate=0.3, backend=backend, threads=1)  # fmt: skip
    best = int(np.argmax(found.history)) + 1
    assert found.trees == best < 60 and len(found.history) == best + 5
    judged = apart.only_clicked()
    gain = weigh(judged, p).gain
    dcg = measures(judged, found.predict(judged), gain)["weighted DCG"].value
    most = ideal_dcg(gain, judged.search, judged.n_searches).mean()
    # Ties fall by another lot here than there: among ten, it moved by up to 0.003.
    assert found.history[best - 1] == pytest.approx(dcg / most, rel=0.01)


def test_ties_do_not_fall_as_results_were_shown():
    """Without a feature that tells anything, validation must say what chance would."""
    table = frame(searches=2000, size=10, p=power(10, 2.0))
    table["f_1"] = 0.0
    rows, apart = (
        matrix(table, ("f_1",)),
        matrix(table.assign(query="v" + table["query"]), ("f_1",)),
    )
    found = train(rows, validation=apart, trees=1, fixed=True, threads=1)
    judged = apart.only_clicked()
    shown = np.where(judged.click, 1 / np.log2(judged.rank + 1), 0).sum()
    chance = judged.n_clicks * (1 / np.log2(np.arange(2, 12))).mean()
    most = ideal_dcg(judged.click.astype(float), judged.search, judged.n_searches).sum()
    assert found.history[0] == pytest.approx(chance / most, rel=0.03) and shown > 1.3 * chance


def test_validation_by_share_and_shared_queries_are_told():
    rows, told, trees = matrix(frame()), [], []
    found = train(
        rows, validation=0.25, early_stopping=3, trees=20, fixed=True, threads=1, each=trees.append
    )
    assert found.training["queries"] < rows.n_queries and trees[0] == 1
    train(rows, validation=rows, trees=2, fixed=True, say=told.append, threads=1)
    assert any("100% of the validation queries are training queries" in t for t in told)


def test_long_lists_are_told_of_before_they_take_their_time(monkeypatch):
    rows, told = matrix(frame(searches=40, size=12)), []
    lists = rows.only_clicked().n_searches
    train(rows, trees=2, fixed=True, say=told.append, threads=1)
    assert not any("pairs" in t for t in told)
    monkeypatch.setattr(training, "PAIRS_A_SECOND", 1)
    train(rows, trees=2, fixed=True, say=told.append, threads=1)
    pairs = lists * 12**2 // 2
    said = told[-2]  # before what is said of the clicks
    assert f"up to 12 results have {pairs:,} pairs" in said
    assert f"about {2 * pairs / 60:,.0f} minutes" in said and "--max-rank" in said


def test_a_log_is_read_with_its_features_and_propensities_from_a_file(tmp_path):
    table = frame()
    curve(power(12)).save(tmp_path / "p.json")
    log = read_log(table)
    told = []
    found = train(log, features="f_*", propensities=tmp_path / "p.json", trees=5, threads=1,
                  fixed=True, say=told.append)  # fmt: skip
    assert [f.name for f in found.features] == ["f_1", "f_2", "f_3", "f_word", "f_flag"]
    assert "of memory" in told[0] and any("equal ones" in t for t in told)


def test_missing_and_categories_reach_the_trees():
    table = frame(searches=600)
    wanted = np.where(table.f_word == "red", 2.0, 0.0) + np.where(table.f_1 > 1, np.nan, 0)
    table["click"] = ((table.f_word == "red") & (table["rank"] < 7)).astype(int)
    table["f_1"] = np.where(table.f_1 > 1, np.nan, 0.0)
    assert np.isnan(wanted).any()
    for backend in BACKENDS:
        rows = matrix(table, ("f_1", "f_word"))
        scores = train(rows, trees=10, fixed=True, backend=backend, threads=1).predict(rows)
        red = (table.f_word == "red").to_numpy()
        assert scores[red].min() > scores[~red].max()


def test_bad_rows_are_explained():
    table = frame(searches=20)
    with pytest.raises(BadLog, match="None of the 240 results shown was clicked"):
        train(matrix(table.assign(click=0)))
    with pytest.raises(BadLog, match="None of the 240 results shown was clicked"):
        train(read_log(table.assign(click=0)))
    alone = table.assign(search=np.arange(len(table)))
    with pytest.raises(BadLog, match="show a single result"):
        train(matrix(alone))
    some = pd.concat([table, table.head(3).assign(search=[90, 91, 92], click=1)])
    told = []
    train(matrix(some), trees=1, fixed=True, say=told.append, threads=1)
    assert any(t.startswith("3 of") and "single result" in t for t in told)
    with pytest.raises(BadOption, match="LightGBM takes 10,000"):
        train(Matrix.from_arrays(np.zeros((10_001, 1)), rank=np.arange(1, 10_002),
                                 click=np.arange(10_001) == 3, query=np.zeros(10_001)))  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [({"trees": 0}, "trees must"), ({"learning_rate": 0}, "learning_rate"),
     ({"clip": 2}, "no prop"), ({"backend": "lightgmb"}, "Did you mean 'lightgbm'"),
     ({"early_stopping": 5}, "validation="),
     ({"params": {"label_gain": [1]}}, "may not set"), ({"params": {"num_leaves": 3}}, "leaves="),
     ({"params": {"lambdarank_norm": True}}, "norm="),
     ({"params": {"max_bin": -1}}, "LightGBM refuses"), ({"seed": -1}, "seed"),
     ({"beyond": "x"}, "beyond must"), ({"validation": 2.0}, "between 0 and 1")],
)  # fmt: skip
def test_bad_options_are_explained(options, words):
    with pytest.raises(BadOption, match=words):
        train(matrix(frame(searches=20)), **options)
    with pytest.raises(BadOption, match="1 or more"):
        weigh(matrix(frame(searches=20)), curve(power(12)), clip=0.5)


def test_scoring_what_the_model_was_not_trained_on_is_explained():
    made = train(matrix(frame()), trees=2, fixed=True, threads=1)
    with pytest.raises(BadOption, match="1 of them are not here: f_2"):
        made.predict(matrix(frame(), ("f_1", "f_3")))
    with pytest.raises(BadOption, match="takes 3 features"):
        made.predict(np.zeros((4, 2)))
    shuffled = matrix(frame(), ("f_3", "f_1", "f_2"))
    assert np.array_equal(made.predict(shuffled), made.predict(matrix(frame())))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_record_that_somebody_edited_is_checked_entry_by_entry(tmp_path, backend):
    made = train(matrix(frame(searches=40)), trees=2, fixed=True, threads=1, backend=backend)
    path, beside = tmp_path / "m", tmp_path / "m.meta.json"
    made.save(path)
    whole = {**json.loads(beside.read_text()), "digest": None}
    names = whole["features"]
    for entry, value, words in (
        ("features", [{"name": 7}, *names[1:]], "features with names"), ("features", {}, "list"),
        ("features", [{"name": "f_1", "categories": "ab"}, *names[1:]], "features with names"),
        ("features", names[1:], "the model has 2 trees"), ("trees", 3, "tells of 3 trees"),
        ("features", names[::-1], "the model has"), ("trees", "2", "whole number"),
        ("trees", -1, "whole number"), ("trees", True, "whole number"), ("queries", [1], "hashes"),
        ("queries", ["-1"], "hashes"), ("history", ["0.5"], "numbers"), ("options", [], "table"),
        ("gains", None, "table"), ("propensities", 1, "text or nothing"), ("backend", 1, "one of"),
    ):  # fmt: skip
        beside.write_text(json.dumps({**whole, entry: value}))
        with pytest.raises(BadOption, match=words):
            assert Ranker.load(path).booster
    beside.write_text(json.dumps(whole))
    assert len(Ranker.load(path).predict(np.zeros((2, len(names))))) == 2


def test_files_that_are_no_models_are_explained(tmp_path):
    made = train(matrix(frame(), ("f_1", "f_word")), trees=2, fixed=True, threads=1)
    path = tmp_path / "m.txt"
    made.save(path)
    beside = tmp_path / "m.txt.meta.json"
    path.write_text(made.text.replace("num_leaves=", "num_leaves =", 1))
    with pytest.raises(BadOption, match="belongs to another model"):
        Ranker.load(path)
    beside.write_text("{")
    with pytest.raises(BadOption, match="Cannot read"):
        Ranker.load(path)
    beside.unlink()
    path.write_text(made.text)
    with pytest.raises(BadOption, match=r"uses categories.*m.txt.meta.json' is missing"):
        Ranker.load(path)
    for name, text, words in (
        ("a", "what?", "is no model"), ("b", "tree\nnonsense", "cut short"),
        ("c", '{"a": 1}', "is no model"), ("d", '{"learner": 1}', "xgboost cannot read"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        with pytest.raises(BadOption, match=words):
            Ranker.load(tmp_path / name)
    (tmp_path / "d").write_bytes(b"\xff\xfe")
    for name in ("d", "nothing"):
        with pytest.raises(BadOption, match=r"no model|Cannot read"):
            Ranker.load(tmp_path / name)


def test_a_model_that_is_cut_short_does_not_end_the_process(tmp_path):
    """LightGBM by itself aborts at the first of these and crashes at the last."""
    text = train(matrix(frame()), trees=3, fixed=True, threads=1).text
    path = tmp_path / "m.txt"
    for end in (text.index("Tree=1"), text.index("end of trees"), text.index("end of parameters")):
        path.write_text(text[:end])
        with pytest.raises(BadOption, match=r"m\.txt' is cut short or was changed"):
            Ranker.load(path)
    other = train(matrix(frame()), trees=3, fixed=True, threads=1, backend="xgboost").text
    for damaged in (text.replace("Tree=1", "Tree=11", 1), other[: len(other) // 2]):
        path.write_text(damaged)
        with pytest.raises(BadOption, match="cut short or was changed"):
            Ranker.load(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "pattern", "new", "words"),
    [
        # The first node is then its own child, which LightGBM would follow for ever.
        ("lightgbm", r"\nleft_child=\d", "\nleft_child=0", "was changed"),
        ("xgboost", r'"left_children":\[1,', '"left_children":[0,', "xgboost cannot read"),
    ],
)
def test_a_damaged_model_ends_another_process(backend, pattern, new, words, tmp_path):
    """Without a record there is no digest to know it by; with one the library never sees it."""
    made = train(matrix(frame()), trees=2, fixed=True, threads=1, backend=backend)
    text, changes = re.subn(pattern, new, made.text, count=1)
    assert changes == 1
    path = tmp_path / "m.txt"
    path.write_text(text)
    with pytest.raises(BadOption, match=words):
        Ranker.load(path)
    made.save(path)
    path.write_text(text)
    with pytest.raises(BadOption, match="belongs to another model"):
        Ranker.load(path)


def test_a_process_that_dies_is_told_of():
    """LightGBM ends its process at a model without its last trees."""
    text = train(matrix(frame()), trees=3, fixed=True, threads=1).text
    with pytest.raises(BadOption, match=r"ends the process of LightGBM \(exit code -"):
        trying.try_apart(backends.LIGHTGBM, text[: text.index("Tree=1")])


@pytest.mark.parametrize("backend", BACKENDS)
def test_models_of_others_need_nothing_beside_them(backend, tmp_path):
    made = train(matrix(frame()), trees=3, fixed=True, backend=backend, threads=1)
    (tmp_path / "m.txt").write_text(made.text)
    plain = Ranker.load(tmp_path / "m.txt")
    assert plain.features == made.features and plain.trees == 3
    assert np.array_equal(plain.predict(matrix(frame())), made.predict(matrix(frame())))


def test_a_missing_library_tells_how_to_install_it(monkeypatch):
    monkeypatch.setitem(backends.EXTRAS, "no_such_library", "rank")
    with pytest.raises(MissingExtra, match=r"pip install 'rankdrift\[rank\]'"):
        backends.library("no_such_library")


def test_a_library_that_does_not_load_tells_what_it_lacks(monkeypatch, tmp_path):
    """As LightGBM does on a bare Debian."""
    (tmp_path / "unloadable.py").write_text("import ctypes; ctypes.CDLL('libnowhere.so.1')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtra, match=r"libnowhere\.so\.1.*apt-get install libgomp1"):
        backends.library("unloadable")


def test_training_queries_are_known_from_few_hashes():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**63, 20_000).astype(np.uint64)
    made = Ranker("m", "lightgbm", "", (), queries=sketch(keys))
    assert len(made.queries) == SKETCH
    half = np.concatenate([keys[:5000], rng.integers(0, 2**63, 5000).astype(np.uint64)])
    # 1,024 of 20,000 hashes are kept, so about 500 of the 10,000 are judged: ± 2.2% each.
    assert shared_queries(made, half) == pytest.approx(0.5, abs=0.1)
    assert shared_queries(made, keys[:0]) == 0


def test_names_that_libraries_refuse_are_made_plain():
    from rankdrift.ranking.matrix import Feature

    names = plain_names([Feature(n) for n in ("a:b", "a,b", "a b", "ü", "[", "")])
    assert names == ["a_b", "a_b_", "a_b__", "ü", "_", "__"]
