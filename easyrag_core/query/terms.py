"""The users' words into the documents' words, in one pass."""

from __future__ import annotations

import logging
import re
import unicodedata
from bisect import bisect, bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from easyrag_core.errors import InvalidParameterError, check_number, check_text
from easyrag_core.query._scripts import CJK

__all__ = ["Term", "TermMap", "TermMatch"]

_logger = logging.getLogger(__name__)

# Letters and digits of scripts that part words by spaces.
_SPACED: Final = re.compile(rf"[^\W{CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff]")
# Each round leaves more terms alone; texts that need many are made up to need them.
_MOST_ROUNDS: Final = 8
_NO_PRIORITY: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the users' and the word of the documents'.

    Attributes:
        term: What users write; case and width do not matter.
        replacement: What it becomes.
        priority: Among terms that begin at one place the highest wins, then the longest.
    """

    term: str
    replacement: str
    priority: float = 0.0


class TermMatch(NamedTuple):
    """A place where a term was found.

    Attributes:
        start: First code point in the text as given.
        end: One past the last.
        replacement: What it becomes.
    """

    start: int
    end: int
    replacement: str


class _Node:
    """A place in the tree of terms: what may follow, and what ends here."""

    __slots__ = ("following", "priority", "replacement")

    def __init__(self) -> None:
        self.following: dict[str, _Node] = {}
        self.priority: float | None = None
        self.replacement: str | None = None


class TermMap:
    """Replaces terms in one pass from left to right, the longest first.

    - A replacement is never replaced again, also not when it was in the text before: applying
      the map twice gives what applying it once gives.
    - A term in a script with spaces matches whole words; Chinese, Japanese and Thai need no
      borders.
    - Linear in the text, for any number of terms.

    >>> TermMap({"平安": "平安保司"}).apply("平安保司的平安险")
    '平安保司的平安保司险'
    >>> TermMap({"k8s": "Kubernetes"}).apply("K8S 的 k8sx")
    'Kubernetes 的 k8sx'
    """

    def __init__(self, terms: Mapping[str, str] | Iterable[Term]) -> None:
        """Build the tree of terms.

        Args:
            terms: Term to replacement, or `Term`s with priorities. Of two equal terms with
                equal priority the first counts.

        Raises:
            InvalidParameterError: A term that is blank or no text, or a priority that is NaN.
        """
        self._terms = tuple(map(_checked, _listed(terms)))
        self._root = _Node()
        for term in self._terms:
            self._grow(term.term, term.replacement, term.priority)
        for term in self._terms:
            self._protect(term)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms, in the order given."""
        return self._terms

    def __repr__(self) -> str:
        """Show the size."""
        return f"<TermMap of {len(self._terms)} terms>"

    def _grow(self, term: str, replacement: str | None, priority: float) -> None:
        node = self._reach(term)
        if node.priority is None or priority > node.priority:
            node.priority, node.replacement = priority, replacement

    def _reach(self, term: str) -> _Node:
        node = self._root
        for character in _folded(term):
            node = node.following.setdefault(character, _Node())
        return node

    def _protect(self, term: Term) -> None:
        """Let a replacement that is in the text already stand as it is."""
        if not term.replacement:
            return
        node = self._reach(term.replacement)
        if node.replacement is not None and _folded(node.replacement) != _folded(term.replacement):
            _logger.warning(
                "%r is both a term and a replacement: it stays as it is", term.replacement
            )
        node.priority, node.replacement = float("inf"), None

    def matches(self, text: str) -> list[TermMatch]:
        """Return what would be replaced, in order, without overlaps.

        Args:
            text: Any text.

        Returns:
            Places in the text as given.

        Raises:
            InvalidParameterError: It is no text.
        """
        check_text("text", text)
        found = self._settled(text)
        return [] if found and self._settled(_mapped(text, found)[0]) else found

    def _settled(self, text: str) -> list[TermMatch]:
        """Find what to replace, without what would make more to replace."""
        found, left = self._found(text), list[TermMatch]()
        for _ in range(_MOST_ROUNDS):
            mapped, places = _mapped(text, found)
            # Beside what stands there, a replacement may look like part of another term. Such a
            # term is left alone, or mapping twice would go on where mapping once had stopped.
            left_alone = {_moved(match, found, places) for match in left}
            again = [m for m in self._found(mapped) if (m.start, m.end) not in left_alone]
            if not again or not found:
                return found
            touched = {at for at, place in enumerate(places) if _meets(place, again)}
            touched = touched or {0}
            left += [match for at, match in enumerate(found) if at in touched]
            found = [match for at, match in enumerate(found) if at not in touched]
        return []

    def _found(self, text: str) -> list[TermMatch]:
        folded = _folded(text)
        found, at = [], 0
        while at < len(folded):
            end, replacement = self._longest(folded, at)
            if replacement is not None:
                found.append(TermMatch(at, end, replacement))
            at = max(end, at + 1)
        return found

    def _longest(self, text: str, start: int) -> tuple[int, str | None]:
        """Return the end of the best match, and what it becomes; the start for no match."""
        best: tuple[int, str | None] = (start, None)
        if _is_inside_word(text, start):
            return best
        node, priority = self._root, _NO_PRIORITY
        for at in range(start, len(text)):
            following = node.following.get(text[at])
            if following is None:
                break
            node = following
            ends = node.priority is not None and not _is_inside_word(text, at + 1)
            if ends and node.priority is not None and node.priority >= priority:
                priority, best = node.priority, (at + 1, node.replacement)
        return best

    def apply(self, text: str) -> str:
        """Return the text with every term replaced.

        Args:
            text: Any text.

        Returns:
            The new text.

        Raises:
            InvalidParameterError: It is no text.
        """
        return _mapped(text, self.matches(text))[0]


