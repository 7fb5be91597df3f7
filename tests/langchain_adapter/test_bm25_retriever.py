"""`BM25Retriever`: the community class's arguments, our results."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnablePassthrough

from easyrag_core import BM25Index, BM25Params, EasyRAGError
from langchain_easyrag import BM25Retriever
from tests.langchain_adapter.samples import LoopGate, corpus, ids, snapshot, ticking
from tests.strategies import paragraphs

RANKING = "ranking"


def test_only_matching_documents_come_back_best_first():
    """Every result holds a term of the query, and scores fall."""
    found = BM25Retriever.from_documents(corpus()).invoke(RANKING)
    assert set(ids(found)) == {"mmr", "bm25"}
    scores = [document.metadata["easyrag"]["score"] for document in found]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


def test_facts_are_plain_json_under_one_key():
    """Rank, score and channel are told, and can be dumped as JSON."""
    (first, *_) = BM25Retriever.from_documents(corpus()).invoke(RANKING)
    facts = first.metadata["easyrag"]
    assert json.loads(json.dumps(facts)) == facts
    assert facts["rank"] == 1
    assert facts["channels"] == {"bm25": {"rank": 1, "score": facts["score"]}}
    assert first.metadata["source"] == f"{first.id}.md"


def test_scores_are_those_of_the_core():
    """The adapter adds nothing: the index over the same texts gives the same hits."""
    documents = corpus()
    plain = BM25Index()
    plain.add([d.id for d in documents], [d.page_content for d in documents])
    found = BM25Retriever.from_documents(documents).invoke("relevance of a ranking")
    facts = [(d.id, d.metadata["easyrag"]["score"]) for d in found]
    assert facts == [(hit.id, hit.score) for hit in plain.search("relevance of a ranking", 4)]


@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        pytest.param(
            ["深度学习是机器学习的一种方法。", "今天天气很好", "苹果是水果", "x", "y"],
            "机器学习",
            ["深度学习是机器学习的一种方法。"],
            id="B1",
        ),
        pytest.param(["Hello, world"], "hello world", ["Hello, world"], id="B2"),
        pytest.param(["an apple"], "apple", ["an apple"], id="B3-one"),
        pytest.param(["an apple", "a pear"], "apple", ["an apple"], id="B3-two"),
        pytest.param(["cat", "dog"], "cat", ["cat"], id="peers-33"),
        pytest.param([], "anything", [], id="peers-35-empty-corpus"),
        pytest.param(["", "  "], "anything", [], id="peers-35-empty-texts"),
        pytest.param(["one", "two"], "three", [], id="peers-39-unknown"),
        pytest.param(["one", "two"], "", [], id="empty-query"),
        pytest.param(
            ["检索增强生成 RAG，C++ 和 C# 与 a1", "x"],
            "检索",
            ["检索增强生成 RAG，C++ 和 C# 与 a1"],
            id="peers-37-zh",
        ),
        pytest.param(["so C++ it is", "a # b"], "c++", ["so C++ it is"], id="peers-37-cpp"),
    ],
)
def test_known_cases(texts, query, expected):
    """Each case that other BM25 retrievers get wrong."""
    found = BM25Retriever.from_texts(texts, k=2).invoke(query)
    assert [document.page_content for document in found] == expected
    assert all(document.metadata["easyrag"]["score"] > 0 for document in found)


def test_fewer_documents_than_k():
    """peers-39: `k` above the size of the corpus gives what there is."""
    assert len(BM25Retriever.from_texts(["a cat", "the cat"], k=10).invoke("cat")) == 2


# The community's surface


def test_community_keyword_arguments_are_accepted():
    """What code written for langchain-community passes, by name and by position."""
    texts, metadatas = ["the cat", "a dog"], [{"n": 1}, {"n": 2}]
    retriever = BM25Retriever.from_texts(
        texts, metadatas, ["1", "2"], {"k1": 1.2, "b": 0.5, "epsilon": 0.25}, str.split, k=1
    )
    (found,) = retriever.invoke("dog")
    assert (found.id, found.metadata["n"], retriever.k) == ("2", 2, 1)
    assert retriever.vectorizer.params == BM25Params(1.2, 0.5)
    again = BM25Retriever(vectorizer=object(), docs=retriever.docs, k=2, preprocess_func=str.split)
    assert ids(again.invoke("cat dog")) == ["1", "2"]


def test_community_class_has_no_field_that_ours_refuses():
    """Every constructor argument and every parameter of the builders is known here too."""
    community = pytest.importorskip("langchain_community.retrievers.bm25")
    import inspect

    theirs = community.BM25Retriever
    ours = set(inspect.signature(BM25Retriever).parameters)
    assert set(theirs.model_fields) <= ours
    for builder in ("from_texts", "from_documents"):
        wanted = list(inspect.signature(getattr(theirs, builder)).parameters)
        assert list(inspect.signature(getattr(BM25Retriever, builder)).parameters) == wanted


@pytest.mark.parametrize(
    ("texts", "query", "theirs", "ours"),
    [
        pytest.param(
            ["深度学习是机器学习的一种方法。", "今天天气很好", "苹果是水果", "x", "y"],
            "机器学习",
            ["y", "x"],
            ["深度学习是机器学习的一种方法。"],
            id="B1",
        ),
        pytest.param(
            ["a pear", "one apple"], "Apple", ["one apple", "a pear"], ["one apple"], id="B3"
        ),
    ],
)
def test_the_community_retriever_differs(texts, query, theirs, ours):
    """B1, B3: it fills up with documents of score 0, the last ones first; ours does not."""
    pytest.importorskip("rank_bm25")
    community = pytest.importorskip("langchain_community.retrievers.bm25")
    found = community.BM25Retriever.from_texts(texts, k=2).invoke(query)
    assert [document.page_content for document in found] == theirs
    mine = BM25Retriever.from_texts(texts, k=2).invoke(query)
    assert [document.page_content for document in mine] == ours


def test_generators_and_an_assigned_k():
    """Iterables are read once; `retriever.k = n`, the idiom of old code, works."""
    retriever = BM25Retriever.from_documents(document for document in corpus())
    retriever.k = 1
    assert len(retriever.invoke(RANKING)) == 1
    texts = BM25Retriever.from_texts((t for t in ["a cat"]), (m for m in [{"n": 1}]))
    assert texts.invoke("cat")[0].metadata["n"] == 1


def test_documents_keep_what_they_are():
    """`docs` are equal to what was given, also those without an id."""
    documents = [Document("no id"), Document("an id", id="x", metadata={"deep": {"n": [1]}})]
    before = snapshot(documents)
    retriever = BM25Retriever.from_documents(documents)
    found = retriever.invoke("id")
    found[0].metadata["changed"] = True
    assert retriever.docs == documents
    assert snapshot(documents) == before
    assert {document.id for document in found} == {None, "x"}


def test_equal_documents_without_ids_are_all_found():
    """No document disappears because another one says the same."""
    documents = [Document("same text", metadata={"page": page}) for page in (1, 2)]
    found = BM25Retriever.from_documents(documents).invoke("same")
    assert [document.metadata["page"] for document in found] == [1, 2]


# Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": -1},
        {"k": True},
        {"k": 2.5},
        {"top_k": 3},
        {"bm25_params": {"k1": -1}},
        {"bm25_params": {"tokenizer": str.split}},
        {"analyzer": str.split, "preprocess_func": str.split},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_at_construction(wrong):
    """A wrong setting is a typed ValueError before any search."""
    with pytest.raises(EasyRAGError) as refused:
        BM25Retriever.from_documents(corpus(), **wrong)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("name", ["metadatas", "ids"])
def test_lists_of_another_length_are_refused(name):
    """Both lengths are named."""
    with pytest.raises(ValueError, match=r"1.*there are 2 texts"):
        BM25Retriever.from_texts(["a", "b"], **{name: [None]})


def test_k_filter_and_params_per_call():
    """A call can ask for other numbers, fewer documents and another formula."""
    retriever = BM25Retriever.from_documents(corpus(), k=1)
    assert len(retriever.invoke(RANKING, k=2)) == 2
    (only,) = retriever.invoke(RANKING, k=5, filter=lambda d: d.metadata["source"] == "mmr.md")
    assert only.id == "mmr"
    changed = retriever.invoke(RANKING, params={"k1": 0.0, "b": 0.0})[0]
    default = retriever.invoke(RANKING)[0]
    assert changed.metadata["easyrag"]["score"] != default.metadata["easyrag"]["score"]
    assert retriever.invoke(RANKING, k=0) == []


def test_a_call_narrows_the_filter_and_never_widens_it():
    """peers-36: what the constructor's filter excludes stays out, fewer than `k` come."""
    retriever = BM25Retriever.from_documents(
        corpus(), k=4, filter=lambda document: document.metadata["number"] < 2
    )
    assert ids(retriever.invoke("ranking")) == ["mmr"]
    assert retriever.invoke(RANKING, filter=lambda document: document.id == "bm25") == []


