"""Every error that this project raises.

```
EasyRAGError
├── InvalidParameterError(ValueError)      .name .value
├── DimensionMismatchError(ValueError)     .expected .actual
├── ChunkNotFoundError(KeyError)           .ids
├── OutputParseError(ValueError)           .raw
├── IndexFormatError(ValueError)
├── AllChannelsFailedError                 .errors
├── ModelUnavailableError                  .attempts
│   ├── CircuitOpenError                   .retry_after
│   ├── FirstTokenTimeoutError(TimeoutError)
│   └── StreamInterruptedError             .partial
└── MissingDependencyError(ImportError)    .extra
```

Each leaf is also the builtin that a caller would catch without knowing us. A message
says what was given, what is allowed and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = [
    "AllChannelsFailedError",
    "ChunkNotFoundError",
    "CircuitOpenError",
    "DimensionMismatchError",
    "EasyRAGError",
    "FirstTokenTimeoutError",
    "IndexFormatError",
    "InvalidParameterError",
    "MissingDependencyError",
    "ModelUnavailableError",
    "OutputParseError",
    "StreamInterruptedError",
    "check_choice",
    "check_count",
    "check_names",
    "check_number",
    "check_text",
    "check_texts",
    "check_timeout",
]

_LONGEST_VALUE: Final = 200


class EasyRAGError(Exception):
    """The root: `except EasyRAGError` catches everything that is ours."""


class InvalidParameterError(EasyRAGError, ValueError):
    """A setting or an argument is outside what is allowed.

    Attributes:
        name: The parameter's name.
        value: The value that was given.
        allowed: What is allowed, in words.
    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        """Build the message from the parameter, the value given and what is allowed."""
        super().__init__(f"{name}={_shown(value)} is not allowed: {allowed}.")
        self.name = name
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type[InvalidParameterError], tuple[str, object, str]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self.name, self.value, self.allowed)


class DimensionMismatchError(EasyRAGError, ValueError):
    """A vector has another length than the others.

    Attributes:
        expected: The length that the index or the query has.
        actual: The length that was given.
    """

    def __init__(self, expected: int, actual: int, where: str) -> None:
        """Name the place (an id or row numbers) with both lengths."""
        super().__init__(
            f"{where} has {actual} dimensions, {expected} are expected: "
            "embed everything with one model, or rebuild the index."
        )
        self.expected = expected
        self.actual = actual
        self._where = where

    def __reduce__(self) -> tuple[type[DimensionMismatchError], tuple[int, int, str]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self.expected, self.actual, self._where)


class ChunkNotFoundError(EasyRAGError, KeyError):
    """Ids that no store holds.

    Attributes:
        ids: The missing ids, in the order in which they were asked for.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        """Keep the ids; the message shows the first few."""
        self.ids: list[str] = list(ids)
        super().__init__(self.ids)

    def __str__(self) -> str:
        """Show a sentence instead of `KeyError`'s bare repr."""
        shown = ", ".join(map(repr, self.ids[:5]))
        more = f" and {len(self.ids) - 5} more" if len(self.ids) > 5 else ""
        return f"No chunk with id {shown}{more}: check the ids, or add the chunks first."


class OutputParseError(EasyRAGError, ValueError):
    """A model's reply cannot be used, and the caller asked to be told.

    Attributes:
        raw: The reply as the model gave it.
    """

    def __init__(self, reason: str, raw: str) -> None:
        """Say what is wrong with the reply; the message shows its edges."""
        super().__init__(
            f"The model's reply cannot be used ({reason}): {_shown(raw)}. "
            "Ask again, change the prompt, or leave strict mode for the fallback."
        )
        self.raw = raw
        self._reason = reason

    def __reduce__(self) -> tuple[type[OutputParseError], tuple[str, str]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self._reason, self.raw)


class IndexFormatError(EasyRAGError, ValueError):
    """A saved index is torn, truncated, foreign, or of another version."""


