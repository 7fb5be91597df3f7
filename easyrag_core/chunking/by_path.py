"""The chunker that suits a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from easyrag_core.chunking.code import CodeChunker
from easyrag_core.chunking.document import DocumentChunker
from easyrag_core.chunking.languages import language_of
from easyrag_core.chunking.markdown import MarkdownChunker

if TYPE_CHECKING:
    from easyrag_core.chunking.parent_child import Chunker
    from easyrag_core.types import LengthFunction

__all__ = ["chunker_for"]

_MARKDOWN = frozenset(("Markdown", "MDX", "RMarkdown"))
_PROSE = frozenset(("", "Text", "reStructuredText", "AsciiDoc", "Org", "TeX"))


def chunker_for(
    path: str | os.PathLike[str],
    *,
    text: str = "",
    chunk_size: int | None = None,
    length_function: LengthFunction = len,
) -> Chunker:
    r"""Return the chunker that suits a file: for Markdown, for code, or for prose.

    Args:
        path: The file's path or name; it need not exist. A chunker for code remembers it.
        text: What the file says, to tell a script without extension by its first line.
        chunk_size: The longest chunk; by default what each chunker takes.
        length_function: Measures a text.

    Returns:
        A `MarkdownChunker`, a `CodeChunker` or, for anything else, a `DocumentChunker`.

    Raises:
        InvalidParameterError: The size or the function is not one.

    >>> chunker_for("src/main.rs").chunk("fn main() {}\n")[0].language
    'Rust'
    >>> chunker_for("notes.txt", chunk_size=400).chunk_size
    400
    """
    language = language_of(path, text=text)
    if language in _MARKDOWN:
        size = 1400 if chunk_size is None else chunk_size
        return MarkdownChunker(size, length_function=length_function)
    if language in _PROSE:
        size = 800 if chunk_size is None else chunk_size
        return DocumentChunker(size, length_function=length_function)
    return CodeChunker(
        3000 if chunk_size is None else chunk_size,
        length_function=length_function,
        file_path=os.fspath(path),
        language=language,
    )
