"""BM25Retriever: the framework's names, true scores, filters that hold, nodes as they came."""

from __future__ import annotations

import copy
import json
import re

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MetadataMode,
    QueryBundle,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from easyrag_core import BM25Index, InvalidParameterError
from llamaindex_easyrag import BM25Retriever
from tests.llamaindex_adapter._parts import Gate, WordEmbedding, facts, ids

POEM = ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"]
ENGLISH = ["running shoes for runners", "the vitamin C tablet", "a C++ compiler", "he runs fast"]


def nodes_of(texts, **metadata):
    return [TextNode(text=t, id_=f"n{i}", metadata=dict(metadata)) for i, t in enumerate(texts)]


def tenant(value, operator=FilterOperator.EQ, condition=FilterCondition.AND):
    part = MetadataFilter(key="t", value=value, operator=operator)
    return MetadataFilters(filters=[part], condition=condition)


def test_it_is_a_retriever():
    """The framework's base class is among the bases."""
    assert BaseRetriever.__name__ in [base.__name__ for base in BM25Retriever.__mro__]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("故乡", ["n3"], id="LI-55"),
        pytest.param("明月", ["n0", "n2"], id="LI-55-two"),
        pytest.param("月亮", ["n0", "n2"], id="PE-37-by-character"),
        pytest.param("zebra", [], id="LI-58-no-match"),
        pytest.param("", [], id="LI-58-empty"),
        pytest.param("  \n", [], id="LI-58-blank"),
        pytest.param("，。！", [], id="LI-58-no-terms"),
    ],
)
def test_only_what_matches_is_found(query, expected):
    """Chinese is found by words and characters; what shares no term is absent."""
    retriever = BM25Retriever.from_defaults(nodes=nodes_of(POEM), similarity_top_k=4)
    found = retriever.retrieve(query)
    assert ids(found) == expected
    assert all(one.score > 0 for one in found)


@pytest.mark.parametrize(("query", "first"), [("vitamin C", "n1"), ("C++", "n2")])
def test_single_letters_and_signs_count(query, first):
    """PE-37: neither `C` nor `C++` is thrown away."""
    retriever = BM25Retriever.from_defaults(nodes=nodes_of(ENGLISH), similarity_top_k=1)
    assert ids(retriever.retrieve(query)) == [first]


@pytest.mark.parametrize("texts", [[], [""], ["", "  "]], ids=["none", "one-empty", "blank"])
def test_an_empty_corpus_gives_nothing(texts):
    """LI-58: no error when it is built, and no node when it is asked."""
    assert BM25Retriever.from_defaults(nodes=nodes_of(texts)).retrieve("故乡") == []


def test_more_than_there_is():
    """LI-58: k may be larger than the corpus, zero, and raised later."""
    retriever = BM25Retriever(nodes_of(POEM), similarity_top_k=0)
    assert retriever.retrieve("明月") == []
    retriever.similarity_top_k = 100
    assert ids(retriever.retrieve("明月")) == ["n0", "n2"]


@given(texts=st.lists(st.text("ab c检索", max_size=12), max_size=12), query=st.text("ab c检索"))
def test_scores_are_the_cores(texts, query):
    """Same hits, ranks and scores as the index of the core over the same texts."""
    nodes = nodes_of(texts)
    index = BM25Index()
    index.add([n.node_id for n in nodes], texts)
    hits = index.search(query, 5)
    found = BM25Retriever(nodes, similarity_top_k=5).retrieve(query)
    assert [(one.node.node_id, one.score) for one in found] == [(h.id, h.score) for h in hits]
    assert [facts(one)["channels"]["bm25"]["rank"] for one in found] == [h.rank for h in hits]


def test_what_is_embedded_is_what_is_indexed():
    """Metadata are found unless they are excluded from embedding."""
    shown = TextNode(text="body", id_="shown", metadata={"title": "report"})
    hidden = TextNode(
        text="body",
        id_="hidden",
        metadata={"title": "report"},
        excluded_embed_metadata_keys=["title"],
    )
    assert ids(BM25Retriever([shown, hidden]).retrieve("report")) == ["shown"]


