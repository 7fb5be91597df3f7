"""Chunks and hits into nodes, and back: the only file that knows both."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)

from easyrag_core import Chunk
from easyrag_core.index.store import chunk_from_record, record_of_chunk
from easyrag_core.text import text_digest
from llamaindex_easyrag._context import (
    CONTEXT_KEY,
    bare_templates,
    beside_text,
    joined_contexts,
    joined_paths,
)
from llamaindex_easyrag._sources import (
    OWN_KEYS,
    image_fields,
    is_random,
    origin_of,
    place_of,
    shows_metadata,
    template_of,
    text_of,
    with_keys,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


__all__ = [
    "NodeFactory",
    "chunk_of_record",
    "chunks_from_nodes",
    "content_for_embedding",
    "kept_chunk",
    "kept_node",
    "node_from_chunk",
    "record_in_chunk",
    "storable_chunks",
]

_KEPT = "easyrag_chunk"
# Told by the relationships of nodes.
_NATIVE_KEYS = frozenset(("child_ids",))
# What chunkers find out, and no model is told.
_FOUND_KEYS = ("heading_path", "language", "file_path", "front_matter", "symbol", "symbol_type")


# Nodes from chunks


class NodeFactory:
    """Builds the nodes of one call of a parser: complete, so that nothing is set twice.

    It knows the inputs that went before: chunks are numbered per document, and two inputs that
    are alike do not get the same ids.
    """

    def __init__(
        self, *, include_metadata: bool, salt: str, alone: bool, path_separator: str | None = None
    ) -> None:
        """Start a call.

        Args:
            include_metadata: Whether nodes carry metadata at all.
            salt: Tells parsers apart that cut each other's nodes again.
            alone: Whether this call has one input, so that its siblings are not seen.
            path_separator: Joins the titles of a heading path; `None` leaves it a list.
        """
        self._include_metadata = include_metadata
        self._path_separator = path_separator
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
        if isinstance(source, Document) or not is_random(source.node_id):
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
        start, line = place_of(source)
        origin = origin_of(source)
        make, shared = template_of(source)
        pieces = list(chunks) or _image_alone(source)
        if self._include_metadata:
            _hide(shared, source, pieces)
        bare = self._include_metadata and not shows_metadata(source)
        nodes: list[TextNode] = []
        for number, chunk in enumerate(pieces):
            before, after = beside_text(chunk.text, chunk.embedding_text)
            node = make(
                **{**shared, **(bare_templates(before, after) if bare and before else {})},
                id_=chunk.id if id_func is None else id_func(number, source),
                text=chunk.text,
                start_char_idx=None if start is None else start + chunk.start,
                end_char_idx=None if start is None else start + chunk.end,
                metadata=self._metadata(source, chunk, origin.node_id, line, before),
                relationships={NodeRelationship.SOURCE: origin},
            )
            nodes.append(node)
        return nodes

    def _metadata(
        self, source: BaseNode, chunk: Chunk, document: str, line: int | None, before: str
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
        metadata.update(_extras(chunk, source.metadata))
        path = metadata.get("heading_path")
        if isinstance(path, list) and self._path_separator is not None:
            metadata["heading_path"] = self._path_separator.join(path)
        # The last entry, next to the text.
        context = joined_contexts(metadata.pop(CONTEXT_KEY, None), before)
        return {**metadata, CONTEXT_KEY: context} if context else metadata


def _extras(chunk: Chunk, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the chunker found out about a chunk, beside its place."""
    extras = {key: value for key, value in chunk.metadata.items() if key not in _NATIVE_KEYS}
    if "front_matter" in given:
        extras.pop("front_matter", None)
    if chunk.heading_path:
        extras["heading_path"] = joined_paths(given.get("heading_path"), chunk.heading_path)
    if chunk.language:
        extras["language"] = chunk.language
    return extras


def _hide(shared: dict[str, Any], source: BaseNode, chunks: Sequence[Chunk]) -> None:
    """Keep from every model what the chunker found out, and from the LLM what is embedded only."""
    given = source.metadata
    found = dict.fromkeys(key for chunk in chunks for key in _extras(chunk, given))
    new = [key for key in found if key not in given]
    embed, llm = "excluded_embed_metadata_keys", "excluded_llm_metadata_keys"
    shared[embed] = with_keys(shared[embed], new)
    context = any(chunk.embedding_text != chunk.text for chunk in chunks)
    shared[llm] = with_keys(shared[llm], [*new, *([CONTEXT_KEY] if context else [])])


