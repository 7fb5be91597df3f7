"""`python -m langchain_easyrag PATH "question"`: search a folder through LangChain's parts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from typing_extensions import override

from easyrag_core.chunking.by_path import chunker_for
from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.console import run
from easyrag_core.explanation import hit_of_facts
from langchain_easyrag import (
    CodeTextSplitter,
    DocumentTextSplitter,
    HybridRetriever,
    MarkdownSectionTextSplitter,
    MMRCompressor,
)
from langchain_easyrag._convert import chunk_of_document, facts_of

if TYPE_CHECKING:
    from langchain_text_splitters import TextSplitter

    from easyrag_core.console import EmbeddingModel
    from easyrag_core.files import SourceFile
    from easyrag_core.index import HybridIndex
    from easyrag_core.types import Chunk, Hit

__all__ = ["LangChainAdapter"]

# So many candidates for each passage wanted give diversity something to choose from.
_CANDIDATES = 4


class LangChainAdapter:
    """LangChain's splitter, retriever and compressor behind the command line."""

    program = "python -m langchain_easyrag"
    framework = "LangChain"

    def split(self, file: SourceFile) -> list[Chunk]:
        """Cut a file into chunks, in the way that its name asks for."""
        source = Document(file.text, id=file.path, metadata={"source": file.path})
        documents = _splitter_for(file).split_documents([source])
        return [chunk_of_document(document, document.id or "") for document in documents]

    def search(
        self, index: HybridIndex, question: str, k: int, model: EmbeddingModel | None
    ) -> list[Hit]:
        """Search by words and meaning, then keep what is relevant and different."""
        embeddings = None if model is None else _ModelEmbeddings(model)
        retriever = HybridRetriever(index=index, embeddings=embeddings, k=_CANDIDATES * k)
        compressor = MMRCompressor(k=k, relevance="score", vector_store=index)
        picked = compressor.compress_documents(retriever.invoke(question), question)
        return [
            hit_of_facts(document.id or "", rank, facts_of(document))
            for rank, document in enumerate(picked, start=1)
        ]


def _splitter_for(file: SourceFile) -> TextSplitter:
    chunker = chunker_for(file.path, text=file.text)
    if isinstance(chunker, MarkdownChunker):
        return MarkdownSectionTextSplitter()
    return CodeTextSplitter() if isinstance(chunker, CodeChunker) else DocumentTextSplitter()


class _ModelEmbeddings(Embeddings):
    """The command line's model as LangChain knows one."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed_passages(texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text)


if __name__ == "__main__":
    sys.exit(run(LangChainAdapter()))
