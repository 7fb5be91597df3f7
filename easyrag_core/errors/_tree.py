"""The errors themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