# Filters


def mixed():
    return [
        TextNode(text="apple pie", id_=f"{t}{i}", metadata={"t": t, "ok": i % 2 == 0})
        for t in "AB"
        for i in range(3)
    ]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        pytest.param(tenant("A"), {"A0", "A1", "A2"}, id="LI-56"),
        pytest.param(tenant("nobody"), set(), id="PE-36-none-passes"),
        pytest.param(
            tenant("A", condition=FilterCondition.NOT), {"B0", "B1", "B2"}, id="LI-61-not"
        ),
        pytest.param(
            MetadataFilters(filters=[tenant("A"), MetadataFilter(key="ok", value="true")]),
            {"A0", "A2"},
            id="LI-61-nested-and-bool",
        ),
    ],
)
def test_filters_hold(filters, expected):
    """LI-56, PE-36: fewer than k rather than one node of somebody else's."""
    retriever = BM25Retriever.from_defaults(nodes=mixed(), similarity_top_k=4, filters=filters)
    assert set(ids(retriever.retrieve("apple"))) == expected
    retriever.add_nodes([TextNode(text="apple", id_="new", metadata={"t": "C"})])
    assert set(ids(retriever.retrieve("apple"))) - {"new"} == expected


# Nodes


def test_nodes_come_back_as_they_went_in():
    """Same class, same content, any metadata; facts on a copy, for no model to read."""
    when = object()
    originals = [
        TextNode(text="apple", id_="text", metadata={"when": when}, embedding=[1.0]),
        ImageNode(text="apple", id_="image", image_url="http://x.test/a.png"),
        IndexNode(text="apple", id_="index", index_id="x"),
        Document(text="apple", id_="document"),
    ]
    before = copy.copy(originals[0].metadata), [n.to_dict() for n in originals[1:]]
    found = BM25Retriever(originals, similarity_top_k=9).retrieve("apple")
    for one in found:
        original = next(n for n in originals if n.node_id == one.node.node_id)
        assert type(one.node) is type(original)
        assert one.node is not original
        for mode in (MetadataMode.NONE, MetadataMode.EMBED, MetadataMode.LLM):
            assert one.node.get_content(mode) == original.get_content(mode)
        assert {**one.node.metadata, "easyrag": 0} == {**original.metadata, "easyrag": 0}
        assert one.node.embedding == original.embedding
    assert len(found) == 4
    assert before == (originals[0].metadata, [n.to_dict() for n in originals[1:]])


def test_facts_leave_the_hash_alone():
    """The framework tells nodes apart by a hash of their metadata: facts must not show in it."""
    node = nodes_of(["apple"], k="v")[0]
    found = BM25Retriever([node]).retrieve("apple")[0]
    assert found.node.hash == node.hash
    assert json.loads(json.dumps(found.node.metadata)) == {
        "k": "v",
        "easyrag": {
            "score": found.score,
            "rank": 1,
            "channels": {"bm25": {"rank": 1, "score": found.score}},
        },
    }


def test_a_result_does_not_change_later():
    """What a caller does to a result touches neither the stored node nor the next result."""
    retriever = BM25Retriever(nodes_of(POEM, k="v"))
    first = retriever.retrieve("故乡")[0]
    first.node.set_content("gone")
    first.node.metadata.clear()
    first.node.relationships["1"] = None
    again = retriever.retrieve("故乡")[0]
    assert again.node.text == POEM[3]
    assert again.node.metadata["k"] == "v"
    assert again.node.relationships == {}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([*POEM, ""]), st.booleans())))
def test_after_adds_and_removals_it_is_as_if_built_anew(steps):
    """`add_nodes` and `delete_nodes` in any order leave the scores of a new retriever."""
    retriever, kept = BM25Retriever(similarity_top_k=9), {}
    for node_id, text, remove in steps:
        if remove:
            assert retriever.delete_nodes([node_id, "unknown"]) == (node_id in kept)
            kept.pop(node_id, None)
        else:
            kept[node_id] = TextNode(text=text, id_=node_id)
            retriever.add_nodes([kept[node_id]])
    anew = BM25Retriever(list(kept.values()), similarity_top_k=9)
    for query in ("明月", "头"):
        found, expected = retriever.retrieve(query), anew.retrieve(query)
        assert {o.node.node_id: o.score for o in found} == {
            o.node.node_id: o.score for o in expected
        }


