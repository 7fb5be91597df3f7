"""`PipelineRetriever`: LangChain's retrievers and postprocessors, ours, and those of the core."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_classic.retrievers.document_compressors.cross_encoder_rerank import (
    CrossEncoderReranker,
)
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from easyrag_core import (
    AllChannelsFailedError,
    Dedupe,
    EvidenceGate,
    InvalidParameterError,
    Rerank,
    ScoreThreshold,
)
from langchain_easyrag import BM25Retriever, MMRCompressor, PipelineRetriever
from tests.langchain_adapter.samples import (
    WAIT,
    FailingRetriever,
    ListRetriever,
    RunsSeen,
    WordEmbeddings,
    corpus,
    hanging,
    ids,
    snapshot,
    ticking,
)


def named(*names):
    return [Document(f"text of {name}", id=name) for name in names]


def lists(*rankings):
    return [ListRetriever(documents=ranking) for ranking in rankings]


async def both(retriever, query="q", **settings):
    """What `run` and `arun` give: the same documents, and stages that did the same."""
    first = retriever.run(query, **settings)
    second = await retriever.arun(query, **settings)
    assert first.hits == second.hits
    told = [(s.name, s.taken, s.given, s.error, s.notes) for s in first.stages]
    assert told == [(s.name, s.taken, s.given, s.error, s.notes) for s in second.stages]
    assert retriever.invoke(query, **settings) == first.hits
    assert await retriever.ainvoke(query, **settings) == first.hits
    return first


def stage(result, name):
    (found,) = [facts for facts in result.stages if facts.name == name]
    return found


async def test_retrievers_of_any_kind_are_fused():
    """Ours, a vector store's, a plain runnable: all vote."""
    store = InMemoryVectorStore.from_documents(corpus(), WordEmbeddings())
    retriever = PipelineRetriever(
        retrievers={
            "words": BM25Retriever.from_documents(corpus()),
            "meaning": store.as_retriever(search_kwargs={"k": 3}),
            "plain": RunnableLambda(lambda query: named("x")),
        },
        k=4,
    )
    result = await both(retriever, "ranking")
    assert [facts.name for facts in result.stages] == [
        *("words", "meaning", "plain"),
        *("fusion", "top k"),
    ]
    assert len(result.hits) == 4
    facts = result.hits[0].metadata["easyrag"]
    assert set(facts["channels"]) == {"words", "meaning"}
    assert [d.metadata["easyrag"]["rank"] for d in result.hits] == [1, 2, 3, 4]


async def test_each_retriever_is_asked_for_its_budget():
    """`recall_k` goes to retrievers that take a `k`; of others so many are kept."""
    many = named(*(f"n{number}" for number in range(50)))
    retriever = PipelineRetriever(
        retrievers=[*lists(many), RunnableLambda(lambda query: many)], names=["a", "b"], recall_k=7
    )
    result = await both(retriever)
    assert [len(stage(result, name).given) for name in "ab"] == [7, 7]
    assert len((await both(retriever, k=30)).hits) == 30


# Postprocessors


class LastLetter(BaseCrossEncoder):
    """Scores a text by its last letter: the later in the alphabet, the better."""

    def score(self, text_pairs):
        return [float(ord(text[-1]) - ord("a")) for _, text in text_pairs]


class Scoring(BaseDocumentCompressor):
    """A reranker as the vendors write them: its scores go into the documents it was given."""

    def compress_documents(self, documents, query, callbacks=None):
        for document in documents:
            document.metadata["relevance_score"] = (ord(document.page_content[-1]) - 97) / 10
        return sorted(documents, key=lambda d: -d.metadata["relevance_score"])


async def test_a_cross_encoder_of_the_framework():
    """`CrossEncoderReranker` gives no scores: its order counts, facts and ids stay."""
    reranker = CrossEncoderReranker(model=LastLetter(), top_n=2)
    retriever = PipelineRetriever(retrievers=lists(named("a", "c", "b")), postprocessors=[reranker])
    result = await both(retriever)
    assert ids(result.hits) == ["c", "b"]
    assert list(result.hits[0].metadata["easyrag"]["channels"]) == ["ListRetriever"]


async def test_a_reranker_that_scores():
    """Its score is the final one; thresholds and the gate look at it."""
    given = named("a", "c", "b")
    before = snapshot(given)
    for parts, left in (
        ([Rerank(Scoring())], "cba"),
        ([Rerank(Scoring(), min_score=0)], "cba"),
        ([Rerank(Scoring(), min_score=0.1)], "cb"),
        ([Scoring(), ScoreThreshold(0.15)], "c"),
        ([Scoring(), EvidenceGate(0.2)], "cba"),
        ([Scoring(), EvidenceGate(0.21)], ""),
        ([Rerank(Scoring(), candidate_limit=2)], "ca"),
    ):
        retriever = PipelineRetriever(retrievers=lists(given), postprocessors=parts)
        result = await both(retriever)
        assert ids(result.hits) == list(left)
        assert result.errors == {}
    assert snapshot(given) == before


