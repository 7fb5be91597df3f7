"""Source code into chunks of whole lines, cut where definitions begin."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from easyrag_core.chunking.code._frame import DEFAULT_TEMPLATE, check_template
from easyrag_core.chunking.code._piece import CodePiece, CodeSettings
from easyrag_core.chunking.languages import language_name, language_of
from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.text import text_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from easyrag_core.types import Chunk, LengthFunction

__all__ = ["CodeChunker"]

_ID_LENGTH = 32


class CodeChunker:
    r"""Cuts source code of any language into chunks of whole lines.

    A chunk ends before a top-level definition where it can (decorators, attributes and comments
    directly above stay with it), else at a blank line of the lowest indentation, else at the
    lowest indentation, else at any line end; all in the last half of the window. Only a line
    that alone exceeds the limit is cut. Indentation is kept, line numbers are those of the file.
    Time grows linearly with the text. Instances never change: share them between threads.

    >>> chunker = CodeChunker(chunk_size=50, chunk_overlap=0)
    >>> code = "import os\n\n@cache\ndef here():\n    return os.getcwd()\n"
    >>> [(c.start_line, c.end_line, c.text) for c in chunker.chunk(code, language="Python")]
    [(1, 1, 'import os'), (3, 5, '@cache\ndef here():\n    return os.getcwd()')]
    """

    def __init__(
        self,
        chunk_size: int = 3000,
        chunk_overlap: int | None = None,
        *,
        length_function: LengthFunction = len,
        template: str | None = None,
        describe: Callable[[Chunk], Mapping[str, Any]] | None = None,
        file_path: str | os.PathLike[str] | None = None,
        language: str | None = None,
        id_factory: Callable[[Chunk], str] | None = None,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: The longest `embedding_text` allowed, in units of `length_function`; at
                least 1.
            chunk_overlap: The longest overlap of neighbours, in whole lines and the same unit,
                smaller than `chunk_size`; by default 300, but no more than a tenth of
                `chunk_size`.
            length_function: Measures a text; `len` by default. It is called on the final
                strings, a few times a chunk, so it may be a tokenizer.
            template: What is embedded: a text with `{code}` once and any of `{language}`,
                `{file}`, `{symbol_type}`, `{symbol}`, `{lines}`, `{start_line}`, `{end_line}`,
                `{summary}`, `{keywords}`; a line with nothing but empty fields is left out. By
                default language, file, symbol type and lines stand above the code. Where the
                frame would take more than a third of the limit, the path is shortened; where
                that is not enough the code is embedded alone.
            describe: Gives `summary` (a text) and `keywords` (texts) of a chunk, which go to its
                metadata and into the template; an eighth of the limit is kept free for them,
                and what is longer is cut off.
            file_path: The path of every text, unless a call gives another.
            language: The language of every text, unless a call gives another.
            id_factory: Makes a chunk's id from the chunk, whose own id is still empty.

        Raises:
            InvalidParameterError: A size is no whole number or out of range, the template cannot
                be filled in, or a function cannot be called.
        """
        size, overlap = _sizes(chunk_size, chunk_overlap)
        if not callable(length_function):
            raise InvalidParameterError(
                "length_function", length_function, "give a function, such as len"
            )
        for name, function in (("describe", describe), ("id_factory", id_factory)):
            if function is not None and not callable(function):
                raise InvalidParameterError(name, function, "give a function")
        template = DEFAULT_TEMPLATE if template is None else check_template(template)
        self._settings = CodeSettings(
            size, overlap, length_function, template, describe, id_factory
        )
        self._file_path = file_path
        self._language = language

    @property
    def chunk_size(self) -> int:
        """The longest text to embed, in units of `length_function`."""
        return self._settings.size

    @property
    def chunk_overlap(self) -> int:
        """The longest overlap allowed, in units of `length_function`."""
        return self._settings.overlap

    @property
    def length_function(self) -> LengthFunction:
        """The measure of sizes."""
        return self._settings.length_function

    @property
    def template(self) -> str:
        """What is embedded, with its fields."""
        return self._settings.template

    def __repr__(self) -> str:
        """Show the settings as they would be written."""
        settings = self._settings
        shown = {
            "chunk_size": settings.size,
            "chunk_overlap": settings.overlap,
            "length_function": settings.length_function,
            "template": None if settings.template == DEFAULT_TEMPLATE else settings.template,
            "language": self._language,
            "file_path": self._file_path,
        }
        told = (f"{name}={value!r}" for name, value in shown.items() if value is not None)
        return f"CodeChunker({', '.join(told)})"

    def chunk(
        self,
        text: str,
        document_id: str | None = None,
        *,
        file_path: str | os.PathLike[str] | None = None,
        language: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Chunk]:
        """Cut source code into chunks.

        Args:
            text: The code as it is.
            document_id: The document's id; by default derived from the text.
            file_path: Where it comes from: tells the language, stands in the frame, goes to the
                metadata as `file_path`, and is part of the ids.
            language: Its language, by any usual name; by default told by `file_path`, else by
                a first line that begins with `#!`. One that is not known is fine.
            metadata: Copied, not deeply, to each chunk; `symbol` and `symbol_type` are added
                where a chunk is one top-level definition.

        Returns:
            The chunks in order, of kind `code`; an empty or blank text gives none.

        Raises:
            InvalidParameterError: `text` is not a string, or the length function fails.
        """
        piece = self._piece(text, file_path, language)
        return list(piece.chunks(_id_of(text, document_id), metadata or {}))

    def iter_chunks(
        self,
        text: str,
        document_id: str | None = None,
        *,
        file_path: str | os.PathLike[str] | None = None,
        language: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Iterator[Chunk]:
        """Yield the chunks of source code one by one; as `chunk` otherwise.

        Args:
            text: The code as it is.
            document_id: The document's id; by default derived from the text.
            file_path: Where it comes from.
            language: Its language.
            metadata: Copied, not deeply, to each chunk.

        Yields:
            The chunks in order.

        Raises:
            InvalidParameterError: `text` is not a string, or the length function fails.
        """
        piece = self._piece(text, file_path, language)
        yield from piece.chunks(_id_of(text, document_id), metadata or {})

    def chunk_within(
        self, parent: Chunk, *, metadata: Mapping[str, Any] | None = None
    ) -> list[Chunk]:
        """Cut a chunk of source code into smaller ones that keep their places in the document.

        Args:
            parent: The chunk; its language counts where this chunker has none of its own.
            metadata: Copied, not deeply, to each chunk.

        Returns:
            The chunks in order, with spans and lines of the document.

        Raises:
            InvalidParameterError: The length function fails.
        """
        path = self._file_path or parent.metadata.get("file_path")
        name = self._language or parent.language
        piece = CodePiece(
            self._settings,
            parent.text,
            path=None if path is None else os.fspath(path),
            language=language_name(name) if name else language_of(path, text=parent.text),
            offset=parent.start,
            line=parent.start_line,
        )
        return list(piece.chunks(parent.document_id, metadata or {}))

    def _piece(
        self, text: str, file_path: str | os.PathLike[str] | None, language: str | None
    ) -> CodePiece:
        if not isinstance(text, str):
            raise InvalidParameterError(
                "text", type(text).__name__, "give a str; decode bytes first"
            )
        path = self._file_path if file_path is None else file_path
        path = None if path is None else os.fspath(path)
        name = self._language if language is None else language
        known = language_name(name) if name else language_of(path, text=text)
        return CodePiece(self._settings, text, path=path, language=known)


def _id_of(text: str, document_id: str | None) -> str:
    return text_digest(text)[:_ID_LENGTH] if document_id is None else document_id


def _sizes(chunk_size: int, chunk_overlap: int | None) -> tuple[int, int]:
    size = check_count("chunk_size", chunk_size, minimum=1)
    default = min(300, size // 10)
    overlap = default if chunk_overlap is None else check_count("chunk_overlap", chunk_overlap)
    if overlap >= size:
        raise InvalidParameterError(
            "chunk_overlap", chunk_overlap, f"it must be smaller than chunk_size={chunk_size}"
        )
    return size, overlap
