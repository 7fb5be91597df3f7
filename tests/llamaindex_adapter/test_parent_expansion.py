"""ParentExpansionPostprocessor: children out, parents in, after any retriever."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import get_leaf_nodes, get_root_nodes
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from easyrag_core import ChunkNotFoundError, InMemoryChunkStore, SQLiteChunkStore
from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.chunking.parent_child import ParentChildChunker
from llamaindex_easyrag import (
    BM25Retriever,
    DocumentNodeParser,
    FusionRetriever,
    ParentChildNodeParser,
    ParentExpansionPostprocessor,
)
from llamaindex_easyrag._convert import node_from_chunk, storable_chunks
from tests.llamaindex_adapter._nodes import document, ids_of
from tests.llamaindex_adapter._parts import (
    CallbackEar,
    Canned,
    WordEmbedding,
    facts,
    ids,
    listening,
    scored,
)

TEXT = "\n\n".join(f"Part {i} is here. It says this. 第{i}段在这里。它这样说。" for i in range(12))
PARSER = ParentChildNodeParser(DocumentNodeParser(120, 0), DocumentNodeParser(40, 0))
NODES = PARSER([document(TEXT, metadata={"title": "T"})])
LEAVES, ROOTS = get_leaf_nodes(NODES), get_root_nodes(NODES)


def docstore_of(nodes=NODES) -> SimpleDocumentStore:
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    return store


def hits(*pairs) -> list[NodeWithScore]:
    """Leaves by number, with scores."""
    return [NodeWithScore(node=LEAVES[number], score=score) for number, score in pairs]


def parent_id(number: int) -> str:
    return LEAVES[number].parent_node.node_id


def test_children_become_their_parents_once():
    """Best child's score and place; the children that hit are told with their spans."""
    found = hits((0, 0.5), (9, 0.8), (1, 0.9))
    one, two = ParentExpansionPostprocessor(docstore_of()).postprocess_nodes(found)
    assert (one.node.node_id, one.score) == (parent_id(0), 0.9)
    assert (two.node.node_id, two.score) == (parent_id(9), 0.8)
    assert facts(one)["rank"] == 1
    told = facts(one)["children"]
    assert [(c["id"], c["rank"], c["score"]) for c in told] == [
        (LEAVES[0].node_id, 1, 0.5),
        (LEAVES[1].node_id, 3, 0.9),
    ]
    assert [TEXT[c["start_index"] : c["end_index"]] for c in told] == [
        LEAVES[0].text,
        LEAVES[1].text,
    ]
    json.dumps(facts(one))


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(LEAVES) - 1),
            st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=False)),
        ),
        max_size=12,
    ),
    st.one_of(st.none(), st.integers(0, 4)),
)
def test_promises_hold_for_any_ranking(pairs, top_n):
    """Each parent once, in the order of first hits, never more than asked, inputs untouched."""
    found = hits(*pairs)
    before = copy.deepcopy(found)
    result = ParentExpansionPostprocessor(docstore_of(), top_n=top_n).postprocess_nodes(found)
    expected = list(dict.fromkeys(parent_id(number) for number, _ in pairs))[:top_n]
    assert ids(result) == expected
    assert [(one.node, str(one.score)) for one in found] == [
        (one.node, str(one.score)) for one in before
    ]


def test_stores_of_every_kind(tmp_path):
    """Docstore, storage context, index and stores of chunks hold the same parents."""
    stores = [InMemoryChunkStore(), SQLiteChunkStore(tmp_path / "chunks.db")]
    for store in stores:
        store.put_many(storable_chunks(ROOTS))
    context = StorageContext.from_defaults(docstore=docstore_of())
    index = VectorStoreIndex([], storage_context=context, embed_model=WordEmbedding())
    places = [
        {"docstore": docstore_of()},
        {"storage_context": context},
        {"storage_context": index},
        *({"store": store} for store in stores),
    ]
    found = hits((0, 0.5), (9, 0.8))
    answers = [ParentExpansionPostprocessor(**place).postprocess_nodes(found) for place in places]
    for answer in answers:
        assert [(one.node.node_id, one.node.text) for one in answer] == [
            (one.node.node_id, one.node.text) for one in answers[0]
        ]
        assert [one.node.metadata["title"] for one in answer] == ["T", "T"]
        assert [one.node.start_char_idx for one in answer] == [
            one.node.start_char_idx for one in answers[0]
        ]