def _mapped(text: str, matches: Sequence[TermMatch]) -> tuple[str, list[tuple[int, int]]]:
    """Replace matches, and return where the replacements stand."""
    pieces: list[str] = []
    places, last, size = [], 0, 0
    for match in matches:
        pieces += [text[last : match.start], match.replacement]
        start = size + match.start - last
        size = start + len(match.replacement)
        places.append((start, size))
        last = match.end
    return "".join([*pieces, text[last:]]), places


def _moved(
    match: TermMatch, replaced: Sequence[TermMatch], places: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Return where a match stands once others are replaced."""
    before = bisect(replaced, match.start, key=lambda other: other.start) - 1
    shift = places[before][1] - replaced[before].end if before >= 0 else 0
    return match.start + shift, match.end + shift


def _meets(place: tuple[int, int], matches: Sequence[TermMatch]) -> bool:
    """Whether one of the matches, in order, touches a place."""
    first = bisect_left(matches, place[0], key=lambda match: match.end)
    return first < len(matches) and matches[first].start <= place[1]


def _listed(terms: Any) -> list[Any]:
    if isinstance(terms, Mapping):
        return [Term(term, replacement) for term, replacement in terms.items()]
    if isinstance(terms, str) or not isinstance(terms, Iterable):
        raise InvalidParameterError("terms", terms, "give a mapping, or a list of Term")
    return list(terms)


def _checked(term: Any) -> Term:
    if not isinstance(term, Term):
        raise InvalidParameterError("terms", term, "give a mapping, or a list of Term")
    texts: tuple[Any, Any] = (term.term, term.replacement)
    if not isinstance(texts[0], str) or not texts[0].strip():
        raise InvalidParameterError("term", texts[0], "give a text that is not blank")
    if not isinstance(texts[1], str):
        raise InvalidParameterError("replacement", texts[1], "give a text")
    check_number("priority", term.priority)
    return term


def _folded(text: str) -> str:
    """Fold case and width, character by character: places stay what they are."""
    return "".join(map(_fold, text))


def _fold(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character).lower()
    return plain if len(plain) == 1 else character


def _is_inside_word(text: str, at: int) -> bool:
    """Whether letters of one spaced script stand on both sides."""
    return (
        0 < at < len(text)
        and _SPACED.match(text[at - 1]) is not None
        and _SPACED.match(text[at]) is not None
    )
