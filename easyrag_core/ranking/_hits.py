"""How merging and expansion read what they are given: hits, and which parents there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from easyrag_core.types import Hit

__all__ = ["existing", "pair_of"]


def pair_of(hit: tuple[str, float | None] | Hit) -> tuple[str, float | None]:
    """Return a hit as its id and score."""
    return (hit[0], hit[1]) if isinstance(hit, tuple) else (hit.id, hit.score)


def existing(
    exists: Container[str] | Callable[[list[str]], Container[str]] | None, ids: list[str]
) -> Container[str]:
    """Return those of some ids whose content can be read; `None` trusts all of them."""
    if exists is None or not ids:
        return ids
    return exists(ids) if callable(exists) else exists
