"""One question in several wordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr
from typing_extensions import override

from easyrag_core import MultiQueryPrompt, is_small_talk, parse_queries
from langchain_easyrag.runnables._model_call import ModelCall
from langchain_easyrag.runnables._prompting import QUESTION, Prompting
from langchain_easyrag.runnables._step import QueryStep

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_easyrag.runnables._step import Plan

__all__ = ["MultiQueryGenerator"]


class MultiQueryGenerator(QueryStep[list[str]]):
    """Ask a model for other wordings of a question; the question itself comes first.

    Numbering, preambles, quotes and doubles are taken off, and there are never more than
    `count`. Where nothing is usable, or the model fails, it is the question alone.

    Instantiate:
        ```python
        from langchain_easyrag import MultiQueryGenerator

        generator = MultiQueryGenerator(llm, count=4)
        ```

    Ask:
        ```python
        generator.invoke("How do I cut costs?")
        # ['How do I cut costs?', 'ways to reduce spending', ...]
        ```
    """

    step: ClassVar[str] = "expansion"

    count: int = 3
    """How many queries are wanted, the question itself included; for 1 nobody is asked."""

    _expansion: MultiQueryPrompt = PrivateAttr()

    def __init__(self, llm: Runnable[Any, Any], **kwargs: Any) -> None:
        """Check the settings.

        Args:
            llm: Who is asked.
            **kwargs: The fields of this class. A prompt holds `{question}` or `{input}`, and
                `{count}` if wanted.

        Raises:
            InvalidParameterError: A setting is not as above, the prompt lacks a placeholder, or
                the model does not take the method named.
        """
        super().__init__(llm, **kwargs)
        self._prompting = Prompting.of(self.prompt, QUESTION, optional=("count",))
        self._expansion = MultiQueryPrompt(self._prompting.core, count=self.count)
        self._call = ModelCall(llm, self._expansion.reply_schema, structured=self.structured)

    @property
    @override
    def OutputType(self) -> type[list[str]]:
        """The queries."""
        return list[str]

    @override
    def _plan(self, value: Any) -> Plan[list[str]]:
        question = self._asked(value).question
        if self.count == 1 or not question.strip() or is_small_talk(question):
            return [question]
        prompt = self._expansion
        reply = yield (
            self._call,
            self._prompting.request(
                prompt.messages(question), prompt.variables(question), question
            ),
        )
        if reply is None:
            return [question]
        return parse_queries(reply, question, count=self.count, **self._reading)
