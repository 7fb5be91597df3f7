"""`PipelineRetriever`: LlamaIndex's retrievers and postprocessors, ours, and those of the core."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode

from easyrag_core import (
    AllChannelsFailedError,
    Dedupe,
    EvidenceGate,
    InvalidParameterError,
    Rerank,
    ScoreThreshold,
)
from llamaindex_easyrag import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    MMRPostprocessor,
    PipelineRetriever,
)
from tests.llamaindex_adapter._parts import (
    BrokenEmbedding,
    CallbackEar,
    Canned,
    Gate,
    WordEmbedding,
    facts,
    ids,
    listening,
    scored,
)

AB = scored(("a", 0.9), ("b", 0.5))
BC = scored(("b", 0.8), ("c", 0.2))


def both(*answers, retrievers=None, query="q", **settings):
    """What the sync and the async form give: the same nodes, and stages that did the same."""
    children = retrievers or [Canned(answer) for answer in answers]
    retriever = PipelineRetriever(children, **settings)
    first = retriever.run(query)
    second = asyncio.run(retriever.arun(query))
    told = [
        [(s.name, s.taken, s.given, s.error, s.notes) for s in result.stages]
        for result in (first, second)
    ]
    assert told[0] == told[1]
    assert first.hits == second.hits == retriever.retrieve(query)
    return first


def stage(result, name):
    (found,) = [one for one in result.stages if one.name == name]
    return found


def test_it_is_a_retriever():
    """It can stand wherever a retriever may."""
    assert BaseRetriever in PipelineRetriever.__mro__


def test_retrievers_of_any_kind_are_fused():
    """Ours and the framework's; each stage tells its ids."""
    nodes = [TextNode(text=text, id_=text[:3]) for text in ("red apple", "blue sky", "old wine")]
    model = WordEmbedding()
    index = VectorStoreIndex(nodes, embed_model=model)
    children = {"words": BM25Retriever(nodes), "meaning": index.as_retriever(similarity_top_k=3)}
    result = both(retrievers=children, query="red apple", similarity_top_k=2)
    assert [one.name for one in result.stages] == ["words", "meaning", "fusion", "top k"]
    assert ids(result.hits)[0] == "red"
    assert set(facts(result.hits[0])["channels"]) == {"words", "meaning"}
    assert [facts(one)["rank"] for one in result.hits] == [1, 2]


def test_recall_is_cut():
    """So many of each answer are taken."""
    many = scored(*((f"n{n}", 1.0) for n in range(50)))
    result = both(many, many[::-1], recall_k=7, names=["a", "b"])
    assert [len(stage(result, name).given) for name in "ab"] == [7, 7]


class ById(BaseNodePostprocessor):
    """A reranker as the vendors write them: scores go into the objects it was given."""

    top_n: int | None = Field(default=None)

    @classmethod
    def class_name(cls):
        return "ById"

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for one in nodes:
            one.score = (ord(one.node.node_id) - ord("a")) / 10
            one.node.metadata["seen"] = query_bundle.query_str
        return sorted(nodes, key=lambda one: -one.score)[: self.top_n]


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ([ById()], "cba"),
        ([ById(top_n=2)], "cb"),
        ([Rerank(ById(), min_score=0)], "cba"),
        ([Rerank(ById(), min_score=0.1)], "cb"),
        ([Rerank(ById(), candidate_limit=2)], "ba"),
        ([ById(), ScoreThreshold(0.15)], "c"),
        ([ById(), SimilarityPostprocessor(similarity_cutoff=0.15)], "c"),
        ([ById(), EvidenceGate(0.2)], "cba"),
        ([ById(), EvidenceGate(0.21)], ""),
    ],
)
def test_rerankers_thresholds_and_the_gate(parts, left):
    """A reranker's score is the final one, for the framework's filters and the core's."""
    before = [one.model_copy(deep=True) for one in [*AB, *BC]]
    result = both(AB, BC, node_postprocessors=parts)
    assert "".join(ids(result.hits)) == left
    assert result.errors == {}
    assert all(one.score == facts(one)["score"] for one in result.hits)
    assert [*AB, *BC] == before
    if not left:
        assert "no evidence" in stage(result, "evidence gate").notes["c"]


