"""The suite runs in a venv with one framework, and finds the real data or skips."""

from __future__ import annotations

import os

from hypothesis import settings

from tests.benchmarks._corpora import corpus, data_folder, repeat_to
from tests.conftest import NEEDS, ignored_folders
from tests.packaging._source import ROOT


def test_a_folder_whose_framework_is_missing_is_not_collected():
    """One missing package is enough, and what is installed is collected."""
    needs = {"here": ("json",), "gone": ("json", "no_such_framework")}
    assert ignored_folders(needs) == ["gone"]


def test_the_folders_that_need_a_framework_exist():
    """No entry of the list has outlived its folder."""
    assert [folder for folder in NEEDS if not (ROOT / "tests" / folder).is_dir()] == []


def test_examples_have_no_deadline():
    """A slow machine does not make a property false."""
    assert settings.default is not None
    assert settings.default.deadline is None


def test_the_data_folder_is_told_by_the_environment(monkeypatch, tmp_path):
    """`EASYRAG_DATA` wins, and a folder that is not there is none."""
    monkeypatch.setenv("EASYRAG_DATA", os.fspath(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("EASYRAG_DATA", os.fspath(tmp_path / "gone"))
    assert data_folder() is None
    text, source = corpus("zh", 10_000)
    assert source == "made by code"
    assert abs(len(text.encode()) - 10_000) < 500


def test_a_tiled_text_has_the_size_asked_for():
    """The tiles are cut to size, for wide characters too."""
    assert len(repeat_to("ab", 7)) == 7
    assert abs(len(repeat_to("检索增强。", 100).encode()) - 100) <= 3
