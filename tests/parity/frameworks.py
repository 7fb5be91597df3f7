"""The two frameworks side by side: one embedding model, and results as plain values."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core import Document as IndexDocument
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llama_index.core.schema import BaseNode, NodeWithScore

__all__ = [
    "MODES",
    "Found",
    "Place",
    "WordEmbedding",
    "WordEmbeddings",
    "documents",
    "found_documents",
    "found_nodes",
    "nodes",
    "place_of_document",
    "place_of_node",
    "sources",
    "word_vector",
]

DIMENSIONS = 32


# Two ways to ask


def _sync(framework: Any, name: str, *arguments: Any, **settings: Any) -> Any:
    return getattr(framework, name)(*arguments, **settings)


def _async(framework: Any, name: str, *arguments: Any, **settings: Any) -> Any:
    async def ask() -> Any:
        return await getattr(framework, f"a{name}")(*arguments, **settings)

    return asyncio.run(ask())


MODES: dict[str, Callable[..., Any]] = {"sync": _sync, "async": _async}
"""How a method is called: by its name, or by its async twin's, which has an `a` before it."""


# One model for both


def word_vector(text: str) -> list[float]:
    """A vector of the text's words and characters, the same in any process."""
    row = np.zeros(DIMENSIONS)
    for term in [*text.lower().split(), *text.lower()]:
        row[zlib.crc32(term.encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1
    return row.tolist()


class WordEmbeddings(Embeddings):
    """LangChain's side of the model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(word_vector, texts))

    def embed_query(self, text: str) -> list[float]:
        return word_vector(text)


class WordEmbedding(BaseEmbedding):
    """LlamaIndex's side of the model."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return word_vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return word_vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return word_vector(query)


# What goes in


def sources(texts: Iterable[str]) -> tuple[list[Document], list[IndexDocument]]:
    """The same documents for both, to be cut."""
    pairs = [(f"doc{number}", text) for number, text in enumerate(texts)]
    return (
        [Document(text, id=id_) for id_, text in pairs],
        [IndexDocument(text=text, id_=id_) for id_, text in pairs],
    )


def documents(texts: dict[str, str]) -> list[Document]:
    """Passages for LangChain."""
    return [Document(text, id=id_) for id_, text in texts.items()]


def nodes(texts: dict[str, str]) -> list[TextNode]:
    """The same passages for LlamaIndex."""
    return [TextNode(text=text, id_=id_) for id_, text in texts.items()]


# What comes out


class Place(NamedTuple):
    """A chunk, as both frameworks tell it."""

    text: str
    id: str
    document_id: str
    index: int
    start: int
    end: int
    start_line: int
    end_line: int


def place_of_document(document: Document) -> Place:
    """Read a LangChain document."""
    told = document.metadata
    keys = ("document_id", "chunk_index", "start_index", "end_index", "start_line", "end_line")
    return Place(document.page_content, document.id, *(told[key] for key in keys))


def place_of_node(node: BaseNode) -> Place:
    """Read a LlamaIndex node: native fields first."""
    told = node.metadata
    return Place(
        node.text,
        node.node_id,
        node.ref_doc_id,
        told["chunk_index"],
        node.start_char_idx,
        node.end_char_idx,
        told["start_line"],
        told["end_line"],
    )


class Found(NamedTuple):
    """A result, as both frameworks tell it."""

    id: str
    text: str
    score: float | None
    rank: int
    channels: list[dict[str, Any]]
    mmr: dict[str, float] | None


def _found(id_: str, text: str, facts: dict[str, Any]) -> Found:
    # Channels without their names: those of retrievers are the classes', which differ.
    channels = [dict(place) for place in facts["channels"].values()]
    return Found(id_, text, facts["score"], facts["rank"], channels, facts.get("mmr"))


def found_documents(found: Iterable[Document]) -> list[Found]:
    """Read LangChain's results."""
    return [_found(one.id, one.page_content, one.metadata["easyrag"]) for one in found]


def found_nodes(found: Iterable[NodeWithScore]) -> list[Found]:
    """Read LlamaIndex's results; the score that the framework sees is the one told."""
    read = [_found(one.node.node_id, one.node.text, one.node.metadata["easyrag"]) for one in found]
    for one, told in zip(found, read, strict=True):
        assert told.mmr is not None or one.score == told.score
    return read