def test_dedupe_keeps_the_attribution():
    """Nodes of one text and different ids: one stays, with the channels of both."""
    left = [NodeWithScore(node=TextNode(text="same", id_="1"), score=1.0)]
    right = [NodeWithScore(node=TextNode(text="same", id_="2"), score=1.0)]
    assert len(both(left, right).hits) == 2
    result = both(left, right, node_postprocessors=[Dedupe()], names=["left", "right"])
    assert ids(result.hits) == ["1"]
    assert set(facts(result.hits[0])["channels"]) == {"left", "right"}
    assert facts(result.hits[0])["same"] == [{"id": "2", "source": ""}]


def test_reorder_and_mmr_in_the_line():
    """The framework's reorder; our MMR, whose gain is in the notes."""
    result = both(AB, BC, node_postprocessors=[LongContextReorder()])
    assert ids(result.hits) == ["b", "c", "a"] or ids(result.hits) == ["a", "c", "b"]
    result = both(AB, BC, node_postprocessors=[MMRPostprocessor(top_n=2)])
    assert len(result.hits) == 2
    assert "gain" in stage(result, "MMRPostprocessor").notes[ids(result.hits)[0]]


class Down(BaseNodePostprocessor):
    """Raises, after it has changed what it was given."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        nodes[0].score = -1.0
        raise ConnectionError("no reranker")


def test_a_failing_postprocessor_is_skipped(caplog):
    """The order from before stays; warning, event, facts."""
    with listening() as heard, caplog.at_level(logging.WARNING):
        result = both(AB, BC, node_postprocessors=[Down(), Rerank(Down()), ById()])
    assert ids(result.hits) == ["c", "b", "a"]
    assert list(result.errors) == ["Down", "rerank"]
    assert any(isinstance(event, ExceptionEvent) for event in heard)
    assert facts(result.hits[0])["failed"]["Down"] == "ConnectionError('no reranker')"
    with pytest.raises(ConnectionError):
        both(AB, node_postprocessors=[Down()], strict=True)


def test_a_failing_retriever_is_left_out():
    """The facts tell which and why; when all fail, that is an error."""
    result = both(RuntimeError("x"), AB, names=["broken", "sound"])
    assert ids(result.hits) == ["a", "b"]
    assert stage(result, "broken").error == "RuntimeError('x')"
    assert facts(result.hits[0])["failed"] == {"broken": "RuntimeError('x')"}
    with pytest.raises(AllChannelsFailedError):
        both(RuntimeError("x"), RuntimeError("y"))


def test_each_retriever_has_a_timeout_of_its_own():
    """One that hangs is left out after its time; the other may take as long as it likes."""
    loose = threading.Event()

    class Hanging(Canned):
        def _retrieve(self, query_bundle):
            loose.wait(10)
            return []

    retriever = PipelineRetriever(
        {"late": Hanging([]), "sound": Canned(AB)}, channel_timeout=[0.05, None]
    )
    result = retriever.run("q")
    loose.set()
    assert ids(result.hits) == ["a", "b"]
    assert "within 0.05 seconds" in stage(result, "late").error


async def test_the_loop_goes_on():
    """A sync postprocessor runs beside it."""

    class Waiting(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return gate(nodes)

    gate = Gate(lambda nodes: nodes)
    retriever = PipelineRetriever([Canned(AB)], node_postprocessors=[Waiting()])
    assert ids(await gate.run(retriever.aretrieve("q"))) == ["a", "b"]


# The query's vector


def index_of(model):
    nodes = [TextNode(text=text, id_=text[:3]) for text in ("red apple", "blue sky", "old wine")]
    return nodes, VectorStoreIndex(nodes, embed_model=model)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_query_is_embedded_once(how):
    """Two vector retrievers, a hybrid one and MMR: one embedding, with a model for all."""
    model = WordEmbedding()
    nodes, index = index_of(model)
    retriever = PipelineRetriever(
        [
            index.as_retriever(),
            index.as_retriever(similarity_top_k=1),
            HybridRetriever(nodes, embed_model=model),
        ],
        node_postprocessors=[MMRPostprocessor(top_n=2, index=index)],
        embed_model=model,
    )
    model.calls.clear()
    if how == "sync":
        found = retriever.retrieve("red apple")
    else:
        found = asyncio.run(retriever.aretrieve("red apple"))
    assert len(found) == 2
    assert model.calls == [("query", 1)]


def test_a_query_that_cannot_be_embedded_is_left_to_the_retrievers(caplog):
    """Those that need no vector answer."""
    retriever = PipelineRetriever([Canned(AB)], embed_model=BrokenEmbedding())
    with caplog.at_level(logging.WARNING):
        assert ids(retriever.retrieve("q")) == ["a", "b"]
        assert ids(asyncio.run(retriever.aretrieve("q"))) == ["a", "b"]
    assert "the model is down" in caplog.text
    with pytest.raises(RuntimeError):
        PipelineRetriever([Canned(AB)], embed_model=BrokenEmbedding(), strict=True).retrieve("q")


# The framework around it


def test_events_and_callbacks():
    """Retrieval events, rerank callbacks below it, and our events per stage."""
    heard_here, ear = [], CallbackEar()
    manager = CallbackManager([ear])
    retriever = PipelineRetriever(
        [Canned(AB)],
        node_postprocessors=[MMRPostprocessor(top_n=1, callback_manager=manager)],
        on_event=heard_here.append,
        callback_manager=manager,
    )
    with listening() as heard:
        retriever.retrieve("q")
    assert sum(isinstance(event, RetrievalEndEvent) for event in heard) == 2
    kinds = [kind for when, kind, _ in ear.heard if when == "start"]
    assert kinds == [CBEventType.RETRIEVE, CBEventType.RERANKING]
    assert heard_here[-1].name == "easyrag.retrieval"


def test_in_a_query_engine():
    """As the retriever of a query engine."""
    engine = RetrieverQueryEngine.from_args(
        PipelineRetriever([Canned(AB), Canned(BC)], similarity_top_k=2),
        llm=MockLLM(),
    )
    assert ids(engine.query("q").source_nodes) == ["b", "a"]


async def test_a_retriever_that_has_only_a_sync_form_does_not_hold_the_loop():
    """The framework's own async form of it would: it runs in a thread instead."""

    class OnlySync(BaseRetriever):
        def _retrieve(self, query_bundle):
            return gate(AB)

    gate = Gate(lambda nodes: nodes)
    for kind in (PipelineRetriever, FusionRetriever):
        gate = Gate(lambda nodes: nodes)
        assert ids(await gate.run(kind([OnlySync()]).aretrieve("q"))) == ["a", "b"]