async def test_the_gate_says_why():
    """An empty answer with its reason in the facts."""
    retriever = PipelineRetriever(
        retrievers=lists(named("a")), postprocessors=[Scoring(), EvidenceGate(0.5)]
    )
    result = await both(retriever)
    assert result.hits == []
    assert stage(result, "evidence gate").notes == {
        "a": "no evidence: the best score is 0, 0.5 is asked"
    }


async def test_a_function_is_a_reranker():
    """Of the query and documents, one score each."""
    rerank = Rerank(lambda query, found: [d.page_content.endswith(query) for d in found])
    retriever = PipelineRetriever(retrievers=lists(named("a", "b")), postprocessors=[rerank])
    result = await both(retriever, "b")
    assert ids(result.hits) == ["b", "a"]
    assert result.hits[0].metadata["easyrag"]["score"] == 1.0


async def test_dedupe_keeps_where_twins_come_from():
    """F2: equal texts of two sources are two by default; joined on request, with both sources."""
    twins = [
        Document("same", id="1", metadata={"source": "a.md"}),
        Document("same", id="2", metadata={"source": "b.md"}),
    ]
    children = lists([twins[0]], [twins[1], *named("x")])
    assert len((await both(PipelineRetriever(retrievers=children))).hits) == 3
    retriever = PipelineRetriever(
        retrievers=children, names=["left", "right"], postprocessors=[Dedupe()]
    )
    result = await both(retriever)
    assert ids(result.hits) == ["1", "x"]
    facts = result.hits[0].metadata["easyrag"]
    assert set(facts["channels"]) == {"left", "right"}
    assert facts["same"] == [{"id": "2", "source": "b.md"}]


class Reversing(BaseDocumentTransformer):
    """Turns the order round."""

    def transform_documents(self, documents, **kwargs):
        return documents[::-1]


async def test_transformers_and_compressor_pipelines_work():
    """A transformer, and a pipeline of compressors of the framework's own."""
    inner = DocumentCompressorPipeline(transformers=[Scoring(), Reversing(), Scoring()])
    for part in (Reversing(), inner):
        retriever = PipelineRetriever(
            retrievers=lists(named("a", "b", "c", "d")), postprocessors=[part]
        )
        result = await both(retriever)
        assert sorted(ids(result.hits)) == list("abcd")
        assert ids(result.hits) != list("abcd")


async def test_mmr_in_the_line():
    """Near copies give way; the gain is told in the notes."""
    texts = ["red apple pie", "red apple pie!", "blue sky"]
    found = [Document(text, id=str(number)) for number, text in enumerate(texts)]
    retriever = PipelineRetriever(
        retrievers=lists(found), postprocessors=[MMRCompressor(k=2, lambda_mult=0.3)]
    )
    result = await both(retriever, "red apple")
    assert ids(result.hits)[1] == "2"
    assert "gain" in stage(result, "MMRCompressor").notes["2"]


class Losing(BaseDocumentTransformer):
    """Gives new documents without ids and facts, as some of the framework's filters do."""

    def transform_documents(self, documents, **kwargs):
        class Other(Document):
            state: str = ""

        return [Other(page_content=d.page_content, metadata={"kept": 1}) for d in documents[:2]]


async def test_what_a_part_loses_is_given_back():
    """Ids and facts by the text; the class is a plain Document again."""
    retriever = PipelineRetriever(retrievers=lists(named("a", "b", "c")), postprocessors=[Losing()])
    result = await both(retriever)
    assert ids(result.hits) == ["a", "b"]
    assert {type(document) for document in result.hits} == {Document}
    assert result.hits[0].metadata["kept"] == 1
    assert "channels" in result.hits[0].metadata["easyrag"]


class Down(BaseDocumentCompressor):
    """Raises."""

    def compress_documents(self, documents, query, callbacks=None):
        documents[0].metadata["half"] = "done"
        raise ConnectionError("no reranker")


async def test_a_failing_postprocessor_is_skipped(caplog):
    """What came to it goes on, unchanged; the error is in the facts, and a warning."""
    retriever = PipelineRetriever(
        retrievers=lists(named("a", "b")), postprocessors=[Down(), Rerank(Down()), Scoring()]
    )
    with caplog.at_level(logging.WARNING):
        result = await both(retriever)
    assert ids(result.hits) == ["b", "a"]
    assert "half" not in result.hits[1].metadata
    assert list(result.errors) == ["Down", "rerank"]
    assert "no reranker" in caplog.text
    strict = PipelineRetriever(retrievers=lists(named("a")), postprocessors=[Down()], strict=True)
    with pytest.raises(ConnectionError):
        strict.invoke("q")
    with pytest.raises(ConnectionError):
        await strict.ainvoke("q")


# Failing retrievers


async def test_a_failing_retriever_is_left_out():
    """The facts tell which, and why."""
    retriever = PipelineRetriever(retrievers=[FailingRetriever(), *lists(named("a"))])
    result = await both(retriever)
    assert ids(result.hits) == ["a"]
    assert stage(result, "FailingRetriever").error == "ConnectionError('the store is gone')"
    with pytest.raises(AllChannelsFailedError):
        PipelineRetriever(retrievers=[FailingRetriever()]).invoke("q")


