"""One question in several wordings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from easyrag_core.errors import check_count, check_text
from easyrag_core.query._degradation import report_degradation
from easyrag_core.query._guards import fault_of_query, longest_query
from easyrag_core.query._json_queries import listed, spread
from easyrag_core.query._json_text import json_start, whole_json
from easyrag_core.query._reply import (
    fenced,
    is_heading,
    read_json,
    unlabelled,
    unmarked,
    unquoted,
    visible_text,
)
from easyrag_core.query._schemas import array_of, object_of, text
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query._wording import EXPAND
from easyrag_core.query.history import text_key
from easyrag_core.query.prompts import quoted, templates_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from easyrag_core.events import EventHandler
    from easyrag_core.query._schemas import JSONSchema
    from easyrag_core.query._scripts import Language
    from easyrag_core.query.prompts import Message, PromptTemplate, TemplateChoice

__all__ = ["MultiQueryPrompt", "distinct_queries", "parse_queries", "texts_in"]

# What is said to the user about the queries; only lines without a mark are taken for it.
_OURS: Final = (
    r"(?:quer(?:y|ies)|questions?|alternatives?|variations?|variants?|versions?|rephras\w+)"
)
_OURS_ZH: Final = r"(?:问法|查询|问题|问句|检索|改写|变体|表述|版本|内容|信息|回答)"
_CLOSING: Final = re.compile(
    rf"(?:(?:i )?hope (?:this|these|that)|let me know|feel free|(?:note|explanation)s?\s*[:：,]"
    rf"|note that|these {_OURS}\b|each (?:of (?:these|the|my) )?{_OURS}\b|each of them\b"
    rf"|希望(?:以上|上述|这些|能(?:够)?帮|对(?:您|你)有)|以上(?:就?是|为|这?[几一二三四五六七八九十\d]+[个种条]|都|均|{_OURS_ZH})"
    rf"|这(?:些|[几一二三四五六七八九十\d]+[个种条]){_OURS_ZH}|请告诉我|[注说][:：]|(?:说明|注意|备注)[:：]"
    r"|如果(?:您|你).{0,60}(?:请?(?:随时|告诉|告知|联系|欢迎)|请(?:提|让|说|直接)|我可以|我会))",
    re.IGNORECASE,
)
_ASKS_AT_THE_END: Final = re.compile(r"[?？][\s\"”’'）)]*\Z")
_LONGEST_LINE: Final = 10_000
_REMARKS: Final = re.compile(
    r"(?:\*\*)?(?:explanations?|notes?|reason(?:ing)?|rationale|解释|说明|备注|理由)(?:\*\*)?\s*[:：]",
    re.IGNORECASE,
)
_FIRST: Final = re.compile(r"[(（]?1\s*[.)）、．]|①")
_NUMBERED: Final = r"[(（]?\d{1,2}(?:[)）、．]|\.(?!\d))\s*\S"
_INLINE: Final = re.compile(
    rf"(?<=\S)\s+(?={_NUMBERED})|(?<=[?？;；。])(?={_NUMBERED})|(?<=\S)\s*(?=[②-⑳])"
)
_SEVERAL_QUOTED: Final = re.compile(
    r"[\"“][^\"“”]+[\"”](?:\s*[,，;；、]\s*[\"“][^\"“”]+[\"”])+[.。]?"
)
_QUOTED: Final = re.compile(r"[\"“]([^\"“”]+)[\"”]")
# "1. **Angle**: the query" names an angle, which is not searched.
_ANGLE: Final = re.compile(
    r"^(\s*(?:[-*•]|\d{1,2}[.)、])\s*)\*\*[^*\n]{1,40}(?:\*\*\s*[:：]|[:：]\s*\*\*)\s*(?=\S)"
)
_LETTERED: Final = re.compile(r"[A-Ha-h]\.\s+")
_TABLE_RULE: Final = re.compile(r"\|[\s:|-]+\|")


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

    @property
    def templates(self) -> dict[Language, PromptTemplate]:
        """The wording for each language, for a prompt of a framework's own kind."""
        return dict(self._templates)

    @property
    def reply_schema(self) -> JSONSchema:
        """The reply as JSON Schema, as `parse_queries` reads it."""
        return object_of("Queries", "Other wordings.", queries=array_of(text("A search query.")))

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
    check_text("query", query)
    texts = texts_in(reply, query)
    good = [found for found in texts if fault_of_query(found, query) is None]
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
    visible = visible_text(reply, query)
    inside = fenced(visible)
    start = json_start(inside)
    if start is not None and (value := whole_json(inside[start:])) is not None:
        # Its lines are not read: brackets and keys are no queries.
        return _plain(listed(value) or spread(value), query)
    value = read_json(visible, lambda found: bool(listed(found)), nested=False)
    if value is not None:
        return _plain(listed(value), query)
    lines = _lines(inside)
    # A line that is far too long is an essay; its marks are not worth looking for.
    longest = 2 * longest_query(query)
    read = [unmarked(_ANGLE.sub(r"\1", line)) for line in lines if len(line) <= longest]
    # A mark on a line of its own stands for the line below.
    above = [("", False), *read]
    read = [
        (line, marked or over == ("", True))
        for over, (line, marked) in zip(above, read, strict=False)
    ]
    if any(marked for _, marked in read):
        read = [(line, marked) for line, marked in read if marked]
    texts = [_bare(line, query) for line, marked in read if marked or not _closes(line)]
    return [bare for bare in texts if bare and bare[-1] not in ":："]


def _closes(line: str) -> bool:
    return _CLOSING.match(line) is not None and not _ASKS_AT_THE_END.search(line)


def _plain(texts: Iterable[str], query: str) -> list[str]:
    return [unquoted(unmarked(found)[0], query) for found in texts]


def _bare(line: str, query: str) -> str:
    return unquoted(unlabelled(line).rstrip(";；,，、 "), query)


def _lines(inside: str) -> list[str]:
    lines = [line for line in map(str.strip, inside.splitlines()) if line and line[:3] != "```"]
    lines = _without_table([line for line in lines if not is_heading(line)])
    remarks = (at for at, line in enumerate(lines) if at and _REMARKS.match(line))
    lines = lines[: next(remarks, len(lines))]
    if len(lines) <= 2:
        # "1. What is A? 2. How is A?" on one line.
        lines = [part for line in lines for part in _parted(line)]
    letters = [line[0].casefold() for line in lines if _LETTERED.match(line)]
    if letters[:2] == ["a", "b"]:
        lines = [_LETTERED.sub("- ", line, count=1) for line in lines]
    return lines


def _without_table(lines: list[str]) -> list[str]:
    """Replace the rows of a table by their longest cells, its head by nothing."""
    kept: list[str] = []
    for line in lines:
        if _TABLE_RULE.fullmatch(line):
            kept = kept[:-1]
        elif len(line) > 2 and line[0] == line[-1] == "|":
            kept.append("- " + max(line.split("|"), key=len).strip())
        else:
            kept.append(line)
    return kept


def _parted(line: str) -> list[str]:
    rest = unlabelled(line)
    if len(rest) > _LONGEST_LINE:
        return [line]
    if _SEVERAL_QUOTED.fullmatch(rest):
        return _QUOTED.findall(rest)
    parts = _INLINE.split(rest) if _FIRST.match(rest) else []
    return parts if len(parts) > 1 else [line]
