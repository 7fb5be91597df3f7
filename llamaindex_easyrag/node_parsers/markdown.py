"""Markdown into nodes that know the headings above them."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager  # noqa: TC002 - as above
from llama_index.core.schema import BaseNode  # noqa: TC002 - as above

from easyrag_core.chunking.markdown import MarkdownChunker
from easyrag_core.errors import check_count
from llamaindex_easyrag.node_parsers._sized import SizedNodeParser

if TYPE_CHECKING:
    from easyrag_core.chunking.markdown import HeadingPathIn, HorizontalRule

__all__ = ["MarkdownSectionNodeParser"]


class MarkdownSectionNodeParser(SizedNodeParser):
    """Cuts Markdown at its headings, and long sections between and inside their blocks.

    CommonMark decides what a heading, a fence, a list or a table is. Every node is an exact slice
    of its root document and has a largest size, however long its section is. The titles above
    it are in `metadata["heading_path"]`, outermost first, its own included. What is embedded
    (`MetadataMode.EMBED`) begins with them, and with the header of a table or the fence of a
    code block that had to be cut; an LLM reads the text alone. Front matter is in
    `metadata["front_matter"]`.

    What is embedded beside the text stands in `metadata["context"]`. Take that key out of a
    node's `excluded_llm_metadata_keys` to show it to the LLM too.
    """

    chunk_size: int = Field(default=1400, description="Largest length of what is embedded.")
    chunk_overlap: int = Field(default=0, description="Largest length that two nodes share.")
    min_chunk_size: int | None = Field(
        default=None, description="A node this long takes no further section in."
    )
    max_heading_level: int = Field(default=6, description="Deeper headings are text.")
    heading_path_in: str = Field(
        default="embedding_text", description="Whether the titles above a node are embedded."
    )
    merge_small: bool = Field(
        default=True, description="Whether small neighbouring sections share a node."
    )
    horizontal_rule: str = Field(default="hard", description="Whether a rule cuts.")
    heading_path_separator: str | None = Field(
        default=None, description="Joins the titles in the metadata; None leaves a list."
    )

    def __init__(
        self,
        chunk_size: int = 1400,
        chunk_overlap: int = 0,
        *,
        min_chunk_size: int | None = None,
        max_heading_level: int = 6,
        heading_path_in: str = "embedding_text",
        merge_small: bool = True,
        horizontal_rule: str = "hard",
        heading_path_separator: str | None = None,
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
            chunk_overlap: Largest length that neighbours share, in [0, `chunk_size`); only where
                a paragraph is cut.
            min_chunk_size: A node this long takes no further section in; default: as many small
                neighbours as fit share a node. At most `chunk_size`.
            max_heading_level: Deeper headings are text; from 1 to 6.
            heading_path_in: `"embedding_text"`: the titles above a node are embedded with it,
                unless its text begins with them; `"metadata"`: they are in the metadata only.
            merge_small: Whether small neighbouring sections under one heading share a node.
            horizontal_rule: `"hard"`: a rule cuts; `"soft"`: it is a block like any other.
            heading_path_separator: Joins the titles in `metadata["heading_path"]` to one text,
                for vector stores that take no lists; default: a list.
            length: Name of the length function, as in `DocumentNodeParser`.
            length_function: Measures a text, as in `DocumentNodeParser`.
            metadata_reserve: `"longest"`, `"embed"` or `"none"`, as in `DocumentNodeParser`.
            metadata_overflow: `"error"` or `"cap"`, as in `DocumentNodeParser`.
            include_metadata: Whether nodes carry metadata: the document's, `heading_path`,
                `chunk_index`, `start_line` and `end_line`. Without, nothing is embedded but
                the text.
            include_prev_next_rel: Whether neighbours are linked.
            callback_manager: Receives the `NODE_PARSING` and `CHUNKING` events.
            id_scheme: `"stable"` (default), `"uuid"`, or a name for `id_func`.
            id_func: Gives the id from the node's number in its document and the document.

        Raises:
            InvalidParameterError: A setting is not as above.
            MissingDependencyError: tiktoken is asked for and not installed.
        """
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
        if min_chunk_size is not None:
            min_chunk_size = check_count("min_chunk_size", min_chunk_size)
        own = {
            "min_chunk_size": min_chunk_size,
            "max_heading_level": check_count("max_heading_level", max_heading_level, minimum=1),
            "heading_path_in": heading_path_in,
            "merge_small": merge_small,
            "horizontal_rule": horizontal_rule,
            "heading_path_separator": heading_path_separator,
        }
        super().__init__(**{**settings, **own})
        self._check()

    @classmethod
    def from_defaults(
        cls, chunk_size: int = 1400, chunk_overlap: int = 0, **settings: Any
    ) -> MarkdownSectionNodeParser:
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
        return "MarkdownSectionNodeParser"

    def _has_context(self) -> bool:
        return True

    def _sized(
        self,
        room: int,
        overlap: int,
        measure: Callable[[str], int],
        source: BaseNode | None,  # noqa: ARG002 - Markdown is cut alike wherever it comes from
    ) -> MarkdownChunker:
        least = self.min_chunk_size
        if least is not None and room < self.chunk_size:
            least = min(least, room)
        # Without metadata there is no place for titles beside the text.
        path_in = self.heading_path_in if self.include_metadata else "metadata"
        return MarkdownChunker(
            room,
            overlap,
            min_chunk_size=least,
            max_heading_level=self.max_heading_level,
            heading_path_in=cast("HeadingPathIn", path_in),
            length_function=measure,
            merge_small=self.merge_small,
            horizontal_rule=cast("HorizontalRule", self.horizontal_rule),
        )
