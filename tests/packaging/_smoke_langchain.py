"""A LangChain user's first steps; run by `try_wheel` in an environment without LlamaIndex."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from langchain_core.documents import Document

import langchain_easyrag
from langchain_easyrag import BM25Retriever, DocumentTextSplitter

TEXT = "Rankings are fused by rank. 排序由名次融合而成。\n\nEvery chunk knows its place."


def main() -> None:
    """Split, index, retrieve."""
    assert "site-packages" in langchain_easyrag.__file__, langchain_easyrag.__file__
    splitter = DocumentTextSplitter(chunk_size=50, chunk_overlap=0)
    chunks = splitter.split_documents([Document(page_content=TEXT, metadata={"source": "a.md"})])
    for chunk in chunks:
        start, end = chunk.metadata["start_index"], chunk.metadata["end_index"]
        assert TEXT[start:end] == chunk.page_content
        assert chunk.metadata["source"] == "a.md"
    retriever = BM25Retriever.from_documents(chunks, k=1)
    assert "knows its place" in retriever.invoke("place")[0].page_content
    assert "名次" in retriever.invoke("名次")[0].page_content
    for name in ("llama_index", "tests"):
        assert find_spec(name) is None, f"{name} is installed"
    assert not [name for name in sys.modules if name.startswith("llama")]
    sys.stdout.write(f"{len(chunks)} documents, found in English and Chinese\n")


if __name__ == "__main__":
    main()
