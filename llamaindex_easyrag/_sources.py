"""What nodes take over from the document or node that they are cut from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    RelatedNodeInfo,
    TextNode,
)

from llamaindex_easyrag._links import info_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "OWN_KEYS",
    "image_fields",
    "is_random",
    "origin_of",
    "place_of",
    "shows_metadata",
    "template_of",
    "text_of",
    "with_keys",
]

OWN_KEYS = ("chunk_index", "start_line", "end_line")


def origin_of(source: BaseNode) -> RelatedNodeInfo:
    """Return the root document of what is cut from a source.

    Args:
        source: A document, or a node that another parser made.

    Returns:
        The document's id, type and hash.
    """
    root = source.source_node
    if root is None:
        return info_of(source)
    return RelatedNodeInfo(node_id=root.node_id, node_type=root.node_type, hash=root.hash)


def place_of(source: BaseNode) -> tuple[int | None, int | None]:
    """Return where a source starts in its root document.

    Args:
        source: A document, or a node that another parser made.

    Returns:
        Offset and line; each is `None` where it is not known.
    """
    if isinstance(source, Node) or source.source_node is None:
        return 0, 1
    start = getattr(source, "start_char_idx", None)
    end = getattr(source, "end_char_idx", None)
    if start is None or end is None or end - start != len(text_of(source)):
        return None, None  # a text that was changed on the way has no place any more
    line = source.metadata.get("start_line")
    return start, line if isinstance(line, int) else (1 if start == 0 else None)


def is_random(node_id: str) -> bool:
    """Tell whether an id is a random one, as the framework gives them.

    Args:
        node_id: Any id.

    Returns:
        Whether it is a UUID of version 4.
    """
    try:
        return UUID(node_id).version == 4 and len(node_id) == 36
    except ValueError:
        return False


def template_of(source: BaseNode) -> tuple[type[TextNode], dict[str, Any]]:
    """Return what is the same for all nodes of a source.

    Args:
        source: A document, or a node that another parser made.

    Returns:
        The class of the nodes, and their shared fields.
    """
    shared: dict[str, Any] = {
        "excluded_embed_metadata_keys": with_keys(source.excluded_embed_metadata_keys, OWN_KEYS),
        "excluded_llm_metadata_keys": with_keys(source.excluded_llm_metadata_keys, OWN_KEYS),
        "metadata_separator": source.metadata_separator,
        "metadata_template": source.metadata_template,
    }
    if isinstance(source, Node | TextNode):
        shared["text_template"] = source.text_template
    if isinstance(source, IndexNode):
        return IndexNode, {**shared, "index_id": source.index_id, "obj": source.obj}
    image = image_fields(source)
    return (ImageNode, {**shared, **image}) if image else (TextNode, shared)


def with_keys(keys: Sequence[str], more: Iterable[str]) -> list[str]:
    """Add keys that are not there yet.

    Args:
        keys: Excluded keys.
        more: Keys to add.

    Returns:
        A new list.
    """
    return [*keys, *(key for key in more if key not in keys)]


def image_fields(source: BaseNode) -> dict[str, Any]:
    """Return the image of a source as fields of an image node.

    Args:
        source: Any document or node.

    Returns:
        The fields; none if it is not about an image.
    """
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


def text_of(node: BaseNode) -> str:
    """Return a node's bare text.

    Args:
        node: Any node.

    Returns:
        Its content without metadata.
    """
    return node.get_content(metadata_mode=MetadataMode.NONE)


def shows_metadata(source: BaseNode) -> bool:
    """Tell whether any model reads any metadata of a node.

    Args:
        source: Any document or node.

    Returns:
        Whether its metadata text for embedding or for the LLM is not blank.
    """
    modes = (MetadataMode.EMBED, MetadataMode.LLM)
    return any(source.get_metadata_str(mode=mode).strip() for mode in modes)
