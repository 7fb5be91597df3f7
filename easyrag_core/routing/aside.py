"""Errors out of a candidate's call that are not the candidate's: they go past the router."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Places", "given_back", "set_aside"]

Places: TypeAlias = Mapping[
    tuple[str, str], Callable[[Mapping[str, Any], BaseException], BaseException | None]
]
"""The functions by which a framework calls the caller's code, as pairs of module and name. For
each, from the names in it and an error that came through it to the failure of the model that the
error stands for; `None` where the error is the caller's own."""


class _Aside(BaseException):
    """Carries an error. No `Exception`, so that a router takes it for no failure of a model."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def set_aside(places: Places) -> Iterator[None]:
    """Set errors aside that come from the caller's own code; for use inside a candidate's call.

    The router hands them on at once: it frees the place, counts the call as cancelled, and asks
    nobody else. `given_back` around the router makes them what they were. Where a stream is
    left nobody waits for its errors, and they stay as they are. Where an error stands for a
    failure of the model that the caller's code was told of, the failure is what is raised.

    Args:
        places: An error that came through one of them is the caller's.

    >>> from easyrag_core import ModelCandidate, ModelRouter
    >>> def handler():
    ...     raise PermissionError("budget exceeded")
    >>> def ask(candidate):
    ...     with set_aside({(__name__, "handler"): lambda names, error: None}):
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
        failure = _failure_behind(error, places)
        if failure is error or _is_leaving(error):
            raise
        if failure is None:
            raise _Aside(error) from error
        raise failure from failure.__cause__


@contextmanager
def given_back() -> Iterator[None]:
    """Raise what was set aside, as it was; for use around a router's call.

    >>> def handler():
    ...     raise PermissionError("budget exceeded")
    >>> with given_back(), set_aside({(__name__, "handler"): lambda names, error: None}):
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


def _failure_behind(error: BaseException, places: Places) -> BaseException | None:
    """Return the model's failure that an error is, or was made of; `None` for the caller's own."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        reported = _reported(error, places)
        if not reported:
            return error
        if (last := reported[-1]) is None or None in reported:
            return None
        error = last
    return error


def _reported(error: BaseException, places: Places) -> list[BaseException | None]:
    """Return what was told to the caller's code wherever an error came through it."""
    reported = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        told = places.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        if told is not None:
            reported.append(told(frame.f_locals, error))
    return reported


def _is_leaving(error: BaseException) -> bool:
    seen: set[int] = set()
    before = error.__context__
    while before is not None and id(before) not in seen:
        if isinstance(before, GeneratorExit):
            return True
        seen.add(id(before))
        before = before.__context__
    return False
