"""Two sizes at once: small chunks to find, the large ones that hold them to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from easyrag_core.chunking.document import ChunkNames, DocumentChunker
from easyrag_core.errors import InvalidParameterError
from easyrag_core.text import text_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from easyrag_core.types import Chunk

__all__ = ["Chunker", "ParentChildChunker", "PartChunker"]

_ID_LENGTH = 32


@runtime_checkable
class Chunker(Protocol):
    """Cuts a text into chunks; every chunker of this package is one."""

    def chunk(
        self,
        text: str,
        document_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Chunk]:
        """Cut a text into chunks."""
        ...


@runtime_checkable
class PartChunker(Protocol):
    """A chunker to which it matters where in its document a part stands."""

    def chunk_within(
        self, parent: Chunk, *, metadata: Mapping[str, Any] | None = None
    ) -> list[Chunk]:
        """Cut a chunk into smaller ones that keep their places in the document."""
        ...


class ParentChildChunker:
    r"""Cuts a text into large chunks and each of those into small ones.

    Children are what is indexed and found; their parents are what is read. Parents are as full
    as their own chunker makes them. The spans and lines of both are those of the document. A
    parent's kind is `parent`, its `metadata["child_ids"]` lists its children in order; a child
    knows its `parent_id`. A parent whose only child would be itself is given once, as a chunk
    without parent. Instances never change: share them between threads.

    >>> chunker = ParentChildChunker(DocumentChunker(60, 0), DocumentChunker(30, 0))
    >>> parent, *children = chunker.chunk("One is here. Two is there.\n\n三在这里。四在那里。")
    >>> parent.kind, [(child.text, child.parent_id == parent.id) for child in children]
    ('parent', [('One is here. Two is there.', True), ('三在这里。四在那里。', True)])
    """

    def __init__(
        self,
        parent: Chunker | None = None,
        child: Chunker | None = None,
        *,
        id_factory: Callable[[Chunk], str] | None = None,
    ) -> None:
        """Check the two chunkers.

        Args:
            parent: Makes the large chunks; `DocumentChunker(2000, 0)` by default.
            child: Makes the small ones; `DocumentChunker(400, 50)` by default.
            id_factory: Makes the id of a parent or a child from it, whose own id is still empty;
                a child's `parent_id` is already there. The chunkers' own ids are not used.

        Raises:
            InvalidParameterError: One is no chunker, the child's size is above the parent's, or
                the function cannot be called.
        """
        self._parent = DocumentChunker(2000, 0) if parent is None else parent
        self._child = DocumentChunker(400, 50) if child is None else child
        for name, chunker in (("parent", self._parent), ("child", self._child)):
            if not isinstance(chunker, Chunker):
                raise InvalidParameterError(
                    name, chunker, "give a chunker, such as DocumentChunker(400, 50)"
                )
        if id_factory is not None and not callable(id_factory):
            raise InvalidParameterError("id_factory", id_factory, "give a function")
        self._id_factory = id_factory
        self._check_sizes()

    @property
    def parent(self) -> Chunker:
        """The chunker of the large chunks."""
        return self._parent

    @property
    def child(self) -> Chunker:
        """The chunker of the small chunks."""
        return self._child

    def __repr__(self) -> str:
        """Show the settings as they would be written."""
        return f"ParentChildChunker({self._parent!r}, {self._child!r})"

    def chunk(
        self,
        text: str,
        document_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Chunk]:
        """Cut a text into parents and children.

        Args:
            text: The text as it is.
            document_id: The document's id; by default derived from the text.
            metadata: Copied, not deeply, to each chunk.

        Returns:
            Each parent followed by its children, numbered through; an empty or blank text gives
            none.

        Raises:
            InvalidParameterError: `text` is not a string, or a chunker refuses it.
        """
        return list(self.iter_chunks(text, document_id, metadata=metadata))

    def iter_chunks(
        self,
        text: str,
        document_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> Iterator[Chunk]:
        """Yield parents and children one by one; as `chunk` otherwise.

        Args:
            text: The text as it is.
            document_id: The document's id; by default derived from the text.
            metadata: Copied, not deeply, to each chunk.

        Yields:
            Each parent followed by its children.

        Raises:
            InvalidParameterError: `text` is not a string, or a chunker refuses it.
        """
        if not isinstance(text, str):
            raise InvalidParameterError(
                "text", type(text).__name__, "give a str; decode bytes first"
            )
        if document_id is None:
            document_id = text_digest(text)[:_ID_LENGTH]
        parents = self._parent.chunk(text, document_id, metadata=metadata)
        # Both kinds may say the same somewhere in a document.
        parent_names = ChunkNames(document_id, context="parent")
        child_names = ChunkNames(document_id, context="child")
        index = 0
        for parent in parents:
            family = self._family(parent, metadata)
            for member in family:
                member.index = index
                index += 1
            self._name(family, parent_names, child_names)
            yield from family

    def _family(self, parent: Chunk, metadata: Mapping[str, Any] | None) -> list[Chunk]:
        """Return a parent and its children, or the one chunk that is both."""
        children = self._children(parent, metadata)
        if len(children) == 1 and children[0].text == parent.text:
            return children
        parent.kind = "parent"
        return [parent, *children]

    def _children(self, parent: Chunk, metadata: Mapping[str, Any] | None) -> list[Chunk]:
        if isinstance(self._child, PartChunker):
            return self._child.chunk_within(parent, metadata=metadata)
        children = self._child.chunk(parent.text, parent.document_id, metadata=metadata)
        for child in children:
            child.start += parent.start
            child.end += parent.start
            child.start_line += parent.start_line - 1
            child.end_line += parent.start_line - 1
            child.heading_path = _joined(parent.heading_path, child.heading_path)
            child.language = child.language or parent.language
        return children

    def _name(self, family: list[Chunk], parents: ChunkNames, children: ChunkNames) -> None:
        parent = family[0] if len(family) > 1 else None
        for member in family:
            member.parent_id = parent.id if parent and member is not parent else None
            if self._id_factory:
                member.id = ""
                member.id = self._id_factory(member)
            else:
                names = parents if member is parent else children
                member.id = names.name(member.text, member.heading_path)
        if parent:
            parent.metadata["child_ids"] = [child.id for child in family[1:]]

    def _check_sizes(self) -> None:
        large, small = (_size_of(chunker) for chunker in (self._parent, self._child))
        if large and small and large[1] is small[1] and small[0] > large[0]:
            raise InvalidParameterError(
                "child", self._child, f"its chunk_size must not be above the parent's, {large[0]}"
            )


def _size_of(chunker: Chunker) -> tuple[int, object] | None:
    """Return a chunker's size and its unit, where it tells them."""
    size = getattr(chunker, "chunk_size", None)
    return (size, getattr(chunker, "length_function", None)) if isinstance(size, int) else None


def _joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a part, whose own path may begin with the last headings of the whole's."""
    for shared in range(min(len(outer), len(inner)), 0, -1):
        if outer[-shared:] == inner[:shared]:
            return outer + inner[shared:]
    return outer + inner
