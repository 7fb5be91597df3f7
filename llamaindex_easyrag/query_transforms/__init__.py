"""What a question becomes before it is searched: transforms with true async twins."""

from llamaindex_easyrag.query_transforms.decompose import QueryDecomposeTransform
from llamaindex_easyrag.query_transforms.multi_query import MultiQueryTransform
from llamaindex_easyrag.query_transforms.rewrite import QueryRewriteTransform
from llamaindex_easyrag.query_transforms.terms import TermMapTransform

__all__ = [
    "MultiQueryTransform",
    "QueryDecomposeTransform",
    "QueryRewriteTransform",
    "TermMapTransform",
]
