"""What of a hybrid index goes to disk, as one folder."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder import FolderContents, pack_parts
from easyrag_core.index.bm25 import BM25Index
from easyrag_core.index.hybrid._config import HybridConfig
from easyrag_core.index.hybrid._parts import Parts
from easyrag_core.index.hybrid._registered import Registered
from easyrag_core.index.store import InMemoryChunkStore
from easyrag_core.index.vector import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.store import ChunkStore

__all__ = ["KIND", "VERSION", "config_of", "packed", "parts_of"]

KIND: Final = "hybrid"
VERSION: Final = 1


def packed(config: HybridConfig, parts: Parts) -> FolderContents:
    """Return all parts as one; a store that keeps its own content is left out."""
    contents = {
        "bm25": parts.bm25.contents(),
        "registered": parts.registered.contents(),
        "config": FolderContents(settings=asdict(config)),
    }
    if parts.vectors is not None:
        contents["vectors"] = parts.vectors.contents()
    if isinstance(parts.store, InMemoryChunkStore):
        contents["store"] = parts.store.contents()
    return pack_parts(contents)


def config_of(contents: FolderContents) -> HybridConfig:
    """Return the settings that were saved."""
    try:
        return HybridConfig(**contents.part("config").settings)
    except (TypeError, InvalidParameterError) as error:
        raise IndexFormatError(f"The saved settings are damaged ({error}): rebuild.") from error


def parts_of(
    contents: FolderContents,
    *,
    store: ChunkStore | None,
    analyzer: Analyzer | Callable[[str], Sequence[str]] | None,
) -> Parts:
    """Return the parts that were saved, with the content of `store` if one is given."""
    return Parts(
        BM25Index.from_contents(contents.part("bm25"), analyzer=analyzer),
        _vectors_of(contents),
        _store_of(contents) if store is None else store,
        Registered.from_contents(contents.part("registered")),
    )


def _vectors_of(contents: FolderContents) -> VectorIndex | None:
    if "vectors" not in contents.settings:
        return None
    return VectorIndex.from_contents(contents.part("vectors"))


def _store_of(contents: FolderContents) -> InMemoryChunkStore:
    if "store" not in contents.settings:
        raise IndexFormatError("The index was saved without its content: give `store` again.")
    return InMemoryChunkStore.from_contents(contents.part("store"))
