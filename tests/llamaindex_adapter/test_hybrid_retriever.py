"""HybridRetriever: words and meaning, from an index of ours or with any vector side."""

from __future__ import annotations

import copy
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.schema import ImageNode, MetadataMode, QueryBundle, TextNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from easyrag_core import (
    AllChannelsFailedError,
    DocumentChunker,
    HybridConfig,
    HybridIndex,
    IndexFormatError,
    InvalidParameterError,
)
from llamaindex_easyrag import BM25Retriever, HybridRetriever, MMRPostprocessor
from tests.llamaindex_adapter._parts import (
    BrokenEmbedding,
    Canned,
    Gate,
    WordEmbedding,
    facts,
    ids,
    listening,
    scored,
)

TEXTS = {
    "cat": "the cat sat on the mat",
    "dog": "a dog ran in the park",
    "moon": "床前明月光",
    "home": "低头思故乡",
}


def nodes_of(names=tuple(TEXTS), **metadata):
    return [
        TextNode(text=TEXTS[name], id_=name, metadata={"n": i, **metadata})
        for i, name in enumerate(names)
    ]


def own(nodes=None, model=None, **settings):
    return HybridRetriever.from_defaults(
        nodes=nodes_of() if nodes is None else nodes,
        embed_model=model or WordEmbedding(),
        **settings,
    )


def beside(nodes=None, model=None, **settings):
    nodes = nodes_of() if nodes is None else nodes
    index = VectorStoreIndex(nodes, embed_model=model or WordEmbedding())
    return HybridRetriever.from_defaults(index=index, **settings)


WAYS = pytest.mark.parametrize("make", [own, beside], ids=["own", "beside"])
EVEN = MetadataFilters(filters=[MetadataFilter(key="n", value=[0, 2], operator="in")])
NESTED = MetadataFilters(
    filters=[EVEN, MetadataFilter(key="n", value="x")], condition=FilterCondition.OR
)


def test_it_is_a_retriever():
    """The framework's base class is among the bases."""
    assert BaseRetriever in HybridRetriever.__mro__


@WAYS
async def test_both_sides_are_asked_and_told(make):
    """What both sides find is first, with rank and score on both; async is the same."""
    retriever = make(similarity_top_k=4)
    found = retriever.retrieve("the cat")
    assert ids(found)[0] == "cat"
    assert set(facts(found[0])["channels"]) == {"bm25", "vector"}
    assert found[0].score == pytest.approx(2 / 61)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert await retriever.aretrieve("the cat") == found


def test_both_ways_agree():
    """One embedding model and one set of nodes give the same order and scores either way."""
    for query in ("the cat", "明月", "故乡 dog"):
        ours, theirs = (make(similarity_top_k=4).retrieve(query) for make in (own, beside))
        assert [(o.node_id, o.score) for o in ours] == [(o.node_id, o.score) for o in theirs]


@WAYS
def test_the_query_is_embedded_once(make):
    """One call for the query; a bundle's own vector is used, and the bundle is left alone."""
    model = WordEmbedding()
    retriever = make(model=model)
    model.calls.clear()
    bundle = QueryBundle("the cat")
    retriever.retrieve(bundle)
    assert model.calls == [("query", 1)]
    assert bundle == QueryBundle("the cat")
    retriever.retrieve(QueryBundle("the cat", embedding=model._vector("the cat")))
    assert model.calls == [("query", 1)]


@WAYS
@pytest.mark.parametrize(
    ("filters", "allowed"),
    [
        pytest.param(EVEN, {"cat", "moon"}, id="LI-56"),
        pytest.param(NESTED, {"cat", "moon"}, id="nested"),
    ],
)
def test_filters_hold_on_both_sides(make, filters, allowed):
    """LI-56: no side lets anything through, also where the vector side cannot express it."""
    found = make(filters=filters, similarity_top_k=4).retrieve("the cat 明月 dog 故乡")
    assert set(ids(found)) == allowed


def test_filters_hold_whatever_the_vector_side_does():
    """LI-63 and its kin: a vector side that ignores filters leaks nothing."""
    leaky = Canned(scored(("stranger", 1.0)))
    retriever = HybridRetriever(nodes_of(), vector_retriever=leaky, filters=EVEN)
    assert "stranger" not in ids(retriever.retrieve("the cat"))


def test_nodes_come_back_as_they_went_in():
    """Class, content, hash and the caller's objects are untouched."""
    image = ImageNode(text="the cat", id_="image", image_url="http://x.test/a.png")
    nodes = [*nodes_of(), image]
    before = copy.deepcopy(nodes)
    found = own(nodes).retrieve("the cat")
    assert nodes == before
    kept = next(one.node for one in found if one.node_id == "image")
    assert (type(kept), kept.image_url, kept.hash) == (ImageNode, image.image_url, image.hash)