class AllChannelsFailedError(EasyRAGError):
    """No channel of a search gave an answer.

    Attributes:
        errors: Channel name to the error that it raised.
    """

    def __init__(self, errors: Mapping[str, BaseException]) -> None:
        """Name every channel with its error."""
        self.errors: dict[str, BaseException] = dict(errors)
        told = "; ".join(f"{name}: {error!r}" for name, error in self.errors.items())
        super().__init__(f"All channels failed ({told}).")

    def __reduce__(self) -> tuple[type[AllChannelsFailedError], tuple[dict[str, BaseException]]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self.errors,)


class ModelUnavailableError(EasyRAGError):
    """No candidate gave an answer.

    Attributes:
        attempts: Candidate name to why it gave none, in the order in which they were tried.
    """

    def __init__(
        self, attempts: Mapping[str, BaseException] | None = None, reason: str = "No model answered"
    ) -> None:
        """Say the reason, and every candidate with its error."""
        self.attempts: dict[str, BaseException] = dict(attempts or {})
        self._reason = reason
        told = "; ".join(f"{name}: {error!r}" for name, error in self.attempts.items())
        super().__init__(" ".join(f"{reason} ({told}).".split()) if told else f"{reason}.")

    def __reduce__(self) -> tuple[type[ModelUnavailableError], tuple[object, ...]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self.attempts, self._reason)


class CircuitOpenError(ModelUnavailableError):
    """Nobody was asked: what failed lately is left alone until its time is over.

    Attributes:
        retry_after: Seconds until the first candidate may be tried; 0 while one is being probed.
        attempts: Empty for one candidate; else candidate name to its own `CircuitOpenError`.
    """

    def __init__(
        self,
        retry_after: float,
        attempts: Mapping[str, BaseException] | None = None,
        reason: str = "The circuit is open",
    ) -> None:
        """Say when to come back."""
        super().__init__(attempts, f"{reason}: try again in {retry_after:.3g} s")
        self.retry_after = retry_after
        self._told = reason

    def __reduce__(self) -> tuple[type[CircuitOpenError], tuple[object, ...]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self.retry_after, self.attempts, self._told)


class FirstTokenTimeoutError(ModelUnavailableError, TimeoutError):
    """No content came in time, neither text nor reasoning nor a tool call."""


class StreamInterruptedError(ModelUnavailableError):
    """A stream ended early, and what was handed over cannot be taken back.

    Attributes:
        partial: The text that was handed over.
        attempts: Candidate name to its error.
    """

    def __init__(
        self, partial: str, attempts: Mapping[str, BaseException] | None = None, reason: str = ""
    ) -> None:
        """Say how much there is; the text itself is on the attribute."""
        told = reason or f"The stream ended early, after {len(partial)} characters"
        super().__init__(attempts, told)
        self.partial = partial

    def __reduce__(self) -> tuple[type[StreamInterruptedError], tuple[object, ...]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self.partial, self.attempts, self._reason)


class MissingDependencyError(EasyRAGError, ImportError):
    """An optional package is not installed.

    Attributes:
        extra: The extra of `easyrag-core` that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        """Print the pip line that helps."""
        super().__init__(
            f"{package} is not installed. Run: pip install 'easyrag-core[{extra}]'",
            name=package,
        )
        self.extra = extra
        self._package = package

    def __reduce__(self) -> tuple[type[MissingDependencyError], tuple[str, str]]:
        """Pickle by the constructor's arguments, so that worker processes can report it."""
        return type(self), (self._package, self.extra)


def _shown(value: object) -> str:
    """Write a value for a message; the middle of a long one helps nobody."""
    try:
        told = repr(value)
    except Exception:  # noqa: BLE001 - nested too deep, or broken: the refusal must be told
        told = f"<{type(value).__name__}>"
    if len(told) <= _LONGEST_VALUE:
        return told
    half = _LONGEST_VALUE // 2
    return f"{told[:half]}…{told[-half:]}"


