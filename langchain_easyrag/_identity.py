"""What tells one document from another."""

from __future__ import annotations

from itertools import chain, product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from easyrag_core.chunking.document import ChunkNames
from easyrag_core.text import text_digest

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from langchain_core.documents import Document

__all__ = [
    "OwnText",
    "chunk_key",
    "content_id",
    "content_key",
    "document_ids",
    "fusion_keys",
    "heading_path_of",
    "keys_by_content",
    "own_key",
    "own_text",
    "source_of",
]

_ID_LENGTH = 32
_MARK_LENGTH = 8
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
    digest = text_digest(text, prefix=prefix)
    return (_mark_of(source) + digest)[:_ID_LENGTH]


def _mark_of(source: str) -> str:
    """Return how the ids begin that are derived from a source."""
    return text_digest(source)[:_MARK_LENGTH] if source else ""


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
    document changes the places, and with them the keys, of all its chunks. This key stays for a
    chunk of ours whose text was not changed since. It is the chunk's id; if that id goes back to
    the content of a whole document that had none of its own, it depends on the source instead.
    For any other document it depends on the content and on the id, or on the source where there
    is no id.

    Args:
        document: A chunk, or any document.

    Returns:
        32 lower-case hex digits.

    >>> from langchain_core.documents import Document
    >>> chunk_key(Document("a")) == chunk_key(Document("a", metadata={"start_index": 7}))
    True
    """
    source = source_of(document.metadata)
    own = own_text(document)
    if own is None:
        return content_id(document.page_content, document.id or source)
    if not source or not own.document_id.startswith(_mark_of(source)):
        return _with_frame(own.name, own.frame)
    told = "\0".join((source, *heading_path_of(document.metadata), *own.frame, own.text))
    return text_digest(told, prefix=f"{own.ordinal}\0")[:_ID_LENGTH]


class OwnText(NamedTuple):
    """A chunk of ours, proved by its id.

    Attributes:
        text: Its text, without the context around it.
        frame: What of that context neither its id nor its text tell.
        name: Its id as its splitter gave it.
        document_id: Its document's id.
        ordinal: How many equal ones stand before it in the document.
    """

    text: str
    frame: tuple[str, ...]
    name: str
    document_id: str
    ordinal: int


def own_text(document: Document) -> OwnText | None:
    """Tell the text of a chunk of ours from the context that stands around it.

    The id of a chunk is made of its text, so it proves which part of `page_content` that is.

    Args:
        document: Any document.

    Returns:
        What was found; `None` for a document that is no chunk of ours, or was changed since.
    """
    metadata, content = document.metadata, document.page_content
    document_id, index = metadata.get("document_id"), metadata.get("chunk_index")
    if document.id is None or not isinstance(document_id, str) or not isinstance(index, int):
        return None
    if len(document.id) != _ID_LENGTH:
        return None
    places, namings = list(_candidates(content, metadata)), _namings(metadata)
    # Of equal chunks, each has a name of its own; there are no more than stand before it.
    for tries in (1, min(index + 1, _EQUAL_CHUNKS)):
        for (start, end), (context, path) in product(places, namings):
            text, lead, trail = content[start:end], content[:start], content[end:]
            frame = () if context or _is_path(lead, trail, path) else (lead, trail)
            names = ChunkNames(document_id, context=context)
            for ordinal in range(tries):
                name = names.name(text, path)
                if document.id in (name, _with_frame(name, frame)):
                    return OwnText(text, frame, name, document_id, ordinal)
    return None


def heading_path_of(metadata: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the titles above a chunk; none where metadata say something else."""
    path = metadata.get("heading_path")
    known = isinstance(path, list | tuple) and all(isinstance(title, str) for title in path)
    return tuple(path) if path and known else ()