def _image_alone(source: BaseNode) -> list[Chunk]:
    """An image without words has nothing to cut, but it must not be lost."""
    if not any(image_fields(source).values()):
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
        Chunks whose `embedding_text` is the node's content for embedding. Those whose children
        are among the nodes are of kind `parent`: an index only looks them up.
    """
    given = list(nodes)
    ids = {node.node_id for node in given}
    chunks = [_chunk(node, number) for number, node in enumerate(given)]
    for node, chunk in zip(given, chunks, strict=True):
        children = node.relationships.get(NodeRelationship.CHILD)
        if isinstance(children, list) and any(child.node_id in ids for child in children):
            chunk.kind = "parent"
    return chunks


def storable_chunks(nodes: Iterable[BaseNode]) -> list[Chunk]:
    """Make chunks that a store keeps in place of nodes, with the caller's metadata.

    Args:
        nodes: Any nodes.

    Returns:
        Chunks that `node_from_chunk` makes nodes of again.
    """
    given = list(nodes)
    own = {*OWN_KEYS, CONTEXT_KEY}
    chunks = chunks_from_nodes(given)
    for node, chunk in zip(given, chunks, strict=True):
        context = node.metadata.get(CONTEXT_KEY)
        chunk.embedding_text = f"{context}\n\n{chunk.text}" if context else chunk.text
        chunk.metadata = {key: value for key, value in node.metadata.items() if key not in own}
    return chunks


def _chunk(node: BaseNode, number: int) -> Chunk:
    text = text_of(node)
    start = getattr(node, "start_char_idx", None) or 0
    parent = node.relationships.get(NodeRelationship.PARENT)
    line = _number(node, "start_line", 1)
    path, language = node.metadata.get("heading_path"), node.metadata.get("language")
    return Chunk(
        id=node.node_id,
        document_id=node.ref_doc_id or node.node_id,
        index=_number(node, "chunk_index", number),
        text=text,
        start=start,
        end=start + len(text),
        start_line=line,
        end_line=_number(node, "end_line", line),
        heading_path=tuple(path) if isinstance(path, list) else (),
        embedding_text=content_for_embedding(node),
        parent_id=parent.node_id if isinstance(parent, RelatedNodeInfo) else None,
        language=language if isinstance(language, str) else "",
    )


def _number(node: BaseNode, key: str, default: int) -> int:
    value = node.metadata.get(key)
    return value if isinstance(value, int) else default


def node_from_chunk(chunk: Chunk) -> TextNode:
    """Make a node of a chunk that did not come from one.

    Args:
        chunk: A chunk of the core.

    Returns:
        A node with the chunk's id, place, document and parent. What is embedded of it is the
        chunk's `embedding_text` and the caller's metadata; an LLM sees its text and the
        caller's metadata.
    """
    hidden = [key for key in _FOUND_KEYS if key in chunk.metadata]
    document = Document(
        text="",
        id_=chunk.document_id,
        metadata=dict(chunk.metadata),
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )
    node = NodeFactory(include_metadata=True, salt="", alone=True).build(document, [chunk])[0]
    node.metadata["chunk_index"] = chunk.index
    of_document = RelatedNodeInfo(node_id=chunk.document_id, node_type=ObjectType.DOCUMENT)
    node.relationships[NodeRelationship.SOURCE] = of_document
    if chunk.parent_id is not None:
        node.relationships[NodeRelationship.PARENT] = _of_text(chunk.parent_id)
    children = node.metadata.pop("child_ids", None)
    if isinstance(children, list):
        node.relationships[NodeRelationship.CHILD] = [_of_text(child) for child in children]
    return node


def _of_text(node_id: str) -> RelatedNodeInfo:
    return RelatedNodeInfo(node_id=node_id, node_type=ObjectType.TEXT)


# Chunks and nodes in each other's stores


def kept_node(chunk: Chunk) -> TextNode:
    """Make a node that a foreign store keeps in place of a chunk: readable, and exact.

    Args:
        chunk: A chunk.

    Returns:
        A node with the chunk under a metadata key of our own, which no model reads.
    """
    node = node_from_chunk(chunk)
    node.metadata[_KEPT] = record_of_chunk(chunk)
    node.excluded_embed_metadata_keys = with_keys(node.excluded_embed_metadata_keys, [_KEPT])
    node.excluded_llm_metadata_keys = with_keys(node.excluded_llm_metadata_keys, [_KEPT])
    return node


def kept_chunk(node: BaseNode) -> Chunk:
    """Make a chunk of what a foreign store keeps.

    Args:
        node: One of `kept_node`, or any other.

    Returns:
        The chunk that went in, or one made of the node.
    """
    kept = node.metadata.get(_KEPT)
    if kept is not None:
        return chunk_from_record(kept, node.node_id)
    chunk = storable_chunks([node])[0]
    children = node.relationships.get(NodeRelationship.CHILD)
    if isinstance(children, list):
        chunk.kind = "parent"
        chunk.metadata["child_ids"] = [child.node_id for child in children]
    return chunk


def chunk_of_record(key: str, record: Mapping[str, Any], collection: str) -> Chunk:
    """Make a chunk that keeps a record of the framework's key-value stores.

    Args:
        key: The record's key.
        record: Plain JSON values.
        collection: Where it belongs.

    Returns:
        A chunk that shows nothing of it to a search.
    """
    told = json.dumps(record, ensure_ascii=False)
    return Chunk(f"{collection}\n{key}", collection, 0, told, 0, len(told), kind="record")


def record_in_chunk(chunk: Chunk) -> dict[str, Any]:
    """Return the record that `chunk_of_record` put into a chunk."""
    record: dict[str, Any] = json.loads(chunk.text)
    return record