def test_similarity_top_k_can_be_changed():
    """Within the budgets; beyond them it is refused, and stays."""
    retriever = PipelineRetriever([Canned(AB), Canned(BC)])
    assert retriever.similarity_top_k == 10
    retriever.similarity_top_k = 1
    assert ids(retriever.retrieve("q")) == ["b"]
    with pytest.raises(InvalidParameterError, match="do not grow"):
        retriever.similarity_top_k = 41
    assert retriever.similarity_top_k == 1


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"retrievers": []}, "at least one"),
        ({"retrievers": [1]}, "give retrievers"),
        ({"retrievers": "ab"}, "give a list"),
        ({"names": ["a"]}, "one per retriever"),
        ({"retrievers": {"a": Canned([])}, "names": ["b"]}, "have names already"),
        ({"names": ["a", "a"]}, "a name of its own"),
        ({"retriever_weights": [1]}, "give 2"),
        ({"retriever_weights": [0, 0]}, "not all of them 0"),
        ({"recall_k": 0}, "at least 1"),
        ({"fetch_k": 41}, "do not grow"),
        ({"fetch_k": 5, "similarity_top_k": 6}, "do not grow"),
        (
            {"similarity_top_k": 10, "node_postprocessors": [MMRPostprocessor(top_n=4)]},
            "do not grow",
        ),
        ({"channel_timeout": 0}, "above 0"),
        ({"channel_timeout": [1.0]}, "give one, or 2"),
        ({"node_postprocessors": [len]}, "give node postprocessors"),
        ({"node_postprocessors": MMRPostprocessor()}, "give a list"),
        ({"fusion": "votes"}, "choose one of"),
        ({"rank_constant": -1}, "rank_constant"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, told):
    """At construction."""
    with pytest.raises(InvalidParameterError, match=told):
        PipelineRetriever(**{"retrievers": [Canned([]), Canned([])], **settings})
