"""A follow-up made complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr
from typing_extensions import override

from easyrag_core import RewritePrompt, parse_rewrite
from langchain_easyrag.runnables._model_call import ModelCall
from langchain_easyrag.runnables._prompting import HISTORY, QUESTION, Prompting
from langchain_easyrag.runnables._step import QueryStep

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_easyrag.runnables._step import Plan

__all__ = ["QueryRewriter"]


class QueryRewriter(QueryStep[str]):
    """Turn the last question of a conversation into one that can be searched alone.

    Stands where `create_history_aware_retriever` has its chain. Without history, for greetings
    and thanks, the model is not asked; a reply that is empty, an answer, a refusal, in another
    language or about something else is not used, and where the model fails the question itself
    goes on, with a warning and an event.

    Instantiate:
        ```python
        from langchain_easyrag import QueryRewriter

        history_aware_retriever = QueryRewriter(llm) | retriever
        ```

    Ask:
        ```python
        history_aware_retriever.invoke({"input": "And its price?", "chat_history": messages})
        ```

    A prompt of your own holds `{history}` or a placeholder `chat_history`, and `{question}` or
    `{input}`:
        ```python
        QueryRewriter(llm, prompt=ChatPromptTemplate.from_messages([...]))
        ```
    """

    step: ClassVar[str] = "rewrite"

    history_turns: int = 4
    """How many messages of user and assistant the model sees."""

    skip_empty_history: bool = True
    """Whether a question without history is left alone."""

    _rewrite: RewritePrompt = PrivateAttr()

    def __init__(self, llm: Runnable[Any, Any], **kwargs: Any) -> None:
        """Check the settings.

        Args:
            llm: Who is asked.
            **kwargs: The fields of this class.

        Raises:
            InvalidParameterError: A setting is not as above, the prompt lacks a placeholder, or
                the model does not take the method named.
        """
        super().__init__(llm, **kwargs)
        self._prompting = Prompting.of(self.prompt, QUESTION, HISTORY)
        self._rewrite = RewritePrompt(
            self._prompting.core,
            history_turns=self.history_turns,
            skip_empty_history=self.skip_empty_history,
        )
        self._call = ModelCall(llm, self._rewrite.reply_schema, structured=self.structured)

    @property
    @override
    def OutputType(self) -> type[str]:
        """The query."""
        return str

    @override
    def _plan(self, value: Any) -> Plan[str]:
        asked = self._asked(value)
        if not self._rewrite.needed(asked.question, asked.history):
            return asked.question
        reply = yield self._call, self._request(self._rewrite, asked)
        if reply is None:
            return asked.question
        window = self._rewrite.window(asked.question, asked.history)
        return parse_rewrite(reply, asked.question, history=window, **self._reading).query
