"""The hybrid index: write, search, save."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.index._folder import read_folder, write_folder
from easyrag_core.index.bm25 import BM25Index
from easyrag_core.index.hybrid import _persistence
from easyrag_core.index.hybrid._config import HybridConfig
from easyrag_core.index.hybrid._embedding import one_row_each
from easyrag_core.index.hybrid._fusing import fuse_hits
from easyrag_core.index.hybrid._registered import Registered
from easyrag_core.index.store import InMemoryChunkStore
from easyrag_core.index.vector import VectorIndex
from easyrag_core.ranking.merging import auto_merge

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from easyrag_core.index.analyzer import Analyzer
    from easyrag_core.index.bm25 import IdFilter
    from easyrag_core.index.store import ChunkStore
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
            store: Holds the content.

        Raises:
            InvalidParameterError: A part is of another kind.
        """
        if config is not None and not isinstance(config, HybridConfig):
            raise InvalidParameterError("config", config, "give a HybridConfig or None")
        self._config = config or HybridConfig()
        self._bm25 = BM25Index() if bm25 is None else bm25
        self._vectors = vectors
        self._store: ChunkStore = InMemoryChunkStore() if store is None else store
        self._registered = Registered()
        self._writing = threading.RLock()

    @property
    def config(self) -> HybridConfig:
        """How channels are asked and fused."""
        return self._config

    @property
    def bm25(self) -> BM25Index:
        """Finds by words."""
        return self._bm25

    @property
    def vectors(self) -> VectorIndex | None:
        """Finds by meaning; `None` as long as no vector was added."""
        return self._vectors

    @property
    def store(self) -> ChunkStore:
        """Holds the content."""
        return self._store

    @property
    def document_ids(self) -> list[str]:
        """The documents whose chunks are here, in the order in which they came."""
        return self._registered.documents()

    def __len__(self) -> int:
        """Count the chunks, parents included."""
        return len(self._registered)

    def __contains__(self, id_: object) -> bool:
        """Whether a chunk with this id is here."""
        return id_ in self._registered

    def __repr__(self) -> str:
        """Show size and parts."""
        return f"<HybridIndex of {len(self)} chunks, {self._bm25!r}, {self._vectors!r}>"

    # Writing

    def without_vector(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the chunks that have to be embedded before they are added.

        Args:
            chunks: Chunks to be added.

        Returns:
            Those whose vector is not here, or belongs to another text; parents are never among
            them.
        """
        return [chunk for chunk in chunks if chunk.kind != "parent" and not self._has_vector(chunk)]

    def _has_vector(self, chunk: Chunk) -> bool:
        known = self._vectors is not None and chunk.id in self._vectors
        return known and self._registered.is_unchanged(chunk)

    def add(
        self,
        chunks: Sequence[Chunk],
        vectors: Sequence[Sequence[float] | NDArray[Any] | None] | NDArray[Any] | None = None,
    ) -> None:
        """Add chunks, and replace those whose id is already here. All or nothing.

        Args:
            chunks: The chunks; of an id that comes twice the last counts.
            vectors: One row per chunk, shape `(len(chunks), d)`; `None`, as a whole or for one
                chunk, keeps the vector that is here if the text is the same, else there is none.

        Raises:
            InvalidParameterError: Another number of vectors than chunks, or a vector that is not
                finite.
            DimensionMismatchError: A vector of another length.
        """
        with self._writing:
            self._write(chunks, vectors, gone=[])

    def update_document(
        self,
        document_id: str,
        chunks: Sequence[Chunk],
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
        for chunk in chunks:
            if chunk.document_id != document_id:
                raise InvalidParameterError(
                    "chunks", chunk.document_id, f"all belong to document {document_id!r}"
                )
        with self._writing:
            kept = {chunk.id for chunk in chunks}
            gone = [id_ for id_ in self._registered.chunks_of(document_id) if id_ not in kept]
            self._write(chunks, vectors, gone=gone)

    def delete_document(self, document_id: str) -> list[str]:
        """Remove all chunks of a document.

        Args:
            document_id: The document; an unknown one has none.

        Returns:
            Ids of what was removed.
        """
        with self._writing:
            gone = self._registered.chunks_of(document_id)
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
            known = [id_ for id_ in dict.fromkeys(ids) if id_ in self._registered]
            self._write([], None, gone=known)
        return len(known)

    def _write(self, chunks: Sequence[Chunk], vectors: Any, *, gone: list[str]) -> None:
        """Change all parts, or bring them back to where they were."""
        rows = one_row_each(chunks, vectors)
        latest = {chunk.id: number for number, chunk in enumerate(chunks)}
        chunks = [chunks[number] for number in latest.values()]
        rows = [rows[number] for number in latest.values()]
        touched = [*gone, *latest]
        before = [chunk for chunk in self._store.get_many(touched) if chunk is not None]
        old_rows = self._vectors.get([chunk.id for chunk in before]) if self._vectors else []
        try:
            # Content comes first and goes last: a hit always has content.
            self._put(chunks, rows)
            self._drop(gone)
        except BaseException:
            there = {chunk.id for chunk in before}
            self._drop([id_ for id_ in latest if id_ not in there])
            self._put(before, old_rows or [None] * len(before))
            raise

    def _put(self, chunks: Sequence[Chunk], rows: Sequence[Any]) -> None:
        stale = [
            chunk.id
            for chunk, row in zip(chunks, rows, strict=True)
            if row is None and not self._has_vector(chunk)
        ]
        indexed = [chunk for chunk in chunks if chunk.kind != "parent"]
        given = {c.id: row for c, row in zip(chunks, rows, strict=True) if row is not None}
        self._store.put_many(chunks)
        if self._vectors is not None:
            self._vectors.remove(stale)
        if given:
            if self._vectors is None:
                self._vectors = VectorIndex(len(next(iter(given.values()))))
            self._vectors.add(list(given), list(given.values()))
        self._bm25.add([c.id for c in indexed], [c.embedding_text for c in indexed])
        self._registered.add(chunks)

    def _drop(self, ids: Sequence[str]) -> None:
        self._bm25.remove(ids)
        if self._vectors is not None:
            self._vectors.remove(ids)
        self._store.delete_many(ids)
        self._registered.remove(ids)

    # Reading

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up in one batch.

        Args:
            ids: The ids.

        Returns:
            One entry per id, in the same order; `None` where there is no such chunk.
        """
        return self._store.get_many(ids)

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
            merge: Replace children by their parent where enough of them are hit; the channels
                are then asked for twice as much, so that `k` hits are left.

        Returns:
            Hits, best first, with rank and raw score per channel.

        Raises:
            InvalidParameterError: The query is no text, `k` is negative, or the filter or vector
                is of another kind.
            DimensionMismatchError: The vector has another length than those here.
        """
        wanted = check_count("k", k)
        reach = 2 * wanted if merge else wanted
        channels = {
            "bm25": self._bm25.search(query, max(self._config.bm25_k, reach), filter=filter)
        }
        if vector is not None and self._vectors is not None:
            vector_k = max(self._config.vector_k, reach)
            channels["vector"] = self._vectors.search(vector, vector_k, filter=filter)
        hits = fuse_hits(channels, config=self._config, k=None if merge else wanted)
        return self._merged(hits)[:wanted] if merge else hits

    def _merged(self, hits: Sequence[Hit]) -> list[Hit]:
        by_id = {hit.id: hit for hit in hits}
        items = auto_merge(
            hits,
            self._store.parents_of,
            lambda parents: {parent: self._store.children_of(parent) for parent in parents},
            merge_threshold=self._config.merge_threshold,
            exists=self._existing,
        )
        merged = []
        for rank, item in enumerate(items, start=1):
            best = by_id[item.sources[0]]
            reasons = best.reasons
            if item.ratio is not None:
                reasons = (*reasons, f"stands for {len(item.children)} children ({item.ratio:.0%})")
            merged.append(replace(best, id=item.id, rank=rank, reasons=reasons))
        return merged

    def _existing(self, ids: list[str]) -> set[str]:
        return {chunk.id for chunk in self._store.get_many(ids) if chunk is not None}

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
            packed = _persistence.packed(
                self._config, self._bm25, self._vectors, self._store, self._registered
            )
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
        index = cls(
            config or _persistence.config_of(contents),
            bm25=BM25Index.from_contents(contents.part("bm25"), analyzer=analyzer),
            vectors=_persistence.vectors_of(contents),
            store=_persistence.store_of(contents) if store is None else store,
        )
        index._registered = Registered.from_contents(contents.part("registered"))
        return index