def test_chunks_of_the_core_need_no_nodes():
    """A store that the core's chunker filled knows the parents of nodes that do not."""
    chunks = ParentChildChunker(DocumentChunker(120, 0), DocumentChunker(40, 0)).chunk(TEXT, "doc")
    store = InMemoryChunkStore()
    store.put_many(chunks)
    child = next(chunk for chunk in chunks if chunk.parent_id)
    bare = TextNode(text=child.text, id_=child.id)
    (one,) = ParentExpansionPostprocessor(store=store).postprocess_nodes(
        [NodeWithScore(node=bare, score=1.0)]
    )
    assert one.node.node_id == child.parent_id
    assert node_from_chunk(child).parent_node.node_id == child.parent_id
    parent = next(chunk for chunk in chunks if chunk.kind == "parent")
    told = [info.node_id for info in node_from_chunk(parent).child_nodes]
    assert told == parent.metadata["child_ids"]


def test_a_missing_parent_keeps_its_children(caplog):
    """LI-50: a warning and an event, the children stay, the others are replaced."""
    gone = parent_id(0)
    store = docstore_of([node for node in NODES if node.node_id != gone])
    found = hits((0, 0.9), (9, 0.8), (1, 0.7))
    with listening() as heard:
        result = ParentExpansionPostprocessor(store).postprocess_nodes(found)
    assert ids(result) == [LEAVES[0].node_id, parent_id(9), LEAVES[1].node_id]
    assert [one.score for one in result] == [0.9, 0.8, 0.7]
    assert gone in caplog.text
    errors = [event.exception for event in heard if isinstance(event, ExceptionEvent)]
    assert [error.ids for error in errors] == [[gone]]


def test_strict_raises_for_a_missing_parent():
    """LI-50: `strict=True` names the parents."""
    strict = ParentExpansionPostprocessor(docstore_of([]), strict=True)
    with pytest.raises(ChunkNotFoundError) as told:
        strict.postprocess_nodes(hits((0, 0.9)))
    assert told.value.ids == [parent_id(0)]


class BrokenStore(SimpleDocumentStore):
    """Cannot be read."""

    def get_nodes(self, node_ids, **options):
        raise RuntimeError("the store is down")

    async def aget_nodes(self, node_ids, **options):
        raise RuntimeError("the store is down")


async def test_a_failing_store_costs_the_parents_alone(caplog):
    """The children are answered, with a warning; `strict=True` raises the store's own error."""
    found = hits((0, 0.9), (9, 0.8))
    lenient = ParentExpansionPostprocessor(BrokenStore())
    assert ids(lenient.postprocess_nodes(found)) == ids(found)
    assert ids(await lenient.apostprocess_nodes(found)) == ids(found)
    assert "the store is down" in caplog.text
    strict = ParentExpansionPostprocessor(BrokenStore(), strict=True)
    with pytest.raises(RuntimeError, match="down"):
        strict.postprocess_nodes(found)
    with pytest.raises(RuntimeError, match="down"):
        await strict.apostprocess_nodes(found)


def test_nodes_without_parents_stay():
    """Plain nodes, lone leaves and parents that were hit themselves are no problem."""
    found = [*scored(("a", 0.9), ("b", None)), NodeWithScore(node=ROOTS[0], score=0.3)]
    found += hits((0, 0.8))
    result = ParentExpansionPostprocessor(docstore_of()).postprocess_nodes(found)
    assert ids(result) == ["a", "b", ROOTS[0].node_id]
    assert [one.score for one in result] == [0.9, None, 0.8]
    assert [child["id"] for child in facts(result[2])["children"]] == [LEAVES[0].node_id]
    assert ParentExpansionPostprocessor(docstore_of()).postprocess_nodes([]) == []


