"""What all our parsers share: settings that last, and nodes that are complete when built."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.utils import get_tqdm_iterable

from easyrag_core import InvalidParameterError
from easyrag_core.bulk import BULK_CHARACTERS, collection_paused
from llamaindex_easyrag._convert import NodeFactory
from llamaindex_easyrag._lengths import function_name
from llamaindex_easyrag._links import link_nodes

if TYPE_CHECKING:
    from easyrag_core import Chunk
    from easyrag_core.chunking.parent_child import Chunker

__all__ = ["ALGORITHM_VERSION", "StableNodeParser", "name_or"]

_logger = logging.getLogger(__name__)

ALGORITHM_VERSION = 3
"""Raised whenever the same settings begin to cut a text elsewhere: caches then miss."""

_FUNCTIONS = ("length_function", "id_func")

_MANY_NODES = 200


class StableNodeParser(NodeParser):
    """A parser whose settings survive dicts, JSON and pickle, and whose ids can be repeated.

    Every setting is a public field that is serialised, so that caches see it; functions are
    known by a name beside them.
    """

    id_scheme: str = Field(default="stable", description="How nodes get their ids.")
    id_func: Callable[[int, BaseNode], str] | None = Field(  # type: ignore[assignment]
        default=None, exclude=True, description="The function behind the id scheme."
    )
    algorithm_version: int = Field(
        default=ALGORITHM_VERSION, frozen=True, description="Changes when the cuts change."
    )

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
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
        made_with = settings.pop("algorithm_version", ALGORITHM_VERSION)
        if made_with != ALGORITHM_VERSION:
            told = "Settings of algorithm version %s: version %s may cut elsewhere."
            _logger.warning(told, made_with, ALGORITHM_VERSION)
        return super().from_dict(settings)

    def __eq__(self, other: object) -> bool:
        """Equal settings and functions make equal parsers, whoever listens to their events."""
        if not isinstance(other, StableNodeParser):
            return NotImplemented
        return self.to_dict() == other.to_dict() and self._functions() == other._functions()

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

    def _functions(self) -> list[Any]:
        return [getattr(self, name, None) for name in _FUNCTIONS]

    @abstractmethod
    def _chunker_of(self, source: BaseNode) -> Chunker:
        """The chunker for one input, which leaves room for what nodes of it are shown with."""

    @abstractmethod
    def _salt(self) -> str:
        """What tells this parser apart from another one that cuts the same nodes again."""

    def _link(self, nodes: Sequence[BaseNode]) -> None:
        """Link the nodes of all inputs."""
        link_nodes(nodes)

    def _parse_nodes(
        self,
        nodes: Sequence[BaseNode],
        show_progress: bool = False,  # noqa: FBT001, FBT002 - the framework's signature
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> list[BaseNode]:
        factory = NodeFactory(
            include_metadata=self.include_metadata,
            salt=self._salt(),
            alone=len(nodes) == 1,
            path_separator=getattr(self, "heading_path_separator", None),
        )
        parsed: list[BaseNode] = []
        for source in get_tqdm_iterable(nodes, show_progress, "Parsing nodes"):
            parsed.extend(self._parse_one(source, factory))
        if self.include_prev_next_rel:
            with collection_paused(when=len(parsed) > _MANY_NODES):
                self._link(parsed)
        return parsed

    def _parse_one(self, source: BaseNode, factory: NodeFactory) -> Sequence[BaseNode]:
        text = source.get_content(metadata_mode=MetadataMode.NONE)
        chunker, many = self._chunker_of(source), len(text) > BULK_CHARACTERS
        # A slow measure would hold the collector still for too long.
        with collection_paused(when=many and getattr(chunker, "length_function", None) is len):
            chunks = self._cut(chunker, text, factory.scope(source, text))
        with collection_paused(when=many):
            return self._built(source, chunks, factory)

    def _built(
        self, source: BaseNode, chunks: list[Chunk], factory: NodeFactory
    ) -> Sequence[BaseNode]:
        id_func = default_id_func if self.id_scheme == "uuid" else self.id_func
        return factory.build(source, chunks, id_func=id_func)

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

    def _cut(self, chunker: Chunker, text: str, scope: str) -> list[Chunk]:
        payload: dict[str, Any] = {EventPayload.CHUNKS: [text]}
        with self.callback_manager.event(CBEventType.CHUNKING, payload=payload) as event:
            chunks = chunker.chunk(text, scope)
            event.on_end(payload={EventPayload.CHUNKS: [chunk.text for chunk in chunks]})
        return chunks

    @staticmethod
    def _common(
        *,
        include_metadata: bool,
        include_prev_next_rel: bool,
        callback_manager: CallbackManager | None,
        id_scheme: str | None,
        id_func: Callable[[int, BaseNode], str] | None,
    ) -> dict[str, Any]:
        """The fields that all parsers have, as their constructors are given them."""
        if id_func is default_id_func:
            id_func, id_scheme = None, "uuid"
        return {
            "include_metadata": include_metadata,
            "include_prev_next_rel": include_prev_next_rel,
            "callback_manager": callback_manager or CallbackManager([]),
            "id_scheme": id_scheme or name_or("stable", id_func),
            "id_func": id_func,
        }

    def _check_ids(self) -> None:
        if (self.id_func is None) != (self.id_scheme in {"stable", "uuid"}):
            allowed = "'stable', 'uuid', or any other name together with id_func="
            raise InvalidParameterError("id_scheme", self.id_scheme, allowed)


def name_or(default: str, function: Callable[..., Any] | None) -> str:
    """Name a function, if there is one.

    Args:
        default: The name of no function.
        function: The function, or `None`.

    Returns:
        The name.
    """
    return default if function is None else function_name(function)
