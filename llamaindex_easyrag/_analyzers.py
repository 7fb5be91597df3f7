"""Analyzers for the names that the framework's own BM25 retriever takes."""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from easyrag_core import Analyzer, InvalidParameterError, MissingDependencyError, StandardAnalyzer
from easyrag_core.index.analyzer import as_analyzer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "PatternAnalyzer",
    "SnowballStemmer",
    "StemmedAnalyzer",
    "checked_analyzer",
    "choose_analyzer",
    "restored_analyzer",
]

_LANGUAGES = {
    "ar": "arabic",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "he": "hebrew",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
    "uk": "ukrainian",
    "vi": "vietnamese",
    "zh": "chinese",
}


# What each of PyStemmer's algorithms makes of these words is made by no other.
_TELLING = (
    *("generously", "chanteuses", "quilométricas", "bokstavene", "kitaplarımızdan"),
    *("книгами", "βιβλία", "كتابهم", "ביכער", "पुस्तकहरू", "புத்தகங்கள்"),
)


class SnowballStemmer(Protocol):
    """What a stemmer of PyStemmer can do."""

    def stemWord(self, word: str) -> str:  # noqa: N802 - PyStemmer's name
        """Return the stem of a word."""


def choose_analyzer(
    *,
    analyzer: Analyzer | Callable[[str], Sequence[str]] | None = None,
    stemmer: SnowballStemmer | str | None = None,
    language: str | Sequence[str] | None = None,
    skip_stemming: bool | None = None,
    token_pattern: str | None = None,
) -> Analyzer | None:
    """Return the analyzer that the arguments ask for.

    Args:
        analyzer: An analyzer or a function from text to terms; then nothing else may be given.
        stemmer: A Snowball language by name, or an object of PyStemmer.
        language: Whose stop words are left out, as `"en"` or `"english"`; or the words.
        skip_stemming: `True` ignores the stemmer; `False` without a stemmer means English.
        token_pattern: What a term is, as a regular expression.

    Returns:
        The analyzer; `None` if nothing was asked for.

    Raises:
        InvalidParameterError: The arguments contradict each other, or one of them is wrong.
        MissingDependencyError: PyStemmer is needed and not installed.
    """
    others = {
        "stemmer": stemmer,
        "language": language,
        "skip_stemming": skip_stemming,
        "token_pattern": token_pattern,
    }
    given = [name for name, value in others.items() if value is not None]
    if analyzer is not None:
        if given:
            raise InvalidParameterError(given[0], others[given[0]], "an analyzer is given as well")
        return checked_analyzer(analyzer)
    if not given:
        return None
    stems = None if skip_stemming else (stemmer or (None if skip_stemming is None else "english"))
    stems = _language_of(stems) or stems
    words = _LANGUAGES.get(language, language) if isinstance(language, str) else language
    return _combined(words, stems, token_pattern)


def _language_of(stemmer: SnowballStemmer | str | None) -> str | None:
    """Recognise the language of a PyStemmer object, which keeps it to itself."""
    try:
        import Stemmer  # noqa: PLC0415 - an optional package
    except ImportError:
        return None
    if not isinstance(stemmer, Stemmer.Stemmer):
        return None
    made = stemmer.stemWords(_TELLING)
    languages = (
        name for name in Stemmer.algorithms() if Stemmer.Stemmer(name).stemWords(_TELLING) == made
    )
    return next(languages, None)


def checked_analyzer(analyzer: Analyzer | Callable[[str], Sequence[str]]) -> Analyzer:
    """Refuse what could only fail at the first text.

    Args:
        analyzer: An analyzer or a function from text to terms.

    Returns:
        An analyzer.

    Raises:
        InvalidParameterError: It cannot be called.
    """
    if not callable(analyzer):
        raise InvalidParameterError("analyzer", analyzer, "give an Analyzer or a function")
    return as_analyzer(analyzer)


def _combined(
    words: str | Sequence[str] | None, stems: SnowballStemmer | str | None, pattern: str | None
) -> Analyzer:
    if pattern is not None:
        base: Analyzer = PatternAnalyzer(pattern, stop_words=words)
    elif isinstance(stems, str):
        return StandardAnalyzer(stop_words=words, stemmer=_LANGUAGES.get(stems, stems))
    else:
        base = StandardAnalyzer(stop_words=words)
    return base if stems is None else StemmedAnalyzer(base, stems)


