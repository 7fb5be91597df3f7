"""Chunks and hits into nodes, and back: the only file that knows both."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)

from easyrag_core import Chunk
from easyrag_core.text import text_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


__all__ = [
    "NodeFactory",
    "chunks_from_nodes",
    "content_for_embedding",
    "link_nodes",
    "node_from_chunk",
]

_OWN_KEYS = ("chunk_index", "start_line", "end_line")


# Nodes from chunks


class NodeFactory:
    """Builds the nodes of one call of a parser: complete, so that nothing is set twice.

    It knows the inputs that went before: chunks are numbered per document, and two inputs that
    are alike do not get the same ids.
    """

    def __init__(self, *, include_metadata: bool, salt: str, alone: bool) -> None:
        """Start a call.

        Args:
            include_metadata: Whether nodes carry metadata at all.
            salt: Tells parsers apart that cut each other's nodes again.
            alone: Whether this call has one input, so that its siblings are not seen.
        """
        self._include_metadata = include_metadata
        self._salt = salt
        self._alone = alone
        self._numbers: Counter[str] = Counter()
        self._scopes: Counter[str] = Counter()

    def scope(self, source: BaseNode, text: str) -> str:
        """Return what stands for the document in the ids of the chunks of `source`.

        A document is known by its id. So is a node, unless another parser gave it a random one:
        that would make ids random too, so its root, its text and its turn stand for it.

        Args:
            source: The parser's input.
            text: Its text.

        Returns:
            A stable string, different for each input.
        """
        if isinstance(source, Document) or not _is_random(source.node_id):
            return source.node_id
        scope = f"{source.ref_doc_id or ''}/{text_digest(text)}/{self._salt}"
        if self._alone:
            # The siblings come in calls of their own: only the place tells them apart.
            return f"{scope}@{getattr(source, 'start_char_idx', None)}"
        turn = self._scopes[scope]
        self._scopes[scope] += 1
        return f"{scope}#{turn}"

    def build(
        self,
        source: BaseNode,
        chunks: Iterable[Chunk],
        *,
        id_func: Callable[[int, BaseNode], str] | None = None,
    ) -> list[TextNode]:
        """Build the nodes of one input, without the links between them.

        Args:
            source: A document, or a node that another parser made.
            chunks: Its chunks.
            id_func: The ids, from the number in `source` and `source`; default: the chunks' own.

        Returns:
            Nodes of the class that fits `source`, with places in the root document.
        """
        start, line = _place(source)
        origin = _origin(source)
        make, shared = _template(source)
        nodes: list[TextNode] = []
        for number, chunk in enumerate(list(chunks) or _image_alone(source)):
            node = make(
                **shared,
                id_=chunk.id if id_func is None else id_func(number, source),
                text=chunk.text,
                start_char_idx=None if start is None else start + chunk.start,
                end_char_idx=None if start is None else start + chunk.end,
                metadata=self._metadata(source, chunk, origin.node_id, line),
                relationships={NodeRelationship.SOURCE: origin},
            )
            nodes.append(node)
        return nodes

    def _metadata(
        self, source: BaseNode, chunk: Chunk, document: str, line: int | None
    ) -> dict[str, Any]:
        if not self._include_metadata:
            return {}
        metadata = {**source.metadata, "chunk_index": self._numbers[document]}
        self._numbers[document] += 1
        if line is None:
            metadata.pop("start_line", None)
            metadata.pop("end_line", None)
        else:
            metadata["start_line"] = line + chunk.start_line - 1
            metadata["end_line"] = line + chunk.end_line - 1
        return metadata


def link_nodes(nodes: Sequence[BaseNode]) -> None:
    """Link neighbours of the same document in both directions, in place.

    One info per node is shared by its two neighbours, and holds no copy of the metadata.

    Args:
        nodes: Nodes that the caller has just built, in the order of their documents.
    """
    infos = [_info(node) for node in nodes]
    for (before, info_before), (after, info_after) in pairwise(zip(nodes, infos, strict=True)):
        if before.ref_doc_id == after.ref_doc_id:
            before.relationships[NodeRelationship.NEXT] = info_after
            after.relationships[NodeRelationship.PREVIOUS] = info_before


def _info(node: BaseNode) -> RelatedNodeInfo:
    try:
        digest = node.hash
    except UnicodeEncodeError:  # the framework cannot hash a document with a lone surrogate
        digest = None
    return RelatedNodeInfo(node_id=node.node_id, node_type=node.get_type(), hash=digest)


def _origin(source: BaseNode) -> RelatedNodeInfo:
    root = source.source_node
    if root is None:
        return _info(source)
    return RelatedNodeInfo(node_id=root.node_id, node_type=root.node_type, hash=root.hash)


def _place(source: BaseNode) -> tuple[int | None, int | None]:
    """Where `source` starts in its root document, as an offset and as a line, if it is known."""
    if isinstance(source, Node) or source.source_node is None:
        return 0, 1
    start = getattr(source, "start_char_idx", None)
    end = getattr(source, "end_char_idx", None)
    if start is None or end is None or end - start != len(_text(source)):
        return None, None  # a text that was changed on the way has no place any more
    line = source.metadata.get("start_line")
    return start, line if isinstance(line, int) else (1 if start == 0 else None)


def _text(node: BaseNode) -> str:
    return node.get_content(metadata_mode=MetadataMode.NONE)


def _is_random(node_id: str) -> bool:
    try:
        return UUID(node_id).version == 4 and len(node_id) == 36
    except ValueError:
        return False


def _template(source: BaseNode) -> tuple[type[TextNode], dict[str, Any]]:
    """The class of the nodes of `source` and the fields that are the same for all of them."""
    shared: dict[str, Any] = {
        "excluded_embed_metadata_keys": _with_own_keys(source.excluded_embed_metadata_keys),
        "excluded_llm_metadata_keys": _with_own_keys(source.excluded_llm_metadata_keys),
        "metadata_separator": source.metadata_separator,
        "metadata_template": source.metadata_template,
    }
    if isinstance(source, Node | TextNode):
        shared["text_template"] = source.text_template
    if isinstance(source, IndexNode):
        return IndexNode, {**shared, "index_id": source.index_id, "obj": source.obj}
    image = _image_fields(source)
    return (ImageNode, {**shared, **image}) if image else (TextNode, shared)


def _with_own_keys(keys: Sequence[str]) -> list[str]:
    return [*keys, *(key for key in _OWN_KEYS if key not in keys)]


def _image_fields(source: BaseNode) -> dict[str, Any]:
    if isinstance(source, ImageDocument | ImageNode):
        names = ("image", "image_path", "image_url", "image_mimetype")
        return {name: getattr(source, name) for name in names}
    if not isinstance(source, Node) or source.image_resource is None:
        return {}
    image = source.image_resource
    return {
        "image": image.data.decode("ascii") if image.data else None,
        "image_path": str(image.path) if image.path else None,
        "image_url": str(image.url) if image.url else None,
        "image_mimetype": image.mimetype,
    }


def _image_alone(source: BaseNode) -> list[Chunk]:
    """An image without words has nothing to cut, but it must not be lost."""
    if not any(_image_fields(source).values()):
        return []
    digest = text_digest(f"image/{source.node_id}")[:32]
    return [Chunk(id=digest, document_id=source.node_id, index=0, text="", start=0, end=0)]


# Chunks from nodes


def content_for_embedding(node: BaseNode) -> str:
    """Return what of a node is indexed and embedded.

    Args:
        node: Any node.

    Returns:
        Its text with the metadata that are meant for embedding.
    """
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def chunks_from_nodes(nodes: Iterable[BaseNode]) -> list[Chunk]:
    """See nodes as chunks: what an index needs to know of them.

    Args:
        nodes: Any nodes.

    Returns:
        Chunks whose `embedding_text` is the node's content for embedding.
    """
    return [_chunk(node, number) for number, node in enumerate(nodes)]


def _chunk(node: BaseNode, number: int) -> Chunk:
    text = _text(node)
    start = getattr(node, "start_char_idx", None) or 0
    parent = node.relationships.get(NodeRelationship.PARENT)
    line = _number(node, "start_line", 1)
    return Chunk(
        id=node.node_id,
        document_id=node.ref_doc_id or node.node_id,
        index=_number(node, "chunk_index", number),
        text=text,
        start=start,
        end=start + len(text),
        start_line=line,
        end_line=_number(node, "end_line", line),
        embedding_text=content_for_embedding(node),
        parent_id=parent.node_id if isinstance(parent, RelatedNodeInfo) else None,
    )


def _number(node: BaseNode, key: str, default: int) -> int:
    value = node.metadata.get(key)
    return value if isinstance(value, int) else default


def node_from_chunk(chunk: Chunk) -> TextNode:
    """Make a node of a chunk that did not come from one.

    Args:
        chunk: A chunk of the core.

    Returns:
        A node with the chunk's id, place and document, for which no metadata is embedded but
        the caller's.
    """
    own = {
        "chunk_index": chunk.index,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "heading_path": list(chunk.heading_path),
        "language": chunk.language,
    }
    hidden = [*_OWN_KEYS, "heading_path", "language"]
    document = RelatedNodeInfo(node_id=chunk.document_id, node_type=ObjectType.DOCUMENT)
    return TextNode(
        id_=chunk.id,
        text=chunk.text,
        start_char_idx=chunk.start,
        end_char_idx=chunk.end,
        metadata={**chunk.metadata, **{k: v for k, v in own.items() if v or v == 0}},
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: document},
    )
