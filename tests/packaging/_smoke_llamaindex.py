"""A LlamaIndex user's first steps; run by `try_wheel` in an environment without LangChain."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from llama_index.core.schema import Document

import llamaindex_easyrag
from llamaindex_easyrag import BM25Retriever, DocumentNodeParser

TEXT = "Rankings are fused by rank. 排序由名次融合而成。\n\nEvery chunk knows its place."


def main() -> None:
    """Parse, index, retrieve."""
    assert "site-packages" in llamaindex_easyrag.__file__, llamaindex_easyrag.__file__
    parser = DocumentNodeParser(chunk_size=60, chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([Document(text=TEXT, metadata={"file_name": "a.md"})])
    for node in nodes:
        assert TEXT[node.start_char_idx : node.end_char_idx] == node.text
        assert node.metadata["file_name"] == "a.md"
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=1)
    assert "knows its place" in retriever.retrieve("place")[0].node.get_content()
    assert "名次" in retriever.retrieve("名次")[0].node.get_content()
    for name in ("langchain_core", "tests"):
        assert find_spec(name) is None, f"{name} is installed"
    assert not [name for name in sys.modules if name.startswith("langchain")]
    sys.stdout.write(f"{len(nodes)} nodes, found in English and Chinese\n")


if __name__ == "__main__":
    main()