class PatternAnalyzer:
    """Takes what a regular expression finds in the lower-cased text as terms."""

    name = "llamaindex-pattern"

    def __init__(self, pattern: str, *, stop_words: str | Sequence[str] | None = None) -> None:
        """Compile the pattern.

        Args:
            pattern: A regular expression with at most one group.
            stop_words: A language, or words, that are no terms.

        Raises:
            InvalidParameterError: The pattern does not compile, or the language is unknown.
        """
        try:
            self._find = re.compile(pattern).findall
        except (re.error, TypeError) as error:
            raise InvalidParameterError("token_pattern", pattern, f"({error})") from error
        self._pattern = pattern
        self._plain = StandardAnalyzer()
        self._without = StandardAnalyzer(stop_words=stop_words)

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text."""
        terms = self._find(text.lower())
        if self._without == self._plain:
            return list(terms)
        return [term for term in terms if self._without(term) or not self._plain(term)]

    def analyze_many(
        self, texts: Sequence[str], *, processes: int | None = None
    ) -> list[list[str]]:
        """Return the terms of each text, in this process."""
        del processes
        return [self(text) for text in texts]

    def settings(self) -> dict[str, Any]:
        """Return what tells this analyzer from every other."""
        words = self._without.settings()["stop_words"]
        return {"name": self.name, "pattern": self._pattern, "stop_words": words}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> PatternAnalyzer:
        """Build the analyzer that `settings()` described.

        Args:
            settings: What `settings()` returned.

        Returns:
            An equal analyzer.
        """
        return cls(settings["pattern"], stop_words=settings["stop_words"])

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        """Pickle by settings."""
        return type(self).from_settings, (self.settings(),)


class StemmedAnalyzer:
    """Brings the terms of another analyzer to their stems."""

    name = "llamaindex-stemmed"

    def __init__(self, base: Analyzer, stemmer: SnowballStemmer | str) -> None:
        """Take the stemmer.

        Args:
            base: Gives the terms.
            stemmer: A Snowball language by name, or an object that stems. Of an object the
                language cannot be told, so an index made with it is loaded with it again.

        Raises:
            InvalidParameterError: The stemmer is neither.
            MissingDependencyError: A language is given and PyStemmer is not installed.
        """
        self._base = base
        self._stemmer = stemmer
        self._language = _LANGUAGES.get(stemmer, stemmer) if isinstance(stemmer, str) else None
        self._stem = _stem_function(stemmer if self._language is None else self._language)
        self._lock = Lock()

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text."""
        terms = self._base(text)
        # One object of PyStemmer must not serve two threads at a time.
        with self._lock:
            return [self._stem(term) for term in terms]

    def analyze_many(
        self, texts: Sequence[str], *, processes: int | None = None
    ) -> list[list[str]]:
        """Return the terms of each text, in this process."""
        del processes
        return [self(text) for text in texts]

    def settings(self) -> dict[str, Any]:
        """Return what tells this analyzer from every other."""
        return {"name": self.name, "base": self._base.settings(), "stemmer": self._language}

    def __deepcopy__(self, memo: dict[int, Any]) -> StemmedAnalyzer:
        """Share it: an analyzer never changes, and some stemmers cannot be copied."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle base and stemmer: neither the lock nor the stemmer's method can be."""
        return type(self), (self._base, self._language or self._stemmer)


def _stem_function(stemmer: SnowballStemmer | str) -> Callable[[str], str]:
    if not isinstance(stemmer, str):
        function = getattr(stemmer, "stemWord", None)
        if function is None:
            allowed = "give a Snowball language by name, or an object of PyStemmer"
            raise InvalidParameterError("stemmer", stemmer, allowed)
        return function  # type: ignore[no-any-return]
    try:
        import Stemmer  # noqa: PLC0415 - an optional package
    except ImportError:
        raise MissingDependencyError("PyStemmer", "stem") from None
    if stemmer not in Stemmer.algorithms():
        known = ", ".join(Stemmer.algorithms())
        raise InvalidParameterError("stemmer", stemmer, f"Snowball knows {known}")
    return Stemmer.Stemmer(stemmer).stemWord  # type: ignore[no-any-return]


def restored_analyzer(settings: Mapping[str, Any]) -> Analyzer | None:
    """Build an analyzer of this file from its settings.

    Args:
        settings: What `settings()` of a saved index's analyzer returned.

    Returns:
        The analyzer; `None` if it is not one of these or cannot be built.
    """
    if settings.get("name") == PatternAnalyzer.name:
        return PatternAnalyzer.from_settings(settings)
    if settings.get("name") != StemmedAnalyzer.name or settings["stemmer"] is None:
        return None
    base = restored_analyzer(settings["base"])
    return None if base is None else StemmedAnalyzer(base, settings["stemmer"])
