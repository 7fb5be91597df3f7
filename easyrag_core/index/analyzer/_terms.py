"""The terms of one run of characters: words, identifiers with their parts, n-grams."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import add
from typing import TYPE_CHECKING, Final, NamedTuple

from easyrag_core.index.analyzer._characters import (
    CJK,
    CONNECTORS,
    RUNS,
    TRIGRAM_SCRIPT,
    WITHOUT_SPACES,
    fold_case,
    fold_dotless,
    fold_letters,
    script,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CJK_NGRAMS", "TermRules", "TermTable", "ngrams"]

_REMEMBERED_TOKENS: Final = 1 << 16
_REMEMBERED_LENGTH: Final = 40

_SEPARATORS: Final = re.escape(CONNECTORS) + "_"
# A piece of an identifier, with the signs that end a name: "C++", "g++", "C#".
_PIECE = re.compile(rf"[^{_SEPARATORS}]+(?:\+\+|#)?")
_PLAIN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_NAME_ENDING = re.compile(r"\+{1,2}|#")
# "getUserName" -> get, User, Name; "HTTPServer" -> HTTP, Server; "DNAs" stays.
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
# "utf8" -> utf, 8; "iPhone15" -> iPhone, 15.
_DIGITS = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_MOST_PARTS: Final = 8


class TermRules(NamedTuple):
    """What becomes of a run of characters.

    Attributes:
        lowercase: Fold case.
        identifiers: Take identifiers whole and in parts.
        cjk: Gives the terms of a run of Chinese or Japanese.
        stop_words: Terms that are left out.
        stem: Brings a word to its stem.
    """

    lowercase: bool
    identifiers: bool
    cjk: Callable[[str], list[str]]
    stop_words: frozenset[str]
    stem: Callable[[str], str] | None


class TermTable(dict[str, Sequence[str]]):
    """Maps a run of characters to its terms, and remembers those of common words.

    The words of a language come back again and again: looking one up costs a tenth of
    analysing it. The memory is bounded and never changes an answer, so threads may share it.
    """

    def __init__(self, rules: TermRules) -> None:
        """Start with nothing remembered."""
        super().__init__()
        self._rules = rules

    def __missing__(self, token: str) -> Sequence[str]:
        """Analyse a token that is not remembered."""
        # Most are words, or the last ones of sentences: the rules below would come to the same.
        word = token.rstrip(".-") if self._rules.identifiers else token
        if _PLAIN.fullmatch(word):
            terms = tuple(self._kept([self._stemmed(word)]))
        elif CJK.fullmatch(token):
            return self._kept(self._rules.cjk(token))
        elif WITHOUT_SPACES.search(token):
            return self._kept(self._mixed_terms(token))
        else:
            terms = tuple(self._kept(self._word_terms(token)))
        if len(token) <= _REMEMBERED_LENGTH:
            if len(self) >= _REMEMBERED_TOKENS:
                self.clear()
            self[token] = terms
        return terms

    def _kept(self, terms: Iterable[str]) -> list[str]:
        stop_words = self._rules.stop_words
        if not stop_words:
            return terms if isinstance(terms, list) else list(terms)
        return [term for term in terms if term not in stop_words]

    def _mixed_terms(self, token: str) -> Sequence[str]:
        runs = RUNS.findall(token)
        if len(runs) == 1:
            return self._run_terms(token)
        return list(chain.from_iterable(map(self._run_terms, runs)))

    def _run_terms(self, run: str) -> Sequence[str]:
        if CJK.match(run):
            return self._rules.cjk(run)
        return _trigrams(run) if TRIGRAM_SCRIPT.match(run) else self[run]

    def _word_terms(self, token: str) -> Iterator[str]:
        """Yield an identifier whole, then each of its words with the parts of the word."""
        if not self._rules.identifiers or _PLAIN.fullmatch(token):
            yield from self._words(token)
            return
        whole = _trimmed(token)
        pieces = _PIECE.findall(whole)
        if _is_name(whole, pieces):
            yield self._folded(whole)
        for piece in pieces:
            word = piece.rstrip("+#")
            named = word[:1].isalpha() and word[-1:].isalpha()  # C#, but not 0# or 1c#
            if named and piece not in (word, whole):
                yield self._folded(piece)
            yield from self._words(word)

    def _words(self, token: str) -> Iterator[str]:
        if _PLAIN.fullmatch(token):
            yield self._stemmed(token)
            return
        for word in _script_runs(token):
            yield self._stemmed(word)
            if self._rules.identifiers:
                yield from map(self._stemmed, _parts(word))
            if len(word) > 2 and script(word[0]) == "HANGUL":
                yield from map(add, word, word[1:])

    def _folded(self, term: str) -> str:
        return fold_case(term) if self._rules.lowercase else term

    def _stemmed(self, word: str) -> str:
        folded, stem = self._folded(word), self._rules.stem
        if stem is None or folded in self._rules.stop_words:
            return folded
        if not self._rules.lowercase:
            return stem(word)
        # The Turkish stemmer goes by the vowels of a word: it needs them as they were written.
        return fold_dotless(stem(fold_letters(word)))


def ngrams(run: str) -> list[str]:
    """Unigrams, then bigrams."""
    characters = list(run)
    return characters + list(map(add, characters, characters[1:]))


def _bigrams(run: str) -> list[str]:
    """A lone character is its own bigram."""
    return list(map(add, run, run[1:])) or [run]


CJK_NGRAMS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "unigram+bigram": ngrams,
    "bigram": _bigrams,
    "unigram": list,
}
"""Mode to what it makes of a run."""


def _trigrams(run: str) -> list[str]:
    return [run[start : start + 3] for start in range(max(1, len(run) - 2))]


def _trimmed(token: str) -> str:
    """Strip the punctuation around an identifier, but for what belongs to a name."""
    tail_on = token.lstrip(CONNECTORS)
    whole = tail_on.rstrip(CONNECTORS)
    if not whole:
        return ""
    ending = _NAME_ENDING.match(tail_on, len(whole))
    lead = token[: len(token) - len(tail_on)]
    dot = "." if lead == "." and whole[0].isalpha() else ""
    return dot + whole + (ending[0] if ending and whole[-1].isalpha() else "")


def _is_name(whole: str, pieces: Sequence[str]) -> bool:
    """Whether the whole says more than its words.

    `v2.3`, `ORD-0012` and `os.path` do. What begins with a digit is a date, a range or an
    amount, and words joined by hyphens are ordinary prose: their wholes were measured to cost
    more than they find.
    """
    if not pieces or pieces == [whole] == [whole.rstrip("+#")] or whole[0].isdigit():
        return False
    return not whole.replace("-", "").isalpha()


def _parts(word: str) -> list[str]:
    """Split a word at its digits, and what is between them at its humps.

    `iPhone15` gives `iPhone`, `Phone`, `15`: a name is looked for without its number, too. Lone
    letters are left out, they say nothing.
    """
    pieces = _DIGITS.split(word)
    parts: list[str] = []
    smallest = 0
    for piece in pieces:
        humps = _HUMP.split(piece)
        smallest += len(humps)
        if len(pieces) > 1:
            parts.append(piece)
        if len(humps) > 1:
            parts += humps
    if not 1 < smallest <= _MOST_PARTS:  # more are no name but a hash
        return []
    return [part for part in parts if len(part) > 1 or part.isdigit()]


def _script_runs(word: str) -> list[str]:
    """Cut where the script changes; digits stay with Latin letters, marks with their letter."""
    if word.isascii():
        return [word] if word else []
    runs: list[str] = []
    start, current = 0, script(word[0])
    for position, character in enumerate(word):
        kind = script(character)
        if kind and current and kind != current:
            runs.append(word[start:position])
            start = position
        current = kind or current
    return [*runs, word[start:]]
