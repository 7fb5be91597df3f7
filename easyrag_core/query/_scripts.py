"""Which script a question is written in, and which of our prompts it gets."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import Final, Literal, TypeAlias

__all__ = ["CJK", "Language", "is_in_script_of", "main_script", "prompt_language"]

Language: TypeAlias = Literal["en", "zh"]

CJK: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Han characters, as the inside of a character class."""

_HAN: Final = re.compile(f"[{CJK}]")
_LATIN_WORD: Final = re.compile(r"[A-Za-zÀ-ɏ]+")
_KANA: Final = re.compile("[\u3040-\u30ff\uff66-\uff9d]")
# Scripts written without spaces are counted by characters, the others by words.
_UNSPACED: Final = frozenset({"HAN", "KANA", "THAI", "LAO", "KHMER", "MYANMAR"})
_SAME: Final = {
    "CJK": "HAN",
    "HIRAGANA": "KANA",
    "KATAKANA": "KANA",
    "KATAKANA-HIRAGANA": "KANA",
    "IDEOGRAPHIC": "HAN",
    "FULLWIDTH": "LATIN",
    "HALFWIDTH": "KANA",
}
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_ENOUGH: Final = 2000


def prompt_language(text: str) -> Language:
    """Return `"zh"` for a question in Chinese, also one full of English names, else `"en"`.

    Args:
        text: The question.

    Returns:
        The language of the prompt that suits it.

    >>> prompt_language("LangChain 的 retriever 怎么用"), prompt_language("What does 你好 mean?")
    ('zh', 'en')
    """
    start = text[:_ENOUGH]
    han = len(_HAN.findall(start))
    if not han or _KANA.search(start):
        return "en"
    return "zh" if han >= len(_LATIN_WORD.findall(start)) else "en"


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    name = unicodedata.name(character, "UNKNOWN").split(" ", maxsplit=1)[0]
    return _SAME.get(name, name)


def _scripts(text: str) -> Counter[str]:
    """Count letters of unspaced scripts, and words of the others."""
    counts: Counter[str] = Counter()
    for run in _LETTERS.findall(text[:_ENOUGH]):
        within = Counter(map(_script, run))
        for script, letters in within.items():
            counts[script] += letters if script in _UNSPACED else 1
    return counts


def main_script(text: str) -> str:
    """Return the script of most of a text's letters; empty for a text without letters.

    >>> main_script("LangChain 怎么用"), main_script("how does it work?"), main_script("42")
    ('HAN', 'LATIN', '')
    """
    counts = _scripts(text)
    # Names are Latin in every language: among equals the other script says more.
    return max(counts, key=lambda name: (counts[name], name != "LATIN"), default="")


def is_in_script_of(text: str, question: str) -> bool:
    """Say whether a text could be in the language of a question, as far as scripts can tell.

    Args:
        text: What a model wrote.
        question: What the user wrote.

    Returns:
        False when the question's main script is missing, or when the text is mainly in a
        script that the question does not use.

    >>> is_in_script_of("What does Redis support?", "它支持什么？")
    False
    """
    asked, given = _scripts(question), _scripts(text)
    main = main_script(question)
    if not main or not given:
        return True
    # Japanese may be written in either of the two.
    family = {"HAN", "KANA"} if "KANA" in asked else {main}
    # A name in another script may be most of a short query ("Redis 集群" for "它的集群").
    return bool(family & given.keys()) and main_script(text) in {*asked, "LATIN"}
