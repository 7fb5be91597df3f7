"""What the tests of the LlamaIndex room share: an embedding model, ears, and a gate."""

from __future__ import annotations

import asyncio
import threading
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler

if TYPE_CHECKING:
    from llama_index.core.callbacks import CBEventType

DIMENSIONS = 64


class WordEmbedding(BaseEmbedding):
    """Embeds a text by hashing its words and characters, and counts its calls."""

    _calls: list[tuple[str, int]] = PrivateAttr(default_factory=list)

    @property
    def calls(self) -> list[tuple[str, int]]:
        return self._calls

    def _vector(self, text: str) -> list[float]:
        row = np.full(DIMENSIONS, 1e-3)
        for term in [*text.lower().split(), *text]:
            row[zlib.crc32(term.encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1
        return row.tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._calls.append(("texts", len(texts)))
        return [self._vector(text) for text in texts]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._calls.append(("query", 1))
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class BrokenEmbedding(WordEmbedding):
    """Cannot embed a query."""

    def _get_query_embedding(self, query: str) -> list[float]:
        raise RuntimeError("the model is down")


class Canned(BaseRetriever):
    """Gives what it was given, or raises it; notes how it was asked."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[str] = []
        self.bundles: list[Any] = []

    def _answer(self, how: str, bundle: Any) -> list[NodeWithScore]:
        self.asked.append(how)
        self.bundles.append(bundle)
        bundle.embedding = [float(len(self.asked))]  # as the framework's retrievers do
        if isinstance(self.answer, Exception):
            raise self.answer
        return list(self.answer)

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return self._answer("sync", query_bundle)

    async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return self._answer("async", query_bundle)


def scored(*pairs: tuple[str, float | None]) -> list[NodeWithScore]:
    """Scored nodes whose text is their id."""
    return [NodeWithScore(node=TextNode(text=name, id_=name), score=s) for name, s in pairs]


def ids(found: list[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in found]


def facts(one: NodeWithScore) -> dict[str, Any]:
    return one.node.metadata["easyrag"]


class _Ear(BaseEventHandler):
    heard: list[Any] = []  # noqa: RUF012 - a pydantic field

    @classmethod
    def class_name(cls) -> str:
        return "Ear"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.heard.append(event)


@contextmanager
def listening():
    """Collect all instrumentation events, at the root dispatcher."""
    root, ear = get_dispatcher(), _Ear(heard=[])
    root.add_event_handler(ear)
    try:
        yield ear.heard
    finally:
        root.event_handlers.remove(ear)


class CallbackEar(BaseCallbackHandler):
    """Collects the events of the older callback system."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.heard: list[tuple[str, CBEventType, Any]] = []

    def on_event_start(self, event_type, payload=None, event_id="", parent_id="", **kwargs):
        self.heard.append(("start", event_type, payload))
        return event_id

    def on_event_end(self, event_type, payload=None, event_id="", **kwargs):
        self.heard.append(("end", event_type, payload))

    def start_trace(self, trace_id=None): ...

    def end_trace(self, trace_id=None, trace_map=None): ...


class Gate:
    """A function that returns only after the event loop has gone round some more times."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._open = threading.Event()

    def __call__(self, text: str) -> Any:
        # Five seconds only pass if the loop stands still: then the test fails anyway.
        self.opened = self._open.wait(5)
        return self._function(text)

    async def run(self, awaitable: Any) -> Any:
        """Await something, opening the gate from the loop; tell whether the loop went on."""
        task = asyncio.ensure_future(awaitable)
        for _ in range(20):
            await asyncio.sleep(0)
        self._open.set()
        result = await task
        assert self.opened
        return result