def test_after_fusion_the_channels_are_told():
    """What fusion told of the best child is told of its parent."""
    words = BM25Retriever(LEAVES, similarity_top_k=5)
    fused = FusionRetriever([words, Canned(hits((3, 0.4)))], similarity_top_k=5)
    found = fused.retrieve("第3段")
    result = ParentExpansionPostprocessor(docstore_of(), top_n=2).postprocess_nodes(found)
    assert len(result) == 2
    assert facts(result[0])["channels"] == facts(found[0])["channels"]
    assert facts(result[0])["score"] == result[0].score


async def test_async_reads_the_store_asynchronously():
    """The document store's own async methods are used; the loop goes on."""
    asked = []

    class Slow(SimpleDocumentStore):
        async def aget_nodes(self, node_ids, **options):
            asked.append(node_ids)
            await asyncio.sleep(0)
            return await super().aget_nodes(node_ids, **options)

        def get_nodes(self, node_ids, **options):
            raise AssertionError("the sync method was called")

    store = Slow()
    store.add_documents(NODES)
    found = hits((0, 0.9), (9, 0.8))
    result = await ParentExpansionPostprocessor(store).apostprocess_nodes(found)
    expected = ParentExpansionPostprocessor(docstore_of()).postprocess_nodes(found)
    assert result == expected
    assert asked == [[parent_id(0), parent_id(9)]]


async def test_async_with_a_store_of_chunks():
    """A store without async methods is read in a thread, with the same answer."""
    store = InMemoryChunkStore()
    store.put_many(storable_chunks(ROOTS))
    expand = ParentExpansionPostprocessor(store=store)
    found = hits((0, 0.9), (9, 0.8))
    assert await expand.apostprocess_nodes(found) == expand.postprocess_nodes(found)


def test_events_are_those_of_a_reranker():
    """Both event systems hear what came in and what went out."""
    ear = CallbackEar()
    expand = ParentExpansionPostprocessor(docstore_of(), callback_manager=CallbackManager([ear]))
    with listening() as heard:
        result = expand.postprocess_nodes(hits((0, 0.9)), query_bundle=QueryBundle("q"))
    assert [what for _, what, _ in ear.heard] == [CBEventType.RERANKING] * 2
    (end,) = [event for event in heard if isinstance(event, ReRankEndEvent)]
    assert end.nodes == result


def test_in_a_query_engine():
    """The engine's sources are the parents, whose text alone the LLM reads."""
    engine = RetrieverQueryEngine.from_args(
        BM25Retriever(LEAVES, similarity_top_k=3),
        llm=MockLLM(),
        node_postprocessors=[ParentExpansionPostprocessor(docstore_of())],
    )
    response = engine.query("第3段")
    assert set(ids(response.source_nodes)) <= set(ids_of(ROOTS))
    assert "easyrag" not in str(response)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({}, "docstore", id="no-place"),
        pytest.param(
            {"docstore": docstore_of(), "store": InMemoryChunkStore()}, "docstore", id="two-places"
        ),
        pytest.param({"store": {"a": 1}}, "store", id="no-store"),
        pytest.param({"docstore": docstore_of(), "top_n": -1}, "top_n", id="top_n"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """At construction, as a ValueError with the parameter's name."""
    with pytest.raises(ValueError, match=name):
        ParentExpansionPostprocessor(**settings)


def test_settings_are_saved_without_the_store():
    """A dict holds `top_n` and `strict`; the place of the parents is told again."""
    expand = ParentExpansionPostprocessor(docstore_of(), top_n=3, strict=True)
    again = ParentExpansionPostprocessor.from_dict(expand.to_dict(), docstore=docstore_of())
    assert again == expand
    assert expand != ParentExpansionPostprocessor(docstore_of(), top_n=4, strict=True)
    assert expand.class_name() == "ParentExpansionPostprocessor"
