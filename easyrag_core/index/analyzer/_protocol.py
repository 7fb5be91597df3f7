"""What an index asks of an analyzer, and how one is named in a saved index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from easyrag_core.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Analyzer", "FunctionAnalyzer", "as_analyzer", "checked_terms", "checked_texts"]

_ALLOWED: Final = "it must give a list of strings for a text"


@runtime_checkable
class Analyzer(Protocol):
    """Turns a text into terms, the same way when indexing and when searching.

    An analyzer never changes: the same text gives the same terms for ever. It may be shared
    between threads and pickled.
    """

    @property
    def name(self) -> str:
        """The kind of analyzer, as saved with an index."""

    def __call__(self, text: str) -> list[str]:
        """Return the terms of one text, repeated as often as they occur."""

    def analyze_many(
        self, texts: Sequence[str], *, processes: int | None = None
    ) -> list[list[str]]:
        """Return the terms of each text, in order."""

    def settings(self) -> dict[str, Any]:
        """Return JSON values, with `name`, that tell this analyzer from every other."""


class FunctionAnalyzer:
    """Makes an `Analyzer` of any function from text to terms.

    A function cannot be written to disk: an index that was built with one is loaded with
    `analyzer=` again, and is refused if the function has another name.

    >>> FunctionAnalyzer(str.split)("to be or not")
    ['to', 'be', 'or', 'not']
    """

    name = "function"

    def __init__(self, function: Callable[[str], Sequence[str]]) -> None:
        """Wrap a function.

        Args:
            function: Returns the terms of a text; must not depend on anything but the text.
        """
        self._function = function

    def __call__(self, text: str) -> list[str]:
        """Return the terms of one text."""
        return checked_terms(self._function(text))

    def analyze_many(
        self, texts: Sequence[str], *, processes: int | None = None
    ) -> list[list[str]]:
        """Return the terms of each text; always in this process."""
        del processes  # a function need not be picklable
        return [self(text) for text in texts]

    def settings(self) -> dict[str, Any]:
        """Return the function's module and name."""
        function = self._function
        module = getattr(function, "__module__", None) or "builtins"
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return {"name": self.name, "function": f"{module}.{name}"}

    def __eq__(self, other: object) -> bool:
        """Two are equal when they wrap the same function."""
        if not isinstance(other, FunctionAnalyzer):
            return NotImplemented
        return bool(self._function == other._function)

    def __hash__(self) -> int:
        """Hash by the function."""
        return hash(self._function)

    def __repr__(self) -> str:
        """Show the function's name."""
        return f"FunctionAnalyzer({self.settings()['function']})"


def as_analyzer(analyzer: Analyzer | Callable[[str], Sequence[str]]) -> Analyzer:
    """Return an analyzer unchanged, and wrap a plain function.

    Args:
        analyzer: An `Analyzer`, or a function from text to terms.

    Returns:
        Something with `analyze_many` and `settings`.

    Raises:
        InvalidParameterError: Something else, or a class in place of what it makes.

    >>> as_analyzer(str.split).name
    'function'
    """
    # Of `list` an analyzer is made by calling it; where what it makes is called, that is meant.
    if isinstance(analyzer, type) and any("__call__" in kind.__dict__ for kind in analyzer.__mro__):
        raise InvalidParameterError("analyzer", analyzer, "give an analyzer, not its class")
    if not callable(analyzer):
        raise InvalidParameterError("analyzer", analyzer, "give an Analyzer or a function")
    return analyzer if isinstance(analyzer, Analyzer) else FunctionAnalyzer(analyzer)


def checked_terms(terms: object) -> list[str]:
    """Return what an analyzer gave for a text, if it is what it must be.

    Args:
        terms: What it gave.

    Returns:
        The same as a list.

    Raises:
        InvalidParameterError: A string, no list, or something in it that is no string.
    """
    if isinstance(terms, str | bytes) or not isinstance(terms, Iterable):
        raise InvalidParameterError("analyzer", terms, _ALLOWED)
    listed = list(terms)
    for term in listed:
        if not isinstance(term, str):
            raise InvalidParameterError("analyzer", term, _ALLOWED)
    return listed


def checked_texts(analyzed: Sequence[Sequence[str]], number: int) -> list[list[str]]:
    """Return what an analyzer gave for several texts, if it is what it must be.

    Args:
        analyzed: What it gave.
        number: How many texts there were.

    Returns:
        The same as lists.

    Raises:
        InvalidParameterError: Another number of lists, or as for `checked_terms`.
    """
    lists = [checked_terms(terms) for terms in analyzed]
    if len(lists) != number:
        allowed = f"it must give one list for each of {number} texts"
        raise InvalidParameterError("analyzer", f"{len(lists)} lists", allowed)
    return lists
