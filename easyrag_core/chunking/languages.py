"""Which programming language a file is written in, by name, extension or first line."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import NamedTuple

__all__ = ["Language", "known_languages", "language_name", "language_of"]


class Language(NamedTuple):
    """How files of one language are told.

    Attributes:
        name: As GitHub writes it.
        extensions: With the dot; `.C` and `.c` are two, otherwise lower case.
        file_names: Whole names.
        interpreters: Programs of a first line that begins with `#!`, without version.
        aliases: Other names, in lower case.
    """

    name: str
    extensions: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


# One language a line: name | extensions | file names | interpreters | aliases. Where several
# languages use an extension, the one that comes first here has it.
_TABLE = """
Python|.py .pyi .pyw .pyx .pxd .wsgi|SConstruct SConscript wscript|python pypy|py python3 cython
JavaScript|.js .mjs .cjs .jsx .es6|Jakefile|node nodejs|js node jsx ecmascript
TypeScript|.ts .mts .cts||deno ts-node bun|ts
TSX|.tsx|||
Java|.java .jav|||
C|.c .h .idc||tcc|
C++|.cpp .cc .cxx .c++ .C .H .hpp .hh .hxx .h++ .ipp .tpp .inl .ino|||cpp cxx
C#|.cs .csx .cake|||csharp cs c♯
Objective-C|.m|||objc objectivec obj-c
Objective-C++|.mm|||objc++ objectivec++
Go|.go|||golang
Rust|.rs||rust-script|rs
Ruby|.rb .rake .gemspec .ru .podspec|Gemfile Rakefile Podfile Vagrantfile Brewfile|ruby jruby|rb
PHP|.php .phtml .php5 .phpt||php|
Swift|.swift||swift|
Kotlin|.kt .kts||kotlin|kt
Scala|.scala .sbt .sc||scala|
Groovy|.groovy .gvy .grt|Jenkinsfile|groovy|
Gradle|.gradle|||
Dart|.dart||dart|
Shell|.sh .bash .zsh .ksh .bats|.bashrc .profile .zshrc PKGBUILD|sh bash zsh ksh dash|bash sh zsh
fish|.fish||fish|
PowerShell|.ps1 .psm1 .psd1||pwsh|posh pwsh ps1
Batchfile|.bat .cmd|||bat batch dosbatch
Perl|.pl .pm .t .psgi .PL|cpanfile Makefile.PL|perl|pl
Raku|.raku .rakumod .p6 .pm6||raku perl6|perl6
Lua|.lua .rockspec .wlua||lua luajit|
R|.r|.Rprofile|Rscript|
Julia|.jl||julia|jl
Haskell|.hs .hsc||runhaskell|hs
Elm|.elm|||
PureScript|.purs|||
OCaml|.ml .mli .mll .mly||ocaml|
Standard ML|.sml .sig|||sml
F#|.fs .fsi .fsx|||fsharp f♯
Elixir|.ex .exs|mix.lock|elixir|
Erlang|.erl .hrl .escript|rebar.config|escript|
Clojure|.clj .cljs .cljc .edn||clojure bb|clj
Common Lisp|.lisp .lsp .cl .asd||sbcl clisp|lisp
Emacs Lisp|.el|.emacs _emacs Cask|emacs|elisp
Scheme|.scm .ss .sld||guile|
Racket|.rkt .rktl||racket|
Zig|.zig .zon|||
Nim|.nim .nims .nimble||nim|
Crystal|.cr||crystal|
D|.d .di|||dlang
V|.vv .vsh||v|vlang
Odin|.odin|||
Vala|.vala .vapi|||
Haxe|.hx|||
Fortran|.f .for .f77 .f90 .f95 .f03 .f08|||fortran90
Pascal|.pas .pp .dpr .lpr|||delphi objectpascal
Ada|.adb .ads|||
COBOL|.cob .cbl .cpy|||
Visual Basic .NET|.vb|||vb.net vbnet vb
Visual Basic 6.0|.bas .cls .frm|||vb6 visualbasic6
VBA|.vba|||
Assembly|.asm .s .S .nasm|||asm nasm
SQL|.sql .ddl .dml|||mysql sqlite tsql
PLpgSQL|.pgsql|||
PLSQL|.pks .pkb .pls .plsql|||
Solidity|.sol|||sol
Verilog|.v .veo|||
SystemVerilog|.sv .svh|||
VHDL|.vhd .vhdl|||
MATLAB|.matlab|||octave
Cuda|.cu .cuh|||
GLSL|.glsl .vert .frag .geom .comp|||
HLSL|.hlsl .fx|||
WGSL|.wgsl|||
Metal|.metal|||
HTML|.html .htm .xhtml .xht|||
Jinja|.jinja .jinja2 .j2|||
Vue|.vue|||
Svelte|.svelte|||
Astro|.astro|||
CSS|.css|||
SCSS|.scss|||
Sass|.sass|||
Less|.less|||
CoffeeScript|.coffee|Cakefile|coffee|coffee
XML|.xml .xsd .xsl .xslt .svg .plist .csproj .vbproj .props .wsdl .rss|pom.xml||
JSON|.json .jsonl .geojson .webmanifest .har|composer.lock Pipfile.lock .babelrc||
JSON with Comments|.jsonc .code-workspace|tsconfig.json jsconfig.json||jsonc
JSON5|.json5|||
Jupyter Notebook|.ipynb|||
YAML|.yaml .yml|.clang-format .clang-tidy CITATION.cff||yml
TOML|.toml|Cargo.lock poetry.lock uv.lock Pipfile||
INI|.ini .cfg .conf .prefs|.editorconfig .gitconfig .npmrc .pylintrc .flake8 .coveragerc||dosini
Java Properties|.properties|||properties
Dotenv|.env|.env||
HCL|.hcl .tf .tfvars .nomad|||terraform tf
Nix|.nix||nix|
Starlark|.bzl .star|BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel MODULE.bazel||bazel
Dockerfile|.dockerfile .containerfile|Dockerfile Containerfile||docker
Makefile|.mk .mak .make|Makefile makefile GNUmakefile Kbuild|make|make
CMake|.cmake|CMakeLists.txt||
Meson||meson.build meson_options.txt meson.options||
Just|.just|justfile Justfile||
Protocol Buffer|.proto|||protobuf proto
Thrift|.thrift|||
GraphQL|.graphql .gql .graphqls|||
Prisma|.prisma|||
Jsonnet|.jsonnet .libsonnet|||
Vim Script|.vim .vimrc|.vimrc _vimrc||vim viml
Awk|.awk||awk gawk mawk|
Tcl|.tcl .tm||tclsh wish|
Prolog|.pro .prolog||swipl|
Ignore List||.gitignore .dockerignore .npmignore .eslintignore .prettierignore||gitignore
Git Attributes||.gitattributes||
Diff|.diff .patch|||patch udiff
CSV|.csv|||
TSV|.tsv|||
Markdown|.md .markdown .mdown .mkd .mkdn .livemd .ronn|||md pandoc
MDX|.mdx|||
RMarkdown|.rmd .qmd|||
reStructuredText|.rst .rest|||rst
AsciiDoc|.adoc .asciidoc .asc|||adoc
Org|.org|||
TeX|.tex .sty .bib .ltx|||latex
Text|.txt .text .log|LICENSE COPYING NOTICE AUTHORS CHANGES README INSTALL||plain txt plaintext
"""

_SHEBANG = re.compile(r"\ufeff?#![ \t]*(?P<program>[^\s]+)(?P<rest>[^\r\n]*)")
_VERSION = re.compile(r"[-.\d]+\Z")


def language_of(path: str | os.PathLike[str] | None = None, *, text: str = "") -> str:
    """Tell the language of a file: by its name, else its extension, else its first line.

    Args:
        path: A path of any style, or just a name; it need not exist.
        text: What the file says; only a first line that begins with `#!` is looked at.

    Returns:
        The name that GitHub gives the language, or the empty string.

    >>> language_of("src/app.test.tsx"), language_of("docker/Dockerfile.dev")
    ('TSX', 'Dockerfile')
    >>> language_of("run", text="#!/usr/bin/env python3"), language_of("data.xyz")
    ('Python', '')
    """
    by_path = _by_name(os.fspath(path)) if path is not None else ""
    return by_path or _by_shebang(text)


def language_name(name: str) -> str:
    """Return how GitHub writes a language that is given in any of the usual ways.

    Args:
        name: A name such as `"py"`, `"golang"` or `"C++"`; one that is not known is fine.

    Returns:
        The usual name, or the name as it is.

    >>> language_name("golang"), language_name("c++"), language_name("Brainfuck")
    ('Go', 'C++', 'Brainfuck')
    """
    # A member of an enum of strings, as other splitters have them, is read by its value.
    plain = str.__str__(name)
    return _tables().names.get(plain.strip().lower(), plain)


@cache
def known_languages() -> tuple[Language, ...]:
    """Return every language that can be told, in the order in which extensions are given.

    Returns:
        The languages.
    """
    rows = (line.split("|") for line in _TABLE.strip().splitlines())
    return tuple(Language(row[0], *(tuple(cell.split()) for cell in row[1:5])) for row in rows)


class _Tables(NamedTuple):
    extensions: dict[str, str]
    file_names: dict[str, str]
    interpreters: dict[str, str]
    names: dict[str, str]


@cache
def _tables() -> _Tables:
    tables = _Tables({}, {}, {}, {})
    for language in known_languages():
        keys = (language.extensions, language.file_names, language.interpreters)
        for table, words in zip(tables, keys, strict=False):
            for word in words:
                table.setdefault(word, language.name)
        for word in (language.name.lower(), *language.aliases):
            tables.names.setdefault(word, language.name)
    return tables


def _by_name(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    tables = _tables()
    if name in tables.file_names:
        return tables.file_names[name]
    stem, dot, extension = name.rpartition(".")
    for key in (dot + extension, dot + extension.lower()):
        if stem and dot and key in tables.extensions:
            return tables.extensions[key]
    # Dockerfile.dev, Makefile.am, LICENSE.old
    return tables.file_names.get(name.partition(".")[0], "")


def _by_shebang(text: str) -> str:
    shebang = _SHEBANG.match(text[:512])
    if shebang is None:
        return ""
    program = shebang["program"].rpartition("/")[2]
    if program == "env":
        words = (word for word in shebang["rest"].split() if not word.startswith("-"))
        program = next((word for word in words if "=" not in word), "").rpartition("/")[2]
    table = _tables().interpreters
    return table.get(program) or table.get(_VERSION.sub("", program), "")
