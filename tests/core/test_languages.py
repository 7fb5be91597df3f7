"""Languages by file name, extension, first line and other names."""

from __future__ import annotations

import time
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from easyrag_core.chunking.code._grammars import grammar_of
from easyrag_core.chunking.languages import known_languages, language_name, language_of

BY_PATH = [
    ("main.py", "Python"),
    ("types.pyi", "Python"),
    ("app.JS", "JavaScript"),
    ("view.jsx", "JavaScript"),
    ("a/b/view.tsx", "TSX"),
    ("index.d.ts", "TypeScript"),
    ("Main.java", "Java"),
    ("ring.h", "C"),
    ("ring.H", "C++"),
    ("ring.hpp", "C++"),
    ("Program.cs", "C#"),
    ("main.go", "Go"),
    ("lib.rs", "Rust"),
    ("Gemfile", "Ruby"),
    ("index.phtml", "PHP"),
    ("build.gradle.kts", "Kotlin"),
    ("model.R", "R"),
    ("model.r", "R"),
    ("run.bash", "Shell"),
    (".bashrc", "Shell"),
    ("setup.ps1", "PowerShell"),
    ("Dockerfile", "Dockerfile"),
    ("docker/Dockerfile.dev", "Dockerfile"),
    ("Makefile", "Makefile"),
    ("rules.mk", "Makefile"),
    ("Makefile.am", "Makefile"),
    ("CMakeLists.txt", "CMake"),
    ("Jenkinsfile", "Groovy"),
    ("tsconfig.json", "JSON with Comments"),
    ("Cargo.lock", "TOML"),
    ("compose.yml", "YAML"),
    ("README.md", "Markdown"),
    ("README", "Text"),
    ("LICENSE.old", "Text"),
    ("C:\\src\\shop\\Orders.cs", "C#"),
    ("源代码/主程序.py", "Python"),
    ("archive.tar.gz", ""),
    ("no_extension", ""),
    (".py", ""),
    ("trailing.", ""),
    ("folder.py/", ""),
    ("", ""),
]


@pytest.mark.parametrize(("path", "language"), BY_PATH)
def test_a_path_tells_the_language(path: str, language: str) -> None:
    """Whole names come before extensions, exact case before lower case."""
    assert language_of(path) == language


def test_any_kind_of_path_will_do() -> None:
    """Path objects of both styles and plain strings are one."""
    assert language_of(PurePosixPath("a/b.rs")) == "Rust"
    assert language_of(PureWindowsPath("a\\b.rs")) == "Rust"
    assert language_of(Path("b.rs")) == "Rust"


BY_FIRST_LINE = [
    ("#!/bin/sh\n", "Shell"),
    ("#! /bin/bash -e\r\necho", "Shell"),
    ("#!/usr/bin/env python3.12\n", "Python"),
    ("\ufeff#!/usr/bin/env python\n", "Python"),
    ("#!/usr/bin/env -S PYTHONUTF8=1 python3 -u\n", "Python"),
    ("#!/usr/bin/env -S deno run\n", "TypeScript"),
    ("#!/usr/local/bin/node\n", "JavaScript"),
    ("#!/usr/bin/ruby2.7\n", "Ruby"),
    ("#!/opt/perl-5.38\n", "Perl"),
    ("#!/opt/unknown\n", ""),
    ("#!/usr/bin/env\n", ""),
    ("#!", ""),
    ("print(1)\n#!/bin/sh\n", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "language"), BY_FIRST_LINE)
def test_a_first_line_tells_the_language(text: str, language: str) -> None:
    """The program counts, wherever it lies and whatever its version."""
    assert language_of("bin/tool", text=text) == language
    assert language_of(text=text) == language


def test_the_name_comes_before_the_first_line() -> None:
    """A Python file that begins like a shell script is a Python file."""
    assert language_of("tool.py", text="#!/bin/sh\n") == "Python"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        *(("py", "Python"), ("PYTHON", "Python"), ("c++", "C++"), ("cpp", "C++"), ("csharp", "C#")),
        *(
            ("golang", "Go"),
            (" rs ", "Rust"),
            ("bash", "Shell"),
            ("yml", "YAML"),
            ("objc", "Objective-C"),
        ),
        *(("Klingon", "Klingon"), ("中文", "中文"), ("", "")),
    ],
)
def test_other_names_lead_to_the_usual_one(given: str, name: str) -> None:
    """Aliases in any case; a name that is not known stays as it is."""
    assert language_name(given) == name


def test_members_of_other_splitters_enums_are_names() -> None:
    """Every language of LangChain's splitter, the broken ones too, is known by its value."""
    from langchain_text_splitters import Language

    known = {language.name for language in known_languages()}
    assert {language_name(member) for member in Language} <= known


def test_there_are_many_and_none_twice() -> None:
    """Well over sixty extensions; each language and extension has one row."""
    languages = known_languages()
    names = [language.name for language in languages]
    extensions = [extension for language in languages for extension in language.extensions]
    files = [name for language in languages for name in language.file_names]
    assert len(extensions) > 200
    assert len(set(names)) == len(names)
    assert len(set(extensions)) == len(extensions)
    assert len(set(files)) == len(files)
    assert all(extension[0] == "." and len(extension) > 1 for extension in extensions)


@pytest.mark.parametrize("language", [*known_languages(), None], ids=lambda row: row and row.name)
@pytest.mark.parametrize(
    "piece", ["a ", "a", "(", "@a(", "a.", "a,b ", "pub ", "<", "a::", "\t", '"']
)
def test_no_pattern_takes_long_on_a_long_line(language, piece: str) -> None:
    """Patterns meet minified code: a line of 3000 characters takes no more than milliseconds."""
    grammar = grammar_of(language.name if language else "")
    line = "\n" + piece * (3000 // len(piece))
    begin = time.process_time()
    for _ in range(3):
        grammar.next_definition.search(line)
        if grammar.attribute:
            grammar.attribute.match(line[1:])
    assert (time.process_time() - begin) / 3 < 0.05
