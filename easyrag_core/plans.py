"""Plans that say what to ask, driven by whoever can ask: at once, or with waiting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

__all__ = ["adriven", "driven"]

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")


def driven(plan: Generator[Q, A, R], answer: Callable[[Q], A]) -> R:
    """Answer each question of a plan, and return what the plan returns.

    Args:
        plan: A new generator that yields questions and is sent the answers.
        answer: A question to its answer; what it raises is raised in the plan, where it asked.

    Returns:
        The plan's result.

    >>> def plan():
    ...     return [(yield "one"), (yield "two")]
    >>> driven(plan(), str.upper)
    ['ONE', 'TWO']
    """
    advance: Callable[[], Q] = partial(next, plan)
    while True:
        try:
            question = advance()
        except StopIteration as done:
            result: R = done.value
            return result
        try:
            advance = partial(plan.send, answer(question))
        except Exception as error:  # noqa: BLE001 - the plan decides what goes on
            advance = partial(plan.throw, error)


async def adriven(plan: Generator[Q, A, R], answer: Callable[[Q], Awaitable[A]]) -> R:
    """Answer each question of a plan with waiting: the async twin of `driven`.

    Args:
        plan: A new generator that yields questions and is sent the answers.
        answer: A question to its answer; what it raises is raised in the plan, where it asked.

    Returns:
        The plan's result.

    >>> import asyncio
    >>> def plan():
    ...     return [(yield 0), (yield 0)]
    >>> async def answer(seconds):
    ...     return await asyncio.sleep(seconds, "slept")
    >>> asyncio.run(adriven(plan(), answer))
    ['slept', 'slept']
    """
    advance: Callable[[], Q] = partial(next, plan)
    while True:
        try:
            question = advance()
        except StopIteration as done:
            result: R = done.value
            return result
        try:
            advance = partial(plan.send, await answer(question))
        except Exception as error:  # noqa: BLE001 - the plan decides what goes on
            advance = partial(plan.throw, error)
