"""Several questions in one, taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr
from typing_extensions import override

from easyrag_core import (
    DecomposePrompt,
    Decomposition,
    is_small_talk,
    parse_decomposition,
    split_questions,
)
from langchain_easyrag.runnables._model_call import ModelCall
from langchain_easyrag.runnables._prompting import HISTORY, QUESTION, Prompting
from langchain_easyrag.runnables._step import QueryStep

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_easyrag.runnables._step import Plan

__all__ = ["QueryDecomposer"]


class QueryDecomposer(QueryStep[Decomposition]):
    """Make a question complete and take it apart, in one call.

    Where the model fails, or gives nothing usable, the question is taken apart at its question
    marks and line ends.

    Instantiate:
        ```python
        from langchain_easyrag import QueryDecomposer

        decomposer = QueryDecomposer(llm)
        ```

    Ask:
        ```python
        decomposer.invoke({"input": "年假有几天？怎么申请？", "chat_history": []}).questions
        # ('年假有几天？', '年假怎么申请？')
        ```
    """

    step: ClassVar[str] = "decomposition"

    max_questions: int = 4
    """The most sub-questions."""

    history_turns: int = 4
    """How many messages of user and assistant the model sees."""

    _decompose: DecomposePrompt = PrivateAttr()

    def __init__(self, llm: Runnable[Any, Any], **kwargs: Any) -> None:
        """Check the settings.

        Args:
            llm: Who is asked.
            **kwargs: The fields of this class. A prompt holds `{history}` or `chat_history`,
                `{question}` or `{input}`, and `{count}` if wanted.

        Raises:
            InvalidParameterError: A setting is not as above, the prompt lacks a placeholder, or
                the model does not take the method named.
        """
        super().__init__(llm, **kwargs)
        self._prompting = Prompting.of(self.prompt, QUESTION, HISTORY, optional=("count",))
        self._decompose = DecomposePrompt(
            self._prompting.core,
            max_questions=self.max_questions,
            history_turns=self.history_turns,
        )
        self._call = ModelCall(llm, self._decompose.reply_schema, structured=self.structured)

    @property
    @override
    def OutputType(self) -> type[Decomposition]:
        """Rewrite and sub-questions."""
        return Decomposition

    @override
    def _plan(self, value: Any) -> Plan[Decomposition]:
        asked = self._asked(value)
        question = asked.question
        if not question.strip() or is_small_talk(question):
            return Decomposition(question, (question,))
        reply = yield self._call, self._request(self._decompose, asked)
        if reply is None:
            parts = split_questions(question, max_questions=self.max_questions)
            return Decomposition(question, tuple(parts), "the model failed")
        return parse_decomposition(
            reply,
            question,
            history=self._decompose.window(question, asked.history),
            max_questions=self.max_questions,
            **self._reading,
        )
