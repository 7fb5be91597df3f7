"""Prose into nodes."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager  # noqa: TC002 - as above
from llama_index.core.schema import BaseNode  # noqa: TC002 - as above

from easyrag_core import DocumentChunker
from llamaindex_easyrag.node_parsers._sized import SizedNodeParser

if TYPE_CHECKING:
    from easyrag_core.chunking.document import Boundary

__all__ = ["DocumentNodeParser"]


class DocumentNodeParser(SizedNodeParser):
    """Cuts prose into nodes by characters, words, sentences or paragraphs.

    Every node is an exact slice of its root document, `root.text[node.start_char_idx:
    node.end_char_idx] == node.text`, also after another parser, and knows both neighbours.
    Nothing is lost between nodes, a blank document gives none. Ids depend on the document's id
    and on the text, not on the position: inserting a paragraph leaves the other ids as they are.

    Every setting is a public field that is serialised, so that caches see it.
    """

    boundary: str = Field(default="sentence", description="Where to cut if there is a choice.")
    strip: bool = Field(default=True, description="Whether spans leave blank edges out.")

    def __init__(
        self,
        chunk_size: int = 800,
        chunk_overlap: int | None = None,
        *,
        boundary: str = "sentence",
        strip: bool = True,
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
            chunk_size: Largest length of a node's text together with its metadata text, > 0,
                in units of the length function.
            chunk_overlap: Largest length that neighbours share, in [0, `chunk_size`); default:
                an eighth of `chunk_size`, at most 100.
            boundary: `"character"`, `"word"`, `"sentence"` or `"paragraph"`.
            strip: Whether a span is moved past blank edges.
            length: Name of the length function: `"characters"` (default) or `"tiktoken:"` with
                an encoding, such as `"tiktoken:cl100k_base"`. Any other name stands for
                `length_function` in saved settings and cache keys.
            length_function: Measures a text. It is not part of `to_dict()`: `from_dict` asks
                for it again. Without a `length` it is named by its module and name.
            metadata_reserve: `"longest"`: a node has room for the longer of its metadata texts
                for embedding and for the LLM; `"embed"`: for the first only; `"none"`: for
                neither. Excluded keys never count, nor does anything without
                `include_metadata`.
            metadata_overflow: If the metadata alone is as long as `chunk_size`: `"error"`
                raises, `"cap"` reserves half of `chunk_size`, so that nodes are longer than
                `chunk_size` by the rest of their metadata.
            include_metadata: Whether nodes take over the document's metadata and get
                `chunk_index`, `start_line` and `end_line`, which no model reads.
            include_prev_next_rel: Whether neighbours are linked.
            callback_manager: Receives the `NODE_PARSING` and `CHUNKING` events.
            id_scheme: `"stable"` (default) or `"uuid"`; any other name stands for `id_func` in
                saved settings and cache keys.
            id_func: Gives the id from the node's number in its document and the document.

        Raises:
            InvalidParameterError: A setting is not as above.
            MissingDependencyError: tiktoken is asked for and not installed.
        """
        if chunk_overlap is None:
            chunk_overlap = DocumentChunker(chunk_size).chunk_overlap
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
        super().__init__(**{**settings, "boundary": boundary, "strip": strip})
        self._check()

    @classmethod
    def from_defaults(
        cls, chunk_size: int = 800, chunk_overlap: int | None = None, **settings: Any
    ) -> DocumentNodeParser:
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
        return "DocumentNodeParser"

    def _sized(
        self,
        room: int,
        overlap: int,
        measure: Callable[[str], int],
        source: BaseNode | None,  # noqa: ARG002 - prose is cut alike wherever it comes from
    ) -> DocumentChunker:
        return DocumentChunker(
            room,
            overlap,
            length_function=measure,
            boundary=cast("Boundary", self.boundary),
            strip=self.strip,
        )