def test_each_retriever_has_a_timeout_of_its_own():
    """One that hangs is left out after its time; the other's time is longer."""
    late = hanging()
    retriever = PipelineRetriever(
        retrievers=[late, *lists(named("a"))], channel_timeout=[0.05, None]
    )
    try:
        result = retriever.run("q")
        assert ids(result.hits) == ["a"]
        assert "within 0.05 seconds" in stage(result, "HangingRetriever").error
    finally:
        late.release.set()


async def test_cancellation_is_not_swallowed():
    """It reaches the children and goes on up."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def never(_):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    retriever = PipelineRetriever(retrievers=[RunnableLambda(never), *lists(named("a"))])
    task = asyncio.create_task(retriever.ainvoke("q"))
    await asyncio.wait_for(started.wait(), WAIT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_the_loop_goes_on():
    """Sync retrievers and compressors run beside it."""

    class Waiting(BaseDocumentCompressor):
        gate: Any

        def compress_documents(self, documents, query, callbacks=None):
            self.gate()
            return documents

    loop = asyncio.get_running_loop()

    def gate():
        opened = threading.Event()
        loop.call_soon_threadsafe(opened.set)
        assert opened.wait(WAIT)

    retriever = PipelineRetriever(retrievers=lists(named("a")), postprocessors=[Waiting(gate=gate)])
    async with ticking() as ticks:
        assert ids(await retriever.ainvoke("q")) == ["a"]
    assert ticks[0] > 0


# Callbacks and settings


class SeesCallbacks(BaseDocumentCompressor):
    """Runs a runnable under the callbacks that it was given."""

    def compress_documents(self, documents, query, callbacks=None):
        ListRetriever(documents=[]).invoke(query, {"callbacks": callbacks})
        return documents


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_postprocessors_get_callbacks_of_a_child_run(how):
    """What a compressor runs is seen below the retriever's run."""
    runs = RunsSeen()
    retriever = PipelineRetriever(
        retrievers=[RunnableLambda(lambda _: named("a"))], postprocessors=[SeesCallbacks()]
    )
    if how == "invoke":
        retriever.invoke("q", {"callbacks": [runs]})
    else:
        await retriever.ainvoke("q", {"callbacks": [runs]})
    parent = runs.named("PipelineRetriever")
    assert runs.named("ListRetriever")["parent_run_id"] == parent["run_id"]


def test_events_are_told():
    """One per stage, to who listens."""
    heard = []
    PipelineRetriever(retrievers=lists(named("a")), on_event=heard.append).invoke("q")
    assert heard[-1].name == "easyrag.retrieval"
    assert heard[-1].attributes["retrieval.documents.0.document.id"] == "a"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"retrievers": []}, "at least one"),
        ({"retrievers": [1]}, "at least one"),
        ({"names": ["a"]}, "one per retriever"),
        ({"retrievers": {"a": lists([])[0]}, "names": ["b"]}, "have names already"),
        ({"names": ["a", "a"]}, "a name of its own"),
        ({"weights": [1]}, "one per retriever"),
        ({"weights": [0, 0]}, "not all of them may be 0"),
        ({"recall_k": 0}, "at least 1"),
        ({"fetch_k": 41}, "do not grow"),
        ({"fetch_k": 5, "k": 6}, "do not grow"),
        ({"k": 10, "postprocessors": [MMRCompressor(k=4)]}, "do not grow"),
        ({"channel_timeout": 0}, "above 0"),
        ({"channel_timeout": [1.0]}, "give one, or 2"),
        ({"channel_timeout": [1.0, -1]}, "above 0"),
        ({"postprocessors": [len]}, "give document compressors"),
        ({"postprocessors": MMRCompressor()}, "give a list"),
        ({"fusion": "votes"}, "choose one of"),
        ({"reranker": 1}, "no such setting"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, told):
    """At construction."""
    with pytest.raises(InvalidParameterError, match=told):
        PipelineRetriever(**{"retrievers": lists([], []), **settings})


def test_results_are_copies():
    """Nothing that a retriever holds is changed, and a second call is like the first."""
    documents = corpus()
    before = snapshot(documents)
    retriever = PipelineRetriever(
        retrievers=lists(documents), postprocessors=[Scoring(), MMRCompressor(k=3)]
    )
    first = retriever.invoke("ranking")
    first[0].metadata["easyrag"]["score"] = "changed"
    assert retriever.invoke("ranking")[0].metadata["easyrag"]["score"] != "changed"
    assert snapshot(documents) == before


class TestConformance(RetrieversIntegrationTests):
    """LangChain's own suite."""

    @property
    def retriever_constructor(self):
        return PipelineRetriever

    @property
    def retriever_constructor_params(self):
        return {"retrievers": lists(corpus(), corpus())}

    @property
    def retriever_query_example(self):
        return "ranking"
