"""Source code into chunks of whole lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from typing_extensions import override

from easyrag_core.chunking.code import CodeChunker
from easyrag_core.errors import InvalidParameterError
from langchain_easyrag._convert import documents_of_chunks
from langchain_easyrag.text_splitters._placed import PlacedTextSplitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from langchain_core.documents import Document
    from langchain_text_splitters import Language

    from easyrag_core.types import Chunk

__all__ = ["CodeTextSplitter"]


class CodeTextSplitter(PlacedTextSplitter):
    """Split source code of any language into whole lines, cut where definitions begin.

    Decorators, attributes and comments stay with their definition where both fit; indentation
    is kept. Each chunk's `page_content` begins with its language, file and lines, so that they
    are embedded and found too; the size limit holds for all of it. `start_index`, `end_index`
    and the lines are those of the code in the source. With `prefix_header=False`,
    `page_content` is the code alone: `text[start_index:end_index]`.

    The language is told by `metadata["file_path"]`, else by `metadata["source"]`; a file that
    says nothing about it is split all the same. A chunk that is one definition has `symbol` and
    `symbol_type` in its metadata. Ids depend on document, path, language and code, not on the
    position.

    Setup:
        Install `easyrag-core[langchain]`.

    Instantiate:
        ```python
        from langchain_easyrag import CodeTextSplitter

        by_file_name = CodeTextSplitter(chunk_size=3000)
        python = CodeTextSplitter.from_language("python", chunk_size=3000)
        ```

    Use:
        ```python
        chunks = by_file_name.split_documents(documents)
        chunks[0].metadata["start_line"], chunks[0].metadata["language"]
        ```
    """

    def __init__(
        self,
        chunk_size: int = 3000,
        chunk_overlap: int | None = None,
        *,
        language: str | Language | None = None,
        prefix_header: bool = True,
        template: str | None = None,
        describe: Callable[[Chunk], Mapping[str, Any]] | None = None,
        length_function: Callable[[str], int] = len,
        add_start_index: bool = True,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: Upper limit of `page_content`, in units of `length_function`; above 0.
            chunk_overlap: Upper limit of what two neighbours share, in whole lines and the same
                unit, below `chunk_size`. Default: a tenth of the size, at most 300.
            language: The language of every text, by any usual name. Default: told by the path.
            prefix_header: Whether `page_content` says where the code is from; else it is a slice
                of the source.
            template: What such a `page_content` is, see `CodeChunker`. It has effect only with
                `prefix_header`.
            describe: Gives `summary` and `keywords` of a chunk, see `CodeChunker`.
            length_function: Measures a text; it may be slow.
            add_start_index: Accepted for code that sets it on any splitter; the place is always
                given.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        self._prefix_header = bool(prefix_header)
        self._chunker = CodeChunker(
            chunk_size,
            chunk_overlap,
            length_function=length_function,
            template=template if prefix_header else "{code}",
            describe=describe,
            language=_name_of(language),
        )
        super().__init__(
            chunk_size=self._chunker.chunk_size,
            chunk_overlap=self._chunker.chunk_overlap,
            length_function=length_function,
            keep_separator=True,
            add_start_index=add_start_index,
            strip_whitespace=True,
        )

    @classmethod
    def from_language(cls, language: str | Language, **kwargs: Any) -> Self:
        """Make a splitter for one language, as of `RecursiveCharacterTextSplitter`.

        Args:
            language: By any usual name, or a member of LangChain's `Language`; one that nobody
                knows is fine.
            **kwargs: Further arguments of the constructor.

        Returns:
            The splitter.

        Raises:
            InvalidParameterError: A setting is not as above.
        """
        return cls(language=language, **kwargs)

    @property
    @override
    def chunker(self) -> CodeChunker:
        """The core's chunker, with these settings."""
        return self._chunker

    @override
    def split_text(self, text: str) -> list[str]:
        """Split one text.

        Args:
            text: The text; its language is that of the splitter, or told by a first line `#!`.

        Returns:
            The `page_content` of its chunks.

        Raises:
            InvalidParameterError: `text` is not a string, or the length function fails.
        """
        chunks = self._chunker.iter_chunks(text, "")
        if self._prefix_header:
            return [chunk.embedding_text for chunk in chunks]
        return [chunk.text for chunk in chunks]

    @override
    def pieces_of(self, document: Document, document_id: str) -> Iterable[Document]:
        """Split one document; see `split_documents`."""
        chunks = self._chunker.iter_chunks(
            document.page_content, document_id, file_path=_path_of(document.metadata)
        )
        return documents_of_chunks(chunks, document.metadata, embedded=self._prefix_header)


def _name_of(language: str | Language | None) -> str | None:
    name: Any = getattr(language, "value", language)
    if name is not None and not isinstance(name, str):
        raise InvalidParameterError("language", language, 'give a name, such as "python"')
    return name


def _path_of(metadata: Mapping[Any, Any]) -> str | None:
    paths = (metadata.get(key) for key in ("file_path", "source"))
    return next((os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)), None)
