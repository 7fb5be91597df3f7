"""Chunks, hits and fused items on one side, LangChain's Documents on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from easyrag_core import Chunk
from easyrag_core.explanation import known_channels
from easyrag_core.index.store import chunk_from_record, record_of_chunk
from easyrag_core.ranking.hit_fusion import known_score
from langchain_easyrag._given import given_documents
from langchain_easyrag._identity import document_ids, heading_path_of, own_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from easyrag_core import FusedItem, Hit, HybridIndex

__all__ = [
    "FACTS_KEY",
    "MARK_KEY",
    "OWN_KEY",
    "chunk_of_document",
    "chunks_of_documents",
    "document_of_chunk",
    "documents_of_chunks",
    "documents_of_hits",
    "documents_of_scores",
    "documents_of_stored",
    "facts_of",
    "facts_of_fused",
    "given_score",
    "kept_chunk",
    "kept_document",
    "rows_of",
    "stored_documents",
    "with_facts",
    "with_id",
    "with_mark",
]

FACTS_KEY = "easyrag"
"""The metadata key that holds what retrieval found out about a document."""

MARK_KEY = "easyrag_mark"
"""The metadata key that tells within one request what a document is, whatever becomes of it."""

OWN_KEY = "key"
"""The fact that tells what a document was known by, where that is not its id."""

_DOCUMENT_KIND = "document"
_GIVEN_ID = "easyrag_given_id"
_KEPT = "easyrag_chunk"


# Chunks


def documents_of_chunks(
    chunks: Iterable[Chunk],
    metadata: Mapping[Any, Any],
    *,
    embedded: bool,
) -> list[Document]:
    """Make one document per chunk, each with its source's metadata and its place.

    Args:
        chunks: The chunks of one source.
        metadata: The source's.
        embedded: Whether `page_content` is what is embedded, with its context, or the chunk's
            own text.

    Returns:
        Documents in the order of the chunks.
    """
    validate, new = Document.__pydantic_validator__.validate_python, Document.__new__
    documents = []
    for chunk in chunks:
        known = {**metadata, **chunk.metadata} if chunk.metadata else metadata
        fields = {
            "page_content": chunk.embedding_text if embedded else chunk.text,
            "id": chunk.id,
            "metadata": _with_place(known, chunk),
        }
        documents.append(validate(fields, self_instance=new(Document)))
    return documents


def _with_place(metadata: Mapping[Any, Any], chunk: Chunk) -> dict[Any, Any]:
    placed = {
        **metadata,
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "start_index": chunk.start,
        "end_index": chunk.end,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
    }
    if chunk.parent_id is not None:
        placed["parent_id"] = chunk.parent_id
    if chunk.heading_path:
        placed["heading_path"] = list(chunk.heading_path)
    if chunk.language:
        placed["language"] = chunk.language
    return placed


def chunk_of_document(document: Document, key: str) -> Chunk:
    """Make a chunk that `document_of_chunk` turns back into an equal document.

    What is embedded is `page_content`. Where that is a chunk of ours with context around it, the
    chunk's own text is told apart from it: that is what other rooms read.

    Args:
        document: Any document; its metadata is copied shallowly.
        key: The chunk's id, which may differ from the document's.

    Returns:
        The chunk, with its place where the metadata tell it.
    """
    metadata = dict(document.metadata)
    start = _number(metadata, "start_index", 0)
    start_line = _number(metadata, "start_line", 1)
    parent = metadata.get("parent_id")
    document_id = metadata.get("document_id")
    content, language = document.page_content, metadata.get("language")
    own = own_text(document)
    if document.id != key:
        metadata[_GIVEN_ID] = document.id
    return Chunk(
        id=key,
        document_id=document_id if isinstance(document_id, str) else key,
        index=_number(metadata, "chunk_index", 0),
        text=content if own is None else own.text,
        start=start,
        end=_number(metadata, "end_index", start + len(content)),
        start_line=start_line,
        end_line=_number(metadata, "end_line", start_line),
        heading_path=heading_path_of(metadata),
        embedding_text=content,
        parent_id=parent if isinstance(parent, str) else None,
        kind=_DOCUMENT_KIND,
        language=language if isinstance(language, str) else "",
        metadata=metadata,
    )


def chunks_of_documents(documents: Iterable[Document]) -> list[Chunk]:
    """Make one chunk per document; one without an id gets the one of `document_ids`.

    Args:
        documents: Any documents; they are not changed.

    Returns:
        Chunks in the order of the documents.

    Raises:
        InvalidParameterError: It is no list of documents.
    """
    documents = given_documents(documents)
    names = document_ids(documents)
    return list(map(chunk_of_document, map(with_id, documents, names), names))


def documents_of_stored(chunks: Iterable[Chunk]) -> list[Document]:
    """Make documents of chunks; see `document_of_chunk`."""
    return list(map(document_of_chunk, chunks))


def stored_documents(index: HybridIndex, ids: Sequence[str]) -> dict[str, Document]:
    """Look documents up in an index, in one batch.

    Args:
        index: The index.
        ids: The ids.

    Returns:
        Documents by id; those that are not there are left out.
    """
    chunks = [chunk for chunk in index.get_many(ids) if chunk is not None]
    return {chunk.id: document_of_chunk(chunk) for chunk in chunks}


def rows_of(
    chunks: Sequence[Chunk], embedded: Sequence[Chunk], vectors: Sequence[Any] | NDArray[Any]
) -> list[Any]:
    """Bring vectors into the order of the chunks.

    Args:
        chunks: All chunks.
        embedded: Those of them that were embedded.
        vectors: One per embedded chunk.

    Returns:
        One vector or `None` per chunk.
    """
    by_id = {chunk.id: row for chunk, row in zip(embedded, vectors, strict=True)}
    return [by_id.get(chunk.id) for chunk in chunks]


def _number(metadata: Mapping[Any, Any], key: str, default: int) -> int:
    value = metadata.get(key)
    return value if isinstance(value, int) and value >= 0 else default


def document_of_chunk(chunk: Chunk) -> Document:
    """Make a document from a chunk: the one it came from, else one that shows its place.

    Args:
        chunk: A chunk of the core, or one made by `chunk_of_document`.

    Returns:
        A new document; its metadata are a shallow copy.
    """
    if chunk.kind != _DOCUMENT_KIND:
        return Document(chunk.text, id=chunk.id, metadata=_with_place(chunk.metadata, chunk))
    metadata = dict(chunk.metadata)
    given_id = metadata.pop(_GIVEN_ID, chunk.id)
    return Document(chunk.embedding_text, id=given_id, metadata=metadata)


def kept_document(chunk: Chunk) -> Document:
    """Make a document that a foreign store keeps in place of a chunk: readable, and exact.

    Args:
        chunk: A chunk.

    Returns:
        A document that shows its place, with the chunk under a metadata key of our own.
    """
    document = document_of_chunk(chunk)
    document.metadata[_KEPT] = record_of_chunk(chunk)
    return document


def kept_chunk(document: Document, key: str) -> Chunk:
    """Make a chunk of what a foreign store keeps.

    Args:
        document: One of `kept_document`, or any other.
        key: The key under which it is kept.

    Returns:
        The chunk that went in, or one made of the document.
    """
    kept = document.metadata.get(_KEPT)
    return chunk_of_document(document, key) if kept is None else chunk_from_record(kept, key)


# Results


def with_id(document: Document, id_: str | None) -> Document:
    """Return a copy with an id and a shallow copy of the metadata."""
    return document.model_copy(update={"id": id_, "metadata": dict(document.metadata)})


def with_facts(document: Document, facts: Mapping[str, Any]) -> Document:
    """Return a copy whose metadata say why the document was found; the original stays as it is."""
    metadata = {**document.metadata, FACTS_KEY: facts}
    return document.model_copy(update={"metadata": metadata})


def with_mark(document: Document, mark: str | int | None) -> Document:
    """Return a copy with a mark; `None` for none, and then what has none is not copied."""
    if mark is None and MARK_KEY not in document.metadata:
        return document
    metadata = {**document.metadata, MARK_KEY: mark}
    if mark is None:
        del metadata[MARK_KEY]
    return document.model_copy(update={"metadata": metadata})


def facts_of(document: Document) -> dict[str, Any]:
    """Return what an earlier step of ours found out about a document, or an empty dict."""
    facts = document.metadata.get(FACTS_KEY)
    return facts if isinstance(facts, dict) else {}


def given_score(document: Document, *, score_key: str | None = None) -> float | None:
    """Return a document's score, higher is better: ours, else the one under `score_key`.

    What is no number counts as no score.
    """
    score = facts_of(document).get("score")
    if score is None and score_key is not None:
        score = document.metadata.get(score_key)
    return known_score(score)


def documents_of_hits(
    hits: Iterable[Hit], documents: Mapping[str, Document | None]
) -> list[Document]:
    """Return copies of the documents that were hit, in order, each with its facts.

    Args:
        hits: Hits of a search.
        documents: Documents by id; a hit whose document has gone meanwhile is left out.

    Returns:
        Documents with rank, score and channels under `FACTS_KEY`; ranks count what is left.
    """
    found = [(hit, document) for hit in hits if (document := documents.get(hit.id)) is not None]
    return [
        with_facts(document, _facts_of_hit(hit, rank))
        for rank, (hit, document) in enumerate(found, start=1)
    ]


def documents_of_scores(pairs: Sequence[tuple[Document, float]]) -> list[Document]:
    """Return copies of what a vector store found, best first, each with its score.

    Some stores give similarities, others distances. Both come best first: scores that grow down
    the list are distances, and are negated so that higher is better.

    Args:
        pairs: Documents with scores, best first.

    Returns:
        Documents with rank and score under `FACTS_KEY`.
    """
    sign = -1.0 if pairs and pairs[-1][1] > pairs[0][1] else 1.0
    return [
        with_facts(document, {"score": sign * float(score), "rank": rank})
        for rank, (document, score) in enumerate(pairs, start=1)
    ]


def _facts_of_hit(hit: Hit, rank: int) -> dict[str, Any]:
    channels = {
        name: {"rank": place.rank, "score": place.score} for name, place in hit.channels.items()
    }
    return {"score": hit.score, "rank": rank, "channels": channels}


def facts_of_fused(
    item: FusedItem[Hashable], rank: int, sources: Mapping[str, Document | None]
) -> dict[str, Any]:
    """Tell a fused document's score and what each ranking said.

    Args:
        item: The fused item.
        rank: Its rank, from 1.
        sources: Ranking name to the document as that ranking gave it.

    Returns:
        Plain JSON values.
    """
    channels = {
        name: _channel_facts(source, place)
        for (name, source), place in zip(sources.items(), item.ranks, strict=True)
        if place is not None and source is not None
    }
    return {"score": item.score, "rank": rank, "channels": channels}


def _channel_facts(document: Document, rank: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"rank": rank, "score": given_score(document)}
    inner = known_channels(facts_of(document).get("channels"))
    return {**facts, "channels": inner} if len(inner) > 1 else facts
