"""Runs a notebook with this interpreter and brings what it holds into one form."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbformat import NotebookNode

__all__ = ["errors", "execute", "normalise", "outputs", "silent_cells"]

TIMEOUT = 300
"""Seconds that a cell may take."""

_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_LANGUAGE = {"name": "python"}
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run all cells of a copy in `folder`, with the kernel of this very interpreter.

    Neither kernel specifications of the user's home are read nor anything is written there.

    Args:
        notebook: What to run; it is left as it is.
        folder: The working folder of the cells.

    Returns:
        The copy, with the outputs of this run, in its normal form.
    """
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    copy = nbformat.reads(nbformat.writes(notebook), as_version=4)
    with _own_jupyter_folders():
        specs = KernelSpecManager(kernel_dirs=[str(Path(sys.prefix) / "share/jupyter/kernels")])
        manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs)
        client = NotebookClient(
            copy,
            km=manager,
            timeout=TIMEOUT,
            allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
        )
        # The manager is ours, so the client must be told to end the kernel with it.
        client.execute(cleanup_kc=True)
    return normalise(copy)


@contextmanager
def _own_jupyter_folders() -> Iterator[None]:
    """Point what Jupyter and IPython write at a folder that goes away."""
    names = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR")
    kept = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({name: str(Path(folder) / name.lower()) for name in names})
        try:
            yield
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def normalise(notebook: NotebookNode) -> NotebookNode:
    """Drop what differs between two equal runs: times, counts, ids, addresses, versions.

    Args:
        notebook: Changed in place.

    Returns:
        The same notebook; two runs with equal outputs now give equal files.
    """
    notebook.metadata = {"kernelspec": dict(_KERNEL), "language_info": dict(_LANGUAGE)}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for at, cell in enumerate(notebook.cells):
        cell.id = f"cell-{at:02}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
            cell.execution_count = None
            for output in cell.outputs:
                _normalise_output(output)
    return notebook


def _normalise_output(output: NotebookNode) -> None:
    if "execution_count" in output:
        output.execution_count = None
    if "metadata" in output:
        output.metadata = {}
    if output.output_type == "stream":
        output.text = _ADDRESS.sub("at 0x…", output.text)
    data = output.get("data", {})
    for kind, value in data.items():
        if isinstance(value, str) and kind.startswith("text/"):
            data[kind] = _ADDRESS.sub("at 0x…", value)


def _joined(found: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream: where it was cut depends on the moment."""
    joined: list[NotebookNode] = []
    for output in found:
        # matplotlib says once per machine, and only if it takes long, that it looks for fonts.
        if "building the font cache" in output.get("text", ""):
            continue
        last = joined[-1] if joined else None
        if last and output.output_type == "stream" == last.output_type and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def outputs(notebook: NotebookNode) -> list[list[Any]]:
    """The outputs of each code cell."""
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def errors(notebook: NotebookNode) -> list[str]:
    """Each cell's error, and each line that a cell wrote to the error stream."""
    told = []
    for at, cell in enumerate(outputs(notebook)):
        for output in cell:
            if output.output_type == "error":
                told.append(f"code cell {at}: {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                told.append(f"code cell {at}: {output.text}")
    return told


def silent_cells(stored: NotebookNode, ran: NotebookNode) -> list[int]:
    """Code cells that say something when run, of which nothing is stored."""
    pairs = zip(outputs(stored), outputs(ran), strict=True)
    return [at for at, (kept, made) in enumerate(pairs) if made and not kept]