def test_of_equal_ids_the_last_counts():
    """Two nodes with one id are one node."""
    nodes = [TextNode(text="apple", id_="x"), TextNode(text="pear", id_="x")]
    retriever = BM25Retriever(nodes)
    assert retriever.retrieve("apple") == []
    assert ids(retriever.retrieve("pear")) == ["x"]


def test_index_nodes_lead_to_their_objects():
    """`objects` and index nodes work as in the framework."""
    target = TextNode(text="the target", id_="target")
    pointer = IndexNode(text="apple", index_id="p", obj=target)
    assert ids(BM25Retriever([pointer]).retrieve("apple")) == ["target"]
    bare = IndexNode(text="apple", index_id="p")
    assert ids(BM25Retriever([bare], objects=[pointer]).retrieve("apple")) == ["target"]


# Sources and names


def test_nodes_from_a_docstore_and_from_an_index():
    """All three sources give the same retriever; exactly one must be named."""
    store = SimpleDocumentStore()
    store.add_documents(nodes_of(POEM))
    index = VectorStoreIndex(nodes_of(POEM), embed_model=WordEmbedding())
    expected = BM25Retriever.from_defaults(nodes=nodes_of(POEM)).retrieve("明月")
    assert ids(BM25Retriever.from_defaults(docstore=store).retrieve("明月")) == ids(expected)
    assert ids(BM25Retriever.from_defaults(index=index).retrieve("明月")) == ids(expected)
    for sources in ({}, {"nodes": [], "docstore": store}):
        with pytest.raises(ValueError, match="exactly one of index, nodes, or docstore"):
            BM25Retriever.from_defaults(**sources)


class TextStore(SimpleVectorStore):
    """A vector store that keeps the text itself, so that the docstore stays empty."""

    stores_text: bool = True


def test_an_index_without_its_nodes_is_refused():
    """An index whose nodes cannot be had does not become an empty retriever."""
    index = VectorStoreIndex.from_vector_store(TextStore(), embed_model=WordEmbedding())
    with pytest.raises(InvalidParameterError, match="pass nodes="):
        BM25Retriever.from_defaults(index=index)


@pytest.mark.parametrize(
    ("settings", "query", "expected"),
    [
        pytest.param({}, "run", [], id="no-stemming-by-default"),
        pytest.param({"stemmer": "english"}, "run", ["n0", "n3"], id="stemmer-by-name"),
        pytest.param({"stemmer": Stemmer.Stemmer("english")}, "run", ["n0", "n3"], id="PyStemmer"),
        pytest.param({"stemmer": "en", "skip_stemming": True}, "run", [], id="LI-60-skipped"),
        pytest.param({"skip_stemming": False}, "run", ["n0", "n3"], id="english-as-in-stock"),
        pytest.param({"language": "en"}, "the", [], id="stop-words"),
        pytest.param({"language": ["he"]}, "he", [], id="own-stop-words"),
        pytest.param({}, "the", ["n1"], id="no-stop-words-by-default"),
        pytest.param({"token_pattern": r"\b\w{5,}\b"}, "shoes C", ["n0"], id="LI-60-pattern"),
        pytest.param(
            {"token_pattern": r"\b\w\w+\b", "stemmer": "english", "language": "english"},
            "the running",
            ["n0", "n3"],
            id="pattern-with-all",
        ),
        pytest.param({"tokenizer": str.split}, "C++ c", ["n2"], id="tokenizer"),
        pytest.param({"analyzer": str.split}, "C++ c", ["n2"], id="analyzer"),
    ],
)
def test_the_stock_names_do_what_they_say(settings, query, expected):
    """stemmer, language, skip_stemming, token_pattern and tokenizer are honoured."""
    retriever = BM25Retriever.from_defaults(nodes=nodes_of(ENGLISH), similarity_top_k=9, **settings)
    assert sorted(ids(retriever.retrieve(query))) == expected


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        pytest.param({"stemmer": 7}, "stemmer", id="stemmer"),
        pytest.param({"stemmer": "klingon"}, "stemmer", id="stemmer-name"),
        pytest.param({"language": "klingon"}, "stop_words", id="language"),
        pytest.param({"token_pattern": "("}, "token_pattern", id="pattern"),
        pytest.param({"analyzer": str.split, "language": "en"}, "language", id="two-analyzers"),
        pytest.param({"analyzer": str.split, "tokenizer": str.split}, "tokenizer", id="both"),
        pytest.param({"analyzer": 5}, "analyzer", id="analyzer"),
        pytest.param({"analyzer": "standard"}, "analyzer", id="analyzer-name"),
        pytest.param({"tokenizer": 5}, "analyzer", id="tokenizer"),
        pytest.param({"params": {"k1": 1.0}}, "params", id="params"),
        pytest.param({"similarity_top_k": -1}, "similarity_top_k", id="k"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings, name):
    """At construction, with the parameter's name."""
    with pytest.raises(InvalidParameterError) as told:
        BM25Retriever.from_defaults(nodes=nodes_of(ENGLISH), **settings)
    assert told.value.name == name


