"""Finds the analyzer that a saved index was built with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from easyrag_core.errors import IndexFormatError, InvalidParameterError, check_choice
from easyrag_core.index.analyzer._standard import STANDARD, StandardAnalyzer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from easyrag_core.index.analyzer._protocol import Analyzer

__all__ = ["analyzer_from_settings"]


def analyzer_from_settings(settings: Mapping[str, Any]) -> Analyzer:
    """Build the analyzer that `settings()` described.

    Args:
        settings: What an analyzer's `settings()` returned.

    Returns:
        An analyzer with the same settings.

    Raises:
        IndexFormatError: For an analyzer that is not ours, settings that it does not know, or
            another version of it.
        MissingDependencyError: For a stemmer without PyStemmer.

    >>> analyzer_from_settings(StandardAnalyzer(cjk="bigram").settings()).name
    'standard'
    """
    options = dict(settings)
    name, version = options.pop("name", None), options.pop("version", 1)
    if name != STANDARD:
        raise IndexFormatError(
            f"The analyzer {name!r} cannot be built from its settings {dict(settings)!r}: "
            "give the one that the index was built with as analyzer=."
        )
    try:
        check_choice("version", str(version), [str(StandardAnalyzer().settings()["version"])])
        return StandardAnalyzer(**options)
    except (InvalidParameterError, TypeError) as error:
        raise IndexFormatError(
            f"The analyzer settings {dict(settings)!r} are not understood ({error}): "
            "rebuild the index."
        ) from error
