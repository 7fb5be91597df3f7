"""A store in front of a slower one."""

from __future__ import annotations

import copy
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from easyrag_core.errors import InvalidParameterError, check_count, check_number
from easyrag_core.index.store._checks import checked_ids
from easyrag_core.index.store._copy import copied
from easyrag_core.index.store._memory import InMemoryChunkStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from easyrag_core.index.store._protocol import ChunkStore
    from easyrag_core.types import Chunk

__all__ = ["CachedChunkStore"]


class CachedChunkStore:
    """Keeps the chunks that were read last; everything else goes to the store behind it.

    Writes through this store are seen at once. Writes of other processes are seen when an entry
    has grown older than `ttl`, or was pushed out. Misses are not kept. Safe to share between
    threads.
    """

    def __init__(
        self,
        store: ChunkStore,
        *,
        maxsize: int = 10_000,
        ttl: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put a cache in front of a store.

        Args:
            store: The store behind.
            maxsize: How many chunks are kept; the one unused for longest goes first.
            ttl: Seconds after which a chunk is read again; `None` keeps it.
            clock: Gives the time in seconds.

        Raises:
            InvalidParameterError: `maxsize` is below 1, or `ttl` is not above 0.
        """
        self._store = store
        self._maxsize = check_count("maxsize", maxsize, minimum=1)
        allowed = "give seconds above 0, or None"
        self._ttl = float("inf") if ttl is None else check_number("ttl", ttl, allowed=allowed)
        if self._ttl <= 0:
            raise InvalidParameterError("ttl", ttl, allowed)
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[Chunk, float]] = OrderedDict()
        self._writes = 0

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock and what is cached behind."""
        return self.__dict__ | {"_lock": None, "_entries": OrderedDict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a new lock."""
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __copy__(self) -> CachedChunkStore:
        """Copy with an empty cache, before a copy of what is behind if that is in memory."""
        store = self._store
        if isinstance(store, InMemoryChunkStore | CachedChunkStore):
            store = copy.copy(store)
        other = type(self).__new__(type(self))
        other.__setstate__(self.__getstate__() | {"_store": store})
        return other

    def __repr__(self) -> str:
        """Show the sizes and the store behind."""
        return f"<CachedChunkStore with {len(self._entries)}/{self._maxsize} of {self._store!r}>"

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up, in the order of the ids; `None` where there is none."""
        wanted = checked_ids(ids)
        with self._lock:
            writes = self._writes
            found = self._fresh(wanted)
        if missing := [id_ for id_ in dict.fromkeys(wanted) if id_ not in found]:
            answers = zip(missing, self._store.get_many(missing), strict=True)
            read = {id_: chunk for id_, chunk in answers if chunk is not None}
            found |= read
            with self._lock:
                # What was read before a write may be older than the write.
                if self._writes == writes:
                    self._keep(read)
        return [copied(found[id_]) if id_ in found else None for id_ in wanted]

    def put_many(self, chunks: Iterable[Chunk]) -> None:
        """Add or replace chunks in the store behind."""
        written = list(chunks)
        with self._writing() as forget:
            self._store.put_many(written)
            forget(chunk.id for chunk in written)

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete chunks in the store behind and tell how many there were."""
        gone = checked_ids(ids)
        with self._writing() as forget:
            number = self._store.delete_many(gone)
            forget(gone)
        return number

    def delete_document(self, document_id: str) -> list[str]:
        """Delete a document in the store behind and give the chunks' ids."""
        with self._writing() as forget:
            gone = self._store.delete_document(document_id)
            forget(gone)
        return gone

    def children_of(self, parent_id: str) -> list[str]:
        """Ask the store behind for a parent's children."""
        return self._store.children_of(parent_id)

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Ask the store behind for the parents of those that are not cached."""
        wanted = checked_ids(ids)
        with self._lock:
            known = {id_: chunk.parent_id for id_, chunk in self._fresh(wanted).items()}
        missing = [id_ for id_ in dict.fromkeys(wanted) if id_ not in known]
        return known | self._store.parents_of(missing) if missing else known

    def ids(self) -> list[str]:
        """Ask the store behind for all ids."""
        return self._store.ids()

    def _fresh(self, ids: Iterable[str]) -> dict[str, Chunk]:
        oldest = self._clock() - self._ttl
        fresh = {}
        for id_ in dict.fromkeys(ids):
            if (entry := self._entries.get(id_)) is None:
                continue
            chunk, read_at = entry
            if read_at <= oldest:
                del self._entries[id_]
                continue
            self._entries.move_to_end(id_)
            fresh[id_] = chunk
        return fresh

    def _keep(self, chunks: dict[str, Chunk]) -> None:
        now = self._clock()
        for id_, chunk in chunks.items():
            self._entries[id_] = (chunk, now)
            self._entries.move_to_end(id_)
        while len(self._entries) > self._maxsize:
            self._entries.popitem(last=False)

    @contextmanager
    def _writing(self) -> Iterator[Callable[[Iterable[str]], None]]:
        """Forget what a write touched, and everything when the write failed half-way."""

        def forget(ids: Iterable[str]) -> None:
            touched.extend(ids)

        touched: list[str] = []
        failed = True
        try:
            yield forget
            failed = False
        finally:
            with self._lock:
                self._writes += 1
                if failed:
                    self._entries.clear()
                for id_ in touched:
                    self._entries.pop(id_, None)
