"""Finds the analyzer that a saved index was built with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index.analyzer._jieba import JiebaAnalyzer
from easyrag_core.index.analyzer._standard import StandardAnalyzer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from easyrag_core.index.analyzer._protocol import Analyzer

__all__ = ["analyzer_from_settings"]

_KINDS: Final[dict[str, Callable[..., Analyzer]]] = {
    "jieba": JiebaAnalyzer,
    "standard": StandardAnalyzer,
}
# They tell which rules an analyzer follows and are not for the caller to choose.
_NO_OPTIONS: Final = ("name", "version", "dictionary")


def analyzer_from_settings(settings: Mapping[str, Any]) -> Analyzer:
    """Build the analyzer that `settings()` described.

    Args:
        settings: What an analyzer's `settings()` returned.

    Returns:
        An analyzer with the same settings.

    Raises:
        IndexFormatError: For an analyzer that is not ours, settings that it does not know, or
            another version of it.
        MissingDependencyError: For a stemmer without PyStemmer, or words without jieba.

    >>> analyzer_from_settings(StandardAnalyzer(cjk="bigram").settings()).name
    'standard'
    """
    options = {name: value for name, value in settings.items() if name not in _NO_OPTIONS}
    kind = _KINDS.get(str(settings.get("name")))
    if kind is None:
        raise IndexFormatError(
            f"The analyzer {settings.get('name')!r} cannot be built from its settings "
            f"{dict(settings)!r}: give the one that the index was built with as analyzer=."
        )
    try:
        analyzer = kind(**options)
    except (InvalidParameterError, TypeError) as error:
        raise IndexFormatError(
            f"The analyzer settings {dict(settings)!r} are not understood ({error}): "
            "rebuild the index."
        ) from error
    if analyzer.settings() != {**analyzer.settings(), **settings}:
        raise IndexFormatError(
            f"The analyzer settings {dict(settings)!r} are of another version, this one has "
            f"{analyzer.settings()!r}: rebuild the index."
        )
    return analyzer
