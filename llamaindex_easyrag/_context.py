"""What is embedded beside a node's text: where it stands in a node, so that no other mode shows it.

The framework builds what it embeds from a node's metadata, its templates and its text. The text
is the plain slice; what stands before it in a chunk's `embedding_text` becomes a metadata entry
that no LLM sees, and so outlives vector stores, caches and extractors that set other templates.
"""

from __future__ import annotations

__all__ = ["CONTEXT_KEY", "bare_templates", "beside_text", "joined_contexts", "joined_paths"]

CONTEXT_KEY = "context"
"""The metadata key of what stands before the text when it is embedded."""


def beside_text(text: str, embedding_text: str) -> tuple[str, str]:
    r"""Return what is embedded before and after a text.

    Args:
        text: What is read.
        embedding_text: What is embedded; it holds the text.

    Returns:
        Both parts; each may be empty.

    >>> beside_text("x = 1", "Language: Python\n\nx = 1")
    ('Language: Python\n\n', '')
    """
    if embedding_text == text:
        return "", ""
    place = embedding_text.rfind(text)
    if place < 0:
        return "", ""
    return embedding_text[:place], embedding_text[place + len(text) :]


def bare_templates(before: str, after: str) -> dict[str, str]:
    """Return templates with which the framework embeds a chunk's `embedding_text`, no more.

    They are for nodes whose context is the only metadata that any model sees.

    Args:
        before: What is embedded before the text.
        after: What is embedded after it.

    Returns:
        Fields of a node; none if nothing stands before the text.
    """
    told = before.rstrip()
    if not told:
        return {}
    gap = before[len(told) :]
    end = after.replace("{", "{{").replace("}", "}}")
    return {
        "metadata_template": "{value}",
        "text_template": f"{{metadata_str}}{gap}{{content}}{end}",
    }


def joined_contexts(outer: object, before: str) -> str:
    """Return the context of a piece of a text that has a context itself.

    Args:
        outer: The context of the text, if it has one.
        before: What is embedded before the piece.

    Returns:
        Both, in this order.
    """
    known = [outer] if isinstance(outer, str) else []
    return "\n\n".join(part for part in (*known, before.strip()) if part)


def joined_paths(outer: object, inner: tuple[str, ...]) -> list[str]:
    """Return the titles above a piece of a text that has titles above it itself.

    Args:
        outer: The titles above the text, if it has any.
        inner: The titles above the piece within the text, which may begin with the last of those.

    Returns:
        All of them once, outermost first.

    >>> joined_paths(["A", "B"], ("B", "C"))
    ['A', 'B', 'C']
    """
    above = list(outer) if isinstance(outer, list | tuple) else []
    shared = min(len(above), len(inner))
    while shared and above[-shared:] != list(inner[:shared]):
        shared -= 1
    return [*above, *inner[shared:]]
