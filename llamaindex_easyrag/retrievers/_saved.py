"""Retrievers on disk: the index, the nodes and the settings, committed in one step.

```
path/
  retriever.json          kind, settings, checksum of the nodes; names the generation
  generation-<16 hex>/    nodes.jsonl and whatever the index writes under index/
```

A save writes a new generation beside the old one and then replaces `retriever.json` by one
rename: whoever reads sees the old state or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.core.vector_stores.types import MetadataFilters

from easyrag_core import IndexFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llama_index.core.schema import BaseNode

__all__ = ["filters_as_json", "filters_from_json", "load_retriever", "save_retriever"]

_FORMAT = "easyrag-llamaindex"
_VERSION = 1
_MANIFEST = "retriever.json"


def save_retriever(
    path: str | os.PathLike[str],
    *,
    kind: str,
    settings: dict[str, Any],
    nodes: Iterable[BaseNode],
    save_index: Callable[[Path], None],
) -> None:
    """Save a retriever as a folder, in one step.

    Args:
        path: The folder; a retriever that is already there is replaced.
        kind: Which retriever it is.
        settings: JSON values.
        nodes: The nodes; their metadata must be JSON values.
        save_index: Writes the index to the place it is given.

    Raises:
        IndexFormatError: Something else is there.
        OSError: The disk refuses.
        TypeError: A node holds something that is no JSON value.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        _manifest(folder)
    generation = f"generation-{secrets.token_hex(8)}"
    (folder / generation).mkdir()
    save_index(folder / generation / "index")
    lines = "".join(f"{json.dumps(doc_to_json(node))}\n" for node in nodes).encode("ascii")
    _write(folder / generation / "nodes.jsonl", lines)
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": kind,
        "generation": generation,
        "nodes": hashlib.sha256(lines).hexdigest(),
        "settings": settings,
    }
    _write(folder / generation / _MANIFEST, json.dumps(manifest, indent=1).encode("ascii"))
    (folder / generation / _MANIFEST).replace(folder / _MANIFEST)
    for old in folder.glob("generation-*"):
        if old.name != generation:
            shutil.rmtree(old, ignore_errors=True)


def load_retriever(
    path: str | os.PathLike[str], *, kind: str
) -> tuple[dict[str, Any], list[BaseNode], Path]:
    """Read what `save_retriever` wrote.

    Args:
        path: The folder.
        kind: Which retriever is expected.

    Returns:
        The settings, the nodes and the place of the index.

    Raises:
        FileNotFoundError: The path does not exist.
        IndexFormatError: It is torn, foreign, of another kind or version.
    """
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"There is no {folder}.")
    manifest = _manifest(folder)
    if manifest.get("kind") != kind:
        raise IndexFormatError(f"{folder} holds a {manifest.get('kind')!r}, not a {kind!r}.")
    generation = folder / str(manifest.get("generation"))
    try:
        lines = (generation / "nodes.jsonl").read_bytes()
    except OSError as error:
        raise IndexFormatError(f"{folder} is incomplete ({error}): build it anew.") from error
    if hashlib.sha256(lines).hexdigest() != manifest.get("nodes"):
        raise IndexFormatError(f"{folder}: the nodes are damaged: build it anew.")
    nodes = [json_to_doc(json.loads(line)) for line in lines.splitlines()]
    return dict(manifest.get("settings", {})), nodes, generation / "index"


def filters_as_json(filters: MetadataFilters | None) -> dict[str, Any] | None:
    """Return filters as JSON values.

    Args:
        filters: The filters, or `None`.

    Returns:
        What `filters_from_json` takes.
    """
    return None if filters is None else filters.model_dump(mode="json")


def filters_from_json(data: dict[str, Any] | None) -> MetadataFilters | None:
    """Build filters from what `filters_as_json` returned.

    Args:
        data: JSON values, or `None`.

    Returns:
        Equal filters.
    """
    return None if data is None else MetadataFilters.model_validate(data)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise IndexFormatError(f"{folder} holds no retriever of ours ({error}).") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise IndexFormatError(f"{folder} holds no retriever of ours, but something else.")
    if manifest.get("version") != _VERSION:
        version = manifest.get("version")
        raise IndexFormatError(f"{folder} is of version {version}: build it anew.")
    return manifest


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
