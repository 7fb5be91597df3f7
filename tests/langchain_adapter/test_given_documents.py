"""What is given in the place of a list of documents: by users, and by runnables."""

from __future__ import annotations

import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from easyrag_core import EasyRAGError, InMemoryChunkStore, InvalidParameterError
from langchain_easyrag import (
    BM25Retriever,
    DocumentTextSplitter,
    FusionRetriever,
    HybridRetriever,
    MMRCompressor,
    MMRRetriever,
    MultiQueryRetriever,
    ParentChildRetriever,
    ParentExpansionCompressor,
    fuse_documents,
)
from langchain_easyrag._given import AnswerError, as_documents
from tests.langchain_adapter.samples import ListRetriever, corpus, ids

ONE = Document("A lone ranking passage.", id="one")
PARENTS = ParentExpansionCompressor(store=InMemoryChunkStore())


def around(runnable):
    """The retrievers that ask others, each around one runnable."""
    return [
        FusionRetriever(retrievers=[runnable], strict=True),
        MMRRetriever(retriever=runnable),
        HybridRetriever(vector_retriever=runnable, strict=True),
    ]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"context": [ONE], "question": "q"}, "dict"),
        ("an answer", "str"),
        (b"bytes", "bytes"),
        (None, "None"),
        (ONE, "Document"),
        ({"a", "b"}, "set"),
        (7, "int"),
        ([ONE, 7], "int"),
        ([ONE, None], "None"),
        ([(ONE, 0.5)], "tuple"),
    ],
)
async def test_an_answer_that_is_no_list_of_documents_is_refused(answer, kind):
    """Nothing is taken apart into keys or letters: the error says what came, in both twins."""
    for retriever in around(RunnableLambda(lambda _: answer)):
        with pytest.raises(AnswerError, match=rf"list of Documents.*\b{kind}\b") as caught:
            retriever.invoke("ranking")
        assert isinstance(caught.value, EasyRAGError)
        assert isinstance(caught.value, TypeError)
        with pytest.raises(AnswerError, match="list of Documents"):
            await retriever.ainvoke("ranking")


@pytest.mark.parametrize("form", [list, tuple, iter, lambda items: (item for item in items)])
@pytest.mark.parametrize("items", [["文一", "two"], [Document("文一"), Document("two")]])
def test_lists_tuples_and_generators_are_answers(form, items):
    """Documents or strings, in whatever holds them in an order."""
    assert [found.page_content for found in as_documents(form(items))] == ["文一", "two"]


def test_a_child_without_documents_is_left_out_like_any_that_fails(caplog):
    """A chain that gives a dict costs its own votes only, and the log says why."""
    broken = RunnableLambda(lambda _: {"documents": corpus()})
    fused = FusionRetriever(retrievers=[broken, ListRetriever(documents=corpus())])
    assert ids(fused.invoke("ranking")) == ids(corpus())
    assert "list of Documents" in caplog.text


@pytest.mark.parametrize("ranking", [ONE, "a text", {"a": ONE}, None])
def test_a_ranking_is_a_list_of_documents(ranking):
    """One document, or one ranking where several are asked, is refused by name."""
    with pytest.raises(InvalidParameterError, match="rankings"):
        fuse_documents([[ONE], ranking])


def test_the_error_can_be_pickled():
    """It may be raised in a worker process."""
    error = AnswerError("answer", None, "give a list")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (AnswerError, str(error))


@pytest.mark.parametrize("wrong", [ONE, "a text", {"a": ONE}, ["a text"], [None]])
@pytest.mark.parametrize(
    "take",
    [
        pytest.param(BM25Retriever.from_documents, id="bm25"),
        pytest.param(lambda d: BM25Retriever(docs=d), id="bm25-docs"),
        pytest.param(lambda d: BM25Retriever().upsert(d), id="upsert"),
        pytest.param(HybridRetriever.from_documents, id="hybrid"),
        pytest.param(ParentChildRetriever.from_documents, id="parent-child"),
        pytest.param(DocumentTextSplitter().split_documents, id="splitter"),
        pytest.param(lambda d: MMRCompressor().compress_documents(d, "q"), id="mmr"),
        pytest.param(lambda d: PARENTS.compress_documents(d, "q"), id="parents"),
    ],
)
def test_one_document_is_no_list(take, wrong):
    """A single document, a text or a mapping is refused by name, not taken apart."""
    with pytest.raises(InvalidParameterError, match=r"list of Documents"):
        take(wrong)


@pytest.mark.parametrize("query", [None, 7, b"ranking", {"input": "ranking"}, ["ranking"]])
async def test_a_query_that_is_no_text_is_refused(query):
    """A chain that hands on its mapping is told so, in both twins, before anyone is asked."""
    asked = []
    nobody = RunnableLambda(asked.append)
    retrievers = [
        *around(nobody),
        HybridRetriever.from_documents(corpus()),
        MultiQueryRetriever(retriever=nobody, llm_chain=nobody, strict=True),
        MultiQueryRetriever(retriever=nobody, llm_chain=nobody),
        ParentChildRetriever.from_documents(corpus()),
    ]
    for retriever in retrievers:
        with pytest.raises(InvalidParameterError, match="give a text"):
            retriever.invoke(query)
        with pytest.raises(InvalidParameterError, match="give a text"):
            await retriever.ainvoke(query)
    assert asked == []
