"""A user's first steps with the core alone; run by `try_wheel` in a clean environment."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

import easyrag_core
from easyrag_core import BM25Index, DocumentChunker, MissingDependencyError

TEXT = "Rankings are fused by rank. 排序由名次融合而成。\n\nEvery chunk knows its place."
EXTRAS = {"langchain_easyrag": "langchain", "llamaindex_easyrag": "llamaindex"}


def refusal(package: str) -> str:
    """What an adapter says when its framework is not installed."""
    try:
        importlib.import_module(package)
    except MissingDependencyError as error:
        return str(error)
    return f"{package} was imported without its framework"


def main() -> None:
    """Chunk, search, and ask for each adapter without its framework."""
    assert "site-packages" in easyrag_core.__file__, easyrag_core.__file__
    chunks = DocumentChunker(chunk_size=50, chunk_overlap=0).chunk(TEXT, "doc")
    assert all(TEXT[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    index = BM25Index()
    index.add([chunk.id for chunk in chunks], [chunk.embedding_text for chunk in chunks])
    texts = {chunk.id: chunk.text for chunk in chunks}
    assert "knows its place" in texts[index.search("place", k=1)[0].id]
    assert "名次" in texts[index.search("名次", k=1)[0].id]
    for package, extra in EXTRAS.items():
        told = refusal(package)
        assert f"pip install 'easyrag-core[{extra}]'" in told, told
    for name in ("langchain_core", "llama_index", "tests"):
        assert find_spec(name) is None, f"{name} is installed"
    sys.stdout.write(f"{len(chunks)} chunks, found in English and Chinese\n")


if __name__ == "__main__":
    main()
