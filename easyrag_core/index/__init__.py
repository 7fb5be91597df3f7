"""Where chunks live and are found."""

from easyrag_core.index.analyzer import (
    Analyzer,
    FunctionAnalyzer,
    JiebaAnalyzer,
    StandardAnalyzer,
    analyzer_from_settings,
)
from easyrag_core.index.bm25 import (
    BM25Explanation,
    BM25Index,
    BM25Params,
    TermExplanation,
    field_texts,
)
from easyrag_core.index.hybrid import (
    HybridConfig,
    HybridIndex,
    embed_in_batches,
    fuse_hits,
)
from easyrag_core.index.store import (
    CachedChunkStore,
    ChunkStore,
    InMemoryChunkStore,
    KeyValueChunkStore,
    SQLiteChunkStore,
)
from easyrag_core.index.vector import (
    VectorIndex,
)

__all__ = [
    "Analyzer",
    "BM25Explanation",
    "BM25Index",
    "BM25Params",
    "CachedChunkStore",
    "ChunkStore",
    "FunctionAnalyzer",
    "HybridConfig",
    "HybridIndex",
    "InMemoryChunkStore",
    "JiebaAnalyzer",
    "KeyValueChunkStore",
    "SQLiteChunkStore",
    "StandardAnalyzer",
    "TermExplanation",
    "VectorIndex",
    "analyzer_from_settings",
    "embed_in_batches",
    "field_texts",
    "fuse_hits",
]
