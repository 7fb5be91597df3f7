"""What all tests share: Hypothesis profiles, the real data, and no tests without their framework.

`HYPOTHESIS_PROFILE=thorough` (or `--hypothesis-profile=thorough`) searches twenty times longer.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.benchmarks._corpora import data_folder as find_data_folder

if TYPE_CHECKING:
    from pathlib import Path

NEEDS = {
    "langchain_adapter": ("langchain_core", "langchain_text_splitters"),
    "llamaindex_adapter": ("llama_index",),
    "parity": ("langchain_core", "langchain_text_splitters", "llama_index"),
    "peers": ("langchain_core", "langchain_text_splitters", "llama_index", "bm25s"),
}
"""Test folder to the packages without which it is not collected."""


def ignored_folders(needs: dict[str, tuple[str, ...]]) -> list[str]:
    """The folders of which a package is missing here."""
    return [folder for folder, packages in needs.items() if not all(map(find_spec, packages))]


collect_ignore = ignored_folders(NEEDS)

# Both machines and texts vary, so no example has a deadline. Generating the nasty texts is slow
# by Hypothesis's measure and the point of it.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("modest", max_examples=50, **_PATIENT)
settings.register_profile("thorough", max_examples=1000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "modest"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; a test that needs it is skipped where it is missing."""
    folder = find_data_folder()
    if folder is None:
        pytest.skip("no real data: set EASYRAG_DATA to its folder")
    return folder
