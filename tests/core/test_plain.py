"""JSON that Python cannot take in, though others can: too deep, or with numbers too long."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdrift.cli import run
from rankdrift.core.artefacts import PARQUET_KEYS
from rankdrift.core.plain import parsed

DEEP, LONG = "[" * 50_000, '{"format": ' + "9" * 5_000 + "}"


@pytest.mark.parametrize("text", [DEEP, LONG])
def test_it_is_refused_as_any_other(text):
    with pytest.raises(ValueError, match=r"nested too deeply|digits"):
        parsed(text)


@pytest.mark.parametrize("key", PARQUET_KEYS)
@pytest.mark.parametrize("text", [DEEP, LONG])
def test_in_an_artefact(key, text, tmp_path, capsys):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({key: text}), path)
    assert run(["report", str(path), "-o", str(tmp_path / "page.html")]) == 2
    assert run(["config", "--of", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("value", ["[" * 5_000 + "]" * 5_000, "9" * 5_000])
def test_in_a_field_of_a_log_that_nobody_asks_for(value, tmp_path, capsys):
    line = '{"query": "q", "doc": "d%d", "rank": %d, "click": 1, "x": %s}\n'
    (tmp_path / "log.json").write_text("".join(line % (i, i, value) for i in (1, 2)))
    assert run(["harvest", str(tmp_path / "log.json"), "-o", str(tmp_path / "c.parquet")]) in (1, 2)
    said = capsys.readouterr()
    assert "Traceback" not in said.err and ("in the log" in said.out or "Cannot read" in said.err)
