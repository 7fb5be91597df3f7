"""The rows of Markdown: documents, nodes and token budgets against the frameworks' own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.benchmarks._corpora import corpus
from tests.benchmarks._timing import Row, megabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.speed import Settings

__all__ = ["documents", "sections", "tokens"]

_MARKS = [("#" * level, f"Header {level}") for level in range(1, 7)]
_WORDS = "Some words of text in a line. " * 8


def documents(settings: Settings) -> Iterator[Row]:
    """LangChain documents under a size limit against headers first, then recursively.

    The experimental splitter knows no limit, so its pieces are whole sections.
    """
    from langchain_core.documents import Document
    from langchain_text_splitters import (
        ExperimentalMarkdownSyntaxTextSplitter,
        MarkdownHeaderTextSplitter,
        RecursiveCharacterTextSplitter,
    )

    from langchain_easyrag import MarkdownSectionTextSplitter

    headers = MarkdownHeaderTextSplitter(_MARKS, strip_headers=False)
    for language in ("en", "zh"):
        text, source = corpus(language, int(settings.megabytes * 1e6))
        given = [Document(text, metadata={"source": "a.md"})]
        for size in (800, 1400):
            ours = MarkdownSectionTextSplitter(size)
            recursive = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0)

            def recipe(
                text: str = text, recursive: RecursiveCharacterTextSplitter = recursive
            ) -> list[Document]:
                return recursive.split_documents(headers.split_text(text))

            def experimental(text: str = text) -> list[Document]:
                return ExperimentalMarkdownSyntaxTextSplitter().split_text(text)

            taken = settings.times(partial(ours.split_documents, given), recipe, experimental)
            peers = {"MarkdownHeader + Recursive": taken[1], "ExperimentalMarkdown": taken[2]}
            for peer, seconds in peers.items():
                yield Row(
                    name=f"markdown-{language}",
                    work=f"{megabytes(text):.3g} MB of {source} into documents, {size}",
                    peer=peer,
                    amount=megabytes(text),
                    unit="MB",
                    ours=taken[0],
                    theirs=seconds,
                    asked=4,
                )


def sections(settings: Settings) -> Iterator[Row]:
    """1 MB in 4000 sections, and a quarter and a half of it: the peer is quadratic in sections."""
    from llama_index.core.node_parser import MarkdownNodeParser
    from llama_index.core.schema import Document

    from llamaindex_easyrag import MarkdownSectionNodeParser
    from tests.benchmarks._timing import interleaved

    ours, peer = MarkdownSectionNodeParser(merge_small=False), MarkdownNodeParser()
    most = max(40, min(4000, int(400 * settings.megabytes)))
    counts = (most // 4, most // 2, most)
    given = {
        count: [
            Document(
                text="# T\n\n" + "".join(f"## S {i}\n\n{_WORDS}\n\n" for i in range(count)), id_="a"
            )
        ]
        for count in counts
    }
    calls = [partial(ours.get_nodes_from_documents, given[count]) for count in counts]
    whole = partial(peer.get_nodes_from_documents, given[counts[-1]])
    # The peer takes seconds: once is enough.
    *taken, theirs = interleaved([*calls, whole], rounds=1)
    for count, seconds in zip(counts, taken, strict=True):
        growth = seconds / taken[0] / (count / counts[0])
        yield Row(
            name="markdown-sections",
            work=f"{megabytes(given[count][0].text):.2g} MB in {count} sections into nodes",
            peer="MarkdownNodeParser" if count == counts[-1] else "",
            amount=count,
            unit="node",
            ours=seconds,
            theirs=theirs if count == counts[-1] else None,
            asked=15 if count == counts[-1] else None,
            note=f"{growth:.2f} of linear",
        )


def tokens(settings: Settings) -> Iterator[Row]:
    """Sections into nodes of 200 tokens against sentences, both counting with one tiktoken."""
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document
    from llama_index.core.utils import get_tokenizer

    from llamaindex_easyrag import MarkdownSectionNodeParser

    tokenizer = get_tokenizer()  # cl100k_base, from a file that llama-index-core brings

    def count(text: str) -> int:
        return len(tokenizer(text))

    ours = MarkdownSectionNodeParser(200, 25, length_function=count)
    peer = SentenceSplitter(chunk_size=200, chunk_overlap=25, tokenizer=tokenizer)
    for language in ("en", "zh"):
        text, source = corpus(language, int(settings.megabytes * 1e5))
        given = [Document(text=text, id_="a")]
        taken = settings.times(
            partial(ours.get_nodes_from_documents, given),
            partial(peer.get_nodes_from_documents, given),
        )
        yield Row(
            name=f"markdown-tokens-{language}",
            work=f"{megabytes(text):.3g} MB of {source}, 200/25 tokens",
            peer="SentenceSplitter",
            amount=megabytes(text),
            unit="MB",
            ours=taken[0],
            theirs=taken[1],
            asked=3,
        )