def test_without_a_model_it_is_bm25_and_says_so(caplog):
    """SPEC 12: the embedding model is optional."""
    retriever = HybridRetriever(nodes_of(), similarity_top_k=4)
    assert "BM25 alone" in caplog.text
    words = BM25Retriever(nodes_of(), similarity_top_k=4)
    for query in ("the cat", "明月", "zebra", ""):
        assert ids(retriever.retrieve(query)) == ids(words.retrieve(query))


async def test_a_failing_model_leaves_the_words(caplog):
    """LI-47: the other side answers, with a warning, an event and a fact; `strict` raises."""
    retriever = own(model=BrokenEmbedding())
    with listening() as events:
        found = retriever.retrieve("the cat")
    assert ids(found) == ["cat", "dog"]
    assert "the model is down" in facts(found[0])["failed"]["vector"]
    assert "the model is down" in caplog.text
    assert [str(e.exception) for e in events if isinstance(e, ExceptionEvent)][-1:] == [
        "the model is down"
    ]
    assert ids(await retriever.aretrieve("the cat")) == ["cat", "dog"]
    strict = own(model=BrokenEmbedding(), strict=True)
    with pytest.raises(RuntimeError, match="the model is down"):
        strict.retrieve("the cat")
    with pytest.raises(RuntimeError, match="the model is down"):
        await strict.aretrieve("the cat")


def test_a_failing_side_leaves_the_other():
    """LI-47: any vector side may fail; when both do, both errors are told."""
    error = ConnectionError("no route")
    down = Canned(error)
    found = HybridRetriever(nodes_of(), vector_retriever=down).retrieve("the cat")
    assert ids(found) == ["cat", "dog"]
    assert facts(found[0])["failed"] == {"vector": repr(error)}
    both = HybridRetriever(vector_retriever=down, bm25_retriever=Canned(error))
    with pytest.raises(AllChannelsFailedError) as told:
        both.retrieve("q")
    assert set(told.value.errors) == {"bm25", "vector"}


class Late(Canned):
    """Answers when it is let go."""

    def __init__(self):
        super().__init__(scored(("late", 1.0)))
        self.let_go = threading.Event()

    def _retrieve(self, query_bundle):
        self.let_go.wait(5)
        return super()._retrieve(query_bundle)


def test_a_late_side_is_left_out():
    """Each side has its timeout; the other one's answer does not wait for it."""
    late = Late()
    retriever = HybridRetriever(
        nodes_of(), vector_retriever=late, config=HybridConfig(channel_timeout=0.05)
    )
    found = retriever.retrieve("the cat")
    late.let_go.set()
    assert ids(found) == ["cat", "dog"]
    assert "TimeoutError" in facts(found[0])["failed"]["vector"]


async def test_the_loop_goes_on():
    """LI-49: a slow search does not hold up the event loop."""
    gate = Gate(str.split)
    retriever = HybridRetriever(embed_model=WordEmbedding(), analyzer=str.split)
    await retriever.aadd_nodes(nodes_of())
    retriever._index.bm25._analyzer._function = gate
    assert ids(await gate.run(retriever.aretrieve("the cat")))[0] == "cat"


def test_only_what_is_new_is_embedded():
    """Adding again embeds what has changed; nodes that bring a vector keep it."""
    model = WordEmbedding()
    retriever = own(model=model)
    assert model.calls == [("texts", 4)]
    changed = TextNode(text="a new cat", id_="cat", metadata={"n": 0})
    brought = TextNode(text="x", id_="brought", embedding=model._vector("the dog"))
    retriever.add_nodes([*nodes_of()[1:], changed, brought])
    assert model.calls[1:] == [("texts", 1)]
    assert retriever.retrieve("new cat")[0].node.text == "a new cat"
    assert retriever.delete_nodes(["cat", "unknown"]) == 1
    assert "cat" not in ids(retriever.retrieve("the cat"))


@given(st.lists(st.tuples(st.sampled_from(list(TEXTS)), st.booleans()), max_size=8))
def test_after_adds_and_removals_it_is_as_if_built_anew(steps):
    """Words and vectors stay together: any order of changes gives a new retriever's scores."""
    retriever, kept = own([]), {}
    for name, remove in steps:
        if remove:
            retriever.delete_nodes([name])
            kept.pop(name, None)
        else:
            kept[name] = nodes_of([name])[0]
            retriever.add_nodes([kept[name]])
    anew = own(list(kept.values()))
    found, expected = retriever.retrieve("the cat 明月"), anew.retrieve("the cat 明月")
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score)


