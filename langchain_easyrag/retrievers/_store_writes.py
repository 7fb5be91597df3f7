"""Writes into a vector store and an index: in both, or in neither."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from langchain_core.runnables import run_in_executor

from easyrag_core.plans import adriven, driven

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_core.documents import Document
    from langchain_core.vectorstores import VectorStore

    from easyrag_core import Chunk, HybridIndex

__all__ = ["StoreWrite"]

_logger = logging.getLogger(__name__)

_READ_AT_ONCE = 1000
_TAKEN = re.compile(r"already (exist|present|there)|duplicate", re.IGNORECASE)

R = TypeVar("R")
_Plan: TypeAlias = Generator[Callable[[], Any], Any, R]
"""Yields what is to be called, and is sent what that gives."""


class _Ask:
    """A call of the framework's that has an async twin."""

    def __init__(self, target: Any, method: str, *args: Any, **kwargs: Any) -> None:
        self._target, self._method = target, method
        self._args, self._kwargs = args, kwargs

    def __call__(self) -> Any:
        return getattr(self._target, self._method)(*self._args, **self._kwargs)

    async def awaited(self) -> Any:
        twin = getattr(self._target, f"a{self._method}", None)
        if twin is None:
            return await run_in_executor(None, self)
        return await twin(*self._args, **self._kwargs)


@dataclass(frozen=True, slots=True)
class StoreWrite(Generic[R]):
    """One write into a vector store and an index.

    The store comes first: where it fails, the index stays as it was. Where either fails, the
    store is brought back to what the index says, as far as it goes along, and the error goes on.

    Attributes:
        store: The vector store.
        index: Tells what was there where the store does not.
        new: What the store has to hold afterwards, by id.
        gone: The ids of what it must not hold any more; those that are not there are ignored.
        write: The write into the index.
        stored: Gives chunks of the index as the documents that the store holds.
    """

    store: VectorStore
    index: HybridIndex
    new: Mapping[str, Document]
    gone: Sequence[str]
    write: Callable[[], R]
    stored: Callable[[Iterable[Chunk]], list[Document]]

    def run(self) -> R:
        """Write.

        Returns:
            What `write` gave.

        Raises:
            Exception: The store's or the index's own error.
        """
        return driven(self._plan(), lambda ask: ask())

    async def arun(self) -> R:
        """Write: the async twin of `run`."""
        return await adriven(self._plan(), _answered)

    @property
    def _ids(self) -> list[str]:
        return list(dict.fromkeys((*self.new, *self.gone)))

    def _plan(self) -> _Plan[R]:
        old = yield self._indexed
        there = yield from self._there()
        before, added = old if there is None else there, False
        try:
            yield from self._put(self.new, before)
            added = True
            yield from self._drop(there, old)
            written: R = yield self.write
        except Exception:
            now = yield from self._now(old)
            # What the index has taken already stays in the store as well.
            undone = [id_ for id_ in self._ids if now.get(id_) == old.get(id_)]
            lost = {id_: before[id_] for id_ in undone if id_ in before}
            # A store that cannot tell may have held before what it did not take now.
            known = added or there is not None
            strays = [id_ for id_ in undone if known and id_ in self.new and id_ not in before]
            yield from self._restored(lost, strays)
            raise
        return written

    def _indexed(self) -> dict[str, Document]:
        """Give what the index holds of these ids, as the store would hold it."""
        chunks = [chunk for chunk in self.index.get_many(self._ids) if chunk is not None]
        return {c.id: document for c, document in zip(chunks, self.stored(chunks), strict=True)}

    def _now(self, old: dict[str, Document]) -> _Plan[dict[str, Document]]:
        """Give what the index holds after a failure; what it held, if it cannot be read."""
        try:
            now: dict[str, Document] = yield self._indexed
        except Exception as error:  # noqa: BLE001 - the first error is the one to tell
            _logger.warning("The index cannot be read after a failure: %r", error)
            return old
        return now

    def _there(self) -> _Plan[dict[str, Document] | None]:
        """Give what the store holds of these ids; `None` if it cannot tell."""
        ids, found = self._ids, list[Any]()
        try:
            for start in range(0, len(ids), _READ_AT_ONCE):
                batch = ids[start : start + _READ_AT_ONCE]
                found += yield _Ask(self.store, "get_by_ids", batch)
        except Exception as error:  # noqa: BLE001 - some refuse ids of another form than theirs
            _logger.debug("%s gives no documents by id: %r", type(self.store).__name__, error)
            return None
        by_id = {document.id: document for document in found}
        # Some write ids in another form: then they do not tell which of these are there.
        return by_id if by_id.keys() <= set(ids) else None

    def _put(self, documents: Mapping[str, Document], here: Collection[str]) -> _Plan[None]:
        """Add documents, in the place of those that are here."""
        if not documents:
            return
        replaced = [id_ for id_ in documents if id_ in here]
        add = _Ask(self.store, "add_documents", list(documents.values()), ids=list(documents))
        if replaced and hasattr(self.store, "docstore"):
            # FAISS refuses an id that is there, but only after it has taken its vector.
            add = (yield from self._embedded(documents)) or add
        else:
            try:
                yield add
            except Exception as error:
                if not replaced or not _TAKEN.search(str(error)):
                    raise
            else:
                return
        yield _Ask(self.store, "delete", replaced)
        yield add

    def _embedded(self, documents: Mapping[str, Document]) -> _Plan[_Ask | None]:
        """Embed documents before others make room for them: that may fail."""
        model = self.store.embeddings
        if model is None or not hasattr(self.store, "add_embeddings"):
            return None
        texts = [document.page_content for document in documents.values()]
        vectors = yield _Ask(model, "embed_documents", texts)
        return _Ask(
            self.store,
            "add_embeddings",
            list(zip(texts, vectors, strict=True)),
            [dict(document.metadata) for document in documents.values()],
            list(documents),
        )

    def _drop(self, there: Collection[str] | None, old: Collection[str]) -> _Plan[None]:
        """Remove what has gone and is there; some stores refuse to remove what is not."""
        gone = [id_ for id_ in dict.fromkeys(self.gone) if there is None or id_ in there]
        if not gone:
            return
        try:
            yield _Ask(self.store, "delete", gone)
        except Exception:
            known = [id_ for id_ in gone if id_ in old]
            if there is not None or known == gone:
                raise
            if known:
                yield _Ask(self.store, "delete", known)

    def _restored(self, lost: Mapping[str, Document], strays: Sequence[str]) -> _Plan[None]:
        there = yield from self._there()
        here = lost if there is None else there
        missing = {id_: one for id_, one in lost.items() if there is None or there.get(id_) != one}
        stray = [id_ for id_ in strays if there is None or id_ in there]
        for mend in (self._put(missing, here), self._away(stray)):
            try:
                yield from mend
            except Exception as error:  # noqa: BLE001 - the first error is the one to tell
                _logger.warning("The vector store could not be brought back: %r", error)

    def _away(self, ids: list[str]) -> _Plan[None]:
        if ids:
            yield _Ask(self.store, "delete", ids)


async def _answered(ask: Callable[[], Any]) -> Any:
    return await (ask.awaited() if isinstance(ask, _Ask) else run_in_executor(None, ask))
