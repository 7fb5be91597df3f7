"""A query is embedded once per request, however many parts of the request need its vector."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.embeddings import Embeddings

    from langchain_easyrag._vectors import Vector

__all__ = ["aembedded_query", "embedded_query", "one_request"]


class _Request:
    """The vectors of one request by model and text; its threads and tasks share it."""

    def __init__(self) -> None:
        self.vectors: dict[Any, Vector] = {}
        self.locks: defaultdict[Any, threading.Lock] = defaultdict(threading.Lock)
        self.alocks: defaultdict[Any, asyncio.Lock] = defaultdict(asyncio.Lock)


_current: ContextVar[_Request | None] = ContextVar("easyrag_request", default=None)


@contextmanager
def one_request() -> Iterator[None]:
    """Open a request; within another one it is part of that."""
    if _current.get() is not None:
        yield
        return
    token = _current.set(_Request())
    try:
        yield
    finally:
        _current.reset(token)


def embedded_query(model: Embeddings, query: str) -> Vector:
    """Embed a query, or return what this request knows.

    Args:
        model: The model.
        query: The query.

    Returns:
        Its vector; outside of a request it is made anew.
    """
    request, key = _current.get(), (id(model), query)
    if request is None:
        return model.embed_query(query)
    with request.locks[key]:
        if key not in request.vectors:
            request.vectors[key] = model.embed_query(query)
    return request.vectors[key]


async def aembedded_query(model: Embeddings, query: str) -> Vector:
    """Embed a query: the async twin of `embedded_query`."""
    request, key = _current.get(), (id(model), query)
    if request is None:
        return await model.aembed_query(query)
    async with request.alocks[key]:
        if key not in request.vectors:
            request.vectors[key] = await model.aembed_query(query)
    return request.vectors[key]
