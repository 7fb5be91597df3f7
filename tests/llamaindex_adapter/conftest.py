"""What LlamaIndex brings in by itself, brought in before warnings are errors."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec


def pytest_configure(config):
    """Import LangChain's community package, which says at that moment that it is at an end.

    LlamaIndex looks for it when an embedding model is first resolved, in whichever test that is.
    """
    if find_spec("langchain_community") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module("langchain_community")
