"""The parts of a hybrid index, changed in one step."""

from __future__ import annotations

import copy
import logging
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.index.hybrid._embedding import one_row_each
from easyrag_core.index.hybrid._registered import Registered
from easyrag_core.index.store import CachedChunkStore, InMemoryChunkStore
from easyrag_core.index.vector import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from easyrag_core.index.bm25 import BM25Index
    from easyrag_core.index.store import ChunkStore
    from easyrag_core.types import Chunk

__all__ = ["Parts"]

_logger = logging.getLogger(__name__)

_READ_AT_ONCE: Final = 1024


@dataclass(frozen=True, slots=True)
class _Before:
    """What the parts held of some ids before a write.

    Attributes:
        ids: The ids that the write touches.
        content: Their chunks in the store.
        indexed: Texts by id, of those that were found by words.
    """

    ids: list[str]
    content: list[Chunk]
    indexed: dict[str, str]


@dataclass(slots=True)
class Parts:
    """BM25, vectors, content, and the list of what they hold.

    Attributes:
        bm25: Finds by words.
        vectors: Finds by meaning; `None` until the first vector comes.
        store: Holds the content.
        registered: Which chunks are here.
    """

    bm25: BM25Index
    vectors: VectorIndex | None
    store: ChunkStore
    registered: Registered

    @classmethod
    def of(cls, bm25: BM25Index, vectors: VectorIndex | None, store: ChunkStore) -> Parts:
        """Put parts together that may hold chunks already."""
        parts = cls(bm25, vectors, store, Registered())
        if len(bm25) or vectors:
            parts.registered.add(parts._found())
        return parts

    def __copy__(self) -> Parts:
        """Copy all parts; a store that keeps its content elsewhere is the same for both."""
        store = self.store
        if isinstance(store, InMemoryChunkStore | CachedChunkStore):
            store = copy.copy(store)
        registered = copy.copy(self.registered)
        return Parts(copy.copy(self.bm25), copy.copy(self.vectors), store, registered)

    def _found(self) -> Iterator[Chunk]:
        """Give the stored chunks that are indexed, and the parents."""
        ids = self.store.ids()
        for start in range(0, len(ids), _READ_AT_ONCE):
            for chunk in self.store.get_many(ids[start : start + _READ_AT_ONCE]):
                if chunk and (chunk.kind == "parent" or self._is_indexed(chunk.id)):
                    yield chunk

    def _is_indexed(self, id_: str) -> bool:
        return id_ in self.bm25 or (self.vectors is not None and id_ in self.vectors)

    def has_vector(self, chunk: Chunk) -> bool:
        """Tell whether the vector of exactly this text is here."""
        known = self.vectors is not None and chunk.id in self.vectors
        return known and self.registered.is_unchanged(chunk)

    def write(self, chunks: Sequence[Chunk], vectors: Any, *, gone: Sequence[str]) -> None:
        """Put chunks and take others away, in all parts or in none.

        Args:
            chunks: What is put; of an id that comes twice the last counts.
            vectors: One row per chunk, or none.
            gone: Ids that are taken away.
        """
        rows = one_row_each(chunks, vectors)
        latest = {chunk.id: pair for chunk, *pair in zip(chunks, chunks, rows, strict=True)}
        kept = [chunk for chunk, _ in latest.values()]
        given = {
            id_: row
            for id_, (chunk, row) in latest.items()
            if row is not None and chunk.kind != "parent"
        }
        fresh = self._checked(given)
        before = self._before([*gone, *latest])
        with ExitStack() as undo:
            undo.callback(_attempt, self._restore_content, before)
            # Content comes first: what is found has content.
            self.store.put_many(kept)
            self._index(kept)
            # That was all or nothing by itself: only what fails from here on takes it back.
            undo.callback(_attempt, self._restore_index, before)
            if gone:
                self.store.delete_many(gone)
            undo.pop_all()
        # From here on nothing is left that could refuse.
        self._place(kept, given, fresh, gone=gone)
        self.registered.remove(gone)
        self.registered.add(kept)

    def _checked(self, given: dict[str, Any]) -> VectorIndex | None:
        """Refuse bad vectors while nothing is changed yet; give an index of the good ones."""
        if not given:
            return None
        known = self.vectors
        fresh = VectorIndex(len(next(iter(given.values()))) if known is None else known.dim)
        fresh.add(list(given), list(given.values()))
        return fresh

    def _before(self, ids: list[str]) -> _Before:
        content = [chunk for chunk in self.store.get_many(ids) if chunk is not None]
        texts = {chunk.id: chunk.embedding_text for chunk in content if chunk.id in self.bm25}
        return _Before(ids, content, texts)

    def _index(self, chunks: Sequence[Chunk]) -> None:
        words = [chunk for chunk in chunks if chunk.kind != "parent"]
        self.bm25.add([chunk.id for chunk in words], [chunk.embedding_text for chunk in words])

    def _place(
        self,
        chunks: Sequence[Chunk],
        given: dict[str, Any],
        fresh: VectorIndex | None,
        *,
        gone: Sequence[str],
    ) -> None:
        """Put new vectors; take away what is gone, parents, and vectors of another text."""
        parents = [chunk.id for chunk in chunks if chunk.kind == "parent"]
        self.bm25.remove([*gone, *parents])
        if self.vectors is None:
            self.vectors = fresh
            return
        stale = [c.id for c in chunks if c.id not in given and not self.has_vector(c)]
        self.vectors.remove([*gone, *parents, *stale])
        self.vectors.add(list(given), list(given.values()))

    # The way back

    def _restore_content(self, before: _Before) -> None:
        there = {chunk.id for chunk in before.content}
        if before.content:
            self.store.put_many(before.content)
        if new := [id_ for id_ in before.ids if id_ not in there]:
            self.store.delete_many(new)

    def _restore_index(self, before: _Before) -> None:
        self.bm25.remove([id_ for id_ in before.ids if id_ not in before.indexed])
        self.bm25.add(list(before.indexed), list(before.indexed.values()))


def _attempt(restore: Callable[[_Before], None], before: _Before) -> None:
    """Take a step back; what fails here must not hide why the write failed."""
    try:
        restore(before)
    except Exception:
        _logger.exception("A write failed and could not be taken back wholly")
