"""The runs of the candidates inside the router's own run, as callbacks see them.

A candidate's run is a child of ours, with the same handlers. Its tokens and its usage are ours,
too: handlers that know of trees (tracers) are told all of it, the others each token once and
each number once.
"""

from __future__ import annotations

import contextvars
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.callbacks.manager import AsyncRunManager
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables.config import (
    RunnableConfig,
    ensure_config,
    var_child_runnable_config,
)
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

try:
    from langchain_core.utils.uuid import uuid7 as _new_run_id
except ImportError:  # langchain-core had none of its own at first
    from uuid import uuid4

    _new_run_id = uuid4  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import ContextVar
    from uuid import UUID

    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.callbacks.manager import BaseRunManager

__all__ = ["SILENT", "ChildRuns", "nested_in", "runs_in"]

_Manager: TypeAlias = CallbackManager | AsyncCallbackManager

# LangGraph's word for runs whose messages are not to be shown. A candidate is read ahead of what
# is given on: its end, with the whole answer, may be told before our first token.
_UNSHOWN: Final = "nostream"


class _Nested:
    """A handler as a candidate's run sees it: tokens and usage are told by the run around it."""

    def __init__(self, handler: BaseCallbackHandler, *, awaited: bool) -> None:
        self._handler = handler
        # As the manager calls it without a detour by a thread or a loop of its own.
        self.on_llm_new_token = self.on_stream_event = _anothing if awaited else _nothing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)

    @property
    def on_llm_end(self) -> Any:
        tell = self._handler.on_llm_end

        def told(response: LLMResult, **kwargs: Any) -> Any:
            return tell(_without_usage(response), **kwargs)

        async def awaited(response: LLMResult, **kwargs: Any) -> None:
            await told(response, **kwargs)

        return awaited if inspect.iscoroutinefunction(tell) else told


def _nothing(*_: Any, **__: Any) -> None: ...


async def _anothing(*_: Any, **__: Any) -> None: ...


def _without_usage(response: LLMResult) -> LLMResult:
    rows = [[_unmetered(generation) for generation in row] for row in response.generations]
    return response.model_copy(update={"generations": rows, "llm_output": None})


def _unmetered(generation: Any) -> Any:
    if not isinstance(generation, ChatGeneration):
        return generation
    message = generation.message.model_copy(update={"usage_metadata": None})
    return generation.model_copy(update={"message": message})


class ChildRuns:
    """What a candidate is asked with, so that its run is a child of ours.

    Attributes:
        parent: The config in which our own run is told something; `None` when it is not known.
    """

    def __init__(self, config: RunnableConfig, heard: dict[int, Any]) -> None:
        """Keep the config, and what each handler is replaced by.

        Args:
            config: The caller's, with callbacks whose parent is our run.
            heard: Handlers by the id of the one that they stand for.
        """
        self._config = config
        self.parent = None if config["callbacks"] == [] else config
        # Handlers may also come by a context variable, as `get_usage_metadata_callback` gives
        # its own: each run that begins would take them from there as they are.
        self._hooks = [
            (var, heard[id(value)])
            for var, value in contextvars.copy_context().items()
            if id(value) in heard
        ]

    def config(self, candidate: str) -> RunnableConfig:
        """Make the config of a candidate's run.

        Args:
            candidate: Its name, which goes into the metadata.

        Returns:
            The caller's config, without the name and the id of our own run.
        """
        metadata = {**self._config.get("metadata", {}), "easyrag_candidate": candidate}
        return {**self._config, "metadata": metadata}

    @contextmanager
    def entered(self, config: RunnableConfig) -> Iterator[None]:
        """Make a candidate's config the one around it.

        A binding, and whatever has handlers from a context variable, would otherwise be told
        of the run around ours.

        Args:
            config: From `config`.
        """
        pairs: list[tuple[ContextVar[Any], Any]] = [
            (var_child_runnable_config, config),
            *self._hooks,
        ]
        tokens = [(var, var.set(value)) for var, value in pairs]
        try:
            yield
        finally:
            for var, token in tokens:
                var.reset(token)


SILENT = ChildRuns({"callbacks": []}, {})
"""For calls that do not say in which run they are."""


def nested_in(
    config: RunnableConfig | None, kind: type[_Manager]
) -> tuple[RunnableConfig, ChildRuns]:
    """Settle the id of our own run before it begins, to be the parent of others.

    Args:
        config: The caller's.
        kind: The manager that our own run will have.

    Returns:
        The config of our run, and what candidates are asked with.
    """
    given = ensure_config(config)
    # The same manager for our run and for its children: tracers know of both by their own books.
    manager = kind.configure(
        given.get("callbacks"),
        inheritable_tags=given.get("tags"),
        inheritable_metadata=given.get("metadata"),
    )
    run_id = given.get("run_id") or _new_run_id()
    own: RunnableConfig = {**given, "callbacks": manager, "run_id": run_id}
    inside = given.copy()
    inside.pop("run_name", None)
    inside.pop("run_id", None)
    return own, _children(manager, run_id, kind, inside)


def runs_in(run: BaseRunManager | None) -> ChildRuns:
    """Make what candidates are asked with where our own run has begun already.

    Args:
        run: Our own run, if it is known.

    Returns:
        Config and handlers for children of that run.
    """
    if run is None:
        return SILENT
    kind = AsyncCallbackManager if isinstance(run, AsyncRunManager) else CallbackManager
    return _children(run, run.run_id, kind, {})


def _children(source: Any, parent: UUID, kind: type[_Manager], config: RunnableConfig) -> ChildRuns:
    heard = {
        id(handler): _Nested(handler, awaited=kind is AsyncCallbackManager)
        for handler in source.inheritable_handlers
        if not isinstance(handler, BaseTracer | AsyncBaseTracer)
    }
    handlers: list[Any] = [heard.get(id(each), each) for each in source.inheritable_handlers]
    manager = kind(handlers=handlers, inheritable_handlers=[*handlers], parent_run_id=parent)
    manager.add_tags([*source.inheritable_tags, _UNSHOWN])
    manager.add_metadata(source.inheritable_metadata)
    return ChildRuns({**config, "callbacks": manager}, heard)
