"""What tells one document from another."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from easyrag_core.chunking.document import ChunkNames
from easyrag_core.text import text_digest

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from langchain_core.documents import Document

__all__ = ["chunk_key", "content_id", "document_ids", "fusion_keys", "source_of"]

_ID_LENGTH = 32
_EQUAL_CHUNKS = 64
_ID = attrgetter("id")


def source_of(metadata: Mapping[Any, Any]) -> str:
    """Return where a document comes from, as LangChain's loaders note it; empty if unknown."""
    source = metadata.get("source")
    return "" if source is None else str(source)


def content_id(text: str, source: str = "", *, ordinal: int = 0) -> str:
    """Derive an id from a text and its source, the same in every process.

    Args:
        text: The content.
        source: Where it comes from; equal texts of two sources are two documents.
        ordinal: How many equal ones stand before it.

    Returns:
        32 lower-case hex digits.
    """
    prefix = f"{source}\0{ordinal}\0" if source or ordinal else ""
    return text_digest(text, prefix=prefix)[:_ID_LENGTH]


def document_ids(documents: Sequence[Document]) -> list[str]:
    """Return one id per document: its own, else one derived from content and source.

    Documents without an id that are equal in both get different ids, in the order given, so
    that none of them is lost.

    Args:
        documents: The documents; they are not changed.

    Returns:
        Ids in the order of the documents.
    """
    seen: dict[tuple[str, str], int] = {}
    ids = []
    for document in documents:
        if document.id is not None:
            ids.append(document.id)
            continue
        twin = (document.page_content, source_of(document.metadata))
        seen[twin] = seen.get(twin, -1) + 1
        ids.append(content_id(*twin, ordinal=seen[twin]))
    return ids


def chunk_key(document: Document) -> str:
    """Return a key for LangChain's `index(key_encoder=…)` that does not depend on the position.

    LangChain's own keys hash the metadata too, so one character inserted at the top of a
    document changes the places, and with them the keys, of all its chunks. This key stays: for
    a chunk of ours whose text was not changed since, it is its id. For any other document it
    depends on the content and on the id, or on the source where there is no id.

    Args:
        document: A chunk, or any document.

    Returns:
        32 lower-case hex digits.

    >>> from langchain_core.documents import Document
    >>> chunk_key(Document("a")) == chunk_key(Document("a", metadata={"start_index": 7}))
    True
    """
    if document.id is not None and _is_named_by_content(document):
        return document.id
    return content_id(document.page_content, document.id or source_of(document.metadata))


def _is_named_by_content(document: Document) -> bool:
    document_id = document.metadata.get("document_id")
    index = document.metadata.get("chunk_index")
    if not isinstance(document_id, str) or not isinstance(index, int):
        return False
    names = ChunkNames(document_id)
    path = tuple(document.metadata.get("heading_path", ()))
    # Of equal chunks, each has a name of its own; there are no more than stand before it.
    tries = range(min(index + 1, _EQUAL_CHUNKS))
    return any(names.name(document.page_content, path) == document.id for _ in tries)


def fusion_keys(
    rankings: Sequence[Sequence[Document]], *, id_key: str | None = None
) -> list[list[Hashable]]:
    """Return what tells documents apart when rankings are fused.

    That is the metadata value under `id_key` where there is one, else the id, else content and
    source. A document without an id is the same as one with an id that is equal in both:
    retrievers over one corpus do not all hand the ids on.

    Args:
        rankings: Documents, best first, one sequence per ranking.
        id_key: Metadata key chosen by the user.

    Returns:
        Keys in the shape of `rankings`.
    """
    keys: list[list[Hashable]] = [list(map(_ID, ranking)) for ranking in rankings]
    if any(None in ids for ids in keys):
        keys = _with_contents(keys, rankings)
    if id_key is not None:
        for ids, ranking in zip(keys, rankings, strict=True):
            ids[:] = [d.metadata.get(id_key, id_) for d, id_ in zip(ranking, ids, strict=True)]
    return keys


def _with_contents(
    keys: Sequence[Sequence[Hashable]], rankings: Sequence[Sequence[Document]]
) -> list[list[Hashable]]:
    """Put content and source where there is no id, or the id of a document equal in both."""
    contents: list[list[Hashable]] = [
        [(d.page_content, str(d.metadata.get("source"))) for d in ranking] for ranking in rankings
    ]
    pairs = [list(zip(ids, twins, strict=True)) for ids, twins in zip(keys, contents, strict=True)]
    known: dict[Hashable, Hashable] = {}
    for id_, twin in chain.from_iterable(pairs):
        if id_ is not None:
            known.setdefault(twin, id_)
    return [[known.get(twin, twin) if id_ is None else id_ for id_, twin in row] for row in pairs]