def test_k_can_be_raised_later():
    """More nodes than the channels' default number of candidates."""
    nodes = [TextNode(text=f"cat {i}", id_=str(i)) for i in range(40)]
    for make in (own, beside):
        retriever = make(nodes, similarity_top_k=2)
        assert len(retriever.retrieve("cat")) == 2
        retriever.similarity_top_k = 30
        assert len(retriever.retrieve("cat")) == 30


def test_fusion_by_score():
    """`fusion="score"` adds the scores of both sides, each brought to [0, 1]."""
    for make in (own, beside):
        found = make(config=HybridConfig(fusion="score"), similarity_top_k=4).retrieve("the cat")
        assert (ids(found)[0], found[0].score) == ("cat", pytest.approx(2.0))


def test_a_saved_retriever_answers_as_before(tmp_path):
    """Words, vectors, nodes, filters and settings come back."""
    model = WordEmbedding()
    retriever = own(
        model=model,
        similarity_top_k=3,
        filters=EVEN,
        config=HybridConfig(fusion="score", weights={"bm25": 1.0, "vector": 0.5}),
    )
    retriever.persist(tmp_path)
    model.calls.clear()
    loaded = HybridRetriever.from_persist_dir(tmp_path, embed_model=model)
    assert model.calls == []
    for query in ("the cat", "明月"):
        assert loaded.retrieve(query) == retriever.retrieve(query)
    with pytest.raises(IndexFormatError, match="hybrid"):
        BM25Retriever.from_persist_dir(tmp_path)


def test_an_index_of_chunks_gives_nodes():
    """Chunks that the core has indexed come as nodes with their place; filters hold."""
    text = "One is here. Two is there.\n\n三在这里。四在那里。"
    index = HybridIndex(HybridConfig(bm25_k=3))
    index.add(DocumentChunker(30, 0).chunk(text, "doc", metadata={"n": 0}))
    retriever = HybridRetriever(index=index)
    node = retriever.retrieve("四在那里")[0].node
    assert text[node.start_char_idx : node.end_char_idx] == node.text
    assert (node.ref_doc_id, node.metadata["start_line"], node.metadata["n"]) == ("doc", 3, 0)
    assert node.get_content(MetadataMode.EMBED) == f"n: 0\n\n{node.text}"
    assert ids(HybridRetriever(index=index, filters=EVEN).retrieve("四")) == [node.node_id]
    nobody = MetadataFilters(filters=[MetadataFilter(key="n", value=7)])
    assert HybridRetriever(index=index, filters=nobody).retrieve("四") == []
    with pytest.raises(InvalidParameterError, match="config of its own"):
        HybridRetriever(index=index, config=HybridConfig())


def test_mmr_takes_the_vectors_of_the_index():
    """`index=` of MMRPostprocessor takes a HybridRetriever: nothing but the query is embedded."""
    model = WordEmbedding()
    for make in (own, beside):
        retriever = make(model=model)
        nodes = retriever.retrieve("the cat")
        model.calls.clear()
        MMRPostprocessor(index=retriever).postprocess_nodes(nodes, query_str="the cat")
        assert model.calls == [("query", 1)]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({"bm25_retriever": Canned([])}, "bm25_retriever", id="no-vector-side"),
        pytest.param({"vector_retriever": "x"}, "vector_retriever", id="no-retriever"),
        pytest.param(
            {"vector_retriever": Canned([]), "bm25_retriever": Canned([])},
            "bm25_retriever",
            id="nodes-and-words",
        ),
        pytest.param(
            {"vector_retriever": Canned([]), "embed_model": WordEmbedding()},
            "embed_model",
            id="two-vector-sides",
        ),
        pytest.param({"analyzer": 5}, "analyzer", id="analyzer"),
        pytest.param({"vector_retriever": Canned([]), "analyzer": 5}, "analyzer", id="beside"),
        pytest.param({"index": 5}, "index", id="index"),
        pytest.param({"embed_model": 5}, "embed_model", id="model"),
        pytest.param({"similarity_top_k": -1}, "similarity_top_k", id="k"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """At construction, with the parameter's name."""
    with pytest.raises(InvalidParameterError) as told:
        HybridRetriever(nodes_of(), **settings)
    assert told.value.name == name


def test_a_foreign_vector_side_is_not_changed_by_halves():
    """Adding, removing and saving would touch one side only: refused."""
    retriever = beside()
    for change in (
        lambda: retriever.add_nodes(nodes_of()),
        lambda: retriever.delete_nodes(["cat"]),
        lambda: retriever.persist("nowhere"),
    ):
        with pytest.raises(InvalidParameterError, match="not ours"):
            change()
