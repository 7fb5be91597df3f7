"""Parsers that cut documents into nodes which know their exact place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.node_parser import MetadataAwareTextSplitter
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.utils import get_tqdm_iterable

from easyrag_core import DocumentChunker, InvalidParameterError
from easyrag_core.errors import check_choice
from llamaindex_easyrag._convert import NodeFactory, link_nodes
from llamaindex_easyrag._lengths import function_name, is_known_length, length_by_name

if TYPE_CHECKING:
    from easyrag_core import Chunk
    from easyrag_core.chunking.document import Boundary

__all__ = ["DocumentNodeParser"]

_logger = logging.getLogger(__name__)

# Raised whenever the same settings begin to cut a text elsewhere: cached nodes are then not used.
_ALGORITHM_VERSION = 1
_RESERVES = {
    "longest": (MetadataMode.EMBED, MetadataMode.LLM),
    "embed": (MetadataMode.EMBED,),
    "none": (),
}
_FUNCTIONS = ("length_function", "id_func")


class DocumentNodeParser(MetadataAwareTextSplitter):
    """Cuts prose into nodes by characters, words, sentences or paragraphs.

    Every node is an exact slice of its root document, `root.text[node.start_char_idx:
    node.end_char_idx] == node.text`, also after another parser, and knows both neighbours.
    Nothing is lost between nodes, a blank document gives none. Ids depend on the document's id
    and on the text, not on the position: inserting a paragraph leaves the other ids as they are.

    Every setting is a public field that is serialised, so that caches see it.
    """

    chunk_size: int = Field(default=800, description="Largest length of what is embedded.")
    chunk_overlap: int = Field(default=100, description="Largest length that two nodes share.")
    boundary: str = Field(default="sentence", description="Where to cut if there is a choice.")
    strip: bool = Field(default=True, description="Whether spans leave blank edges out.")
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
    id_scheme: str = Field(default="stable", description="How nodes get their ids.")
    id_func: Callable[[int, BaseNode], str] | None = Field(  # type: ignore[assignment]
        default=None, exclude=True, description="The function behind the id scheme."
    )
    algorithm_version: int = Field(
        default=_ALGORITHM_VERSION, frozen=True, description="Changes when the cuts change."
    )

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
        if id_func is default_id_func:
            id_func, id_scheme = None, "uuid"
        if length_function is len:
            length_function, length = None, "characters"
        if chunk_overlap is None:
            chunk_overlap = DocumentChunker(chunk_size).chunk_overlap
        settings: dict[str, Any] = {
            "chunk_size": chunk_size,
            "chunk_overlap": chunk_overlap,
            "boundary": boundary,
            "strip": strip,
            "length": length
            or (function_name(length_function) if length_function else "characters"),
            "length_function": length_function,
            "metadata_reserve": metadata_reserve,
            "metadata_overflow": metadata_overflow,
            "include_metadata": include_metadata,
            "include_prev_next_rel": include_prev_next_rel,
            "callback_manager": callback_manager or CallbackManager([]),
            "id_scheme": id_scheme or _name_or("stable", id_func),
            "id_func": id_func,
        }
        super().__init__(**settings)
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

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> DocumentNodeParser:
        """Build a parser from `to_dict()`.

        Args:
            data: What `to_dict()` gave; it is left as it is.
            **kwargs: Settings that replace those in `data`, and the functions that a dict
                cannot hold: `length_function` and `id_func`.

        Returns:
            A parser equal to the one that was saved.

        Raises:
            InvalidParameterError: A function is needed and not given, or a setting is wrong.
        """
        settings = {**data, **kwargs}
        made_with = settings.pop("algorithm_version", _ALGORITHM_VERSION)
        if made_with != _ALGORITHM_VERSION:
            told = "Settings of algorithm version %s: version %s may cut elsewhere."
            _logger.warning(told, made_with, _ALGORITHM_VERSION)
        return super().from_dict(settings)

    def __eq__(self, other: object) -> bool:
        """Equal settings and functions make equal parsers, whoever listens to their events."""
        if not isinstance(other, DocumentNodeParser):
            return NotImplemented
        mine, theirs = ([getattr(p, name) for name in _FUNCTIONS] for p in (self, other))
        return self.to_dict() == other.to_dict() and mine == theirs

    # Settings can be changed, so a hash would not last.
    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        """Keep all but the listeners: the base class drops functions that cannot be pickled.

        Here they are left to fail: another length function would cut elsewhere.
        """
        kept = {name: value for name, value in vars(self).items() if name != "callback_manager"}
        return {"__dict__": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild from the settings, and fail if that fails."""
        settings = dict(state["__dict__"])
        settings.pop("algorithm_version", None)
        self.__init__(**settings)  # type: ignore[misc]

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
        return self._pieces(text, _Surroundings(template, reserved) if reserved else None)

    def _pieces(self, text: str, surroundings: _Surroundings | None) -> list[str]:
        return [chunk.text for chunk in self._cut(self._chunker(surroundings), text, "")]

    def _parse_nodes(
        self,
        nodes: Sequence[BaseNode],
        show_progress: bool = False,  # noqa: FBT001, FBT002 - the framework's signature
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> list[BaseNode]:
        factory = NodeFactory(
            include_metadata=self.include_metadata,
            salt=str(self.chunk_size),
            alone=len(nodes) == 1,
        )
        id_func = default_id_func if self.id_scheme == "uuid" else self.id_func
        parsed: list[BaseNode] = []
        for source in get_tqdm_iterable(nodes, show_progress, "Parsing nodes"):
            text = source.get_content(metadata_mode=MetadataMode.NONE)
            chunker = self._chunker(self._surroundings(source))
            chunks = self._cut(chunker, text, factory.scope(source, text))
            parsed.extend(factory.build(source, chunks, id_func=id_func))
        if self.include_prev_next_rel:
            link_nodes(parsed)
        return parsed

    async def _aparse_nodes(
        self,
        nodes: Sequence[BaseNode],
        show_progress: bool = False,  # noqa: FBT001, FBT002 - the framework's signature
        **kwargs: Any,
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress, **kwargs)

    def _postprocess_parsed_nodes(
        self,
        nodes: list[BaseNode],
        parent_doc_map: dict[str, Document],  # noqa: ARG002 - the framework's signature
    ) -> list[BaseNode]:
        """Leave the nodes alone: they are complete, and a search would spoil their offsets."""
        return nodes

    def _cut(self, chunker: DocumentChunker, text: str, scope: str) -> list[Chunk]:
        payload: dict[str, Any] = {EventPayload.CHUNKS: [text]}
        with self.callback_manager.event(CBEventType.CHUNKING, payload=payload) as event:
            chunks = chunker.chunk(text, scope)
            event.on_end(payload={EventPayload.CHUNKS: [chunk.text for chunk in chunks]})
        return chunks

    def _check(self) -> None:
        check_choice("metadata_reserve", self.metadata_reserve, tuple(_RESERVES))
        check_choice("metadata_overflow", self.metadata_overflow, ("error", "cap"))
        if (self.id_func is None) != (self.id_scheme in {"stable", "uuid"}):
            allowed = "'stable', 'uuid', or any other name together with id_func="
            raise InvalidParameterError("id_scheme", self.id_scheme, allowed)
        if self.length_function is not None and is_known_length(self.length):
            allowed = "the name is taken: give length_function= another one, or leave it out"
            raise InvalidParameterError("length", self.length, allowed)
        self._chunker(None)

    def _chunker(self, surroundings: _Surroundings | None) -> DocumentChunker:
        measure: Callable[[str], int] = self._measure()
        reserve = measure(surroundings.around("")) if surroundings else 0
        room = self.chunk_size - reserve
        if room <= 0:
            room = self._capped_room(reserve)
        elif surroundings and measure is not len:
            measure = _NetLength(measure, surroundings, reserve)
        return DocumentChunker(
            room,
            # In proportion: a small room is not filled with what was said before.
            self.chunk_overlap * room // self.chunk_size if reserve else self.chunk_overlap,
            length_function=measure,
            boundary=cast("Boundary", self.boundary),
            strip=self.strip,
        )

    def _capped_room(self, reserve: int) -> int:
        told = f"Metadata length ({reserve}) leaves no room in the chunk size ({self.chunk_size})"
        if self.metadata_overflow == "error":
            allowed = f"{told}; exclude metadata keys, raise it, or set metadata_overflow='cap'"
            raise InvalidParameterError("chunk_size", self.chunk_size, allowed)
        _logger.warning("%s: half of it is reserved.", told)
        return self.chunk_size - self.chunk_size // 2

    def _surroundings(self, source: BaseNode) -> _Surroundings | None:
        """The longest of the metadata texts that nodes of `source` are shown with."""
        modes = _RESERVES[self.metadata_reserve] if self.include_metadata else ()
        texts = {source.get_metadata_str(mode=mode).strip() for mode in modes} - {""}
        template = getattr(source, "text_template", "{metadata_str}\n\n{content}")
        longest = max(sorted(texts), key=self._measure(), default=None)
        return None if longest is None else _Surroundings(template, longest)

    def _measure(self) -> Callable[[str], int]:
        return self.length_function or length_by_name(self.length)


class _Surroundings(NamedTuple):
    """What stands around a node's text when a model reads it."""

    template: str
    metadata: str

    def around(self, text: str) -> str:
        return self.template.format(metadata_str=self.metadata, content=text)


@dataclass(frozen=True, slots=True)
class _NetLength:
    """What a text adds to the length of its surroundings, measured on the final string.

    Tokens may merge across the border, so lengths do not simply add up.
    """

    measure: Callable[[str], int]
    surroundings: _Surroundings
    reserve: int

    def __call__(self, text: str) -> int:
        return self.measure(self.surroundings.around(text)) - self.reserve


def _name_or(default: str, function: Callable[..., Any] | None) -> str:
    return default if function is None else function_name(function)