def check_count(name: str, value: object, *, minimum: int = 0) -> int:
    """Return `value` if it is an int (not a bool) of at least `minimum`.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.
        minimum: The smallest value allowed.

    Returns:
        The same value, now known to be an int.

    Raises:
        InvalidParameterError: For a bool, a float, a string, or a number too small.

    >>> check_count("k", 3)
    3
    """
    # numpy integers are welcome wherever an int is; bools are ints only by accident.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        _refuse_count(name, value, minimum)
    try:
        number = value.__index__()
    except TypeError:  # an array has the method, and no number
        _refuse_count(name, value, minimum)
    if number < minimum:
        _refuse_count(name, value, minimum)
    return int(number)


def _refuse_count(name: str, value: object, minimum: int) -> NoReturn:
    raise InvalidParameterError(name, value, f"give a whole number of at least {minimum}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.
        choices: The words that are allowed.

    Returns:
        The same value, now known to be one of the words.

    Raises:
        InvalidParameterError: For anything else.

    >>> check_choice("fusion", "rrf", ("rrf", "score"))
    'rrf'
    """
    if not isinstance(value, str) or value not in choices:
        raise InvalidParameterError(name, value, "choose one of " + ", ".join(map(repr, choices)))
    return value


def check_number(name: str, value: object, *, allowed: str = "give a number") -> float:
    """Return `value` as a float if it is a number, not a bool, not NaN.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.
        allowed: What is allowed, for the message.

    Returns:
        The number; it may be infinite.

    Raises:
        InvalidParameterError: For a bool, a string, NaN, or an int beyond every float.

    >>> check_number("lambda_mult", 1)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameterError(name, value, allowed)
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidParameterError(name, value, allowed) from error
    if math.isnan(number):
        raise InvalidParameterError(name, value, allowed)
    return number


def check_text(name: str, value: object) -> str:
    """Return `value` if it is a string.

    Args:
        name: The parameter's name, for the message.
        value: What the caller gave.

    Returns:
        The same text.

    Raises:
        InvalidParameterError: For anything else.

    >>> check_text("query", "order 66")
    'order 66'
    """
    if not isinstance(value, str):
        raise InvalidParameterError(name, value, "give a text")
    return value


def check_texts(name: str, values: object) -> list[str]:
    """Return texts as a list of its own.

    Args:
        name: The parameter's name, for the message.
        values: What the caller gave.

    Returns:
        The same texts.

    Raises:
        InvalidParameterError: For one string, which would be read as its letters, for nothing to
            iterate over, or for what is no string.

    >>> check_texts("texts", ("a", "b"))
    ['a', 'b']
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidParameterError(name, values, "give a list of texts")
    listed = list(values)
    for number, value in enumerate(listed):
        if not isinstance(value, str):
            check_text(f"{name}[{number}]", value)
    return listed


def check_names(
    given: Mapping[str, object], known: Collection[str], *, shown: Iterable[str] | None = None
) -> None:
    """Refuse settings that there are not, where a framework would leave them out without a word.

    Args:
        given: The arguments by name.
        known: The names that there are.
        shown: Those that the message lists; all of `known`, if not given.

    Raises:
        InvalidParameterError: For the first name that is unknown.

    >>> check_names({"k": 3}, {"k", "weights"})
    """
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(sorted(known if shown is None else shown))
            allowed = f"there is no such setting, only {listed}"
            raise InvalidParameterError(name, value, allowed)


def check_timeout(timeout: float | None, *, name: str = "timeout") -> float | None:
    """Return a timeout as a float if it is a positive number of seconds.

    Args:
        timeout: Seconds, or `None` for no limit.
        name: The parameter's name, for the message.

    Returns:
        The seconds; they may be infinite.

    Raises:
        InvalidParameterError: For zero, a negative number, NaN, another type, or an int beyond
            every float.

    >>> check_timeout(1.5), check_timeout(None)
    (1.5, None)
    """
    if timeout is None:
        return None
    allowed = "give seconds above 0, or None for no limit"
    seconds = check_number(name, timeout, allowed=allowed)
    if seconds <= 0:
        raise InvalidParameterError(name, timeout, allowed)
    return seconds
