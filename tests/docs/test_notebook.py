"""The notebooks in examples/ run from top to bottom."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "commit it without its outputs"
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    shown = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    kinds = [kind for out in shown for kind in out.get("data", {})]
    assert "text/html" in kinds, "results are shown as tables"
    assert "image/svg+xml" in kinds, "and as charts"
