"""What the parsers with a chunk size share: lengths, room for metadata, and bare texts."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.node_parser import MetadataAwareTextSplitter
from llama_index.core.schema import BaseNode, MetadataMode

from easyrag_core import InvalidParameterError
from easyrag_core.errors import check_choice, check_count
from llamaindex_easyrag._context import CONTEXT_KEY
from llamaindex_easyrag._lengths import is_known_length, length_by_name
from llamaindex_easyrag.node_parsers._room import NetLength, Surroundings
from llamaindex_easyrag.node_parsers._stable import StableNodeParser, name_or

if TYPE_CHECKING:
    from easyrag_core.chunking.parent_child import Chunker

__all__ = ["SizedNodeParser"]

_logger = logging.getLogger(__name__)

_RESERVES = {
    "longest": (MetadataMode.EMBED, MetadataMode.LLM),
    "embed": (MetadataMode.EMBED,),
    "none": (),
}


class SizedNodeParser(StableNodeParser, MetadataAwareTextSplitter):  # type: ignore[misc]
    """A parser whose nodes have a largest length, measured on what is embedded."""

    chunk_size: int = Field(default=800, description="Largest length of what is embedded.")
    chunk_overlap: int = Field(default=100, description="Largest length that two nodes share.")
    length: str = Field(default="characters", description="Name of the length function.")
    length_function: Callable[[str], int] | None = Field(
        default=None, exclude=True, description="The length function, if the name is not known."
    )
    metadata_reserve: str = Field(
        default="longest", description="Which metadata text the chunk size has room for."
    )
    metadata_overflow: str = Field(
        default="error", description="What happens if the metadata leaves no room."
    )

    def split_text(self, text: str) -> list[str]:
        """Cut a text; the empty text gives itself, as with the framework's splitters.

        Args:
            text: Any text.

        Returns:
            Exact slices of the text; none for a blank one.
        """
        return [""] if text == "" else self._pieces(text, None)

    def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
        """Cut a text so that each slice has room for the metadata text.

        Args:
            text: Any text.
            metadata_str: What will stand before each slice.

        Returns:
            Exact slices of the text.

        Raises:
            InvalidParameterError: The metadata leaves no room.
        """
        if text == "":
            return [""]
        reserved = metadata_str if self.include_metadata and self.metadata_reserve != "none" else ""
        template = "{metadata_str}\n\n{content}"
        return self._pieces(text, Surroundings(template, reserved) if reserved else None)

    def _pieces(self, text: str, surroundings: Surroundings | None) -> list[str]:
        return [chunk.text for chunk in self._cut(self._chunker(surroundings, None), text, "")]

    @abstractmethod
    def _sized(
        self, room: int, overlap: int, measure: Callable[[str], int], source: BaseNode | None
    ) -> Chunker:
        """The chunker for chunks that take no more than `room`."""

    def _has_context(self) -> bool:
        """Whether something of ours may be embedded before a node's text."""
        return False

    def _salt(self) -> str:
        return str(self.chunk_size)

    def _chunker_of(self, source: BaseNode) -> Chunker:
        return self.chunker_within(source, include_metadata=self.include_metadata)

    def chunker_within(self, source: BaseNode, *, include_metadata: bool) -> Chunker:
        """Return the chunker for one input.

        Args:
            source: A document, or a node that another parser made.
            include_metadata: Whether nodes of it carry metadata at all.

        Returns:
            A chunker that leaves room for what nodes of this input are shown with.

        Raises:
            InvalidParameterError: The metadata leaves no room.
        """
        return self._chunker(self._surroundings(source) if include_metadata else None, source)

    def _chunker(self, surroundings: Surroundings | None, source: BaseNode | None) -> Chunker:
        measure: Callable[[str], int] = self._measure()
        reserve = 0
        if surroundings:
            reserve = check_count("length_function(metadata)", measure(surroundings.around("")))
        room = self.chunk_size - reserve
        if room <= 0:
            room = self._capped_room(reserve)
        elif surroundings and measure is not len:
            measure = NetLength(measure, surroundings, reserve)
        # In proportion: a small room is not filled with what was said before.
        overlap = self.chunk_overlap * room // self.chunk_size if reserve else self.chunk_overlap
        return self._sized(room, overlap, measure, source)

    def _capped_room(self, reserve: int) -> int:
        told = f"Metadata length ({reserve}) leaves no room in the chunk size ({self.chunk_size})"
        if self.metadata_overflow == "error":
            allowed = f"{told}; exclude metadata keys, raise it, or set metadata_overflow='cap'"
            raise InvalidParameterError("chunk_size", self.chunk_size, allowed)
        _logger.warning("%s: half of it is reserved.", told)
        return self.chunk_size - self.chunk_size // 2

    def _surroundings(self, source: BaseNode) -> Surroundings | None:
        """The longest of the metadata texts that nodes of `source` are shown with."""
        modes = _RESERVES[self.metadata_reserve]
        texts = {source.get_metadata_str(mode=mode).strip() for mode in modes} - {""}
        template = getattr(source, "text_template", "{metadata_str}\n\n{content}")
        longest = max(sorted(texts), key=self._measure(), default=None)
        if longest is None:
            return None
        if self._has_context():
            # One more entry, whose value the chunker measures together with the text.
            label = source.metadata_template.format(key=CONTEXT_KEY, value="")
            longest = f"{longest}{source.metadata_separator}{label}"
        return Surroundings(template, longest)

    def _measure(self) -> Callable[[str], int]:
        return self.length_function or length_by_name(self.length)

    @classmethod
    def _sizes(
        cls,
        *,
        chunk_size: int,
        chunk_overlap: int,
        length: str | None,
        length_function: Callable[[str], int] | None,
        metadata_reserve: str,
        metadata_overflow: str,
        **common: Any,
    ) -> dict[str, Any]:
        """The fields that parsers with a chunk size have, as their constructors are given them."""
        if length_function is len:
            length_function, length = None, "characters"
        return {
            # The framework would take "900" and True for numbers.
            "chunk_size": check_count("chunk_size", chunk_size, minimum=1),
            "chunk_overlap": check_count("chunk_overlap", chunk_overlap),
            "length": length or name_or("characters", length_function),
            "length_function": length_function,
            "metadata_reserve": metadata_reserve,
            "metadata_overflow": metadata_overflow,
            **cls._common(**common),
        }

    def _check(self) -> None:
        check_choice("metadata_reserve", self.metadata_reserve, tuple(_RESERVES))
        check_choice("metadata_overflow", self.metadata_overflow, ("error", "cap"))
        self._check_ids()
        if self.length_function is not None and is_known_length(self.length):
            allowed = "the name is taken: give length_function= another one, or leave it out"
            raise InvalidParameterError("length", self.length, allowed)
        self._chunker(None, None)
