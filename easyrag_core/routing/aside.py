"""Errors out of a candidate's call that are not the candidate's: they go past the router."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["given_back", "set_aside"]


class _Aside(BaseException):
    """Carries an error. No `Exception`, so that a router takes it for no failure of a model."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def set_aside(places: Collection[tuple[str, str]]) -> Iterator[None]:
    """Set errors aside that come from the caller's own code; for use inside a candidate's call.

    The router hands them on at once: it frees the place, counts the call as cancelled, and asks
    nobody else. `given_back` around the router makes them what they were. Where a stream is
    left nobody waits for its errors, and they stay as they are.

    Args:
        places: The functions by which a framework calls the caller's code, as pairs of module
            and name: an error that came through one of them is the caller's.

    >>> from easyrag_core import ModelCandidate, ModelRouter
    >>> def handler():
    ...     raise PermissionError("budget exceeded")
    >>> def ask(candidate):
    ...     with set_aside({(__name__, "handler")}):
    ...         handler()
    >>> router = ModelRouter([ModelCandidate("a", None), ModelCandidate("b", None)])
    >>> with given_back():
    ...     router.call(ask)
    Traceback (most recent call last):
    PermissionError: budget exceeded
    >>> [(each["calls"], each["cancelled"]) for each in router.snapshot()["candidates"]]
    [(1, 1), (0, 0)]
    """
    try:
        yield
    except Exception as error:
        if _is_leaving(error) or not _came_through(error, places):
            raise
        raise _Aside(error) from error


@contextmanager
def given_back() -> Iterator[None]:
    """Raise what was set aside, as it was; for use around a router's call.

    >>> def handler():
    ...     raise PermissionError("budget exceeded")
    >>> with given_back(), set_aside({(__name__, "handler")}):
    ...     handler()
    Traceback (most recent call last):
    PermissionError: budget exceeded
    """
    try:
        yield
    except _Aside as aside:
        error, context = aside.error, aside.error.__context__
        try:
            raise error
        finally:
            error.__context__ = context


def _came_through(error: Exception, places: Collection[tuple[str, str]]) -> bool:
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any((each.f_globals.get("__name__"), each.f_code.co_name) in places for each in frames)


def _is_leaving(error: BaseException) -> bool:
    before = error.__context__
    while before is not None and not isinstance(before, GeneratorExit):
        before = before.__context__
    return before is not None
