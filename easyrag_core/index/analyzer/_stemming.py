"""Snowball stemmers, through the optional PyStemmer."""

from __future__ import annotations

from threading import Lock

from easyrag_core.errors import MissingDependencyError, check_choice

__all__ = ["Stemmer"]


class Stemmer:
    """Brings words of one language to their stems.

    M. F. Porter, "Snowball: A language for stemming algorithms", 2001.
    """

    def __init__(self, language: str) -> None:
        """Load the algorithm.

        Args:
            language: A Snowball language by its English name.

        Raises:
            MissingDependencyError: If PyStemmer is not installed.
            InvalidParameterError: If Snowball does not know the language.
        """
        try:
            import Stemmer as PyStemmer  # noqa: PLC0415  # an optional package
        except ImportError:
            raise MissingDependencyError("PyStemmer", "stem") from None
        check_choice("stemmer", language, PyStemmer.algorithms())
        self._stem = PyStemmer.Stemmer(language).stemWord
        # One PyStemmer object must not serve two threads at a time.
        self._lock = Lock()

    def __call__(self, word: str) -> str:
        """Return the stem of a folded word."""
        with self._lock:
            return str(self._stem(word))
