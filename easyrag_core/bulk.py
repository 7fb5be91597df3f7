"""Python's cyclic garbage collector, held still while many objects are made."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BULK_CHARACTERS", "collection_paused"]

BULK_CHARACTERS = 100_000
"""Cutting so much text makes enough objects for the collector to show."""


@contextmanager
def collection_paused(*, when: bool = True) -> Iterator[None]:
    """Do not look for garbage while a long list of objects is built.

    Every few hundred new objects the collector walks over those that are there and finds none
    to free, which costs up to as much as making them. It goes on afterwards as it was before.

    Args:
        when: Whether the list is long enough.

    Yields:
        Nothing.

    >>> with collection_paused():
    ...     gc.isenabled()
    False
    """
    if not (when and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
