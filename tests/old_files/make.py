"""Writes the files in files/ and expected.json: run it with the version they are to come from.

README.md tells how. Nothing here but `write_log` may be used by the tests: everything else goes by
names that rankdrift had when the files were made.
"""

import csv
import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FILES = HERE / "files"
MADE_AT = 1_700_000_000_000_000_000  # of the log, in nanoseconds: a source is known by its time
RANKS, SEARCHES, QUERIES = 6, 400, 30
COLUMNS = (
    "search query doc rank click day platform price f_1 f_2 f_word relevance is_random".split()
)
OPTIONS = {"query": "query", "doc": "doc", "rank": "rank", "click": "click", "day": "day",
           "search": "search", "same": "price", "segment": "platform"}  # fmt: skip


def write_log(path):
    """A made-up log as CSV, always the same: docs drift, rank 5 never moves, some rows are bad."""
    chance = random.Random(5)
    good = [[chance.random() for _ in range(RANKS)] for _ in range(QUERIES)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for search in range(SEARCHES):
            # The first query is searched often, so that its pairs are shown more than `max_shown`.
            query = 0 if chance.random() < 0.3 else chance.randrange(1, QUERIES)
            platform = chance.choice(("web", "web", ""))
            by_lot = chance.random() < 0.1
            places = [i + (9.0 if by_lot else 1.5) * chance.gauss(0, 1) for i in range(RANKS - 1)]
            order = sorted(range(RANKS - 1), key=places.__getitem__)
            shown = [*order[:4], RANKS - 1, *order[4:]]  # the doc at rank 5 is always the same
            for place, doc in enumerate(shown):
                p = (place + 1) ** (-0.5 if platform else -0.9)
                word = chance.choice(("red", "blue", "ünï"))
                relevance = round((0.8 if word == "red" else 0.2) * good[query][doc], 4)
                writer.writerow([
                    search, f"query {query}", f"doc {query}-{doc}",
                    "" if chance.random() < 0.002 else place + 1,
                    int(chance.random() < p * relevance), f"2024-01-0{1 + search % 2}", platform,
                    10 + doc, round(good[query][doc] + chance.gauss(0, 0.3), 3),
                    round(chance.gauss(0, 1), 3) if chance.random() < 0.95 else "",
                    word, relevance, int(by_lot),
                ])  # fmt: skip
    os.utime(path, ns=(MADE_AT, MADE_AT))


def main():
    import duckdb

    from rankdrift import __version__

    FILES.mkdir(exist_ok=True)
    expected = {"made by": {"rankdrift": __version__, "duckdb": duckdb.__version__}}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        write_log(log)
        expected["counts"] = make_counts(log)
        expected["propensities"] = make_propensities()
        expected["rankers"] = make_rankers(log)
        make_results(log, Path(folder))
    lines = ",\n".join(
        f' "{kind}/{name}": {json.dumps(told, sort_keys=True)}'
        for kind, by_name in expected.items()
        for name, told in by_name.items()
    )
    (HERE / "expected.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


def make_counts(log):
    """Counts of a log, by day, of format 1, of simulated pairs, and as a warehouse exports them."""
    import duckdb

    from rankdrift import Counts, harvest, harvest_by_day, import_counts, read_log, warehouse_sql
    from rankdrift.simulate import pairs

    counts = harvest(read_log(log, **OPTIONS), buckets=8, max_shown=3)
    assert counts.n_held and len(counts.segments) == 2
    counts.save(FILES / "counts.parquet")
    pairs(200, ranks=12, queries=40, buckets=4, seed=2).counts.save(FILES / "pairs.parquet")
    harvest_by_day(read_log(log, **OPTIONS), FILES / "days", buckets=4, max_shown=3)
    sample = read_log(log, **OPTIONS)
    sql = warehouse_sql("log", dialect="duckdb", log=sample, buckets=2, max_shown=2)
    with duckdb.connect() as con:
        # What there was before pairs shown often were counted by rank; today's tests make it alike.
        one = f"'{FILES}/counts.parquet'"
        [(meta,)] = con.sql(f"SELECT value FROM parquet_kv_metadata({one})").fetchall()
        meta = json.dumps({**json.loads(meta), "format": 1}).replace("'", "''")
        con.execute(
            f"COPY (FROM read_parquet({one}) WHERE kind <> 'held')"
            f" TO '{FILES}/counts_format_1.parquet'"
            f" (FORMAT parquet, KV_METADATA {{rankdrift: '{meta}'}})"
        )
        con.execute(f"CREATE TABLE log AS FROM read_csv('{log}')")
        con.execute(f"COPY ({sql}) TO '{FILES}/warehouse.csv' (HEADER)")
    names = ("counts", "counts_format_1", "pairs", "days/2024-01-01", "days/2024-01-02")
    found = {name: Counts.load(FILES / f"{name}.parquet") for name in names}
    found["warehouse"] = import_counts(FILES / "warehouse.csv")
    return {name: told_of_counts(c) for name, c in found.items()}


def told_of_counts(counts):
    funnel = counts.funnel
    return {
        "n_pairs": counts.n_pairs, "n_clicks": counts.n_clicks, "n_overflow": counts.n_held,
        "segment_columns": counts.segment_columns, "segments": counts.segments,
        "days": counts.days, "sources": counts.sources, "options": counts.options,
        "sizes": [counts.buckets, counts.max_rank, counts.max_shown], "version": counts.version,
        "listed": digest(counts.pairs), "rank_pairs": digest(counts.comparisons),
        "overflow": digest(counts.held), "by_rank": digest(counts.by_rank),
        "funnel": {
            "rows": funnel.rows, "clicks": funnel.clicks, "notes": dict(funnel.notes),
            "used": [funnel.used.rows, funnel.used.clicks, funnel.used.pairs],
            "dropped": {k: [d.rows, d.clicks, d.pairs] for k, d in funnel.dropped.items()},
        },
    }  # fmt: skip


def digest(table):
    """Of whole numbers, which have one text only."""
    columns = [column.tolist() for column in table.columns()]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:16]


def make_propensities():
    """Each curve as JSON, CSV and Parquet: plain, by segment, with gaps, from a bootstrap."""
    from rankdrift import Counts, Propensities, estimate

    counts = Counts.load(FILES / "counts.parquet")
    curves = {
        "plain": estimate(counts, curve="loglog(1, 3, 6)"),
        "by_segment": estimate(counts, curve="loglog(1, 6)", by="platform"),
        "gaps": estimate(counts, curve="direct"),
        "bootstrap": estimate(counts, curve="loglog(1, 6)", errors="bootstrap", samples=20),
    }
    assert curves["gaps"].gaps and curves["by_segment"].leaning
    found = {}
    for name, curve in curves.items():
        for ending in ("json", "csv", "parquet"):
            file = f"{name}.{ending}"
            curve.save(FILES / file)
            read = told_of_curve(Propensities.load(FILES / file))
            if ending == "parquet":
                assert read == found[f"{name}.json"]  # both hold everything
            else:
                found[file] = read
    return found


def told_of_curve(p):
    low, high = p.interval(0.95)
    wide = p.interval(0.9, simultaneous=True)
    inner = {"by_segment": p.by_segment, "shrunk": p.leaning}
    return {
        "ranks": p.ranks.tolist(), "values": p.values.tolist(), "std_error": p.std_error.tolist(),
        "low": low.tolist(), "high": numbers(high), "simultaneous": [numbers(end) for end in wide],
        "pairs": p.pairs.tolist(), "clicks": p.clicks.tolist(),
        "supported": p.supported.tolist(), "reference": p.reference, "method": p.method,
        "errors": p.errors, "gaps": {str(rank): why for rank, why in p.gaps.items()},
        "segment_columns": p.segment_columns, "text": str(p),
        "inner": {
            name: [[s, c.values.tolist(), numbers(c.interval(0.95)[1])] for s, c in curves.items()]
            for name, curves in inner.items()
        },
    }  # fmt: skip


def numbers(values):
    """JSON knows no infinity."""
    return [v if abs(v) < 1e300 else None for v in values.tolist()]


def make_rankers(log):
    """A model of each library with its record, and what they make of a few rows."""
    from rankdrift import Ranker, read_log, read_matrix, train

    columns = {"features": ["f_1", "f_2", "f_word"], "relevance": "relevance"}
    matrix = read_matrix(read_log(log, **OPTIONS), **columns)
    few = {"trees": 3, "leaves": 4, "threads": 1, "propensities": FILES / "by_segment.json"}
    few["fixed"] = True
    train(matrix, **few, clip=4).save(FILES / "lightgbm.txt")
    train(matrix, **few, backend="xgboost", beyond="clip", validation=0.3, seed=1).save(
        FILES / "xgboost.json"
    )
    rows = matrix.x[:12]
    found = {}
    for name in ("lightgbm.txt", "xgboost.json"):
        ranker = Ranker.load(FILES / name)
        found[name] = {
            "rows": [[v if v == v else None for v in row] for row in rows.tolist()],
            "scores": ranker.predict(rows).tolist(), "importance": ranker.importance,
            "features": [[f.name, f.categories] for f in ranker.features],
            "backend": ranker.backend, "trees": ranker.trees, "text": repr(ranker),
            "history": ranker.history, "propensities": ranker.propensities,
            "queries": [str(q) for q in ranker.queries], "gains": ranker.gains,
            "training": ranker.training, "options": ranker.options,
        }  # fmt: skip
    return found


def make_results(log, folder):
    """What verbs write for `rankdrift report`, and a file of options."""
    (FILES / "options.toml").write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in OPTIONS.items())
        + "max_rank = 6\n"
    )
    config = ["--config", FILES / "options.toml"]
    models = ("--model", FILES / "lightgbm.txt", "--model", FILES / "xgboost.json")
    (FILES / "diagnosis.json").write_text(run("diagnose", FILES / "counts.parquet", "--json"))
    (FILES / "methods.json").write_text(
        run("compare", log, *config, "--methods", "loglog,all-pairs,ctr,experiment", "--json",
            "--randomised", "is_random")
    )  # fmt: skip
    run("evaluate", log, *config, *models, "--relevance", "relevance", "--bootstrap", 30, "--ranks",
        "1,2,6,7", "-o", FILES / "comparison.json")  # fmt: skip
    run("simulate", "market", "-o", folder / "market", "--rows", 500, "--queries", 2, "--days", 1)
    truth = (folder / "market" / "truth.json").read_bytes()
    (FILES / "truth.json.gz").write_bytes(gzip.compress(truth, mtime=0))


def run(*words):
    done = subprocess.run(
        [sys.executable, "-m", "rankdrift.cli", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


if __name__ == "__main__":
    main()
