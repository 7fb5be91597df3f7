"""The index between two calls: kept beside the user's cache, brought up to date by file."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from easyrag_core.errors import IndexFormatError
from easyrag_core.index import HybridIndex, embed_in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from easyrag_core.console._models import EmbeddingModel
    from easyrag_core.files import SourceFile
    from easyrag_core.types import Chunk

__all__ = ["bring_up_to_date", "index_folder", "open_index", "user_cache"]


def index_folder(root: Path, model: EmbeddingModel | None) -> Path:
    """Say where the index of a folder is kept.

    Args:
        root: The folder that is searched.
        model: The embedding model, if vectors are wanted: each model has an index of its own.

    Returns:
        A folder below the user's cache.
    """
    told = f"{root.resolve()}|{model.name if model else 'bm25'}"
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return user_cache() / "easyrag" / f"{root.resolve().name or 'root'}-{digest}"


def user_cache() -> Path:
    """Return the folder in which the platform keeps what can be made again."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"


def open_index(folder: Path) -> HybridIndex:
    """Load the index that is kept in a folder, or start a new one.

    Args:
        folder: Where it is kept.

    Returns:
        The index.

    Raises:
        IndexFormatError: What is there is damaged or foreign.
    """
    if folder.exists() and not folder.is_dir():
        raise IndexFormatError(f"{folder} is no folder: give a folder to keep the index in.")
    if not folder.exists() or not any(folder.iterdir()):
        return HybridIndex()
    return HybridIndex.load(folder)


def bring_up_to_date(
    index: HybridIndex,
    files: Sequence[SourceFile],
    split: Callable[[SourceFile], list[Chunk]],
    model: EmbeddingModel | None,
    *,
    show_progress: bool,
) -> bool:
    """Index what is new or changed, and remove what has gone.

    Args:
        index: The index as it was kept.
        files: The files as they are now.
        split: From a file to its chunks.
        model: Embeds what has no vector yet.
        show_progress: Show a bar while embedding.

    Returns:
        Whether anything was changed.
    """
    chunks_by_file = {file.path: split(file) for file in files}
    gone = [path for path in index.document_ids if not chunks_by_file.get(path)]
    for path in gone:
        index.delete_document(path)
    changed = {
        path: chunks
        for path, chunks in chunks_by_file.items()
        if index.get_many([c.id for c in chunks]) != chunks
        or len(index.chunks_of(path)) != len(chunks)
    }
    vectors = {}
    if model is not None:
        texts = {
            chunk.id: chunk.embedding_text
            for chunks in changed.values()
            for chunk in index.without_vector(chunks)
        }
        rows = embed_in_batches(
            model.embed_passages, list(texts.values()), batch_size=16, show_progress=show_progress
        )
        vectors = dict(zip(texts, rows, strict=True))
    for path, chunks in changed.items():
        index.update_document(path, chunks, [vectors.get(chunk.id) for chunk in chunks])
    return bool(gone or changed)