# Async


async def test_async_operations_are_the_sync_ones():
    """Every operation has a twin with the same result."""
    documents = corpus()
    one, two = BM25Retriever(), await BM25Retriever.afrom_documents([])
    assert one.upsert(documents) == await two.aupsert(documents)
    assert one.delete(["cat"]) == await two.adelete(["cat"])
    assert one.get(["rrf", "cat"]) == await two.aget(["rrf", "cat"])
    arguments = {"k": 2, "filter": lambda d: d.id != "rrf", "params": {"b": 0.1}}
    assert one.invoke(RANKING, **arguments) == await two.ainvoke(RANKING, **arguments)
    assert one.batch([RANKING, "cat"]) == await two.abatch([RANKING, "cat"])


async def test_the_event_loop_goes_on_while_searching():
    """A search waits in a thread, so the loop turns meanwhile."""
    gate = LoopGate()

    def slow_terms(text):
        if text == RANKING:
            gate()
        return text.lower().split()

    retriever = BM25Retriever.from_documents(corpus(), preprocess_func=slow_terms)
    async with ticking() as ticks:
        assert await retriever.ainvoke(RANKING)
    assert gate.passed == 1
    assert ticks[0] > 0


# As a runnable


def test_configurable_k_keeps_the_index():
    """R1: a configurable field changes `k` without indexing again."""
    retriever = BM25Retriever.from_documents(corpus())
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    (found,) = configurable.invoke(RANKING, {"configurable": {"k": 1}})
    assert found == retriever.invoke(RANKING)[0]
    prepared, _ = configurable.prepare({"configurable": {"k": 1}})
    assert prepared.vectorizer is retriever.vectorizer
    assert prepared.corpus is retriever.corpus


def test_in_a_chain():
    """It is a runnable like any other."""
    retriever = BM25Retriever.from_documents(corpus(), k=1)
    chain = RunnablePassthrough() | retriever | (lambda documents: documents[0].id)
    assert chain.invoke("cat") == "cat"


@given(st.lists(paragraphs(), min_size=1, max_size=8), st.sampled_from(["rank", "片段", "limit"]))
def test_inputs_stay_as_they_are(texts, query):
    """DESIGN 1.6: documents are deep-equal before and after building and searching."""
    documents = [Document(text, metadata={"list": [1]}) for text in texts]
    before = snapshot(documents)
    retriever = BM25Retriever.from_documents(documents)
    first = retriever.invoke(query)
    kept = snapshot(first)
    second = retriever.invoke(query)
    for document in second:
        document.metadata.clear()
    assert snapshot(documents) == before
    assert snapshot(first) == kept
