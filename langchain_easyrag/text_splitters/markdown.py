"""Markdown into chunks by its headings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.errors import InvalidParameterError
from langchain_easyrag._pieces import documents_of_sections
from langchain_easyrag.text_splitters._placed import PlacedTextSplitter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.documents import Document

    from easyrag_core.chunking.markdown import HorizontalRule

__all__ = ["HeaderKeys", "MarkdownSectionTextSplitter"]

HeaderKeys = bool | Iterable[tuple[str, str]]
"""Metadata keys of titles by level, as `MarkdownHeaderTextSplitter` takes them."""

_LEVELS = range(1, 7)


class MarkdownSectionTextSplitter(PlacedTextSplitter):
    """Split Markdown at its headings, and long sections between their blocks.

    Each chunk's `page_content` begins with the titles above it (`[Guide > Install]`), unless
    its own text does; a piece of a table carries the table's header, a piece of code its fence.
    So what is embedded, found and read says what it belongs to. `start_index`, `end_index` and
    the lines are those of the chunk's own text in the source, and `heading_path` lists the
    titles. The size limit holds for the whole of `page_content`. With `prefix_headings=False`
    it is that text alone: `text[start_index:end_index]`.

    A block that fits is never cut. Front matter is in `metadata["front_matter"]`. Ids depend on
    document, titles and text, not on the position; see `DocumentTextSplitter`.

    Setup:
        Install `easyrag-core[langchain]`.

    Instantiate:
        ```python
        from langchain_easyrag import MarkdownSectionTextSplitter

        splitter = MarkdownSectionTextSplitter(chunk_size=1400)
        by_tokens = MarkdownSectionTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=350)
        ```

    Use:
        ```python
        chunks = splitter.split_documents(documents)
        chunks[0].metadata["heading_path"], chunks[0].metadata["start_line"]
        ```
    """

    def __init__(
        self,
        chunk_size: int = 1400,
        chunk_overlap: int = 0,
        *,
        min_chunk_size: int | None = None,
        max_heading_level: int = 6,
        prefix_headings: bool = True,
        header_keys: HeaderKeys = False,
        merge_small: bool = True,
        horizontal_rule: HorizontalRule = "hard",
        length_function: Callable[[str], int] = len,
        add_start_index: bool = True,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: Upper limit of `page_content`, in units of `length_function`; above 0.
            chunk_overlap: Upper limit of what two neighbours share, in the same unit, below
                `chunk_size`; there is some only where a paragraph is cut.
            min_chunk_size: A chunk this long takes no further section in; by default as many
                small neighbours are packed together as fit.
            max_heading_level: Deeper headings are text; from 1 to 6.
            prefix_headings: Whether `page_content` says what the chunk belongs to; else it is a
                slice of the source.
            header_keys: `True` also puts each title under `Header 1` to `Header 6`, by its
                level; pairs as of `MarkdownHeaderTextSplitter`, such as `("#", "Title")`, say
                under which keys.
            merge_small: Pack small neighbouring sections under one heading together.
            horizontal_rule: `"hard"`: a rule cuts. `"soft"`: it does not.
            length_function: Measures a text; it may be slow.
            add_start_index: Accepted for code that sets it on any splitter; the place is always
                given.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        self._chunker = MarkdownChunker(
            chunk_size,
            chunk_overlap,
            min_chunk_size=min_chunk_size,
            max_heading_level=max_heading_level,
            heading_path_in="embedding_text" if prefix_headings else "metadata",
            length_function=length_function,
            merge_small=merge_small,
            horizontal_rule=horizontal_rule,
        )
        self._prefix_headings = bool(prefix_headings)
        self._header_keys = _keys_by_level(header_keys)
        super().__init__(
            chunk_size=self._chunker.chunk_size,
            chunk_overlap=self._chunker.chunk_overlap,
            length_function=length_function,
            keep_separator=True,
            add_start_index=add_start_index,
            strip_whitespace=True,
        )

    @property
    @override
    def chunker(self) -> MarkdownChunker:
        """The core's chunker, with these settings."""
        return self._chunker

    @override
    def split_text(self, text: str) -> list[str]:
        """Split one text.

        Args:
            text: The text.

        Returns:
            The `page_content` of its chunks.

        Raises:
            InvalidParameterError: `text` is not a string, or the length function fails.
        """
        chunks = self._chunker.iter_chunks(text, "")
        if self._prefix_headings:
            return [chunk.embedding_text for chunk in chunks]
        return [chunk.text for chunk in chunks]

    @override
    def pieces_of(self, document: Document, document_id: str) -> Iterable[Document]:
        """Split one document; see `split_documents`."""
        text = document.page_content
        documents = documents_of_sections(
            document,
            document_id,
            self._chunker.iter_pieces(text, document_id),
            front_matter=self._chunker.front_matter(text),
            embedded=self._prefix_headings,
        )
        if self._header_keys:
            self._name_titles(text, documents)
        return documents

    def _name_titles(self, text: str, documents: Sequence[Document]) -> None:
        """Put the titles above each chunk under the keys of their levels."""
        deepest = self._chunker.max_heading_level
        headings = [h for h in self._chunker.headings(text) if h.level <= deepest]
        headings.reverse()
        above: dict[int, str] = {}
        for document in documents:
            while headings and headings[-1].line <= document.metadata["start_line"]:
                heading = headings.pop()
                above = {level: above[level] for level in above if level < heading.level}
                above[heading.level] = heading.title
            path = document.metadata.get("heading_path", ())
            for level, title in zip(above, path, strict=False):
                if key := self._header_keys.get(level):
                    document.metadata[key] = title


def _keys_by_level(given: HeaderKeys) -> Mapping[int, str]:
    if isinstance(given, bool):
        return {level: f"Header {level}" for level in _LEVELS} if given else {}
    keys = {}
    for pair in _pairs(given):
        marks, key = pair
        if marks.strip("#") or len(marks) not in _LEVELS:
            raise InvalidParameterError("header_keys", pair, "a level is # to ######")
        keys[len(marks)] = key
    return keys


def _pairs(given: Any) -> list[tuple[str, str]]:
    allowed = 'give True or pairs such as ("#", "Header 1")'
    try:
        pairs = [(marks, key) for marks, key in given]
    except (TypeError, ValueError) as error:
        raise InvalidParameterError("header_keys", given, allowed) from error
    if not all(isinstance(word, str) for pair in pairs for word in pair):
        raise InvalidParameterError("header_keys", given, allowed)
    return pairs
