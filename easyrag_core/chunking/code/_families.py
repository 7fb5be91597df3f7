"""How the languages write definitions, attributes and comments: the patterns, as data."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ANY", "FAMILIES", "NEVER", "Family"]


class Family(NamedTuple):
    r"""Languages whose lines look alike, with the sources of the patterns.

    `Grammar` in `_grammars` tells what each is for. In a pattern `\\h` is a blank within a line.
    """

    languages: str
    definitions: tuple[str, ...]
    attribute: str = ""
    mark: str = ""
    comments: str = "//"
    unfit: str = r"\{\h*\n"
    ignore_case: bool = False


NEVER = r"(?!)"
"""A pattern that never matches."""
_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|fileprivate|open|final"
    r"|abstract|static|async|sealed|non-sealed|partial|readonly|unsafe|data|inline|suspend"
    r"|override|implicit|case|lazy|strictfp|indirect|mutating|external|native|base|mixin|expect"
    r"|actual|annotation|virtual|extern|new|ref|local|pub|pure|elemental|recursive)\h+)*"
)
_TYPES = (
    r"(?P<word>class|interface|@interface|enum(?:\h+class)?|record(?:\h+struct)?|struct"
    r"|object|trait|protocol|extension|actor|mixin|namespace|module|union|delegate|contract"
    r"|library)\h+(?P<name>[\w.$:]+)"
)
_FUNCTIONS = r"(?P<word>function|func|fun|def|sub|fn|proc|init)\b\h*\*?\h*(?P<name>[\w.$]+)"
# An annotation that has its line for itself, or the first line of one that goes on.
_ANNOTATION = r"@(?!interface\b)[\w.:]+\h*(?:$|\(.*(?:[)(\[{,\"'+]\h*|//.*)$|//.*$|@.*[)\w]$|\($)"
_C_FUNCTION = (
    r"(?!(?:if|for|while|switch|return|else|do|case|using|goto|sizeof|typedef)\b)"
    r"(?:[A-Za-z_][\w:<>,*& \t]*?[ \t*&])?(?P<name>~?[A-Za-z_][\w:~]*)\h*\([^;\n]*(?=\n|\Z)"
)
_C_TYPE = (
    r"(?:(?:typedef|static|extern|inline|const|export)\h+)*"
    r"(?P<word>struct|class|enum|union|namespace|concept|module)\b"
    r"\h*(?:(?:class|struct)\h+)?(?P<name>[\w:]*)[^;\n]*(?=\n|\Z)"
)
_C_ATTRIBUTE = r"(?:template\b|\[\[|__\w+__\b|__declspec|requires\b)|[A-Za-z_](?:[\w \t*&<>]|::)*$"
_C_UNFIT = r"\{\h*\n|#\h*(?:if|el|endif)|[A-Za-z_]\w*:\h*\n"

FAMILIES = (
    Family(
        "Python|Starlark",
        (
            r"(?:async\h+)?(?P<word>def|class)\h+(?P<name>\w+)",
            r"(?P<word>cdef|cpdef)\h+(?:[\w.*\[\]]+\h+)*(?P<name>\w+)\h*\(",
        ),
        attribute=r"@\w",
        mark="@",
        comments="#",
        unfit=NEVER,
    ),
    Family(
        "JavaScript|TypeScript|TSX|Vue|Svelte|Astro|CoffeeScript",
        (
            rf"{_MODIFIERS}{_TYPES}",
            rf"{_MODIFIERS}(?P<word>type)\h+(?P<name>[\w$]+)[^\n=]*=",
            rf"{_MODIFIERS}{_FUNCTIONS}",
            (
                r"(?:export\h+)?(?:const|let|var)\h+(?P<name>[\w$]+)[^\n=]*=\h*"
                r"(?:async\b\h*)?(?:(?P<word>function|class)\b|[\w$]+\h*=>|\([^\n]*$)"
            ),
            r"(?:module\.)?exports\.(?P<name>[\w$]+)\h*=\h*(?P<word>function|class|async)\b",
            r"(?P<name>[A-Z][\w$.]*\.[\w$]+)\h*=\h*(?P<word>function)\b",
        ),
        attribute=_ANNOTATION,
        mark="@",
        comments="// /*",
    ),
    Family(
        "Java|Kotlin|Scala|Groovy|Gradle|Swift|Dart|Haxe|Vala",
        (
            rf"{_MODIFIERS}{_TYPES}",
            rf"{_MODIFIERS}{_FUNCTIONS}",
            rf"{_MODIFIERS}(?P<word>typealias|typedef)\h+(?P<name>\w+)",
            (
                r"(?:[A-Z]\w*(?:<[\w<>?, ]*>)?\??|void|int|bool|num|double|String)\h+"
                r"(?P<name>\w+)\([^;\n]*\{\h*$"
            ),
        ),
        attribute=_ANNOTATION,
        mark="@",
        comments="// /*",
    ),
    Family(
        "C#",
        (rf"{_MODIFIERS}{_TYPES}",),
        attribute=r"\[[\w.: ]+(?:\(.*)?[\],(]\h*(?://.*)?$",
        comments="// /*",
        unfit=r"\{\h*\n|#\h*(?:if|el|end)",
    ),
    Family(
        "PHP",
        (rf"{_MODIFIERS}{_TYPES}", rf"{_MODIFIERS}(?P<word>function)\h+&?(?P<name>\w+)"),
        attribute=r"#\[",
        mark="#[",
        comments="// /*",
    ),
    Family(
        "C|C++|Cuda|GLSL|HLSL|Metal|WGSL",
        (_C_TYPE, _C_FUNCTION, r"\h*#\h*define\h+(?P<name>\w+)\([^\n]*\\\h*$"),
        attribute=_C_ATTRIBUTE,
        comments="// /*",
        unfit=_C_UNFIT,
    ),
    Family(
        "Objective-C|Objective-C++",
        (
            r"@(?P<word>interface|implementation|protocol)\h+(?P<name>\w+)[^;\n]*(?=\n|\Z)",
            r"(?P<word>[-+])\h*\([^\n)]*\)\h*(?P<name>\w+)[^;\n]*(?=\n|\Z)",
            _C_TYPE,
            _C_FUNCTION,
        ),
        attribute=_C_ATTRIBUTE,
        comments="// /*",
        unfit=_C_UNFIT + r"|@end",
    ),
    Family(
        "Go|V|Odin",
        (
            r"(?:pub\h+)?(?P<word>func|fn)\h+(?:\([^)\n]*\)\h*)?(?P<name>\w+)",
            r"(?:pub\h+)?(?P<word>type|struct|interface|enum)\h+(?P<name>\w+)",
            r"(?P<name>\w+)\h*::\h*(?P<word>proc|struct|enum|union)\b",
        ),
        attribute=r"@?\[|@\(",
        comments="// /*",
    ),
    Family(
        "Rust",
        (
            (
                r"(?:pub(?:\([^)\n]*\))?\h+)?"
                r"(?:(?:default|async|const|unsafe|auto|extern(?:\h+\"[^\"\n]*\")?)\h+)*"
                r"(?P<word>fn|struct|enum|trait|union|mod|type|macro_rules!)\h+(?P<name>\w+)"
            ),
            r"(?:unsafe\h+)?(?P<word>impl)\b\h*(?:<[^{\n]*?>\h+)?(?P<name>[^{\n]*[^{\s])",
        ),
        attribute=r"#!?\[",
        mark="#[",
        comments="// /*",
    ),
    Family(
        "Zig",
        (
            r"(?:(?:pub|export|extern|inline)\h+)*(?P<word>fn)\h+(?P<name>\w+)",
            (
                r"(?:pub\h+)?const\h+(?P<name>\w+)[^\n=]*=\h*(?:(?:packed|extern)\h+)?"
                r"(?P<word>struct|enum|union)\b"
            ),
            r"(?P<word>test)\h+\"?(?P<name>[^\"{\n]+)",
        ),
    ),
    Family(
        "Solidity|D|Protocol Buffer|Thrift|Prisma|Verilog|SystemVerilog",
        (
            rf"{_MODIFIERS}{_TYPES}",
            (
                rf"{_MODIFIERS}(?P<word>function|event|modifier|message|service|exception|model|package"
                r"|module|interface|task|generator|datasource|type)\h+(?:\w+\h+)*(?P<name>\w+)"
            ),
            r"(?:[\w\[\]]+\h+)+(?P<name>\w+)\([^;\n]*$",
        ),
        attribute=r"@\w[^;{]*$|\(\*.*\*\)$",
        comments="// /*",
        unfit=r"\{\h*\n|end\w+",
    ),
    Family(
        "GraphQL",
        (
            (
                r"(?:extend\h+)?(?P<word>type|interface|enum|input|union|scalar|directive|query|schema"
                r"|mutation|subscription|fragment)\b\h*(?P<name>[@\w]*)"
            ),
        ),
        attribute=r'"[^"].*"$',
        comments="#",
    ),
    Family(
        "Ruby|Crystal",
        (r"(?:private\h+)?(?P<word>def|class|module|struct|macro|enum)\h+(?P<name>[^\s(;<]+)",),
        attribute=r"@\[|sig\h*[{(]|private$",
        comments="#",
        unfit=NEVER,
    ),
    Family(
        "Elixir",
        (
            (
                r"(?P<word>defmodule|defprotocol|defimpl|defmacrop?|defp?|defstruct|defguardp?)\h+"
                r"(?P<name>[\w.?!]+)"
            ),
        ),
        attribute=r"@(?:\w*doc|spec|impl|deprecated|dialyzer|tag)\b",
        mark="@",
        comments="#",
        unfit=NEVER,
    ),
    Family(
        "Erlang|Prolog",
        (
            r"(?P<name>[a-z]\w*)\([^\n]*(?:->|:-)",
            r"-(?P<word>record|type|spec)\(?\h*(?P<name>\w+)",
        ),
        attribute=r"-spec\b",
        comments="%",
    ),
    Family(
        "Lua",
        (
            r"(?:local\h+)?(?P<word>function)\h+(?P<name>[\w.:]+)",
            r"(?:local\h+)?(?P<name>[\w.]+)\h*=\h*(?P<word>function)\b",
        ),
        comments="--",
    ),
    Family(
        "Shell|fish|Awk",
        (
            r"(?P<word>function)\h+(?P<name>[\w:.-]+)",
            r"(?P<name>[\w:.-]+)\h*\(\)",
            r"(?P<word>BEGIN|END)\h*\{",
        ),
        comments="#",
    ),
    Family(
        "PowerShell",
        (r"(?P<word>function|filter|class|enum|workflow)\h+(?P<name>[\w:-]+)",),
        attribute=r"\[[A-Z]\w*\(.*\)\]$",
        comments="# <#",
        ignore_case=True,
    ),
    Family("Batchfile", (r":(?P<name>[A-Za-z_]\w*)",), comments="rem REM @rem ::", unfit=NEVER),
    Family(
        "Perl|Raku",
        (r"(?P<word>sub|package|role|class|method|grammar)\h+(?P<name>[\w:]+)",),
        comments="#",
    ),
    Family(
        "R",
        (
            r"(?P<name>[\w.`%+<-]+?)\h*(?:<-|=)\h*(?P<word>function)\b",
            r"(?P<word>setClass|setMethod|setGeneric|setRefClass)\([\"'](?P<name>[\w.]+)",
        ),
        comments="#",
    ),
    Family(
        "Julia",
        (
            (
                r"(?:@\w+\h+)*(?:mutable\h+|abstract\h+|primitive\h+)?"
                r"(?P<word>function|macro|struct|module|type)\h+(?P<name>[\w.!]+)"
            ),
            r"(?P<name>[\w.!]+)\([^\n=]*\)\h*=(?!=)",
        ),
        attribute=r'@\w+$|"[^"].*"$',
        comments="#",
        unfit=NEVER,
    ),
    Family(
        "Haskell|Elm|PureScript",
        (
            r"(?P<word>data|newtype|type(?:\h+alias)?|class|instance)\h+(?P<name>[\w' ]+)",
            r"(?P<name>[a-z_][\w']*)\h*(?:::|:)\h",
        ),
        attribute=r"[a-z_][\w']*\h*::?\h|\{-#.*#-\}$",
        comments="-- {-",
        unfit=r"where\b",
    ),
    Family(
        "OCaml|Standard ML|F#",
        (
            (
                r"(?P<word>let(?:\h+rec)?|and|val|type|module(?:\h+type)?|exception|class|fun"
                r"|structure|signature|functor|namespace)\h+(?:inline\h+|private\h+)*(?P<name>[\w'.]+)"
            ),
        ),
        attribute=r"\[<.*>\]$|\[@@.*\]$",
        comments="// (*",
        unfit=NEVER,
    ),
    Family(
        "Clojure|Common Lisp|Emacs Lisp|Scheme|Racket",
        (
            r"\((?P<word>def[\w*!?/-]*|cl-def\w+|ns|module|struct|use-package)\h+[('^:\w]*?(?P<name>[^\s()':^\"]+)",
        ),
        comments=";",
    ),
    Family(
        "SQL|PLpgSQL|PLSQL",
        (
            (
                r"create\h+(?:(?:or\h+replace|temp(?:orary)?|unique|materialized|global|external)\h+)*"
                r"(?P<word>table|view|function|procedure|trigger|index|type|schema|sequence|package"
                r"|database|role|extension)\h+(?:(?:if\h+not\h+exists|body)\h+)?(?P<name>[\w.\"`\[\]]+)"
            ),
        ),
        comments="-- /*",
        unfit=NEVER,
        ignore_case=True,
    ),
    Family(
        "Pascal|Ada|VHDL|Fortran|MATLAB|Visual Basic .NET|Visual Basic 6.0|VBA|COBOL|Vim Script"
        "|Tcl|Nim",
        (
            (
                rf"{_MODIFIERS}(?:(?:integer|real|logical|complex|character|double\h+precision)[^\n]*?\h)?"
                r"(?P<word>procedure|function!?|program|unit|package(?:\h+body)?|entity|architecture"
                r"|module|submodule|subroutine|class|classdef|interface|structure|sub|proc|func|method"
                r"|iterator|template|macro|converter|property|task|constructor|destructor|type)\h+"
                r"(?P<name>[^\s(;:=*,]+)"
            ),
        ),
        attribute=r"<[A-Z]\w*(?:\(.*\))?>\h*_?$|\{\..*\.\}$",
        comments="-- // ! % ' # \"",
        unfit=r"end\w*\b",
        ignore_case=True,
    ),
    Family("Assembly", (r"(?P<name>[A-Za-z_.$][\w.$]*):",), comments="; # //", unfit=NEVER),
    Family(
        "CSS|SCSS|Less|Sass",
        (
            (
                r"@(?P<word>mixin|function|media|keyframes|font-face|include|supports|layer)\b\h*"
                r"(?P<name>[^\n{(]*[^\s{(])?"
            ),
            r"(?P<name>[^\s@{}/*;)][^{};\n]*[^\s{};,])\h*\{",
        ),
        comments="// /*",
        unfit=r"\{\h*\n",
    ),
    Family(
        "HTML|Jinja|XML",
        (r"<(?P<word>head|body|section|article|main|header|footer|nav|template|script|style)\b",),
        comments="<!--",
        unfit=r"[/>]|\{%-?\h*end",
    ),
    Family("JSON|JSON with Comments|JSON5|Jupyter Notebook", (), unfit=NEVER),
    Family("YAML", (r"(?P<name>[\w./$\"'-][^\n:#]*):(?:\h|$)", r"---"), comments="#", unfit=NEVER),
    Family(
        "TOML|INI|Java Properties|Dotenv",
        (r"\[{1,2}\h*(?P<name>[^\]\n]+)",),
        comments="# ;",
        unfit=NEVER,
    ),
    Family(
        "HCL",
        (
            (
                r"(?P<word>resource|data|module|variable|output|provider|locals|job)\b\h*"
                r"(?P<name>\"[^{\n]*\")?\h*\{"
            ),
        ),
        comments="# //",
    ),
    Family("Dockerfile", (r"(?P<word>FROM)\h+(?:\S+\h+AS\h+)?(?P<name>\S+)",), "", "", "#", NEVER),
    Family(
        "Makefile|Just",
        (
            r"(?P<word>define)\h+(?P<name>\S+)",
            r"(?P<name>[\w./%$(){}@-][^\n:=#]*?)\h*::?(?![=:])",
        ),
        attribute=r"\.PHONY\h*:|\[[a-z][^\n]*\]$",
        comments="#",
        unfit=r"endef\b|endif\b",
    ),
    Family(
        "CMake|Meson",
        (r"(?P<word>function|macro|project)\h*\(\h*(?P<name>[^\s)]+)",),
        comments="#",
        unfit=r"end\w+",
        ignore_case=True,
    ),
    Family("Diff", (r"(?P<word>diff)\h+(?P<name>[^\n]+)",), comments="", unfit=NEVER),
)
"""Every family that has lines of its own."""

ANY = Family(
    "",
    (
        rf"{_MODIFIERS}{_TYPES}",
        rf"{_MODIFIERS}{_FUNCTIONS}",
        rf"{_MODIFIERS}(?P<word>procedure|macro|impl|package|method|type)\h+(?P<name>\w+)",
    ),
    attribute=_ANNOTATION + r"|#!?\[",
    comments="// # -- /* ;",
)
"""For a language that is not in a family, and for none."""
