"""Which chunks an index holds, of which document, made of which text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from easyrag_core.errors import IndexFormatError
from easyrag_core.index._folder import FolderContents
from easyrag_core.text import text_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from easyrag_core.types import Chunk

__all__ = ["Registered"]


class Registered:
    """Chunk ids by document, with a digest of the text that was indexed."""

    def __init__(self) -> None:
        """Start empty."""
        self._digests: dict[str, str] = {}
        self._document_of: dict[str, str] = {}
        self._documents: dict[str, dict[str, None]] = {}

    def __copy__(self) -> Registered:
        """Copy all tables."""
        other = Registered()
        other._digests = dict(self._digests)
        other._document_of = dict(self._document_of)
        other._documents = {key: dict(ids) for key, ids in self._documents.items()}
        return other

    def __len__(self) -> int:
        """Count the chunks."""
        return len(self._document_of)

    def __contains__(self, id_: object) -> bool:
        """Whether a chunk is registered."""
        return id_ in self._document_of

    def documents(self) -> list[str]:
        """Return the documents in the order in which they came."""
        return list(self._documents)

    def chunks_of(self, document_id: str) -> list[str]:
        """Return the ids of a document's chunks."""
        return list(self._documents.get(document_id, ()))

    def is_unchanged(self, chunk: Chunk) -> bool:
        """Tell whether the text that was indexed under this id is this chunk's."""
        return self._digests.get(chunk.id) == text_digest(chunk.embedding_text)

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Register chunks, or register them anew."""
        for chunk in chunks:
            self._enter(chunk.id, chunk.document_id, text_digest(chunk.embedding_text))

    def remove(self, ids: Iterable[str]) -> None:
        """Forget chunks; unknown ids are ignored."""
        for id_ in ids:
            document = self._document_of.pop(id_, None)
            self._digests.pop(id_, None)
            if document is not None:
                del self._documents[document][id_]
                if not self._documents[document]:
                    del self._documents[document]

    def _enter(self, id_: str, document_id: str, digest: str) -> None:
        if self._document_of.get(id_, document_id) != document_id:
            self.remove([id_])
        self._digests[id_] = digest
        self._document_of[id_] = document_id
        self._documents.setdefault(document_id, {})[id_] = None

    def contents(self) -> FolderContents:
        """Return what goes to disk."""
        return FolderContents(
            texts={
                "ids": list(self._document_of),
                "documents": list(self._document_of.values()),
                "digests": [self._digests[id_] for id_ in self._document_of],
            }
        )

    @classmethod
    def from_contents(cls, contents: FolderContents) -> Registered:
        """Rebuild from what `contents` returned."""
        registered = cls()
        try:
            texts = contents.texts
            rows = zip(texts["ids"], texts["documents"], texts["digests"], strict=True)
            for row in rows:
                registered._enter(*row)
        except (KeyError, ValueError) as error:
            raise IndexFormatError(
                f"The saved list of chunks is incomplete ({error}): rebuild the index."
            ) from error
        return registered
