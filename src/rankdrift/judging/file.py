"""Files of judgments: one Parquet file, a row for each pair, and all the rest as its metadata."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankdrift.core.artefacts import COUNTS_KEY, JUDGMENTS_KEY, PROPENSITIES_KEY
from rankdrift.core.dialects import DUCKDB
from rankdrift.core.digests import sealed, what_changed
from rankdrift.core.errors import BadJudgments, BadOption, RankdriftError
from rankdrift.core.frames import objects
from rankdrift.core.plain import parsed
from rankdrift.counts.funnel import Funnel
from rankdrift.judging.judgments import NUMBERS, Judgments, query_names

FORMAT = 1
ENDING = ".parquet"
_PLAIN = (
    "query_columns",
    "feature_names",
    "prior",
    "rest",
    "level",
    "propensities",
    "options",
    "source",
    "remarks",
    "version",
)


def check_ending(path: str | os.PathLike[str]) -> None:
    """BadOption for a file that is not named as judgments are."""
    if Path(path).suffix.lower() != ENDING:
        raise BadOption(
            f"Judgments are kept in files named {ENDING}, not {Path(path).suffix or 'nothing'!r}. "
            "For other tools, export them (--export)."
        )


def save(judgments: Judgments, path: str | os.PathLike[str]) -> None:
    """Write one Parquet file, whole or not at all."""
    from rankdrift.core.database import writing

    check_ending(path)
    names = query_names(judgments.query_columns)
    pairs: dict[str, NDArray[Any]] = {"rd_query": judgments.query, "rd_doc": judgments.doc}
    pairs |= {name: getattr(judgments, name) for name in NUMBERS}
    pairs |= {f"rd_f{i}": x for i, x in enumerate(np.ascontiguousarray(judgments.features.T))}
    queries = {f"q{i}": judgments.queries[:, i] for i in range(len(names))}
    picks = [f"q.q{i} AS {DUCKDB.quote(name)}" for i, name in enumerate(names)]
    picks += ["d.doc AS doc", *(f"p.{name}" for name in NUMBERS)]
    picks += [
        f"if(isnan(rd_f{i}), NULL, rd_f{i}) AS {DUCKDB.quote(f'feature_{name}')}"
        for i, name in enumerate(judgments.feature_names)
    ]
    meta = json.dumps(sealed(_metadata(judgments), _arrays(judgments)), sort_keys=True)
    with writing(path) as (part, con):
        con.register("rd_pairs", pairs)
        con.register("rd_queries", queries | {"place": np.arange(len(judgments.queries))})
        con.register("rd_docs", {"doc": judgments.docs, "place": np.arange(len(judgments.docs))})
        marked = f"KV_METADATA {{{JUDGMENTS_KEY}: {DUCKDB.literal(meta)}}}"
        con.execute(
            f"COPY (SELECT {', '.join(picks)} FROM rd_pairs AS p"
            " JOIN rd_queries AS q ON q.place = rd_query JOIN rd_docs AS d ON d.place = rd_doc"
            f" ORDER BY rd_query, rd_doc) TO {DUCKDB.literal(str(part))}"
            f" (FORMAT parquet, COMPRESSION zstd, {marked})"
        )


def load(path: str | os.PathLike[str]) -> Judgments:
    """Read what `save` wrote."""
    import duckdb

    from rankdrift.core.database import connect, cut_messages_mended, first_line, interrupted

    file = Path(os.path.abspath(path))
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "does not exist"
        raise BadJudgments(f"{os.fspath(path)} {what}. Give a file that `rankdrift judge` wrote.")
    name = DUCKDB.literal(glob.escape(str(file)))
    with connect() as con:
        try:
            with cut_messages_mended():
                return _read(con, name)
        except duckdb.Error as error:
            if interrupted(error):
                raise KeyboardInterrupt from error
            raise BadJudgments(
                f"{os.fspath(path)} cannot be read as a Parquet file of judgments: it is cut short "
                "or of another kind. Judge again, or copy it again from where it came. "
                f"(DuckDB says: {first_line(error)})"
            ) from error
        except RankdriftError as error:
            raise BadJudgments(f"{os.fspath(path)}: {error}") from error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BadJudgments(
                f"{os.fspath(path)} is damaged ({error!r}). Judge again, or copy it again from "
                "where it came."
            ) from error


def holds_judgments(path: str | os.PathLike[str]) -> bool:
    """Whether a Parquet file is marked as judgments; nothing more of it is read."""
    import duckdb

    from rankdrift.core.database import connect

    name = DUCKDB.literal(glob.escape(os.path.abspath(path)))
    with connect() as con:
        try:
            keys = con.sql(f"SELECT key FROM parquet_kv_metadata({name})").fetchall()
        except duckdb.Error:
            return False
    return JUDGMENTS_KEY.encode() in {bytes(key) for (key,) in keys}


def _read(con: Any, name: str) -> Judgments:
    meta = _stored(con.sql(f"SELECT key, value FROM parquet_kv_metadata({name})").fetchall())
    queries = ", ".join(map(DUCKDB.quote, query_names(meta["query_columns"])))
    features = [DUCKDB.quote(f"feature_{feature}") for feature in meta["feature_names"]]
    con.execute(f"CREATE VIEW rd_file AS FROM read_parquet({name}, hive_partitioning = false)")
    found = con.execute(
        f"SELECT dense_rank() OVER (ORDER BY {queries}) - 1 AS rd_query,"
        f" dense_rank() OVER (ORDER BY doc) - 1 AS rd_doc, {', '.join(NUMBERS)}"
        + "".join(f", CAST({f} AS DOUBLE) AS rd_f{i}" for i, f in enumerate(features))
        + " FROM rd_file ORDER BY rd_query, rd_doc"
    ).fetchnumpy()
    columns = {n: np.ma.filled(c, np.nan) if c.dtype.kind == "f" else np.ma.getdata(c)
               for n, c in found.items()}  # fmt: skip
    texts = con.execute(f"SELECT DISTINCT {queries} FROM rd_file ORDER BY {queries}").fetchall()
    docs = con.execute("SELECT DISTINCT doc FROM rd_file ORDER BY doc").fetchall()
    x = [columns[f"rd_f{i}"] for i in range(len(features))]
    numbers: dict[str, Any] = {
        n: columns[n].astype(np.int64 if n == "days" else np.float64) for n in NUMBERS
    }
    judgments = Judgments(
        query_columns=tuple(meta["query_columns"]),
        queries=objects(texts, len(meta["query_columns"])),
        docs=objects(docs, 1)[:, 0],
        query=columns["rd_query"].astype(np.int64),
        doc=columns["rd_doc"].astype(np.int64),
        **numbers,
        features=np.stack(x, axis=1) if x else np.zeros((len(columns["rd_doc"]), 0)),
        feature_names=tuple(meta["feature_names"]),
        funnel=Funnel.from_dict(meta["funnel"]),
        remarks=tuple(meta["remarks"]),
        **{n: meta[n] for n in _PLAIN if n not in ("query_columns", "feature_names", "remarks")},
    )
    changed = what_changed(meta, _arrays(judgments), by_hand=False)
    if changed:
        raise BadJudgments(changed)
    return judgments


def _metadata(judgments: Judgments) -> dict[str, Any]:
    """All but the pairs, as JSON gives it back."""
    plain = {name: getattr(judgments, name) for name in _PLAIN}
    plain = {n: dict(v) if hasattr(v, "keys") else v for n, v in plain.items()}
    return dict(
        json.loads(json.dumps({"format": FORMAT, **plain, "funnel": judgments.funnel.to_dict()}))
    )


def _arrays(judgments: Judgments) -> Iterator[NDArray[Any]]:
    """All that the rows say."""
    yield from (judgments.query, judgments.doc)
    yield from (getattr(judgments, name) for name in NUMBERS)
    yield judgments.features
    for texts in (judgments.queries, judgments.docs):
        yield np.frombuffer(json.dumps(texts.tolist()).encode(), np.uint8)


def _stored(found: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    texts = {bytes(key).decode(errors="replace"): value for key, value in found}
    if JUDGMENTS_KEY not in texts:
        kinds = {COUNTS_KEY: "counts", PROPENSITIES_KEY: "propensities"}
        what = next((word for key, word in kinds.items() if key in texts), "something else")
        raise BadJudgments(f"this file holds no judgments but {what}. Give what `judge` wrote.")
    meta = parsed(texts[JUDGMENTS_KEY])
    number = meta.get("format") if isinstance(meta, dict) else None
    if not isinstance(number, int) or number < 1:
        raise BadJudgments("its metadata names no format. Judge again.")
    if number > FORMAT:
        raise BadJudgments(
            f"it has format {number}, written by rankdrift {meta.get('version')}; this rankdrift "
            f"reads up to format {FORMAT}. Upgrade rankdrift."
        )
    return dict(meta)
