"""Contests over source code: chunks, LangChain Documents and LlamaIndex nodes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.benchmarks._corpora import python_source
from tests.benchmarks._timing import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.speed import Settings

__all__ = ["code", "code_nodes"]

SIZE, OVERLAP = 3000, 300


def code(settings: Settings) -> Iterator[Row]:
    """Code with text, lines and ids, against strings and Documents without lines."""
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    from easyrag_core import CodeChunker
    from langchain_easyrag import CodeTextSplitter

    text = python_source(int(settings.megabytes * 1e6))
    peer = RecursiveCharacterTextSplitter.from_language(
        Language.PYTHON, chunk_size=SIZE, chunk_overlap=OVERLAP
    )
    placed = RecursiveCharacterTextSplitter.from_language(
        Language.PYTHON, chunk_size=SIZE, chunk_overlap=OVERLAP, add_start_index=True
    )
    framed = CodeChunker(SIZE, OVERLAP, language="python")
    plain = CodeChunker(SIZE, OVERLAP, language="python", template="{code}")
    splitter = CodeTextSplitter(SIZE, OVERLAP, language="python")
    strings = partial(peer.split_text, text)
    contests = (
        ("code", "split_text", partial(framed.chunk, text, "a"), strings, 1.5),
        ("code-plain", "split_text", partial(plain.chunk, text, "a"), strings, None),
        (
            "code-documents",
            "create_documents(add_start_index)",
            partial(splitter.create_documents, [text]),
            partial(placed.create_documents, [text]),
            None,
        ),
    )
    for name, call, ours, theirs, asked in contests:
        taken = settings.times(ours, theirs)
        yield Row(
            name=name,
            work=f"{len(text) / 1e6:.3g} MB of Python, {SIZE}/{OVERLAP}",
            peer=f"from_language(PYTHON).{call}",
            amount=len(text) / 1e6,
            unit="MB",
            ours=taken[0],
            theirs=taken[1],
            asked=asked,
        )


def code_nodes(settings: Settings) -> Iterator[Row]:
    """LlamaIndex nodes of code; the peer needs a parser for each language."""
    import tree_sitter_language_pack  # noqa: F401 - CodeSplitter fails without it only later
    from llama_index.core.node_parser import CodeSplitter
    from llama_index.core.schema import Document

    from easyrag_core import CodeChunker
    from llamaindex_easyrag import CodeLineNodeParser

    text = python_source(int(settings.megabytes * 1e5))
    given = [Document(text=text, id_="a")]
    peer = partial(CodeSplitter("python", max_chars=1500).get_nodes_from_documents, given)
    nodes = CodeLineNodeParser(1500, 150, language="python")
    contests = {
        "code-nodes": partial(nodes.get_nodes_from_documents, given),
        "code-chunks": partial(CodeChunker(1500, 150, language="python").chunk, text, "a"),
    }
    for name, ours in contests.items():
        taken = settings.times(ours, peer)
        yield Row(
            name=name,
            work=f"{len(text) / 1e6:.3g} MB of Python, 1500 characters",
            peer="CodeSplitter.get_nodes_from_documents",
            amount=len(text) / 1e6,
            unit="MB",
            ours=taken[0],
            theirs=taken[1],
            asked=15,
        )
