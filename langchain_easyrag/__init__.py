"""The algorithms as LangChain parts."""

from __future__ import annotations

from importlib.util import find_spec

from easyrag_core.errors import MissingDependencyError

for _package in ("langchain_core", "langchain_text_splitters"):
    if find_spec(_package) is None:
        raise MissingDependencyError(_package.replace("_", "-"), "langchain")

from langchain_easyrag._identity import chunk_key  # noqa: E402 - after the check above
from langchain_easyrag.document_compressors import (  # noqa: E402
    AutoMergingCompressor,
    MMRCompressor,
    ParentExpansionCompressor,
)
from langchain_easyrag.retrievers import (  # noqa: E402
    BM25Retriever,
    FusionRetriever,
    HybridRetriever,
    MMRRetriever,
    ParentChildRetriever,
    PipelineRetriever,
    fuse_documents,
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
    "FusionRetriever",
    "HybridRetriever",
    "MMRCompressor",
    "MMRRetriever",
    "MarkdownSectionTextSplitter",
    "ParentChildRetriever",
    "ParentChildTextSplitter",
    "ParentExpansionCompressor",
    "PipelineRetriever",
    "chunk_key",
    "fuse_documents",
]
