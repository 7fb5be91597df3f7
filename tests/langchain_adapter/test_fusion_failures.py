"""`FusionRetriever` over children that fail, hang, or are cancelled: F4 and F5."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from easyrag_core import AllChannelsFailedError
from langchain_easyrag import BM25Retriever, FusionRetriever
from tests.langchain_adapter.samples import (
    WAIT,
    FailingRetriever,
    ListRetriever,
    corpus,
    hanging,
    ids,
    ticking,
)


def named(*names):
    return [Document(name, id=name) for name in names]


def lists(*rankings):
    return [ListRetriever(documents=ranking) for ranking in rankings]


def test_f4_a_failing_child_is_left_out(caplog):
    """F4: the others answer, and a warning names the one that failed."""
    retriever = FusionRetriever(retrievers=[FailingRetriever(), *lists(named("a"))])
    with caplog.at_level(logging.WARNING):
        found = retriever.invoke("q")
    assert ids(found) == ["a"]
    assert list(found[0].metadata["easyrag"]["channels"]) == ["ListRetriever"]
    assert "FailingRetriever" in caplog.text
    assert "the store is gone" in caplog.text


def test_f4_a_hanging_child_is_left_out():
    """F4: a child that is late does not hold the others up."""
    late = hanging()
    retriever = FusionRetriever(retrievers=[late, *lists(named("a"))], channel_timeout=0.5)
    try:
        assert ids(retriever.invoke("q")) == ["a"]
        assert late.asked.wait(WAIT)
    finally:
        late.release.set()


async def test_f4_a_hanging_child_is_left_out_async():
    """F4: the same for tasks, and the task is cancelled."""
    cancelled = asyncio.Event()

    async def never(_):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    child = RunnableLambda(never)
    retriever = FusionRetriever(retrievers=[child, *lists(named("a"))], channel_timeout=0.5)
    assert ids(await retriever.ainvoke("q")) == ["a"]
    await asyncio.wait_for(cancelled.wait(), WAIT)


async def test_f4_all_failed():
    """F4: nothing to go on with is an error that carries each child's own."""
    retriever = FusionRetriever(retrievers=[FailingRetriever(), FailingRetriever()])
    with pytest.raises(AllChannelsFailedError) as failed:
        retriever.invoke("q")
    assert {type(e) for e in failed.value.errors.values()} == {ConnectionError}
    with pytest.raises(AllChannelsFailedError):
        await retriever.ainvoke("q")


async def test_strict_raises_the_childs_own_error():
    """`strict=True`: no partial answers."""
    retriever = FusionRetriever(retrievers=[*lists(named("a")), FailingRetriever()], strict=True)
    with pytest.raises(ConnectionError):
        retriever.invoke("q")
    with pytest.raises(ConnectionError):
        await retriever.ainvoke("q")


def test_something_that_gives_no_documents_fails_alone():
    """A child of the wrong kind is left out like one that raises."""
    wrong = RunnableLambda(lambda _: [1, 2])
    assert ids(FusionRetriever(retrievers=[wrong, *lists(named("a"))]).invoke("q")) == ["a"]


async def test_cancellation_is_not_swallowed():
    """F4: cancelling the caller cancels the children and goes on up."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def never(_):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    retriever = FusionRetriever(retrievers=[RunnableLambda(never), *lists(named("a"))])
    task = asyncio.create_task(retriever.ainvoke("q"))
    await asyncio.wait_for(started.wait(), WAIT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


def test_f5_children_run_at_once():
    """F5: each child waits for the other one, which only works in parallel."""
    together = threading.Barrier(2, timeout=WAIT)

    def answer(name):
        def ask(_):
            together.wait()
            return named(name)

        return RunnableLambda(ask)

    found = FusionRetriever(retrievers=[answer("a"), answer("b")]).invoke("q")
    assert set(ids(found)) == {"a", "b"}


async def test_sync_equals_async_and_the_loop_goes_on():
    """DESIGN 1.9: the same documents; sync children run in threads."""
    bm25 = BM25Retriever.from_documents(corpus())
    retriever = FusionRetriever(retrievers=[bm25, *lists(corpus())], k=4)
    async with ticking() as ticks:
        found = await retriever.ainvoke("ranking")
    assert found == retriever.invoke("ranking")
    assert ticks[0] > 0
    assert await retriever.abatch(["ranking", "cat"]) == retriever.batch(["ranking", "cat"])
