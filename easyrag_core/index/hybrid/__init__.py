"""Words and meaning over the same chunks: BM25, vectors and content as one index."""

from easyrag_core.index.hybrid._config import HybridConfig
from easyrag_core.index.hybrid._embedding import embed_in_batches
from easyrag_core.index.hybrid._fusing import fuse_hits
from easyrag_core.index.hybrid._index import HybridIndex

__all__ = ["HybridConfig", "HybridIndex", "embed_in_batches", "fuse_hits"]
