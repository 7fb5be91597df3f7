"""Errors: caught by the builtin's name, whole after a copy, and of use to who reads them."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import traceback

import numpy as np
import pytest

import easyrag_core
from easyrag_core import (
    AllChannelsFailedError,
    ChunkNotFoundError,
    CircuitOpenError,
    DimensionMismatchError,
    EasyRAGError,
    FirstTokenTimeoutError,
    IndexFormatError,
    InvalidParameterError,
    MissingDependencyError,
    ModelUnavailableError,
    OutputParseError,
    StreamInterruptedError,
    errors,
)
from easyrag_core.errors import check_choice, check_count, check_timeout

# Each error with the builtin it also is, its attributes, and what its message says.
ERRORS = {
    "parameter": (
        InvalidParameterError("k", -1, "give a whole number of at least 0"),
        ValueError,
        {"name": "k", "value": -1},
        ("k=-1", "is not allowed", "give a whole number of at least 0"),
    ),
    "dimension": (
        DimensionMismatchError(768, 384, "The vector of id '甲'"),
        ValueError,
        {"expected": 768, "actual": 384},
        ("'甲'", "768", "384", "one model", "rebuild"),
    ),
    "not found": (
        ChunkNotFoundError(["a", "乙"]),
        KeyError,
        {"ids": ["a", "乙"]},
        ("'a', '乙'", "check the ids", "add the chunks"),
    ),
    "format": (IndexFormatError("torn: rebuild"), ValueError, {}, ("torn: rebuild",)),
    "reply": (
        OutputParseError("no JSON", "我不知道"),
        ValueError,
        {"raw": "我不知道"},
        ("no JSON", "'我不知道'", "Ask again"),
    ),
    "channels": (
        AllChannelsFailedError({"web": TimeoutError("late"), "bm25": KeyError("x")}),
        EasyRAGError,
        {},
        ("web: TimeoutError('late')", "bm25: KeyError('x')"),
    ),
    "model": (
        ModelUnavailableError({"a": KeyError("x"), "b": OSError("down")}),
        EasyRAGError,
        {},
        ("No model answered", "a: KeyError('x')", "b: OSError('down')"),
    ),
    "circuit": (
        CircuitOpenError(12.34),
        ModelUnavailableError,
        {"retry_after": 12.34, "attempts": {}},
        ("circuit is open", "try again in 12.3 s"),
    ),
    "first token": (
        FirstTokenTimeoutError(reason="'a' gave no content within 60 s"),
        TimeoutError,
        {"attempts": {}},
        ("'a' gave no content within 60 s.",),
    ),
    "stream": (
        StreamInterruptedError("半句", {}),
        ModelUnavailableError,
        {"partial": "半句", "attempts": {}},
        ("ended early", "2 characters"),
    ),
    "dependency": (
        MissingDependencyError("jieba", "zh"),
        ImportError,
        {"extra": "zh", "name": "jieba"},
        ("jieba is not installed", "pip install 'easyrag-core[zh]'"),
    ),
}

every_error = pytest.mark.parametrize(
    ("error", "builtin", "attributes", "words"), ERRORS.values(), ids=ERRORS
)


def test_every_error_is_examined_here():
    """The table below knows all errors that there are, and all of them are exported."""
    ours = {
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, EasyRAGError) and value is not EasyRAGError
    }
    assert ours == {type(error) for error, *_ in ERRORS.values()}
    assert all(hasattr(easyrag_core, kind.__name__) for kind in (*ours, EasyRAGError))


@every_error
def test_caught_by_our_name_and_by_the_builtins(error, builtin, attributes, words):
    """`except EasyRAGError` and `except ValueError` (KeyError, …) both catch it."""
    for kind in (EasyRAGError, builtin, Exception):
        with pytest.raises(kind):
            raise error


@every_error
def test_the_message_says_what_to_do(error, builtin, attributes, words):
    """Given, allowed and the way out stand in the message; it is one line."""
    assert all(word in str(error) for word in words)
    assert "\n" not in str(error)
    assert str(error) in "".join(traceback.format_exception_only(error))


@every_error
@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_are_whole(error, builtin, attributes, words, again):
    """Copied, or sent to another process and back: same type, message and attributes."""
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert {name: getattr(other, name) for name in attributes} == attributes


def test_a_copied_failure_of_all_channels_holds_their_errors():
    """The channels' errors come along, in order."""
    other = pickle.loads(pickle.dumps(ERRORS["channels"][0]))
    assert list(map(repr, other.errors.values())) == ["TimeoutError('late')", "KeyError('x')"]
    assert list(other.errors) == ["web", "bm25"]


