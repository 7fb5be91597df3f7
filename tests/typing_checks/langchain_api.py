"""The LangChain room as a user types it: read by mypy and pyright, never run.

A line with an ignore shows a mistake that the types refuse; were it accepted, the ignore would
be unused and the check would fail.
"""
# ruff: noqa: TC002 - a user imports what is needed, and so do these lines

from __future__ import annotations

from typing import assert_type

from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing.base import DocumentIndex
from langchain_core.retrievers import BaseRetriever, RetrieverOutputLike
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from easyrag_core import (
    BM25Params,
    Comparison,
    Explanation,
    HybridIndex,
    InMemoryChunkStore,
    StandardAnalyzer,
)
from langchain_easyrag import (
    BM25Retriever,
    ChunkDocstore,
    CodeTextSplitter,
    DocumentTextSplitter,
    FusionRetriever,
    HybridRetriever,
    MarkdownSectionTextSplitter,
    MMRCompressor,
    MMRRetriever,
    ParentChildRetriever,
    ParentChildTextSplitter,
    ParentExpansionCompressor,
    acompare,
    compare,
    explain,
)

__all__: list[str] = []


def takes_retriever(retriever: BaseRetriever) -> RetrieverOutputLike:
    """Stand for a chain that takes any retriever."""
    return retriever


def takes_splitter(splitter: TextSplitter) -> BaseDocumentTransformer:
    """Stand for a ParentDocumentRetriever."""
    return splitter


def splitting(documents: list[Document]) -> None:
    """Documents into documents."""
    splitter = DocumentTextSplitter(chunk_size=200, chunk_overlap=20, boundary="paragraph")
    takes_splitter(splitter)
    assert_type(splitter.split_text("x"), list[str])
    assert_type(splitter.split_documents(documents), list[Document])
    assert_type(splitter.create_documents(["x"], [{"source": "a.md"}]), list[Document])
    DocumentTextSplitter(chunk_size="200")  # type: ignore[arg-type]
    DocumentTextSplitter(boundaries="word")  # type: ignore[call-arg]


def splitting_by_structure(documents: list[Document]) -> None:
    """Markdown by its sections, code by its definitions."""
    markdown = MarkdownSectionTextSplitter(chunk_size=500, header_keys=True, horizontal_rule="soft")
    takes_splitter(markdown)
    assert_type(markdown.split_text("# x"), list[str])
    assert_type(markdown.split_documents(documents), list[Document])
    MarkdownSectionTextSplitter(horizontal_rule="maybe")  # type: ignore[arg-type]
    code = CodeTextSplitter(chunk_size=500, language="python")
    takes_splitter(code)
    assert_type(CodeTextSplitter.from_language("go", chunk_size=500), CodeTextSplitter)
    assert_type(code.create_documents(["x = 1"]), list[Document])
    CodeTextSplitter(language=3)  # type: ignore[arg-type]


async def parents_and_children(
    documents: list[Document], model: Embeddings, parents: BaseStore[str, Document]
) -> None:
    """Small chunks are found, the large ones that hold them are read."""
    splitter = ParentChildTextSplitter(
        chunk_size=200, parent_splitter=MarkdownSectionTextSplitter(), store=parents
    )
    takes_splitter(splitter)
    assert_type(splitter.split_documents(documents), list[Document])
    assert_type(await splitter.asplit_documents(documents), list[Document])
    ParentChildTextSplitter(store={})  # type: ignore[arg-type]
    retriever = ParentChildRetriever.from_documents(documents, model, splitter=splitter, k=3)
    assert_type(retriever, ParentChildRetriever)
    takes_retriever(retriever)
    assert_type(retriever.invoke("x", k=2, child_k=20), list[Document])
    assert_type(await retriever.ainvoke("x"), list[Document])
    assert_type(retriever.add_documents(documents), list[str])
    assert_type(retriever.delete(["a"]), int)
    expanding: BaseDocumentCompressor = ParentExpansionCompressor(store=InMemoryChunkStore(), k=4)
    expanding.compress_documents(documents, "x")
    assert_type(
        ParentExpansionCompressor(store=parents).compress_documents(documents, "x"),
        list[Document],
    )


async def searching(documents: list[Document]) -> None:
    """Documents found by words."""
    retriever = BM25Retriever.from_documents(documents, k=5, bm25_params={"k1": 1.2, "b": 0.5})
    assert_type(retriever, BM25Retriever)
    takes_retriever(retriever)
    assert_type(retriever.invoke("x"), list[Document])
    assert_type(retriever.invoke("x", {"tags": ["a"]}, k=2), list[Document])
    assert_type(await retriever.ainvoke("x", k=2), list[Document])
    index: DocumentIndex = BM25Retriever(docs=documents, bm25_params=BM25Params(k1=1.2))
    index.upsert(documents)
    assert_type(retriever.get(["a"]), list[Document])
    BM25Retriever.from_texts(["x"], analyzer=StandardAnalyzer(), filter=is_recent)
    BM25Retriever.from_texts(["x"], preprocess_func=str.split)
    BM25Retriever(docs=documents, k="5")  # type: ignore[arg-type]


def is_recent(document: Document) -> bool:
    """Stand for a filter of the user's."""
    return bool(document.metadata)


async def hybrid(documents: list[Document], model: Embeddings, store: VectorStore) -> None:
    """Words and vectors, from an own index or from the user's store."""
    retriever = HybridRetriever.from_documents(documents, model, k=5)
    assert_type(retriever, HybridRetriever)
    assert_type(retriever.invoke("x"), list[Document])
    assert_type(await retriever.ainvoke("x", k=2), list[Document])
    assert_type(retriever.add_documents(documents), list[str])
    takes_retriever(HybridRetriever(index=HybridIndex(), vector_store=store, weights=[1, 2]))
    takes_retriever(HybridRetriever(vector_retriever=store.as_retriever()))


def found(query: str) -> list[Document]:
    """Stand for a search of the user's."""
    return [Document(page_content=query)]


def fusing(first: BaseRetriever, second: BaseRetriever) -> None:
    """Children are retrievers, or anything from a query to documents."""
    echo: RunnableLambda[str, list[Document]] = RunnableLambda(found)
    fused = FusionRetriever(retrievers=[first, second, echo], weights=[1, 1, 0.5], k=3)
    assert_type(fused.invoke("x"), list[Document])
    FusionRetriever([first, second])  # type: ignore[call-arg]


def diversifying(inner: BaseRetriever, model: Embeddings, documents: list[Document]) -> None:
    """A compressor, or a retriever around another."""
    compressor: BaseDocumentCompressor = MMRCompressor(k=4, lambda_mult=0.5, embeddings=model)
    compressor.compress_documents(documents, "x")
    assert_type(MMRCompressor().compress_documents(documents, "x"), list[Document])
    takes_retriever(MMRRetriever(retriever=inner, fetch_k=20, embeddings=model))


def storing(documents: list[Document]) -> None:
    """A store of documents over any of ours."""
    store: BaseStore[str, Document] = ChunkDocstore(InMemoryChunkStore())
    store.mset([("a", documents[0])])
    assert_type(store.mget(["a"]), list[Document | None])


async def evaluating(words: BaseRetriever, documents: list[Document]) -> None:
    """Retrievers, runnables and functions are compared; what they give is explained."""
    asked = {"q": ["a"]}
    assert_type(compare({"words": words, "function": found}, asked, metrics=["mrr"]), Comparison)
    assert_type(await acompare({"words": words}, asked, match="text"), Comparison)
    assert_type(explain(documents, query="x"), Explanation)
