"""Rows as a file of any form, written without rankdrift and without DuckDB."""

import csv
import datetime
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

ENDINGS = ("parquet", "csv", "tsv", "psv", "json", "csv.gz", "json.gz", "csv.zst", "json.zst")
SEPARATORS = {"csv": ",", "tsv": "\t", "psv": "|"}
CODECS = ("snappy", "zstd", "gzip", "brotli", "lz4", "none")
UTC = datetime.UTC
MIDDAY = datetime.time(12, 30, 15)


def _moment(day, zone=None):
    return datetime.datetime.combine(day, MIDDAY, zone)


def _same(value):
    return value


# How a column may be typed: what becomes of each value, and its type in Parquet.
FORMS = {
    "rank": (
        (_same, pa.int8()), (_same, pa.int32()), (_same, pa.int64()), (_same, pa.uint8()),
        (_same, pa.uint64()), (float, pa.float32()), (float, pa.float64()), (str, pa.string()),
        (lambda v: f" {v} ", pa.string()), (lambda v: f"{v}.0", pa.large_string()),
    ),
    "click": (
        (_same, pa.int8()), (_same, pa.uint64()), (float, pa.float64()), (bool, pa.bool_()),
        (lambda v: "Yes" if v else "no", pa.string()), (lambda v: "t" if v else "F", pa.string()),
    ),
    "on": (
        (_same, pa.date32()), (_same, pa.date64()), (_moment, pa.timestamp("s")),
        (_moment, pa.timestamp("us")), (_moment, pa.timestamp("ns")),
        (lambda v: _moment(v, UTC), pa.timestamp("ms", "UTC")),
        (lambda v: _moment(v, UTC), pa.timestamp("us", "Asia/Tokyo")),
        (datetime.date.isoformat, pa.string()), (lambda v: int(f"{v:%Y%m%d}"), pa.int32()),
    ),
    "doc": ((_same, pa.string()), (_same, pa.large_string()), (_same, pa.string_view()),
            (_same, pa.dictionary(pa.int32(), pa.string()))),
    "query": ((_same, pa.string()), (_same, pa.large_string()),
              (_same, pa.dictionary(pa.int16(), pa.string()))),
}  # fmt: skip
LISTS = {"results": pa.list_(pa.string()), "picked": pa.list_(pa.large_string())}


def typed(rng, rows, ending):
    """(the rows with their values in one of the forms, the types of Parquet)."""
    forms = {name: rng.choice(FORMS[name]) for name in rows[0] if name in FORMS}
    if ending != "parquet" and "on" in forms:  # text has no times of its own
        forms["on"] = rng.choice(FORMS["on"][-2:])
    changed = [
        {
            name: forms[name][0](value) if name in forms and value is not None else value
            for name, value in row.items()
        }
        for row in rows
    ]
    return changed, {name: form[1] for name, form in forms.items()}


def write(rng, rows, path, types=None):
    """A file of the form that its name says, with all else by chance."""
    ending = path.name.split(".")[1]
    names = list(rows[0])
    rng.shuffle(names)
    if ending == "parquet":
        _write_parquet(rng, rows, names, path, types or {})
        return
    text = _lines(rng, rows, names) if ending == "json" else _cells(rng, rows, names, ending)
    content = text.encode("utf-8-sig" if ending != "json" and rng.random() < 0.1 else "utf-8")
    if path.name.endswith(".gz"):
        content = gzip.compress(content, rng.randint(1, 9))
    elif path.name.endswith(".zst"):
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path.write_bytes(content)


def _write_parquet(rng, rows, names, path, types):
    known = {**LISTS, "price": pa.float64(), "click": pa.int8(), "rank": pa.int32(),
             "on": pa.date32(), **types}  # fmt: skip
    columns = {
        name: pa.array([row[name] for row in rows], known.get(name, pa.string())) for name in names
    }
    pq.write_table(
        pa.table(columns), path, compression=rng.choice(CODECS),
        row_group_size=rng.choice((1, 50, 10**6)) if len(rows) < 200 else 10**6,
        data_page_version=rng.choice(("1.0", "2.0")), use_dictionary=rng.random() < 0.6,
        write_statistics=rng.random() < 0.8, version=rng.choice(("2.4", "2.6")),
    )  # fmt: skip


def _lines(rng, rows, names):
    end = rng.choice(("\n", "\n", "\r\n", "\n\n"))
    plain, ascii_ = rng.random() < 0.5, rng.random() < 0.5
    lines = []
    for row in rows:
        kept = {n: row[n] for n in names if not (plain and row[n] is None)}
        lines.append(json.dumps(kept, default=str, ensure_ascii=ascii_))
    return end.join(lines) + end * (rng.random() < 0.8)


def _cells(rng, rows, names, ending):
    file = io.StringIO()
    writer = csv.writer(
        file, delimiter=SEPARATORS[ending], lineterminator=rng.choice(("\n", "\r\n")),
        quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)),
    )  # fmt: skip
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return file.getvalue()


def _cell(value):
    return str(value).lower() if isinstance(value, bool) else value