def _candidates(content: str, metadata: Mapping[Any, Any]) -> Iterator[tuple[int, int]]:
    """Give the places in a `page_content` where the chunk's own text may stand: whole lines."""
    start, end = metadata.get("start_index"), metadata.get("end_index")
    if not isinstance(start, int) or not isinstance(end, int):
        yield 0, len(content)
        return
    length, place = end - start, 0
    while 0 < length <= len(content) - place:
        if place + length == len(content) or content[place + length] in "\r\n":
            yield place, place + length
        place = content.find("\n", place) + 1
        if not place:
            return


def _namings(metadata: Mapping[Any, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the contexts and paths with which our chunkers name what has these metadata."""
    paths = dict.fromkeys((heading_path_of(metadata), ()))
    language, file_path = metadata.get("language") or "", metadata.get("file_path") or ""
    plain = product(("", "child", "parent"), paths)
    return [*plain, (f"{language}\0{file_path}", ())]


def _is_path(lead: str, trail: str, path: tuple[str, ...]) -> bool:
    """Tell whether there is nothing around a text but the titles above it."""
    if trail or not lead:
        return not trail
    return bool(path) and lead.startswith("[") and lead.endswith("]\n\n")


def _with_frame(name: str, frame: tuple[str, ...]) -> str:
    return text_digest("\0".join((name, *frame)))[:_ID_LENGTH] if frame else name


def own_key(document: Document, id_key: str | None) -> str | None:
    """Return what a document itself says that it is.

    Args:
        document: The document.
        id_key: Metadata key chosen by the user.

    Returns:
        The metadata value under `id_key` as text, where there is one, else the id.
    """
    value = None if id_key is None else document.metadata.get(id_key)
    return document.id if value is None else str(value)


def content_key(document: Document) -> tuple[str, str]:
    """Return content and source, by which documents are one that say nothing themselves."""
    return document.page_content, source_of(document.metadata)


def fusion_keys(
    rankings: Sequence[Sequence[Document]], *, id_key: str | None = None
) -> list[list[Hashable]]:
    """Return what tells documents apart when rankings are fused.

    That is the metadata value under `id_key` where there is one, else the id, else content and
    source. A document that has neither value nor id is the same as one that has, and is equal in
    both: retrievers over one corpus do not all hand the ids on.

    Args:
        rankings: Documents, best first, one sequence per ranking.
        id_key: Metadata key chosen by the user.

    Returns:
        Keys in the shape of `rankings`.
    """
    keys = _own_keys(rankings, id_key)
    if _all_there(keys):
        return keys
    contents = [list(map(content_key, ranking)) for ranking in rankings]
    known = _by_content(keys, contents)
    return [
        [known.get(content, content) if key is None else key for key, content in pairs]
        for pairs in map(zip, keys, contents)
    ]


def keys_by_content(
    rankings: Sequence[Sequence[Document]], *, id_key: str | None = None
) -> dict[tuple[str, str], str]:
    """Return the keys that `fusion_keys` gives to documents that have none themselves.

    Args:
        rankings: As for `fusion_keys`.
        id_key: As for `fusion_keys`.

    Returns:
        Content and source to the key of a document that has one; empty where all have.
    """
    keys = _own_keys(rankings, id_key)
    if _all_there(keys):
        return {}
    return _by_content(keys, [list(map(content_key, ranking)) for ranking in rankings])


def _own_keys(rankings: Sequence[Sequence[Document]], id_key: str | None) -> list[list[Hashable]]:
    if id_key is None:
        return [list(map(_ID, ranking)) for ranking in rankings]
    return [[own_key(document, id_key) for document in ranking] for ranking in rankings]


def _all_there(keys: Sequence[Sequence[Hashable]]) -> bool:
    # An empty id is none either as far as the quick look goes; the next one tells them apart.
    return all(map(all, keys)) or not any(None in row for row in keys)


def _by_content(
    keys: Sequence[Sequence[Any]], contents: Sequence[Sequence[tuple[str, str]]]
) -> dict[tuple[str, str], str]:
    """Return the first key of each content and source."""
    known: dict[tuple[str, str], str] = {}
    for key, content in chain.from_iterable(map(zip, keys, contents)):
        if key is not None:
            known.setdefault(content, key)
    return known
