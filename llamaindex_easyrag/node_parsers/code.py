"""Source code into nodes of whole lines."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic reads the annotations
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager  # noqa: TC002 - as above
from llama_index.core.schema import BaseNode  # noqa: TC002 - as above

from easyrag_core.chunking.code import CodeChunker
from llamaindex_easyrag.node_parsers._sized import SizedNodeParser

__all__ = ["CodeLineNodeParser"]

# Where the framework's readers put a document's path.
_PATH_KEYS = ("file_path", "source", "file_name")


class CodeLineNodeParser(SizedNodeParser):
    """Cuts source code of any language into nodes of whole lines, without a parser.

    Every node is an exact slice of its root document, indentation included. It ends before a
    top-level definition where it can; decorators, attributes and comments stay with theirs.
    Only a line that alone exceeds the limit is cut. Lines are in `metadata["start_line"]` and
    `metadata["end_line"]`, the language and a definition's name and kind in `"language"`,
    `"symbol"` and `"symbol_type"`. What is embedded (`MetadataMode.EMBED`) begins with language,
    file, kind and lines; an LLM reads the code alone.
    """

    chunk_size: int = Field(default=3000, description="Largest length of what is embedded.")
    chunk_overlap: int = Field(default=300, description="Largest length that two nodes share.")
    language: str | None = Field(
        default=None, description="The language; None: told by each document's path."
    )
    template: str | None = Field(
        default=None, description="What is embedded, with fields; None: the usual one."
    )

    def __init__(
        self,
        chunk_size: int = 3000,
        chunk_overlap: int | None = None,
        *,
        language: str | None = None,
        template: str | None = None,
        length: str | None = None,
        length_function: Callable[[str], int] | None = None,
        metadata_reserve: str = "longest",
        metadata_overflow: str = "error",
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        callback_manager: CallbackManager | None = None,
        id_scheme: str | None = None,
        id_func: Callable[[int, BaseNode], str] | None = None,
    ) -> None:
        """Check the settings.

        Args:
            chunk_size: Largest length of what is embedded of a node, metadata included, > 0, in
                units of the length function.
            chunk_overlap: Largest length that neighbours share, in whole lines, in
                [0, `chunk_size`); default: a tenth of `chunk_size`, at most 300.
            language: The language of all documents, by any usual name; default: told by the
                path in a document's metadata (`file_path`, `source` or `file_name`),
                by its first line, or by its metadata `language`.
            template: What is embedded: a text with `{code}` and, where wanted, `{language}`,
                `{file}`, `{symbol_type}`, `{symbol}`, `{lines}`, `{start_line}`,
                `{end_line}`; default: language, file, kind and lines above the code.
                `"{code}"` embeds the code alone.
            length: Name of the length function, as in `DocumentNodeParser`.
            length_function: Measures a text, as in `DocumentNodeParser`.
            metadata_reserve: `"longest"`, `"embed"` or `"none"`, as in `DocumentNodeParser`.
            metadata_overflow: `"error"` or `"cap"`, as in `DocumentNodeParser`.
            include_metadata: Whether nodes carry metadata: the document's, `chunk_index`,
                `start_line`, `end_line` and what is known of the code. Without, nothing is
                embedded but the code.
            include_prev_next_rel: Whether neighbours are linked.
            callback_manager: Receives the `NODE_PARSING` and `CHUNKING` events.
            id_scheme: `"stable"` (default), `"uuid"`, or a name for `id_func`.
            id_func: Gives the id from the node's number in its document and the document.

        Raises:
            InvalidParameterError: A setting is not as above.
            MissingDependencyError: tiktoken is asked for and not installed.
        """
        if chunk_overlap is None:
            chunk_overlap = CodeChunker(chunk_size).chunk_overlap
        settings = self._sizes(
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            length=length,
            length_function=length_function,
            metadata_reserve=metadata_reserve,
            metadata_overflow=metadata_overflow,
            include_metadata=include_metadata,
            include_prev_next_rel=include_prev_next_rel,
            callback_manager=callback_manager,
            id_scheme=id_scheme,
            id_func=id_func,
        )
        super().__init__(**{**settings, "language": language, "template": template})
        self._check()

    @classmethod
    def from_defaults(
        cls, chunk_size: int = 3000, chunk_overlap: int | None = None, **settings: Any
    ) -> CodeLineNodeParser:
        """Build a parser: the constructor under the name that the framework's parsers have.

        Args:
            chunk_size: As in the constructor.
            chunk_overlap: As in the constructor.
            **settings: The constructor's keyword arguments.

        Returns:
            The parser.

        Raises:
            InvalidParameterError: A setting is not allowed.
        """
        return cls(chunk_size, chunk_overlap, **settings)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the settings are saved."""
        return "CodeLineNodeParser"

    def _has_context(self) -> bool:
        return True

    def _sized(
        self, room: int, overlap: int, measure: Callable[[str], int], source: BaseNode | None
    ) -> CodeChunker:
        known = {} if source is None else source.metadata
        paths = (known.get(key) for key in _PATH_KEYS)
        path = next((path for path in paths if isinstance(path, str) and path), None)
        told = known.get("language")
        # A document's language is often one that people speak: a path knows better.
        language = self.language or (told if path is None and isinstance(told, str) else None)
        return CodeChunker(
            room,
            overlap,
            length_function=measure,
            template=self.template if self.include_metadata else "{code}",
            file_path=path,
            language=language,
        )