@pytest.mark.parametrize("nodes", [TextNode(text="x"), "text", ["text"], 5])
def test_what_is_no_list_of_nodes_is_refused(nodes):
    """One node alone too: it would be read as its fields."""
    with pytest.raises(InvalidParameterError, match="list of nodes"):
        BM25Retriever(nodes)
    with pytest.raises(InvalidParameterError, match="list of nodes"):
        BM25Retriever([]).add_nodes(nodes)


def test_an_index_of_another_kind_is_refused_at_once():
    """An index of the framework goes to `from_defaults`."""
    with pytest.raises(InvalidParameterError, match="BM25Index"):
        BM25Retriever(index=VectorStoreIndex([], embed_model=WordEmbedding()))


# Sync and async


async def test_async_gives_the_same_and_the_loop_goes_on():
    """LI-49: `aretrieve` searches in a thread; adding and removing have async twins."""
    gate = Gate(list)
    retriever = BM25Retriever(similarity_top_k=3, analyzer=gate)
    await gate.run(retriever.aadd_nodes(nodes_of(POEM)))
    asking = Gate(gate._function)
    retriever._index._analyzer._function = asking
    found = await asking.run(retriever.aretrieve("明月"))
    assert found == retriever.retrieve(QueryBundle("明月"))
    assert await retriever.adelete_nodes(["n0"]) == 1
    assert ids(await retriever.aretrieve("明月")) == ids(retriever.retrieve("明月"))


# Divergence


def stock(texts, **settings):
    bm25 = pytest.importorskip("llama_index.retrievers.bm25")
    return bm25.BM25Retriever.from_defaults(nodes=nodes_of(texts), **settings)


def test_divergence_stock_finds_no_chinese():
    """Named divergence (LI-55): the stock retriever scores 0 for every line of the poem."""
    assert {one.score for one in stock(POEM, similarity_top_k=4).retrieve("故乡")} == {0.0}


def test_divergence_stock_returns_what_does_not_match():
    """Named divergence (LI-58): the stock retriever gives k nodes for a query without a match."""
    assert len(stock(ENGLISH, similarity_top_k=2).retrieve("zebra")) == 2


def test_where_stock_is_right_we_agree():
    """With its analysis given by its names, the stock order of matching nodes is ours too."""
    texts = ["red apple pie", "apple apple tart", "green pear", "red pear and red apple"]
    settings = {"stemmer": Stemmer.Stemmer("english"), "language": "en", "similarity_top_k": 4}
    theirs = [one for one in stock(texts, **settings).retrieve("red apples") if one.score > 0]
    ours = BM25Retriever.from_defaults(
        nodes=nodes_of(texts), token_pattern=r"(?u)\b\w\w+\b", **settings
    ).retrieve("red apples")
    assert ids(ours) == ids(theirs)
    assert re.fullmatch(r"n\d", ours[0].node.node_id)
