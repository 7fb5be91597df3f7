"""Models that answer by script and count their calls, and a conversation."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from easyrag_core import Condition, FilterField, FilterPolicy, IntentTree

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

TALK = [HumanMessage("What is Redis?"), AIMessage("Redis is an in-memory key-value store.")]
FOLLOW_UP = {"input": "What does it cost?", "chat_history": TALK}
COMPLETE = "What does Redis cost?"

POLICY = FilterPolicy(
    system=Condition("tenant", "eq", "a"),
    business_schema=[FilterField("year", "integer"), FilterField("topic")],
)
TREE = IntentTree.from_dicts(
    [
        {
            "id": "hr",
            "name": "Human resources",
            "children": [
                {"id": "leave", "name": "Leave", "k": 2, "collection": "handbook"},
                {"id": "travel", "name": "Travel", "collection": "trips"},
            ],
        },
        {"id": "orders", "name": "Orders", "kind": "tool", "tool": "order_status"},
    ]
)


class ScriptedModel(BaseChatModel):
    """Gives its replies in turn, the last one for ever; an exception is raised instead."""

    replies: list[Any]
    seen: list[list[BaseMessage]]
    loops: list[bool]

    def __init__(self, *replies: Any) -> None:
        super().__init__(replies=list(replies), seen=[], loops=[])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def calls(self) -> int:
        return len(self.seen)

    @property
    def asked(self) -> str:
        """All that the last call was told."""
        return "\n".join(str(message.text) for message in self.seen[-1])

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        self.loops.append(False)
        return self._next(messages)

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Any:
        await asyncio.sleep(0)
        self.loops.append(True)
        return self._next(messages)

    def _next(self, messages: list[BaseMessage]) -> ChatResult:
        reply = self.replies[min(self.calls, len(self.replies) - 1)]
        self.seen.append(list(messages))
        if isinstance(reply, Exception):
            raise reply
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])


class AllRuns(BaseCallbackHandler):
    """Remembers every run: name, id, parent, tags, metadata."""

    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.starts.append(kwargs)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.starts.append({**kwargs, "name": "model"})

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.starts.append({**kwargs, "query": query})

    def named(self, name: str) -> list[dict[str, Any]]:
        return [start for start in self.starts if start.get("name") == name]

    def parent_of(self, name: str) -> UUID | None:
        (found,) = self.named(name)
        return found["parent_run_id"]


def _sync(runnable: Any, value: Any, config: Any = None, **settings: Any) -> Any:
    return runnable.invoke(value, config, **settings)


def _async(runnable: Any, value: Any, config: Any = None, **settings: Any) -> Any:
    return asyncio.run(runnable.ainvoke(value, config, **settings))


WAYS: dict[str, Callable[..., Any]] = {"sync": _sync, "async": _async}


def conditions(*triples: tuple[str, str, Any]) -> str:
    keys = ("field", "operator", "value")
    return json.dumps([dict(zip(keys, triple, strict=True)) for triple in triples])


NOISE = [SystemMessage("be brief"), ToolMessage("{}", tool_call_id="1")]
