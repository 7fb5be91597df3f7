"""The users' words into the documents' words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableSerializable
from pydantic import ConfigDict
from typing_extensions import override

from easyrag_core import TermMap
from langchain_easyrag._given import is_listing
from langchain_easyrag.runnables._conversation import asked_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.runnables import RunnableConfig

    from easyrag_core import Term

__all__ = ["TermMapper"]


class TermMapper(RunnableSerializable[Any, Any]):
    """Replace terms in a question, without a model.

    A text gives a text; a mapping or a list of messages gives a copy with its question replaced,
    so that the mapper can stand before a step that needs the conversation too.

    Instantiate:
        ```python
        from langchain_easyrag import TermMapper

        mapper = TermMapper({"k8s": "Kubernetes", "平安": "平安保司"})
        ```

    Chain:
        ```python
        mapper | QueryRewriter(llm) | retriever
        ```
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    terms: TermMap
    """What becomes what."""

    input_key: str = "input"
    """Where in a mapping the question is."""

    def __init__(
        self, terms: TermMap | Mapping[str, str] | Iterable[Term], *, input_key: str = "input"
    ) -> None:
        """Build the map.

        Args:
            terms: A `TermMap`, or what it is made of.
            input_key: Where in a mapping the question is.

        Raises:
            InvalidParameterError: A term is blank, or no text.
        """
        known = terms if isinstance(terms, TermMap) else TermMap(terms)
        fields: dict[str, Any] = {"terms": known, "input_key": input_key}
        super().__init__(**fields)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Replace the terms.

        Args:
            input: A text, a mapping with one, or messages of which the last is the question.
            config: For the run.
            **kwargs: None are taken.

        Returns:
            The same kind.

        Raises:
            InvalidParameterError: The input is none of these.
        """
        return self._call_with_config(self._mapped, input, config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Replace the terms: the async twin of `invoke`."""

        async def mapped(value: Any) -> Any:
            return self._mapped(value)

        return await self._acall_with_config(mapped, input, config, **kwargs)

    def _mapped(self, value: Any) -> Any:
        value = list(value) if is_listing(value) else value
        text = self.terms.apply(asked_in(value, input_key=self.input_key).question)
        if isinstance(value, Mapping):
            return {**value, self.input_key: text}
        return [*value[:-1], HumanMessage(text)] if isinstance(value, list) else text
