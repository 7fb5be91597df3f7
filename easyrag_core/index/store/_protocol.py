"""What a store of chunks must do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from easyrag_core.types import Chunk

__all__ = ["ChunkStore"]


@runtime_checkable
class ChunkStore(Protocol):
    """Chunks by id, in batches: one round trip per call.

    What a store hands out belongs to the caller: to change it does not change the store.
    """

    def get_many(self, ids: Sequence[str]) -> list[Chunk | None]:
        """Look chunks up.

        Args:
            ids: The ids; one may come several times.

        Returns:
            One entry per id, in the same order; `None` where there is no such chunk.
        """
        ...

    def put_many(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks, and replace those whose id is already here. All or nothing.

        Args:
            chunks: The chunks; of an id that comes twice the last counts.
        """
        ...

    def delete_many(self, ids: Iterable[str]) -> int:
        """Delete chunks.

        Args:
            ids: The ids; unknown ones are ignored.

        Returns:
            How many were deleted.
        """
        ...

    def children_of(self, parent_id: str) -> list[str]:
        """Give the ids of the chunks whose `parent_id` this is.

        Args:
            parent_id: A chunk's id; the parent itself need not be here.

        Returns:
            Ids by the chunks' index in their document.
        """
        ...

    def parents_of(self, ids: Sequence[str]) -> dict[str, str | None]:
        """Give the parents' ids.

        Args:
            ids: Ids of children.

        Returns:
            Child id to parent id, `None` where it has none; unknown ids are left out.
        """
        ...

    def delete_document(self, document_id: str) -> list[str]:
        """Delete all chunks of a document.

        Args:
            document_id: The document.

        Returns:
            Ids of what was deleted, by the chunks' index.
        """
        ...

    def ids(self) -> list[str]:
        """Give all ids, in the order in which they were first added."""
        ...
