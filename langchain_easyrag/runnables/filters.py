"""Conditions on metadata, drawn from a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr
from typing_extensions import override

from easyrag_core import (
    ExtractedConditions,
    FilterExtractionPrompt,
    FilterPolicy,
    is_small_talk,
    parse_filters,
)
from langchain_easyrag.runnables._model_call import ModelCall
from langchain_easyrag.runnables._prompting import QUESTION, Prompting
from langchain_easyrag.runnables._step import QueryStep

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_easyrag.runnables._step import Plan

__all__ = ["FilterExtractor"]


class FilterExtractor(QueryStep[ExtractedConditions]):
    """Ask a model which conditions a question names, out of a closed schema.

    The model is shown the policy's business schema and never its system conditions. What the
    schema does not allow is dropped, condition by condition, and told under `dropped`. Where the
    model fails there are no business conditions; the system's apply all the same.

    Instantiate:
        ```python
        from easyrag_core import Condition, FilterField, FilterPolicy
        from langchain_easyrag import FilterExtractor

        policy = FilterPolicy(
            system=Condition("tenant", "eq", "a"),
            business_schema=[FilterField("year", "integer"), FilterField("topic")],
        )
        extractor = FilterExtractor(llm, policy)
        ```

    Ask:
        ```python
        extractor.invoke("papers since 2020").conditions
        ```
    """

    step: ClassVar[str] = "filters"

    policy: FilterPolicy
    """Whose business schema counts."""

    _extraction: FilterExtractionPrompt = PrivateAttr()

    def __init__(self, llm: Runnable[Any, Any], policy: FilterPolicy, **kwargs: Any) -> None:
        """Check the settings.

        Args:
            llm: Who is asked.
            policy: Whose business schema counts.
            **kwargs: The fields of this class. A prompt holds `{fields}`, and `{question}` or
                `{input}`.

        Raises:
            InvalidParameterError: A setting is not as above, the prompt lacks a placeholder, or
                the model does not take the method named.
        """
        FilterExtractionPrompt(policy)  # refuses what is no policy
        super().__init__(llm, policy=policy, **kwargs)
        self._prompting = Prompting.of(self.prompt, QUESTION, ("fields",))
        self._extraction = FilterExtractionPrompt(policy, self._prompting.core)
        self._call = ModelCall(llm, self._extraction.reply_schema, structured=self.structured)

    @property
    @override
    def OutputType(self) -> Any:
        """Conditions; plain objects, of which pydantic makes no schema."""
        return Any

    @override
    def _plan(self, value: Any) -> Plan[ExtractedConditions]:
        question, prompt = self._asked(value).question, self._extraction
        if not prompt.needed or not question.strip() or is_small_talk(question):
            return ExtractedConditions()
        reply = yield (
            self._call,
            self._prompting.request(
                prompt.messages(question), prompt.variables(question), question
            ),
        )
        if reply is None:
            return ExtractedConditions()
        return parse_filters(reply, self.policy, **self._reading)
