"""The algorithms as LangChain parts."""

from __future__ import annotations

from importlib.util import find_spec

from easyrag_core.errors import MissingDependencyError

for _package in ("langchain_core", "langchain_text_splitters"):
    if find_spec(_package) is None:
        raise MissingDependencyError(_package.replace("_", "-"), "langchain")

from langchain_easyrag._identity import chunk_key  # noqa: E402 - after the check above
from langchain_easyrag.chat_models import (  # noqa: E402
    RoutedChatModel,
    StreamResetChunk,
)
from langchain_easyrag.document_compressors import (  # noqa: E402
    AutoMergingCompressor,
    MMRCompressor,
    ParentExpansionCompressor,
)
from langchain_easyrag.embeddings import RoutedEmbeddings  # noqa: E402
from langchain_easyrag.evaluation import acompare, compare  # noqa: E402
from langchain_easyrag.explanation import explain  # noqa: E402
from langchain_easyrag.retrievers import (  # noqa: E402
    BM25Retriever,
    FusionRetriever,
    HistoryBlendRetriever,
    HybridRetriever,
    MMRRetriever,
    MultiQueryRetriever,
    ParentChildRetriever,
    PipelineRetriever,
    ScopedRetriever,
    fuse_documents,
)
from langchain_easyrag.runnables import (  # noqa: E402
    FilterExtractor,
    IntentClassifier,
    IntentResult,
    IntentRouter,
    MultiQueryGenerator,
    QueryDecomposer,
    QueryRewriter,
    SummarizedChatHistory,
    TermMapper,
)
from langchain_easyrag.stores import ChunkDocstore, DocstoreChunkStore  # noqa: E402
from langchain_easyrag.text_splitters import (  # noqa: E402
    CodeTextSplitter,
    DocumentTextSplitter,
    MarkdownSectionTextSplitter,
    ParentChildTextSplitter,
)

__all__ = [
    "AutoMergingCompressor",
    "BM25Retriever",
    "ChunkDocstore",
    "CodeTextSplitter",
    "DocstoreChunkStore",
    "DocumentTextSplitter",
    "FilterExtractor",
    "FusionRetriever",
    "HistoryBlendRetriever",
    "HybridRetriever",
    "IntentClassifier",
    "IntentResult",
    "IntentRouter",
    "MMRCompressor",
    "MMRRetriever",
    "MarkdownSectionTextSplitter",
    "MultiQueryGenerator",
    "MultiQueryRetriever",
    "ParentChildRetriever",
    "ParentChildTextSplitter",
    "ParentExpansionCompressor",
    "PipelineRetriever",
    "QueryDecomposer",
    "QueryRewriter",
    "RoutedChatModel",
    "RoutedEmbeddings",
    "ScopedRetriever",
    "StreamResetChunk",
    "SummarizedChatHistory",
    "TermMapper",
    "acompare",
    "chunk_key",
    "compare",
    "explain",
    "fuse_documents",
]
