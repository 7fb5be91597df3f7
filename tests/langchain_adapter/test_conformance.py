"""LangChain's own conformance suites for every retriever and the document index."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)

from easyrag_core import FilterPolicy, HybridIndex
from langchain_easyrag import (
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    MMRRetriever,
    MultiQueryRetriever,
    ParentChildRetriever,
    ScopedRetriever,
)
from tests.langchain_adapter.samples import WordEmbeddings

QUERY = "检索 ranking"


def matching():
    """Five documents that all match the query."""
    return [Document(f"ranking number {n} 检索", id=str(n)) for n in range(5)]


def vectors():
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(matching())
    return store


class _Suite(RetrieversIntegrationTests):
    @property
    def retriever_query_example(self):
        return QUERY


class TestBM25(_Suite):
    """`k` in constructor and call, documents sync and async."""

    @property
    def retriever_constructor(self):
        return BM25Retriever

    @property
    def retriever_constructor_params(self):
        return {"docs": matching()}


class TestFusion(_Suite):
    """The same over BM25 and a vector store."""

    @property
    def retriever_constructor(self):
        return FusionRetriever

    @property
    def retriever_constructor_params(self):
        bm25 = BM25Retriever.from_documents(matching())
        return {"retrievers": [bm25, vectors().as_retriever()]}


class TestHybridOwnIndex(_Suite):
    """The same over our own index and an embedding model."""

    @property
    def retriever_constructor(self):
        return HybridRetriever

    @property
    def retriever_constructor_params(self):
        model = WordEmbeddings()
        built = HybridRetriever.from_documents(matching(), model)
        return {"index": built.index, "embeddings": model}


class TestHybridVectorStore(_Suite):
    """The same with a vector store as the vector side."""

    @property
    def retriever_constructor(self):
        return HybridRetriever

    @property
    def retriever_constructor_params(self):
        built = HybridRetriever.from_documents(matching(), vector_store=vectors())
        return {"index": built.index, "vector_store": built.vector_store}


class TestHybridVectorRetriever(_Suite):
    """The same with a retriever as the vector side, over an empty index of our own."""

    @property
    def retriever_constructor(self):
        return HybridRetriever

    @property
    def retriever_constructor_params(self):
        return {"index": HybridIndex(), "vector_retriever": vectors().as_retriever()}


class TestMultiQuery(_Suite):
    """The same over BM25 with two queries."""

    @property
    def retriever_constructor(self):
        return MultiQueryRetriever

    @property
    def retriever_constructor_params(self):
        return {
            "retriever": BM25Retriever.from_documents(matching()),
            "llm_chain": RunnableLambda(lambda _: ["number"]),
        }


class TestScoped(_Suite):
    """The same over a vector store, within a policy that allows all."""

    @property
    def retriever_constructor(self):
        return ScopedRetriever

    @property
    def retriever_constructor_params(self):
        return {"retriever": vectors(), "policy": FilterPolicy()}


class TestMMR(_Suite):
    """The same over a vector store."""

    @property
    def retriever_constructor(self):
        return MMRRetriever

    @property
    def retriever_constructor_params(self):
        return {"retriever": vectors().as_retriever()}


class TestParentChild(_Suite):
    """The same over children in our own index, with an embedding model."""

    @property
    def retriever_constructor(self):
        return ParentChildRetriever

    @property
    def retriever_constructor_params(self):
        model = WordEmbeddings()
        long = [Document(f"{d.page_content}. " * 40, id=d.id) for d in matching()]
        built = ParentChildRetriever.from_documents(long, model)
        return {"index": built.index, "embeddings": model}


class TestParentChildVectorStore(_Suite):
    """The same with a vector store."""

    @property
    def retriever_constructor(self):
        return ParentChildRetriever

    @property
    def retriever_constructor_params(self):
        built = ParentChildRetriever.from_documents(
            matching(), vector_store=InMemoryVectorStore(WordEmbeddings())
        )
        return {"index": built.index, "vector_store": built.vector_store}


class TestBM25Index(DocumentIndexerTestSuite):
    """BM25Retriever is a document index."""

    @pytest.fixture
    def index(self):
        return BM25Retriever()


class TestBM25IndexAsync(AsyncDocumentIndexTestSuite):
    """Its async twin."""

    @pytest.fixture
    async def index(self):
        return BM25Retriever()
