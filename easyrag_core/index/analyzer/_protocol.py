"""What an index asks of an analyzer, and how one is named in a saved index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Analyzer", "FunctionAnalyzer", "as_analyzer"]


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
        return list(self._function(text))

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

    >>> as_analyzer(str.split).name
    'function'
    """
    return analyzer if isinstance(analyzer, Analyzer) else FunctionAnalyzer(analyzer)
