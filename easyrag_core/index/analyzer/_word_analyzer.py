"""What the analyzers of this package share: settings, words, and how texts are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from easyrag_core.errors import InvalidParameterError, check_choice, check_text
from easyrag_core.index.analyzer._batches import analyze_all
from easyrag_core.index.analyzer._characters import CONNECTORS, fold_case, normalize
from easyrag_core.index.analyzer._numbering import numbered_tokens
from easyrag_core.index.analyzer._stemming import Stemmer
from easyrag_core.index.analyzer._stop_words import STOP_WORDS
from easyrag_core.index.analyzer._terms import TermRules, TermTable, ngrams
from easyrag_core.index.analyzer._tokens import tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from easyrag_core.index.analyzer._numbering import Numbered

__all__ = ["WordAnalyzer", "distinct_words"]

_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class WordAnalyzer:
    """Reads texts by the rules of its fields; what is Chinese is left to a subclass.

    Attributes:
        lowercase: Fold case (Unicode case folding).
        stop_words: `None`, the name of a language, or the words themselves.
        stemmer: `None` or a Snowball language.
        identifiers: Take identifiers whole and in parts.
    """

    lowercase: bool = True
    stop_words: str | Iterable[str] | None = None
    stemmer: str | None = None
    identifiers: bool = True
    _table: TermTable = field(init=False, repr=False, compare=False)

    _name: ClassVar[str]
    _pool_from: ClassVar[int]
    """Characters from which on worker processes save more than it takes to start them."""

    @classmethod
    def workers_pay(cls, characters: int) -> bool:
        """Whether worker processes save more on so many characters than it takes to start them."""
        return characters >= cls._pool_from

    @property
    def name(self) -> str:
        """The kind of analyzer, as saved with an index."""
        return self._name

    def __post_init__(self) -> None:
        """Check the settings and prepare what is looked up per word."""
        for flag in ("lowercase", "identifiers"):
            if not isinstance(getattr(self, flag), bool):
                raise InvalidParameterError(flag, getattr(self, flag), "give True or False")
        object.__setattr__(self, "stop_words", _checked_stop_words(self.stop_words))
        object.__setattr__(self, "_table", TermTable(self._rules()))

    def _rules(self) -> TermRules:
        words = self.stop_words
        if words is None:
            words = ()
        elif isinstance(words, str):
            words = STOP_WORDS[words].split()
        normalized = map(normalize, words)
        return TermRules(
            lowercase=self.lowercase,
            identifiers=self.identifiers,
            cjk=self._cjk_terms(),
            stop_words=frozenset(map(fold_case, normalized) if self.lowercase else normalized),
            stem=None if self.stemmer is None else Stemmer(self.stemmer),
        )

    def _cjk_terms(self) -> Callable[[str], list[str]]:
        """Return what gives the terms of a run of Chinese or Japanese."""
        return ngrams

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text, in the order of its words.

        Args:
            text: Any text, lone surrogates and all.

        Returns:
            The terms, repeated as often as they occur.

        Raises:
            InvalidParameterError: It is no text.
        """
        found = self._tokens(check_text("text", text))
        return list(chain.from_iterable(map(self._table.__getitem__, found)))

    def _tokens(self, text: str) -> list[str]:
        return tokens(text, connectors=CONNECTORS if self.identifiers else "")

    def numbered(self, texts: Iterable[str]) -> Numbered:
        """Return the terms of many texts as numbers, in half the time that words take.

        Args:
            texts: The texts.

        Returns:
            The terms that single calls give, in the same order.
        """
        return numbered_tokens(map(self._tokens, texts), self._table)

    def analyze_many(
        self,
        texts: Sequence[str],
        *,
        processes: int | None = None,
        show_progress: bool = False,
    ) -> list[list[str]]:
        """Return the terms of each text, in order.

        Args:
            texts: The texts.
            processes: Number of worker processes at most; `None` or 1 works in this one, as do
                fewer texts than it pays to start workers for. The terms are the same.
            show_progress: Show a tqdm bar.

        Returns:
            One list of terms per text.

        Raises:
            InvalidParameterError: For a number of processes below 1, or what is no list of texts.
            MissingDependencyError: For a progress bar without tqdm.
        """
        return analyze_all(
            self,
            texts,
            processes=processes,
            pool_from=self._pool_from,
            show_progress=show_progress,
        )

    def settings(self) -> dict[str, Any]:
        """Return what tells this analyzer from every other, as JSON values."""
        options = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in options.items()}
        return {"name": self.name, "version": _VERSION, **plain}

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Pickle by settings: what was remembered stays behind."""
        options = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return partial(type(self), **options), ()


def distinct_words(name: str, words: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a setting, each once and sorted, so that equal sets are equal.

    Args:
        name: The setting's name.
        words: The words.

    Returns:
        The same words.

    Raises:
        InvalidParameterError: For something that is no list of words.
    """
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise InvalidParameterError(name, words, "give a list of words")
    listed = tuple(words)
    if not all(isinstance(word, str) for word in listed):
        raise InvalidParameterError(name, listed, "give a list of words")
    return tuple(sorted(set(listed)))


def _checked_stop_words(words: str | Iterable[str] | None) -> str | tuple[str, ...] | None:
    if words is None:
        return None
    if isinstance(words, str):
        return check_choice("stop_words", words, tuple(STOP_WORDS))
    return distinct_words("stop_words", words)
