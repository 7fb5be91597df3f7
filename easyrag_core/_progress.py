"""A bar for long work, if it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from easyrag_core.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["with_progress"]

T = TypeVar("T")


def with_progress(
    items: Iterable[T], *, what: str, show: bool, total: int | None = None
) -> Iterable[T]:
    """Show a tqdm bar that moves as the items are taken.

    Args:
        items: The items.
        what: What is done with them, in a word.
        show: Whether a bar is wanted at all.
        total: How many items there are, if they cannot be counted.

    Returns:
        The same items.

    Raises:
        MissingDependencyError: A bar is wanted and tqdm is not installed.
    """
    if not show:
        return items
    try:
        from tqdm.auto import tqdm  # noqa: PLC0415 - an optional package
    except ImportError:
        raise MissingDependencyError("tqdm", "progress") from None
    bar: Iterable[T] = tqdm(items, desc=what, total=total)
    return bar
