"""Logs that are elsewhere: S3 and a web server, both on this machine."""

import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import duckdb
import pytest

from rankdrift import harvest, read_log
from rankdrift.cli import run
from rankdrift.core.errors import BadLog, MissingExtra
from rankdrift.log.engines.duckdb.readers import reading
from rankdrift.log.sources import Files

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("remote")]
SECRET = "kept-to-ourselves"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log of two days, as Parquet and as CSV."""
    path = tmp_path_factory.mktemp("remote")
    for day in (1, 2):
        rows = duckdb.sql(
            f"""SELECT s AS search, 'word ' || (s % 7) AS query, 'd' || ((r * 7 + s) % 9) AS doc,
                r AS rank, CAST(hash(s * 10 + r) % (2 + r) = 0 AS INTEGER) AS click,
                DATE '2024-05-0{day}' AS day
            FROM range({day}, 150) AS searches(s), range(1, 7) AS ranks(r)"""
        )
        rows.write_parquet(str(path / f"day-{day}.parquet"))
        rows.write_csv(str(path / f"day-{day}.csv"))
    return path


class Ranges(SimpleHTTPRequestHandler):
    """A web server that gives parts of files, as they do, and refuses what is private."""

    def do_GET(self):
        if self.path.startswith("/private"):
            return self.send_error(403)
        wanted = self.headers.get("Range")
        path = self.translate_path(self.path)
        if not wanted:
            return super().do_GET()
        with open(path, "rb") as file:
            whole = file.read()
        first, last = wanted.removeprefix("bytes=").split("-")
        part = whole[int(first) : int(last or len(whole)) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
        self.end_headers()
        return self.wfile.write(part)

    def end_headers(self):
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def web(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def s3(folder):
    """moto's server; credentials are where the tools look for them."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "someone")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import boto3

        client = boto3.client("s3")
        client.create_bucket(Bucket="shop")
        for path in folder.glob("day-*"):
            client.upload_file(str(path), "shop", f"logs/{path.name}")
        yield "s3://shop/logs"
    server.stop()


def same(counts, expected):
    return all(counts.tables[name].equals(table) for name, table in expected.tables.items())


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_s3_gives_the_same_counts(s3, folder, ending):
    expected = harvest(read_log(folder / f"*.{ending}"))
    assert expected.n_pairs > 20 and len(expected.days) == 2
    assert same(harvest(read_log(f"{s3}/*.{ending}")), expected)
    both = [f"{s3}/day-1.{ending}", f"{s3}/day-2.{ending}"]
    assert same(harvest(read_log(both)), expected)


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_other_clouds_are_read_by_what_fsspec_has_for_them(scheme, folder, monkeypatch):
    """The systems themselves are stood in for by files here: the way from an address to counts is
    what runs. az:// is called abfs:// by its own system, and so it is here."""
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    class Cloud(DirFileSystem):
        protocol = ("abfs", "az") if scheme == "az" else ("gs", "gcs")

        def __init__(self, **options):
            super().__init__(path=str(folder.parent), fs=LocalFileSystem(), **options)

        @classmethod
        def _strip_protocol(cls, path):
            return path.partition("://")[2] if "://" in path else path

        def unstrip_protocol(self, name):
            return f"{self.protocol[0]}://{name}"

    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, scheme, Cloud)
    expected = harvest(read_log(folder / "*.parquet"))
    for where in (f"{scheme}://{folder.name}/*.parquet", f"{scheme}://{folder.name}/day-1.parquet"):
        wanted = expected if "*" in where else harvest(read_log(folder / "day-1.parquet"))
        assert same(harvest(read_log(where)), wanted)
    with pytest.raises(BadLog, match=f"No file at '{scheme}://{folder.name}/none.csv'"):
        read_log(f"{scheme}://{folder.name}/none.csv")


def test_a_folder_of_s3_wants_its_format(s3, folder):
    with pytest.raises(BadLog, match=r"or name the files by a pattern, such as \*\.parquet"):
        read_log(f"{s3}/")
    by_format = read_log(f"{s3}/day-1.parquet", format="parquet")
    assert same(harvest(by_format), harvest(read_log(folder / "day-1.parquet")))


def test_of_a_format_that_is_named_no_name_of_a_file_has_to_tell(web, folder):
    (folder / "sessions.txt").write_text(
        "".join(
            f"{s}\t0\tQ\t{s % 3}\t7\t{10 + s % 2}\t{11 - s % 2}\n{s}\t5\tC\t10\n" for s in range(40)
        )
    )
    expected = harvest(read_log(folder / "sessions.txt", format="yandex"))
    assert expected.n_pairs > 1
    assert same(harvest(read_log(f"{web}/sessions.txt", format="yandex")), expected)
    with pytest.raises(BadLog, match="Say it with --format"):
        read_log(f"{web}/sessions.txt")


def test_the_web_gives_the_same_counts_and_no_key_is_kept(
    web, folder, tmp_path, monkeypatch, capsys
):
    expected = harvest(read_log(folder / "day-1.parquet"))
    signed = f"{web}/day-1.parquet?X-Signature={SECRET}"
    assert same(harvest(read_log(signed)), expected)
    monkeypatch.chdir(tmp_path)
    assert run(["init", signed, "-q"]) in (0, 1)
    assert run(["harvest", signed, "-o", "counts.parquet", "-q"]) == 0
    capsys.readouterr()
    assert run(["compare", signed, "--methods", "ctr", "--json", "-q"]) == 0
    (tmp_path / "comparison.json").write_text(capsys.readouterr().out)
    assert len(list(tmp_path.iterdir())) == 3
    for file in tmp_path.iterdir():
        assert SECRET.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("{s3}/no-such-day.parquet", "No file at 's3://shop/logs/no-such-day.parquet'"),
        ("s3://no-such-bucket/x.parquet", "No file at 's3://no-such-bucket/x.parquet'"),
        ("{s3}/*.nothing.csv", "No file at 's3://shop/logs/*.nothing.csv'"),
        ("{web}/none.parquet?X-Signature=" + SECRET, "No file at"),
        ("{web}/private.parquet?X-Signature=" + SECRET, "may not be read"),
        ("http://me:" + SECRET + "@127.0.0.1:9/x.parquet", "cannot be reached"),
    ],
)  # fmt: skip
def test_what_is_wrong_elsewhere_is_said_kindly(s3, web, address, told):
    with pytest.raises(BadLog) as refused:
        read_log(address.format(s3=s3, web=web))
    assert told in str(refused.value) and SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("The HTTP server doesn't appear to support range requests.", "as a whole only"),
        ("Connection reset", "as parquet: Connection reset. The file may"),
    ],
)
def test_what_goes_wrong_on_the_way_is_no_traceback(said, told):
    path = f"https://me:{SECRET}@x/a.parquet"
    with pytest.raises(BadLog, match=told) as refused, reading(Files((path,), "parquet")):
        raise duckdb.Error(f'Traceback (most recent call last):\n  File "x"\nValueError: {said}')
    assert SECRET not in str(refused.value) and "Traceback" not in str(refused.value)


def test_without_the_extra_the_message_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))  # where extensions of DuckDB would be
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for address, package in (("s3://b/x.csv", ""), ("az://b/x.csv", " adlfs")):
        with pytest.raises(MissingExtra) as refused:
            read_log(address)
        assert f"pip install 'rankdrift[remote]'{package}. Or copy" in str(refused.value)
    assert not list(tmp_path.rglob("*.duckdb_extension*"))
