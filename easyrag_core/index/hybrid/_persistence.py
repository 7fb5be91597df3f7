"""What of a hybrid index goes to disk, as one folder."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import FolderContents, pack_parts
from easyrag_core.index.hybrid._config import HybridConfig
from easyrag_core.index.store import InMemoryChunkStore
from easyrag_core.index.vector import VectorIndex

if TYPE_CHECKING:
    from easyrag_core.index.bm25 import BM25Index
    from easyrag_core.index.hybrid._registered import Registered
    from easyrag_core.index.store import ChunkStore

__all__ = ["KIND", "VERSION", "config_of", "packed", "store_of", "vectors_of"]

KIND: Final = "hybrid"
VERSION: Final = 1


def packed(
    config: HybridConfig,
    bm25: BM25Index,
    vectors: VectorIndex | None,
    store: ChunkStore,
    registered: Registered,
) -> FolderContents:
    """Return all parts as one; a store that keeps its own content is left out."""
    parts = {
        "bm25": bm25.contents(),
        "registered": registered.contents(),
        "config": FolderContents(settings=asdict(config)),
    }
    if vectors is not None:
        parts["vectors"] = vectors.contents()
    if isinstance(store, InMemoryChunkStore):
        parts["store"] = store.contents()
    return pack_parts(parts)


def config_of(contents: FolderContents) -> HybridConfig:
    """Return the settings that were saved."""
    try:
        return HybridConfig(**contents.part("config").settings)
    except (TypeError, InvalidParameterError) as error:
        raise IndexFormatError(f"The saved settings are damaged ({error}): rebuild.") from error


def vectors_of(contents: FolderContents) -> VectorIndex | None:
    """Return the vectors that were saved, if there were any."""
    if "vectors" not in contents.settings:
        return None
    return VectorIndex.from_contents(contents.part("vectors"))


def store_of(contents: FolderContents) -> InMemoryChunkStore:
    """Return the content that was saved."""
    if "store" not in contents.settings:
        raise IndexFormatError("The index was saved without its content: give `store` again.")
    return InMemoryChunkStore.from_contents(contents.part("store"))