def test_a_copied_failure_of_all_models_holds_their_errors():
    """Each kind of it keeps the attempts, in order, and its own message."""
    attempts = {"b": TimeoutError("late"), "a": KeyError("x")}
    for error in (
        ModelUnavailableError(attempts),
        CircuitOpenError(3, attempts),
        FirstTokenTimeoutError(attempts),
        StreamInterruptedError("half", attempts),
    ):
        other = pickle.loads(pickle.dumps(error))
        assert list(map(repr, other.attempts.values())) == ["TimeoutError('late')", "KeyError('x')"]
        assert list(other.attempts) == ["b", "a"]
        assert str(other) == str(error)


def test_errors_keep_what_they_were_given_apart():
    """The caller's list and dict may change afterwards."""
    ids, channels = ["a"], {"web": ValueError()}
    missing, failed = ChunkNotFoundError(ids), AllChannelsFailedError(channels)
    unavailable = ModelUnavailableError(channels)
    ids.append("b")
    channels.clear()
    assert missing.ids == ["a"]
    assert list(failed.errors) == ["web"]
    assert list(unavailable.attempts) == ["web"]


def test_many_missing_ids_are_counted():
    """The first five are shown, the rest is a number; the attribute has them all."""
    error = ChunkNotFoundError([f"id{n}" for n in range(1000)])
    assert "'id4' and 995 more" in str(error)
    assert "id5" not in str(error)
    assert len(error.ids) == 1000


@pytest.mark.parametrize("value", ["x" * 10**6, list(range(10**5)), {"k": "文" * 10**5}], ids=type)
def test_a_huge_value_does_not_fill_the_message(value):
    """The message shows both ends of a long value; the attribute has all of it."""
    error = InvalidParameterError("texts", value, "give less")
    assert len(str(error)) < 300
    assert "…" in str(error)
    assert str(error).startswith(f"texts={repr(value)[:20]}")
    assert error.value is value


# The checks


@pytest.mark.parametrize("value", [0, 1, 7, 10**12, np.int64(3), np.uint8(3)], ids=repr)
def test_whole_numbers_pass(value):
    """Python's and numpy's integers, as a plain int."""
    assert check_count("k", value) == value
    assert type(check_count("k", value)) is int


@pytest.mark.parametrize(
    "value",
    [-1, 1.0, "1", True, False, None, [1], math.nan, np.float32(1), np.bool_(1)],
    ids=repr,
)
def test_what_is_no_count_is_refused(value):
    """Negative numbers, floats, bools of both kinds, strings: name, value and range are said."""
    with pytest.raises(InvalidParameterError, match="at least 0") as refused:
        check_count("k", value)
    assert refused.value.name == "k"
    assert refused.value.value is value


def test_the_minimum_holds():
    """One below is refused and the number is said."""
    assert check_count("k", 2, minimum=2) == 2
    with pytest.raises(InvalidParameterError, match="at least 2"):
        check_count("k", 1, minimum=2)


@pytest.mark.parametrize("value", ["RRF", "", None, 1, ["rrf"], ("rrf",)], ids=repr)
def test_what_is_no_choice_is_refused(value):
    """All that may be chosen is said."""
    assert check_choice("fusion", "rrf", ("rrf", "score")) == "rrf"
    with pytest.raises(InvalidParameterError, match="'rrf', 'score'"):
        check_choice("fusion", value, ("rrf", "score"))


@pytest.mark.parametrize(
    "value", [None, 1, 0.1, math.inf, np.float64(2), np.float32(2), np.int64(2)], ids=repr
)
def test_times_pass(value):
    """Seconds as any number, of which a float is made, or none."""
    checked = check_timeout(value)
    assert checked == value
    assert isinstance(checked, float | None)


@pytest.mark.parametrize(
    "value", [0, -1, 0.0, math.nan, "1", True, -math.inf, 10**400, 1j, np.float32(0)], ids=str
)
def test_what_is_no_time_is_refused(value):
    """The name is the caller's own."""
    with pytest.raises(InvalidParameterError, match=r"channel_timeout=.*seconds above 0"):
        check_timeout(value, name="channel_timeout")
