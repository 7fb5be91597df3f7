"""Documents in any chunk store, as LangChain's key-value stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from typing_extensions import override

from easyrag_core import InMemoryChunkStore
from langchain_easyrag._convert import chunk_of_document, document_of_chunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from easyrag_core import ChunkStore

__all__ = ["ChunkDocstore"]


class ChunkDocstore(BaseStore[str, Document]):
    """Keep documents by key in a `ChunkStore`: in memory, in SQLite, or in any other.

    Documents come back equal to what was put in. Chunks that the core put into the same store
    come back as documents that show their place.

    Instantiate:
        ```python
        from easyrag_core import SQLiteChunkStore
        from langchain_easyrag import ChunkDocstore

        docstore = ChunkDocstore(SQLiteChunkStore("chunks.sqlite"))
        ```

    Use:
        ```python
        docstore.mset([("a", document)])
        docstore.mget(["a", "b"])  # [document, None]
        ```
    """

    def __init__(self, store: ChunkStore | None = None) -> None:
        """Wrap a store.

        Args:
            store: Any chunk store. Default: a new one in memory.
        """
        self.store: ChunkStore = InMemoryChunkStore() if store is None else store

    @override
    def mget(self, keys: Sequence[str]) -> list[Document | None]:
        """Look documents up.

        Args:
            keys: The keys.

        Returns:
            One document per key, in the order of the keys; `None` for what is not there.
        """
        chunks = self.store.get_many(list(keys))
        return [None if chunk is None else document_of_chunk(chunk) for chunk in chunks]

    @override
    def mset(self, key_value_pairs: Sequence[tuple[str, Document]]) -> None:
        """Put documents in; one that is there under the same key is replaced.

        Args:
            key_value_pairs: Keys with their documents.
        """
        self.store.put_many([chunk_of_document(value, key) for key, value in key_value_pairs])

    @override
    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove documents; keys that are not there are ignored.

        Args:
            keys: The keys.
        """
        self.store.delete_many(list(keys))

    @override
    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Give all keys.

        Args:
            prefix: Give only those that begin like this.

        Yields:
            The keys.
        """
        yield from (key for key in self.store.ids() if prefix is None or key.startswith(prefix))
