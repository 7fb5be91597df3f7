"""Documents, embeddings and runnables that the tests of this room share."""

from __future__ import annotations

import asyncio
import threading
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

WAIT = 10.0
"""Seconds after which a test that waits for an event has failed."""

WHOLE_GRAPH = {"hnsw": {"max_neighbors": 64, "ef_construction": 400}}
"""Chroma's index with room for all neighbours: built by several threads, it may else lose a few
of its passages, one search in a hundred."""

PASSAGES = (
    ("rrf", "Reciprocal rank fusion joins several rankings of one query."),
    ("mmr", "Maximal marginal relevance trades relevance of a ranking for novelty."),
    ("bm25", "BM25 ranking weighs terms by rarity and document length."),
    ("zh-rag", "检索增强生成把检索到的片段交给大模型。"),
    ("zh-ml", "深度学习是机器学习的一种方法。"),
    ("weather", "今天天气很好，我们去公园。"),
    ("cat", "The cat sat on the mat."),
)


def corpus() -> list[Document]:
    """A small corpus in two languages; three passages hold the word "ranking"."""
    return [
        Document(text, id=id_, metadata={"source": f"{id_}.md", "number": number})
        for number, (id_, text) in enumerate(PASSAGES)
    ]


def ids(documents: Sequence[Document]) -> list[str | None]:
    return [document.id for document in documents]


def snapshot(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """A deep copy to compare with later."""
    return [document.model_copy(deep=True).model_dump() for document in documents]


class WordEmbeddings(Embeddings):
    """Counts hashed words and Chinese characters, and how often it was asked."""

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.batches: list[list[str]] = []
        self.queries: list[str] = []
        self.threads: set[int] = set()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        self.threads.add(threading.get_ident())
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        self.threads.add(threading.get_ident())
        return self.vector(text)

    def vector(self, text: str) -> list[float]:
        row = [0.01] * self.dimensions
        words = text.lower().replace(".", " ").split() if text.isascii() else list(text)
        for word in words:
            row[zlib.crc32(word.encode("utf-8", "surrogatepass")) % self.dimensions] += 1.0
        return row


class BrokenEmbeddings(Embeddings):
    """Always fails."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise RuntimeError("the embedding service is down")

    def embed_query(self, text: str) -> list[float]:
        raise RuntimeError("the embedding service is down")


class ListRetriever(BaseRetriever):
    """Gives its documents, the first `k` of them."""

    documents: list[Document]
    k: int = 100

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None
    ) -> list[Document]:
        return self.documents[: self.k if k is None else k]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None
    ) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager, k=k)


class FailingRetriever(BaseRetriever):
    """Raises."""

    message: str = "the store is gone"

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise ConnectionError(self.message)


class HangingRetriever(BaseRetriever):
    """Answers only after its event is set; says when it was asked."""

    asked: Any
    release: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.asked.set()
        self.release.wait(WAIT)
        return []


def hanging() -> HangingRetriever:
    return HangingRetriever(asked=threading.Event(), release=threading.Event())


class ConfigSeen:
    """A runnable in a retriever's place that remembers the config it was called with."""

    def __init__(self, documents: Sequence[Document] = ()) -> None:
        self.configs: list[Any] = []
        self.threads: list[int] = []
        self._documents = list(documents)
        self.runnable = RunnableLambda(self._answer)

    def _answer(self, query: str, config: Any) -> list[Document]:
        self.configs.append(config)
        self.threads.append(threading.get_ident())
        return self._documents


class RunsSeen(BaseCallbackHandler):
    """Remembers the runs of retrievers: name, id and parent."""

    def __init__(self) -> None:
        self.starts: dict[UUID, dict[str, Any]] = {}
        self.ends: list[UUID] = []
        self.errors: list[UUID] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.starts[kwargs["run_id"]] = kwargs

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.ends.append(run_id)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self.errors.append(run_id)

    def named(self, name: str) -> dict[str, Any]:
        (found,) = [start for start in self.starts.values() if start.get("name") == name]
        return found


@asynccontextmanager
async def ticking() -> AsyncIterator[list[int]]:
    """Count turns of the event loop while something else runs."""
    ticks = [0]

    async def tick() -> None:
        while True:
            ticks[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(tick())
    try:
        yield ticks
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class LoopGate:
    """Something slow that ends only once the event loop has gone on turning.

    Called in a thread, it asks the loop to open it and waits; a call that blocks the loop
    itself would never be let through.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.passed = 0

    def __call__(self) -> None:
        opened = threading.Event()
        self._loop.call_soon_threadsafe(opened.set)
        assert opened.wait(WAIT), "the event loop was blocked"
        self.passed += 1
