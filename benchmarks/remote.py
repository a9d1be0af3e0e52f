"""What it costs that a log is elsewhere: the harvest of files at s3:// against the same files here.

The store is moto's server on this machine: no network is in it, only the way through fsspec. Run it
with `python -m benchmarks.remote`; it needs the extra `test`.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from pathlib import Path

from rankdrift import harvest, read_log
from rankdrift.simulate import market

ROWS, REPEATS = 300_000, 3


def run(rows: int = ROWS) -> dict[str, float]:
    """Seconds here and there, the best of some runs taken in turn, and the ratio."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with tempfile.TemporaryDirectory() as folder:
        market(folder, rows=rows, days=4, seed=1)
        client = boto3.client("s3")
        client.create_bucket(Bucket="shop")
        for file in sorted(Path(folder).glob("*.parquet")):
            client.upload_file(str(file), "shop", file.name)
        places = {"here": f"{folder}/*.parquet", "s3": "s3://shop/*.parquet"}
        taken: dict[str, list[float]] = {name: [] for name in places}
        for _ in range(REPEATS):
            for name, path in places.items():
                start = time.perf_counter()
                harvest(read_log(path, query="keywords"))
                taken[name].append(time.perf_counter() - start)
    server.stop()
    best = {name: min(times) for name, times in taken.items()}
    return {**best, "times as long": best["s3"] / best["here"]}


if __name__ == "__main__":
    for name, value in run().items():
        print(f"{name:15} {value:.2f}")
