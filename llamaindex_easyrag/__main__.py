"""`python -m llamaindex_easyrag PATH "question"`: search a folder through LlamaIndex's parts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, Document, QueryBundle
from pydantic import PrivateAttr

from easyrag_core.chunking.by_path import chunker_for
from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.console import run
from easyrag_core.explanation import hit_of_facts
from llamaindex_easyrag import (
    CodeLineNodeParser,
    DocumentNodeParser,
    HybridRetriever,
    MarkdownSectionNodeParser,
    MMRPostprocessor,
)
from llamaindex_easyrag._convert import chunks_from_nodes
from llamaindex_easyrag._facts import facts_of

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser

    from easyrag_core.console import EmbeddingModel
    from easyrag_core.files import SourceFile
    from easyrag_core.index import HybridIndex
    from easyrag_core.types import Chunk, Hit

__all__ = ["LlamaIndexAdapter"]

# So many candidates for each passage wanted give diversity something to choose from.
_CANDIDATES = 4


class LlamaIndexAdapter:
    """LlamaIndex's parser, retriever and postprocessor behind the command line."""

    program = "python -m llamaindex_easyrag"
    framework = "LlamaIndex"

    def __init__(self) -> None:
        """Start without nodes."""
        self._nodes: dict[str, BaseNode] = {}

    def split(self, file: SourceFile) -> list[Chunk]:
        """Cut a file into chunks, and keep the nodes that they come from."""
        hidden = ["file_path"]
        document = Document(
            text=file.text,
            id_=file.path,
            metadata={"file_path": file.path},
            excluded_embed_metadata_keys=hidden,
            excluded_llm_metadata_keys=hidden,
        )
        nodes = _parser_for(file).get_nodes_from_documents([document])
        self._nodes.update((node.node_id, node) for node in nodes)
        return chunks_from_nodes(nodes)

    def search(
        self, index: HybridIndex, question: str, k: int, model: EmbeddingModel | None
    ) -> list[Hit]:
        """Search by words and meaning, then keep what is relevant and different."""
        retriever = HybridRetriever(
            list(self._nodes.values()),
            index=index,
            embed_model=None if model is None else _ModelEmbedding(model),
            similarity_top_k=_CANDIDATES * k,
        )
        query = QueryBundle(question)
        picker = MMRPostprocessor(top_n=k, relevance="score", vector_store=index.vectors)
        picked = picker.postprocess_nodes(retriever.retrieve(query), query_bundle=query)
        return [
            hit_of_facts(found.node_id, rank, facts_of(found.node))
            for rank, found in enumerate(picked, start=1)
        ]


def _parser_for(file: SourceFile) -> NodeParser:
    """The parser that cuts as the chunker for this file does."""
    chunker = chunker_for(file.path, text=file.text)
    if isinstance(chunker, MarkdownChunker):
        return MarkdownSectionNodeParser()
    return CodeLineNodeParser() if isinstance(chunker, CodeChunker) else DocumentNodeParser()


class _ModelEmbedding(BaseEmbedding):
    """The command line's model as LlamaIndex knows one."""

    _model: EmbeddingModel = PrivateAttr()

    def __init__(self, model: EmbeddingModel, **settings: Any) -> None:
        super().__init__(model_name=model.name, **settings)
        self._model = model

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.embed_query(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._model.embed_passages([text])[0]


if __name__ == "__main__":
    sys.exit(run(LlamaIndexAdapter()))
