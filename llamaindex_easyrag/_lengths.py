"""Length functions by name, so that settings can be saved, compared and sent to a worker."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import llama_index.core

from easyrag_core import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["function_name", "is_known_length", "length_by_name"]

_CHARACTERS = "characters"
_TIKTOKEN = "tiktoken:"
_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
_BUNDLED = ("cl100k_base", "o200k_base")
_ALLOWED = (
    "'characters', 'tiktoken:<encoding>' such as 'tiktoken:cl100k_base', "
    "or any other name together with length_function="
)
_loading = threading.Lock()


def length_by_name(name: str) -> Callable[[str], int]:
    """Return the length function that a name stands for.

    Args:
        name: `"characters"`, or `"tiktoken:"` and the name of an encoding. Encodings that the
            framework ships are read from its own cache, without network.

    Returns:
        The function.

    Raises:
        InvalidParameterError: No such name.
        MissingDependencyError: tiktoken is asked for and not installed.
    """
    if not is_known_length(name):
        raise InvalidParameterError("length", name, _ALLOWED)
    return len if name == _CHARACTERS else _TokenCounter(_encoding(name))


def is_known_length(name: str) -> bool:
    """Tell whether a name stands for a length function by itself.

    Args:
        name: Any name.

    Returns:
        Whether `length_by_name` takes it.
    """
    return name == _CHARACTERS or name.startswith(_TIKTOKEN)


def function_name(function: Callable[..., Any]) -> str:
    """Name a function so that two different ones never share a name.

    A function that can be found under its module and name has that name, in every process. A
    lambda, a local function or an object gets a name that never comes again: a cache then
    misses, it is never wrong.

    Args:
        function: Any callable.

    Returns:
        The name.
    """
    module = getattr(function, "__module__", "") or ""
    path = getattr(function, "__qualname__", type(function).__qualname__)
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    # What `__main__` holds differs from one program to the next.
    known = found is function and module != "__main__"
    return f"{module}.{path}" if known else f"{module}.{path}#{uuid4().hex}"


class _TokenCounter:
    """Counts tokens; an object, because it is cheaper to call than a closure over a closure."""

    def __init__(self, encoding: Any) -> None:
        self._encode = encoding.encode_ordinary

    def __call__(self, text: str) -> int:
        return len(self._encode(text))


def _encoding(name: str) -> Any:
    try:
        import tiktoken  # noqa: PLC0415 - an optional package, slow to import
    except ImportError as error:
        raise MissingDependencyError("tiktoken", "llamaindex") from error
    encoding = name.removeprefix(_TIKTOKEN)
    if encoding not in tiktoken.list_encoding_names():
        known = ", ".join(sorted(tiktoken.list_encoding_names()))
        raise InvalidParameterError("length", name, f"tiktoken knows {known}")
    with _loading, _bundled_cache(encoding):
        return tiktoken.get_encoding(encoding)


@contextmanager
def _bundled_cache(encoding: str) -> Iterator[None]:
    """Point tiktoken at the encodings inside llama-index-core, unless the user chose a place.

    tiktoken reads the place from the environment and nowhere else; it is put back at once.
    """
    if encoding not in _BUNDLED or _CACHE_VARIABLE in os.environ:
        yield
        return
    folder = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    os.environ[_CACHE_VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[_CACHE_VARIABLE]
