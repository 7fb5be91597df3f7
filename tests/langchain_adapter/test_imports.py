"""What `langchain_easyrag` exports, and what it says when LangChain is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import langchain_easyrag

EXPECTED_ALL = [
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


def test_all_is_complete_sorted_and_importable():
    """The public names are exactly these."""
    assert langchain_easyrag.__all__ == EXPECTED_ALL == sorted(EXPECTED_ALL)
    assert all(hasattr(langchain_easyrag, name) for name in EXPECTED_ALL)


def _run(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("package", ["langchain_core", "langchain_text_splitters"])
def test_a_missing_framework_is_named_with_its_pip_line(package):
    """The message can be pasted into a shell."""
    done = _run(f"import sys; sys.modules[{package!r}] = None; import langchain_easyrag")
    assert done.returncode != 0
    assert "MissingDependencyError" in done.stderr
    assert "pip install 'easyrag-core[langchain]'" in done.stderr
    assert package.replace("_", "-") in done.stderr


def test_importing_brings_neither_llamaindex_nor_community():
    """Only what is needed is loaded, without a warning."""
    code = (
        "import sys, langchain_easyrag;"
        "names = {name.split('.')[0] for name in sys.modules};"
        "print(sorted(names & {'llama_index', 'langchain_community', 'langchain_classic',"
        " 'rank_bm25', 'llamaindex_easyrag'}))"
    )
    done = _run(code)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
