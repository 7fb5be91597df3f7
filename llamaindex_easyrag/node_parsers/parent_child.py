"""Two sizes of nodes at once: small ones to find, the large ones that hold them to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any

from llama_index.core.bridge.pydantic import Field, SerializeAsAny
from llama_index.core.callbacks import CallbackManager  # noqa: TC002 - as above
from llama_index.core.schema import BaseNode  # noqa: TC002 - as above

from easyrag_core import InvalidParameterError
from easyrag_core.chunking.parent_child import ParentChildChunker
from llamaindex_easyrag._lengths import is_known_length
from llamaindex_easyrag._links import link_families, link_generations
from llamaindex_easyrag.node_parsers._sized import SizedNodeParser
from llamaindex_easyrag.node_parsers._stable import StableNodeParser
from llamaindex_easyrag.node_parsers.code import CodeLineNodeParser
from llamaindex_easyrag.node_parsers.document import DocumentNodeParser
from llamaindex_easyrag.node_parsers.markdown import MarkdownSectionNodeParser

if TYPE_CHECKING:
    from easyrag_core import Chunk
    from llamaindex_easyrag._convert import NodeFactory

__all__ = ["ParentChildNodeParser"]

_PARSERS = (CodeLineNodeParser, DocumentNodeParser, MarkdownSectionNodeParser)
_LEVELS = ("parent", "child")


class ParentChildNodeParser(StableNodeParser):
    """Cuts documents into large nodes and each of those into small ones.

    Children are what is embedded and found; their parents are what is read. Both are exact
    slices of the root document. Each parent stands before its children; PARENT and CHILD link
    them, PREVIOUS and NEXT link leaves with leaves and parents with parents, SOURCE is the
    document. A parent whose only child would be itself is one node without PARENT and CHILD.
    `get_leaf_nodes`, `get_root_nodes`, `get_child_nodes` and `AutoMergingRetriever` understand
    them. Sync and async give the same nodes.

    Index the leaves and keep all nodes in a document store, or give all of them to
    `ParentChildRetriever`.
    """

    parent: SerializeAsAny[SizedNodeParser] = Field(description="Makes the large nodes.")
    child: SerializeAsAny[SizedNodeParser] = Field(description="Makes the small nodes.")
    heading_path_separator: str | None = Field(
        default=None, description="Joins the titles in the metadata; None leaves a list."
    )

    def __init__(
        self,
        parent: SizedNodeParser | None = None,
        child: SizedNodeParser | None = None,
        *,
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        callback_manager: CallbackManager | None = None,
        id_scheme: str | None = None,
        id_func: Callable[[int, BaseNode], str] | None = None,
        heading_path_separator: str | None = None,
    ) -> None:
        """Check the two parsers.

        Args:
            parent: Makes the large nodes: a `DocumentNodeParser`, `MarkdownSectionNodeParser` or
                `CodeLineNodeParser`; default: `DocumentNodeParser(2000, 0)`. Of both parsers,
                where they cut and how they measure counts; all else is told here.
            child: Makes the small ones; default: `DocumentNodeParser(400, 50)`.
            include_metadata: Whether nodes carry metadata at all.
            include_prev_next_rel: Whether neighbours are linked.
            callback_manager: Receives the `NODE_PARSING` and `CHUNKING` events.
            id_scheme: `"stable"` (default), `"uuid"`, or a name for `id_func`.
            id_func: Gives the id from the node's number in its document and the document.
            heading_path_separator: Joins the titles in `metadata["heading_path"]` to one text;
                default: a list.

        Raises:
            InvalidParameterError: One is none of our parsers, the child's size is above the
                parent's, or a setting is not as above.
        """
        parent = DocumentNodeParser(2000, 0) if parent is None else parent
        child = DocumentNodeParser(400, 50) if child is None else child
        for name, parser in zip(_LEVELS, (parent, child), strict=True):
            if not isinstance(parser, SizedNodeParser):
                known = ", ".join(one.class_name() for one in _PARSERS)
                raise InvalidParameterError(name, parser, f"give one of {known}")
        if parent.length == child.length and child.chunk_size > parent.chunk_size:
            allowed = f"its chunk_size must not be above the parent's, {parent.chunk_size}"
            raise InvalidParameterError("child", child.chunk_size, allowed)
        settings = self._common(
            include_metadata=include_metadata,
            include_prev_next_rel=include_prev_next_rel,
            callback_manager=callback_manager,
            id_scheme=id_scheme,
            id_func=id_func,
        )
        own = {
            "parent": parent,
            "child": child,
            "heading_path_separator": heading_path_separator,
        }
        super().__init__(**{**settings, **own})
        self._check_ids()

    @classmethod
    def from_defaults(
        cls,
        parent: SizedNodeParser | None = None,
        child: SizedNodeParser | None = None,
        **settings: Any,
    ) -> ParentChildNodeParser:
        """Build a parser: the constructor under the name that the framework's parsers have.

        Args:
            parent: As in the constructor.
            child: As in the constructor.
            **settings: The constructor's keyword arguments.

        Returns:
            The parser.

        Raises:
            InvalidParameterError: A setting is not allowed.
        """
        return cls(parent, child, **settings)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the settings are saved."""
        return "ParentChildNodeParser"

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> ParentChildNodeParser:
        """Build a parser from `to_dict()`.

        Args:
            data: What `to_dict()` gave; it is left as it is.
            **kwargs: Settings that replace those in `data`, and the functions that a dict
                cannot hold: `id_func`, and `length_function` for each of the two parsers that
                had one.

        Returns:
            A parser equal to the one that was saved.

        Raises:
            InvalidParameterError: A function is needed and not given, or a setting is wrong.
        """
        measure = kwargs.pop("length_function", None)
        levels = {
            level: _restored(data[level], measure)
            for level in _LEVELS
            if level not in kwargs and isinstance(data.get(level), dict)
        }
        return super().from_dict(data, **levels, **kwargs)

    def _functions(self) -> list[Any]:
        return [self.id_func, self.parent, self.child]

    def _salt(self) -> str:
        return f"{self.parent.chunk_size}/{self.child.chunk_size}"

    def _chunker_of(self, source: BaseNode) -> ParentChildChunker:
        parent, child = (
            parser.chunker_within(source, include_metadata=self.include_metadata)
            for parser in (self.parent, self.child)
        )
        return ParentChildChunker(parent, child)

    def _built(
        self, source: BaseNode, chunks: list[Chunk], factory: NodeFactory
    ) -> Sequence[BaseNode]:
        nodes = super()._built(source, chunks, factory)
        link_families(nodes, chunks)
        return nodes

    def _link(self, nodes: Sequence[BaseNode]) -> None:
        link_generations(nodes)


def _restored(data: dict[str, Any], measure: Callable[[str], int] | None) -> SizedNodeParser:
    known = {parser.class_name(): parser for parser in _PARSERS}
    name = data.get("class_name")
    if name not in known:
        raise InvalidParameterError("class_name", name, f"it is one of {', '.join(known)}")
    told: dict[str, Any] = {"id_scheme": "stable"}  # ids are told by the outer parser
    if not is_known_length(data.get("length", "characters")):
        told["length_function"] = measure
    return known[name].from_dict(data, **told)
