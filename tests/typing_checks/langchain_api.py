"""The LangChain room as a user types it: read by mypy and pyright, never run.

A line with an ignore shows a mistake that the types refuse; were it accepted, the ignore would
be unused and the check would fail.
"""
# ruff: noqa: TC002 - a user imports what is needed, and so do these lines

from __future__ import annotations

from typing import assert_type

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing.base import DocumentIndex
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever, RetrieverOutputLike
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from langchain_text_splitters import TextSplitter

from easyrag_core import (
    BM25Params,
    Comparison,
    Condition,
    Decomposition,
    Explanation,
    ExtractedConditions,
    FilterField,
    FilterPolicy,
    HybridIndex,
    InMemoryChunkStore,
    IntentDecision,
    IntentTree,
    StandardAnalyzer,
)
from langchain_easyrag import (
    BM25Retriever,
    ChunkDocstore,
    CodeTextSplitter,
    DocumentTextSplitter,
    FilterExtractor,
    FusionRetriever,
    HistoryBlendRetriever,
    HybridRetriever,
    IntentClassifier,
    IntentResult,
    IntentRouter,
    MarkdownSectionTextSplitter,
    MMRCompressor,
    MMRRetriever,
    MultiQueryGenerator,
    MultiQueryRetriever,
    ParentChildRetriever,
    ParentChildTextSplitter,
    ParentExpansionCompressor,
    QueryDecomposer,
    QueryRewriter,
    ScopedRetriever,
    SummarizedChatHistory,
    TermMapper,
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


async def understanding(model: BaseChatModel, talk: list[BaseMessage], tree: IntentTree) -> None:
    """Steps give what they say, sync and async, and chain with any runnable."""
    given = {"input": "x", "chat_history": talk}
    rewriter = QueryRewriter(model, history_turns=2)
    assert_type(rewriter.invoke(given), str)
    assert_type(await rewriter.ainvoke(given), str)
    assert_type(rewriter.batch([given]), list[str])
    assert_type(MultiQueryGenerator(model, count=4).invoke("x"), list[str])
    assert_type(QueryDecomposer(model, structured=True).invoke(given), Decomposition)
    classifier = IntentClassifier(model, tree)
    assert_type(classifier.invoke("x"), IntentDecision)
    assert_type(classifier.classify(["x", "y"]), list[IntentDecision])
    assert_type(IntentRouter(classifier, {"hr": rewriter}).invoke("x"), IntentResult)
    TermMapper({"a": "b"})
    QueryRewriter("gpt-5")  # type: ignore[arg-type]
    IntentClassifier(model)  # type: ignore[call-arg]
    TermMapper(3)  # type: ignore[arg-type]


async def scoping(store: VectorStore, inner: BaseRetriever, model: BaseChatModel) -> None:
    """Several queries, what was said before, and what the system allows."""
    policy = FilterPolicy(
        system=Condition("tenant", "eq", "a"), business_schema=[FilterField("year", "integer")]
    )
    extractor = FilterExtractor(model, policy)
    assert_type(await extractor.ainvoke("x"), ExtractedConditions)
    scoped = ScopedRetriever(retriever=store, policy=policy, extractor=extractor)
    takes_retriever(scoped)
    takes_retriever(scoped.restricted_to(Condition("owner", "eq", "b")))
    assert_type(scoped.invoke("x", k=2), list[Document])
    several = MultiQueryRetriever.from_llm(inner, model, merge="max", k=3)
    assert_type(several, MultiQueryRetriever)
    assert_type(await several.ainvoke("x"), list[Document])
    assert_type(HistoryBlendRetriever(inner).invoke({"input": "x"}), list[Document])
    ScopedRetriever(retriever=store)  # type: ignore[call-arg]
    ScopedRetriever(retriever=store, policy={"tenant": "a"})  # type: ignore[arg-type]


def remembering(kept: BaseChatMessageHistory, model: BaseChatModel) -> None:
    """A conversation with notes is a conversation."""
    history: BaseChatMessageHistory = SummarizedChatHistory(kept, model, window=6)
    history.clear()
    SummarizedChatHistory([], model)  # type: ignore[arg-type]
