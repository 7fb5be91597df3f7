"""The default analyzer: every script, identifiers whole and in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import InvalidParameterError, check_choice, check_count
from easyrag_core.index.analyzer._characters import CONNECTORS, fold_case, normalize, token_pattern
from easyrag_core.index.analyzer._stemming import Stemmer
from easyrag_core.index.analyzer._stop_words import STOP_WORDS
from easyrag_core.index.analyzer._terms import CJK_MODES, TermRules, TermTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["STANDARD", "StandardAnalyzer"]

STANDARD: Final = "standard"
"""The name under which `StandardAnalyzer` is saved."""
_VERSION: Final = 1
_TEXTS_PER_TASK: Final = 256


@dataclass(frozen=True, kw_only=True)
class StandardAnalyzer:
    """Analyses text of every script, without a dictionary.

    - Text is brought to NFKC and folded; marks stay with their letter, and signs that only
      shape a word (joiners, soft hyphens, optional vowel points) are dropped.
    - Words are runs of one script: `2010年上海` and `Redis介绍` part. Single letters count.
    - `C++`, `.NET`, `v2.3`, `ORD-0012`, `getUserName` and `get_user_name` are found whole and by
      their parts.
    - Chinese and Japanese give unigrams and bigrams, Korean words also their bigrams.
    - Thai, Lao, Khmer and Burmese give trigrams.

    Instances are immutable, may be shared between threads, pickle, and are equal when their
    settings are.

    Attributes:
        lowercase: Fold case (Unicode case folding).
        stop_words: `None`, the name of a language, or the words themselves.
        stemmer: `None` or a Snowball language such as `"english"`; needs the extra `[stem]`.
        cjk: `"unigram+bigram"`, `"bigram"` or `"unigram"`.
        identifiers: Take identifiers whole and in parts; without, every sign but the
            underscore parts words.

    Raises:
        InvalidParameterError: For an unknown language, or a value of another kind.
        MissingDependencyError: For a stemmer without PyStemmer.

    >>> StandardAnalyzer()("Redis介绍 v2.3")
    ['redis', '介', '绍', '介绍', 'v2.3', 'v2', '2', '3']
    """

    lowercase: bool = True
    stop_words: str | Iterable[str] | None = None
    stemmer: str | None = None
    cjk: str = "unigram+bigram"
    identifiers: bool = True
    _table: TermTable = field(init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The kind of analyzer, as saved with an index."""
        return STANDARD

    def __post_init__(self) -> None:
        """Check the settings and prepare what is looked up per word."""
        check_choice("cjk", self.cjk, CJK_MODES)
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
            cjk=self.cjk,
            stop_words=frozenset(map(fold_case, normalized) if self.lowercase else normalized),
            stem=None if self.stemmer is None else Stemmer(self.stemmer),
        )

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text, in the order of its words.

        Args:
            text: Any text, lone surrogates and all.

        Returns:
            The terms, repeated as often as they occur.
        """
        tokens = self._ascii_tokens(text) if text.isascii() else self._tokens(text)
        return list(chain.from_iterable(map(self._table.__getitem__, tokens)))

    def _ascii_tokens(self, text: str) -> list[str]:
        # Three passes in C instead of a regular expression: four times as fast.
        return text.translate(_ASCII_TOKENS[self.identifiers]).split()

    def _tokens(self, text: str) -> list[str]:
        pattern = token_pattern(connectors=CONNECTORS if self.identifiers else "")
        return pattern.findall(normalize(text))

    def analyze_many(
        self, texts: Sequence[str], *, processes: int | None = None
    ) -> list[list[str]]:
        """Return the terms of each text, in order.

        Args:
            texts: The texts.
            processes: Number of worker processes; `None` or 1 works in this one. Starting
                workers takes about a second, so they pay from some ten megabytes on.

        Returns:
            One list of terms per text.

        Raises:
            InvalidParameterError: For a number of processes below 1.
        """
        workers = 1 if processes is None else check_count("processes", processes, minimum=1)
        if workers == 1 or len(texts) <= _TEXTS_PER_TASK:
            return [self(text) for text in texts]
        return self._analyze_in_pool(texts, workers)

    def _analyze_in_pool(self, texts: Sequence[str], workers: int) -> list[list[str]]:
        # Imported here: thirty modules that few need.
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
        from multiprocessing import get_context  # noqa: PLC0415

        # A forked child of a process with threads may hang on a lock that no one holds.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            return list(pool.map(self, texts, chunksize=_TEXTS_PER_TASK))

    def settings(self) -> dict[str, Any]:
        """Return what tells this analyzer from every other, as JSON values."""
        words = self.stop_words
        return {
            "name": self.name,
            "version": _VERSION,
            "lowercase": self.lowercase,
            "stop_words": words if words is None or isinstance(words, str) else list(words),
            "stemmer": self.stemmer,
            "cjk": self.cjk,
            "identifiers": self.identifiers,
        }

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Pickle by settings: what was remembered stays behind."""
        options = self.settings()
        del options["name"], options["version"]
        return partial(type(self), **options), ()


def _checked_stop_words(words: str | Iterable[str] | None) -> str | tuple[str, ...] | None:
    if words is None:
        return None
    if isinstance(words, str):
        return check_choice("stop_words", words, tuple(STOP_WORDS))
    listed = tuple(words)
    if not all(isinstance(word, str) for word in listed):
        raise InvalidParameterError("stop_words", listed, "give a language or a list of words")
    return tuple(sorted(set(listed)))


def _ascii_table(kept: str) -> str:
    return "".join(
        character if character.isalnum() or character in kept else " "
        for character in map(chr, range(128))
    )


# Maps ASCII to itself where it may be part of a token and to a space elsewhere.
_ASCII_TOKENS: Final = {True: _ascii_table("_" + CONNECTORS), False: _ascii_table("_")}
