"""One question in several wordings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import InvalidParameterError, check_count
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._guards import fault_of_query, longest_query
from easyrag_core.query._reply import (
    fenced,
    is_heading,
    read_json,
    unlabelled,
    unmarked,
    unquoted,
    visible_text,
)
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._wording import EXPAND
from easyrag_core.query.history import text_key
from easyrag_core.query.prompts import quoted, templates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from easyrag_core.events import EventHandler
    from easyrag_core.query.prompts import Message, TemplateChoice

__all__ = ["MultiQueryPrompt", "distinct_queries", "listed", "parse_queries", "texts_in"]

_TEXT_KEYS: Final = (
    *("query", "question", "text", "q", "sub_question", "content"),
    *("查询", "问题", "子问题"),
)
_CLOSING: Final = re.compile(
    r"(?:(?:i )?hope (?:this|these|that)|let me know|feel free|note\b|explanation"
    r"|these (?:quer|question|alternat|vari)|each (?:of|query|question)"
    r"|希望|如果(?:您|你)|以上|这些|请告诉我|注[:：]|说明[:：])",
    re.IGNORECASE,
)
_INLINE: Final = re.compile(r"(?<=\S)\s+(?=[(（]?\d{1,2}(?:[)）、．]|\.(?!\d))\s*\S)")


class MultiQueryPrompt:
    """Builds the messages that ask for other wordings of a question.

    >>> MultiQueryPrompt(count=4).messages("What is RAG?")[0].content.splitlines()[1]
    '- Exactly 3 queries, one a line, no numbering, no explanation.'
    """

    def __init__(self, template: TemplateChoice = None, *, count: int = 3) -> None:
        """Choose wording and number.

        Args:
            template: With `{question}`, and `{count}` if wanted. Ours, by the question's
                language, if not given.
            count: How many queries are wanted, the question itself included.

        Raises:
            InvalidParameterError: For a template without its placeholder, or a count below 1.
        """
        self._templates = templates_of(
            template, EXPAND, needed=frozenset({"question"}), optional=frozenset({"count"})
        )
        self._count = check_count("count", count, minimum=1)

    @property
    def count(self) -> int:
        """How many queries are wanted, the question itself included; 1 needs no call."""
        return self._count

    def variables(self, query: str) -> dict[str, str]:
        """Return what fills the placeholders, for a prompt of a framework's own kind."""
        return {"question": quoted(query), "count": str(max(1, self._count - 1))}

    def messages(self, query: str) -> list[Message]:
        """Return the messages for the model.

        Args:
            query: The question.

        Returns:
            A system message and a user message.
        """
        return self._templates[prompt_language(query)].messages(self.variables(query))


def parse_queries(
    reply: str,
    query: str,
    *,
    count: int = 3,
    strict: bool = False,
    on_event: EventHandler | None = None,
) -> list[str]:
    r"""Read search queries from a model's reply; the question itself comes first.

    Bullets and numbering of every kind are removed, numbers of the text stay. A JSON list, or an
    object that holds one, is read too. Queries are equal if they are after NFKC, casefold, and
    without spaces and final punctuation.

    Args:
        reply: The model's text.
        query: The question.
        count: The most that come back, the question included.
        strict: Raise when nothing is usable.
        on_event: Hears `easyrag.query.expansion` when nothing is usable.

    Returns:
        `[query, …]`, at most `count`; `[query]` when nothing is usable.

    Raises:
        InvalidParameterError: For a count below 1.
        OutputParseError: In strict mode, when nothing is usable.

    >>> parse_queries("Here are two:\n1. What is A?\n2) How is A?\n- what is a", "Explain A")
    ['Explain A', 'What is A?', 'How is A?']
    """
    check_count("count", count, minimum=1)
    if not isinstance(query, str):
        raise InvalidParameterError("query", query, "give a text")
    texts = texts_in(reply, query)
    good = [text for text in texts if fault_of_query(text, query) is None]
    if not good and count > 1:
        reason = (fault_of_query(texts[0], query) or "empty") if texts else "empty"
        report_degradation("expansion", reason, raw=reply, on_event=on_event, strict=strict)
    return distinct_queries([query, *good])[:count]


def distinct_queries(queries: Iterable[str]) -> list[str]:
    """Return each query once, at its first place.

    >>> distinct_queries(["What is RAG?", "what is rag", "RAG 是什么", "RAG是什么？"])
    ['What is RAG?', 'RAG 是什么']
    """
    distinct: dict[str, str] = {}
    for query in queries:
        distinct.setdefault(text_key(query), query)
    return list(distinct.values())


def texts_in(reply: str, query: str) -> list[str]:
    r"""Return the texts that a reply lists: of its JSON, of its marked lines, or of all lines.

    Args:
        reply: The model's text.
        query: The question, for how long a text may be.

    Returns:
        Texts without marks, labels and quotes.

    >>> texts_in('["What is A?", "How is A?"]', "A"), texts_in("Sure:\n- what is A", "A")
    (['What is A?', 'How is A?'], ['what is A'])
    """
    text = visible_text(reply)
    value = read_json(text, lambda found: bool(listed(found)))
    if value is not None:
        return [unquoted(unmarked(found)[0]) for found in listed(value)]
    lines = _lines(fenced(text))
    # A line that is far too long is an essay; its marks are not worth looking for.
    longest = 2 * longest_query(query)
    read = [unmarked(line) for line in lines if len(line) <= longest]
    if any(marked for _, marked in read):
        read = [(line, marked) for line, marked in read if marked]
    texts = [unquoted(unlabelled(line)) for line, _ in read if not _CLOSING.match(line)]
    return [text for text in texts if text and text[-1] not in ":："]


def _lines(text: str) -> list[str]:
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[:3] != "```"]
    lines = [line for line in lines if not is_heading(line)]
    if len(lines) <= 2:
        # "1. What is A? 2. How is A?" on one line.
        lines = [part for line in lines for part in _parted(line)]
    return lines


def _parted(line: str) -> list[str]:
    rest = unlabelled(line)
    if len(rest) > 10_000 or not re.match(r"[(（]?1\s*[.)）、．]", rest):
        return [line]
    return _INLINE.split(rest)


def listed(value: Any, *, keys: Sequence[str] = _TEXT_KEYS) -> list[str]:
    """Return the texts of a JSON list, or of the first list in an object; else none.

    >>> listed({"queries": [{"query": "a"}, "b", 3]})
    ['a', 'b']
    """
    if isinstance(value, dict):
        lists = [found for found in value.values() if isinstance(found, list)]
        return next((texts for found in lists if (texts := listed(found))), [])
    if not isinstance(value, list):
        return []
    texts = []
    for item in value:
        if isinstance(item, dict):
            texts += [item[key] for key in keys if isinstance(item.get(key), str)][:1]
        elif isinstance(item, str):
            texts.append(item)
    return [text.strip() for text in texts if text.strip()]
