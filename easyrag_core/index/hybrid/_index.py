"""The hybrid index: write, search, save."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.index._folder import read_folder, write_folder
from easyrag_core.index.bm25 import BM25Index
from easyrag_core.index.hybrid import _persistence
from easyrag_core.index.hybrid._config import HybridConfig
from easyrag_core.index.hybrid._fusing import fuse_hits
from easyrag_core.index.hybrid._merging import merged_hits, reusable
from easyrag_core.index.hybrid._parts import Parts
from easyrag_core.index.store import InMemoryChunkStore
from easyrag_core.index.store._copy import all_checked

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.bm25 import IdFilter
    from easyrag_core.index.store import ChunkStore
    from easyrag_core.index.vector import VectorIndex
    from easyrag_core.types import Chunk, Hit

__all__ = ["HybridIndex"]


class HybridIndex:
    """Chunks that are found by their words and by their vectors, and looked up by id.

    A chunk is added once, to all three parts, in one step: when one part refuses, none has it.
    What is indexed and embedded is `embedding_text`; chunks of kind `"parent"` are only looked
    up. No model is called: vectors come from the caller, and without them it is BM25 alone.
    Safe to share between threads.

    >>> from easyrag_core import DocumentChunker
    >>> index = HybridIndex()
    >>> index.add(DocumentChunker().chunk("Rankings are fused by rank.", "a.txt"))
    >>> [hit.channels["bm25"].rank for hit in index.search("How are rankings fused?")]
    [1]
    """

    def __init__(
        self,
        config: HybridConfig | None = None,
        *,
        bm25: BM25Index | None = None,
        vectors: VectorIndex | None = None,
        store: ChunkStore | None = None,
    ) -> None:
        """Put an index together; parts that are not given are new and empty.

        Args:
            config: How channels are asked and fused; `HybridConfig()` if not given.
            bm25: Finds by words.
            vectors: Finds by meaning; if not given it is made with the first vectors, in their
                length.
            store: Holds the content. Parts that hold chunks already are taken as they are; the
                content of what they index is read once.

        Raises:
            InvalidParameterError: A part is of another kind.
        """
        if config is not None and not isinstance(config, HybridConfig):
            raise InvalidParameterError("config", config, "give a HybridConfig or None")
        self._config = config or HybridConfig()
        self._parts = Parts.of(
            BM25Index() if bm25 is None else bm25,
            vectors,
            InMemoryChunkStore() if store is None else store,
        )
        self._writing = threading.RLock()

    @property
    def config(self) -> HybridConfig:
        """How channels are asked and fused."""
        return self._config

    @property
    def bm25(self) -> BM25Index:
        """Finds by words."""
        return self._parts.bm25

    @property
    def vectors(self) -> VectorIndex | None:
        """Finds by meaning; `None` as long as no vector was added."""
        return self._parts.vectors

    @property
    def store(self) -> ChunkStore:
        """Holds the content."""
        return self._parts.store

    @property
    def document_ids(self) -> list[str]:
        """The documents whose chunks are here, as they came."""
        return self._parts.registered.documents()

    def chunks_of(self, document_id: str) -> list[str]:
        """Return the ids of a document's chunks; an unknown document has none."""
        return self._parts.registered.chunks_of(document_id)

    def __len__(self) -> int:
        """Count the chunks, parents included."""
        return len(self._parts.registered)

    def __contains__(self, id_: object) -> bool:
        """Whether a chunk with this id is here."""
        return id_ in self._parts.registered

    def __repr__(self) -> str:
        """Show size and parts."""
        return f"<HybridIndex of {len(self)} chunks, {self.bm25!r}, {self.vectors!r}>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind; the rest can be copied and pickled."""
        return {key: value for key, value in self.__dict__.items() if key != "_writing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a new lock."""
        self.__dict__.update(state)
        self._writing = threading.RLock()

    def __copy__(self) -> HybridIndex:
        """Copy all parts, so that writes to one are not seen in the other.

        Only a store that keeps its content elsewhere, as in a file, is the same for both.
        """
        other = type(self).__new__(type(self))
        with self._writing:
            other.__setstate__(self.__getstate__() | {"_parts": copy.copy(self._parts)})
        return other

    # Writing

    def without_vector(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the chunks that have to be embedded before they are added.

        Args:
            chunks: Chunks to be added.

        Returns:
            Those whose vector is not here, or belongs to another text; parents are never among
            them.
        """
        has_vector = self._parts.has_vector
        return [chunk for chunk in chunks if chunk.kind != "parent" and not has_vector(chunk)]

    def add(
        self,
        chunks: Iterable[Chunk],
        vectors: Sequence[Sequence[float] | NDArray[Any] | None] | NDArray[Any] | None = None,
    ) -> None:
        """Add chunks, and replace those whose id is already here. All or nothing.

        Args:
            chunks: The chunks; of an id that comes twice the last counts.
            vectors: One row per chunk, shape `(len(chunks), d)`; `None`, as a whole or for one
                chunk, keeps the vector that is here if the text is the same, else there is none.

        Raises:
            InvalidParameterError: Another number of vectors than chunks, a vector that is not
                finite, or a field of a chunk that is of another kind.
            DimensionMismatchError: A vector of another length.
        """
        listed = all_checked(chunks)
        with self._writing:
            self._parts.write(listed, vectors, gone=[])

    def update_document(
        self,
        document_id: str,
        chunks: Iterable[Chunk],
        vectors: Sequence[Sequence[float] | NDArray[Any] | None] | NDArray[Any] | None = None,
    ) -> None:
        """Replace all chunks of a document. All or nothing.

        Args:
            document_id: The document.
            chunks: All its chunks; what else is here of the document is removed.
            vectors: As for `add`.

        Raises:
            InvalidParameterError: A chunk of another document, or as for `add`.
            DimensionMismatchError: As for `add`.
        """
        listed = all_checked(chunks)
        for chunk in listed:
            if chunk.document_id != document_id:
                raise InvalidParameterError(
                    "chunks", chunk.document_id, f"all belong to document {document_id!r}"
                )
        with self._writing:
            kept = {chunk.id for chunk in listed}
            gone = [id_ for id_ in self._parts.registered.chunks_of(document_id) if id_ not in kept]
            self._parts.write(listed, vectors, gone=gone)

    def delete_document(self, document_id: str) -> list[str]:
        """Remove all chunks of a document.

        Args:
            document_id: The document; an unknown one has none.

        Returns:
            Ids of what was removed.
        """
        with self._writing:
            gone = self._parts.registered.chunks_of(document_id)
            self.remove(gone)
        return gone

    def remove(self, ids: Iterable[str]) -> int:
        """Remove chunks.

        Args:
            ids: Their ids; unknown ones are ignored.

        Returns:
            How many were removed.

        Raises:
            InvalidParameterError: For a single string instead of several ids.
        """
        if isinstance(ids, str):
            raise InvalidParameterError("ids", ids, "give a list of ids")
        with self._writing:
            known = [id_ for id_ in dict.fromkeys(ids) if id_ in self._parts.registered]
            self._parts.write([], None, gone=known)
        return len(known)

    # Reading

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up in one batch.

        Args:
            ids: The ids.

        Returns:
            One entry per id, in the same order; `None` where there is no such chunk.
        """
        return self._parts.store.get_many(ids)

    def search(
        self,
        query: str,
        vector: Sequence[float] | NDArray[Any] | None = None,
        k: int = 10,
        *,
        filter: IdFilter | None = None,  # noqa: A002 - the word of both frameworks
        merge: bool = False,
    ) -> list[Hit]:
        """Ask both channels and fuse what they give.

        Args:
            query: The question, as text.
            vector: The question's embedding; without it the words alone are asked.
            k: How many hits are wanted; fewer come when fewer match.
            filter: Applied in both channels before ranking: ids or a function that accepts an id.
            merge: Replace children by their parent where enough of them are hit. The channels
                are asked for more until `k` hits are left, or there is no more. Under a filter
                a parent comes only if the filter accepts it, or each of its children.

        Returns:
            Hits, best first, with rank and raw score per channel.

        Raises:
            InvalidParameterError: The query is no text, `k` is negative, or the filter or vector
                is of another kind.
            DimensionMismatchError: The vector has another length than those here.
        """
        wanted = check_count("k", k)
        accepted = reusable(filter)
        if not merge:
            channels = self._ask(query, vector, wanted, accepted)
            return fuse_hits(channels, config=self._config, k=wanted)
        reach = 2 * wanted
        while True:
            channels = self._ask(query, vector, reach, accepted)
            merged = merged_hits(
                fuse_hits(channels, config=self._config),
                self._parts.store,
                merge_threshold=self._config.merge_threshold,
                accepted=accepted,
            )
            deeper = any(len(hits) >= reach for hits in channels.values())
            if len(merged) >= wanted or not deeper:
                return merged[:wanted]
            reach *= 4

    def _ask(
        self, query: str, vector: Any, reach: int, accepted: IdFilter | None
    ) -> dict[str, list[Hit]]:
        words, vectors = self._parts.bm25, self._parts.vectors
        channels = {"bm25": words.search(query, max(self._config.bm25_k, reach), filter=accepted)}
        if vector is not None and vectors is not None:
            vector_k = max(self._config.vector_k, reach)
            channels["vector"] = vectors.search(vector, vector_k, filter=accepted)
        return channels

    # Disk

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one folder, in one step that holds or does not happen.

        Content of an `InMemoryChunkStore` is saved with it; another store keeps its own, and is
        given to `load` again.

        Args:
            path: An empty or new folder, or one that holds an earlier save.

        Raises:
            IndexFormatError: The path holds something else.
            InvalidParameterError: Metadata of a chunk are no JSON values.
            OSError: The disk refuses.
        """
        with self._writing:
            packed = _persistence.packed(self._config, self._parts)
        write_folder(
            path,
            kind=_persistence.KIND,
            version=_persistence.VERSION,
            arrays=packed.arrays,
            settings=packed.settings,
            texts=packed.texts,
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        mmap: bool = True,
        config: HybridConfig | None = None,
        store: ChunkStore | None = None,
        analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
    ) -> HybridIndex:
        """Load what `save` wrote.

        Args:
            path: The folder.
            mmap: Map arrays into memory instead of reading them.
            config: Instead of the one that was saved.
            store: The content, if it was not saved with the index.
            analyzer: The analyzer that the index was built with; needed only if it is not ours.

        Returns:
            The index.

        Raises:
            FileNotFoundError: The path does not exist.
            IndexFormatError: It is torn, damaged, foreign or of another version; it was built
                with another analyzer; or it holds no content and no store is given.
        """
        contents = read_folder(
            path, kind=_persistence.KIND, version=_persistence.VERSION, mmap=mmap
        )
        index = cls(config or _persistence.config_of(contents))
        index._parts = _persistence.parts_of(contents, store=store, analyzer=analyzer)
        return index
