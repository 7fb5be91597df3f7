"""Asking which topic is meant, and understanding the answer in the next turn."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import InvalidParameterError
from easyrag_core.query._scripts import prompt_language
from easyrag_core.query.intent._naming import is_part_of, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Clarification", "IntentOption"]

_ALL: Final = re.compile(
    r"(?:i (?:mean|want) )?(?:all(?: of (?:them|these|the above|it))?|both(?: of them)?|everything"
    r"|any(?: of them)?|each)(?: please)?"
    r"|(?:我)?(?:想|要)?(?:看|问|查)?(?:全部|全都|所有|都|全|两个|两者|三个|这些|以上)(?:的)?(?:全部|都|全)?(?:想|要|是|可以|行|看|问|查)*(?:的|了|吧)?"
)
_NONE: Final = re.compile(
    r"(?:none(?: of (?:them|these|the above|those))?|neither(?: of them)?|no(?:ne)?|nothing)"
    r"|(?:以上|这些|两个|两者)?(?:都|全)?(?:不是|不对|没有)(?:的|了|以上|这些)?|以上都不是"
)
_CHINESE: Final = {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "首": 1}
_ENGLISH: Final = {
    **dict(zip(("one", "two", "three", "four", "five", "six"), range(1, 7), strict=True)),
    **dict(zip(("first", "second", "third", "fourth", "fifth", "sixth"), range(1, 7), strict=True)),
    **{f"{number}{end}": number for number in range(1, 7) for end in ("st", "nd", "rd", "th")},
    **{str(number): number for number in range(1, 7)},
    "last": -1,
    "latter": -1,
    "former": 1,
}
_LETTERS: Final = {letter: number for number, letter in enumerate("abcdef", start=1)}
_FILLER_EN: Final = re.compile(
    r"\b(?:i (?:mean|meant|choose|pick|want|would like|would go with|go with)|i'?d (?:like|go with)"
    r"|let'?s (?:go with|take)|option|options|number|no|nr|choice|topic|answer|item|the"
    r"|please|it is|it'?s|is|about|my|thanks|thank you|ok|okay|yes)\b|[#.,!:()\[\]]"
)
_FILLER_ZH: Final = re.compile(
    r"^(?:嗯|好的?|那)*(?:我)?(?:要|想)?(?:选(?!项)择?|问的?是?|说的?是?|指的?是?|看|查)*(?:的?是)?|[，。！、：（）()]"
    r"|(?:吧|呢|啊|谢谢|就行|就好|即可|那个|这个|的)+$"
)
_NUMBER_ZH: Final = re.compile(
    r"(?:第|选项?|序号|编号)?([1-6一二两三四五六首])(?:个|项|条|号|种|类|者)?"
)
# A run of spaces is tried from its first one alone.
_AND: Final = re.compile(
    r"(?<!\s)\s*+(?:[,，、;；/&+]|\band\b|和|与|跟|以及|还有)\s*|(?<=\d)\s+(?=\d)"
)
_LAST_ZH: Final = {"最后一个": -1, "最后一项": -1, "后者": -1, "前者": 1, "最后": -1}


@dataclass(frozen=True, slots=True)
class IntentOption:
    """A topic to choose.

    Attributes:
        id: The node's id.
        label: What the user reads.
    """

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Clarification:
    """A question back to the user.

    Plain data: keep `to_dict()` with the conversation, and read the next turn with it.

    Attributes:
        question: What the user had asked.
        options: What it may be about, best first.

    >>> asked = Clarification("days?", (IntentOption("a", "Leave"), IntentOption("b", "Travel")))
    >>> [asked.read(reply) for reply in ("2", "the first", "第二个", "全部", "travel")]
    [('b',), ('a',), ('b',), ('a', 'b'), ('b',)]
    >>> asked.read("How do I book a flight?") is None
    True
    """

    question: str
    options: tuple[IntentOption, ...]

    def text(self) -> str:
        """Return what to show, in the language of the question, with numbered options."""
        listed = [f"{at}. {option.label}" for at, option in enumerate(self.options, start=1)]
        if prompt_language(self.question) == "zh":
            return "\n".join(["您指的是哪一个？（回复序号、名称或“全部”）", *listed])
        return "\n".join(["Which one do you mean? (number, name, or “all”)", *listed])

    def read(self, reply: str) -> tuple[str, ...] | None:
        """Understand the user's next message.

        Args:
            reply: What the user typed: a number, an ordinal, several, a name, all, none.

        Returns:
            Ids of the options chosen, empty for none of them; `None` when the message is no
            answer, but a question of its own.
        """
        plain = unicodedata.normalize("NFKC", reply).casefold().replace("’", "'")
        plain = plain.strip(" \t\r\n.。!！~～\"'“”")
        if not plain:
            return None
        if exact := self._named(plain, exactly=True):
            return exact
        if _ALL.fullmatch(plain):
            return tuple(option.id for option in self.options)
        if _NONE.fullmatch(plain):
            return ()
        return self._numbered(plain) or self._named(plain, exactly=False)

    def _numbered(self, plain: str) -> tuple[str, ...] | None:
        chosen: dict[str, None] = {}
        for part in _parts(plain):
            number = _number(part)
            place = len(self.options) if number == -1 else number
            if place is None or not 1 <= place <= len(self.options):
                return None
            chosen[self.options[place - 1].id] = None
        return tuple(chosen) or None

    def _named(self, plain: str, *, exactly: bool) -> tuple[str, ...] | None:
        labels = {option.id: _names(option.label) for option in self.options}
        if exactly:
            found = [id_ for id_, known in labels.items() if plain in known]
        elif "?" in plain:
            # A name inside a question is what the question is about.
            found = []
        else:
            found = [
                id_
                for id_, known in labels.items()
                if any(names(n, plain, known[0]) for n in known)
            ]
            if not found:
                found = [id_ for id_, known in labels.items() if is_part_of(plain, known[0])]
        return (found[0],) if len(found) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, to be kept with the conversation."""
        options = [{"id": option.id, "label": option.label} for option in self.options]
        return {"question": self.question, "options": options}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Clarification:
        """Read what `to_dict` returned.

        Args:
            data: The mapping.

        Returns:
            The clarification.

        Raises:
            InvalidParameterError: For any other shape.
        """
        try:
            options = tuple(
                IntentOption(str(option["id"]), str(option["label"])) for option in data["options"]
            )
            return cls(str(data["question"]), options)
        except (KeyError, TypeError) as error:
            raise InvalidParameterError("data", data, "give what to_dict() returned") from error


def _names(label: str) -> tuple[str, ...]:
    """The whole path of names, and the last alone."""
    plain = unicodedata.normalize("NFKC", label).casefold().strip()
    return plain, plain.rsplit(" / ", maxsplit=1)[-1]


def _parts(plain: str) -> Iterator[str]:
    for part in _AND.split(plain):
        if stripped := part.strip():
            yield stripped


def _number(part: str) -> int | None:
    if part in _LAST_ZH:
        return _LAST_ZH[part]
    words = _FILLER_EN.sub(" ", part).split() or part.split()
    if len(words) == 2 and words[1] in ("one", "ones"):
        words.pop()
    if len(words) == 1:
        if words[0] in _ENGLISH or words[0] in _LETTERS:
            return _ENGLISH.get(words[0], _LETTERS.get(words[0]))
        bare = _FILLER_ZH.sub("", words[0])
        if bare in _LAST_ZH:
            return _LAST_ZH[bare]
        if found := _NUMBER_ZH.fullmatch(bare):
            return _CHINESE.get(found[1]) or int(found[1])
    return None
