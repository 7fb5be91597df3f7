"""Who may import whom: the rooms and arrows of the design, held by reading the source."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import pytest

from tests.packaging._source import PACKAGES, ROOT, imports_of, module_name, modules, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.packaging._source import Import

CORE, LANGCHAIN, LLAMAINDEX = PACKAGES

_GROUND = frozenset({"errors", "types", "text", "plans"})
_LEVEL_1 = frozenset(
    {"chunking", "ranking", "filters", "routing", "tools", "evaluation", "testing"}
) | {"explanation", "files", "telemetry"}
# One bar for all long work; it can say which package is missing and nothing else.
_SHARED = _GROUND | {"_progress", "_shown", "events"}
ROOMS = {
    **dict.fromkeys(_GROUND, frozenset()),
    "_progress": frozenset({"errors"}),
    # How text and tables look, whoever shows them.
    "_shown": frozenset({"text"}),
    "bulk": frozenset(),
    # Whatever runs reports what happens, routing and query as much as the pipeline.
    "events": frozenset(),
    **dict.fromkeys(_LEVEL_1, _SHARED),
    "index": _SHARED | {"ranking", "filters"},
    "query": _SHARED | {"filters", "index"},
    "pipeline": _SHARED | {"ranking"},
    # What both command lines share: it stands on everything and nothing in the core sees it.
    "console": _SHARED | _LEVEL_1 | {"index", "query", "pipeline"},
}
"""Room of the core to the rooms that it may import. Who adds a room says here what it sees."""

FRAMEWORKS = {
    LANGCHAIN: ("langchain", "langgraph", "langsmith"),
    LLAMAINDEX: ("llama_", "workflows"),
}
"""Adapter to the beginnings of its framework's package names."""

EXTRAS = {
    CORE: (),
    LANGCHAIN: ("langchain_core", "langchain_text_splitters"),
    LLAMAINDEX: ("llama_index.core", "llama_index_instrumentation"),
}
"""Package to what its extra installs for certain: the rest of a framework is optional, too."""

BASE = frozenset({"numpy", "pydantic"})
ADAPTERS_BASE = BASE | {"typing_extensions"}
"""pydantic and both frameworks bring `typing_extensions`; the core does without it."""

DOCUMENTS = {
    "langchain_core.documents": {"Document", "BaseMedia", "Blob"},
    "llama_index.core.schema": {
        "BaseNode",
        "Document",
        "ImageDocument",
        "ImageNode",
        "IndexNode",
        "Node",
        "NodeWithScore",
        "TextNode",
    },
}
FORBIDDEN_MODULES = frozenset({"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"})
FORBIDDEN_CALLS = frozenset({"eval", "exec", "compile", "__import__"})
PRINTERS = frozenset({"print", "pprint"})


def room_of(module: str) -> str:
    """`easyrag_core.index.bm25` stands in `index`; the package itself is the `facade`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "facade"


def _each(root: Path, *packages: str) -> Iterator[tuple[str, str, ast.Module]]:
    for package in packages:
        for path in modules(root, package):
            yield path.relative_to(root).as_posix(), module_name(root, path), parse(path)


def _imports(root: Path, *packages: str) -> Iterator[tuple[str, str, Import]]:
    for place, module, tree in _each(root, *packages):
        for found in imports_of(tree):
            yield f"{place}:{found.line}", module, found


def _top(found: Import) -> str:
    return found.target.split(".")[0]


def _core_room(found: Import) -> str:
    """The room that an import of the core reaches, also by `from easyrag_core import index`."""
    if found.target == CORE and (found.name in ROOMS or found.name.startswith("_")):
        return found.name
    return room_of(found.target)


def _seen(module: str) -> frozenset[str]:
    """The rooms that a module of the core may import."""
    room = room_of(module)
    return ROOMS.get(room, frozenset()) | {room}


def room_faults(root: Path) -> list[str]:
    """Imports inside the core that no arrow draws, and rooms that the plan does not know."""
    faults = [
        f"{place}: {room_of(module)!r} is no room of the plan"
        for place, module, _ in _each(root, CORE)
        if room_of(module) not in {"facade", *ROOMS}
    ]
    for place, module, found in _imports(root, CORE):
        if room_of(module) == "facade" or found.typing_only or _top(found) != CORE:
            continue
        target = _core_room(found)
        if target not in _seen(module):
            faults.append(f"{place}: {room_of(module)} imports {target}")
    return faults


def framework_faults(root: Path) -> list[str]:
    """Frameworks outside their own adapter, adapters that know each other, a core that knows them.

    Imports for the type checker count: a name of the other framework is one too many.
    """
    faults = []
    for place, module, found in _imports(root, *PACKAGES):
        package = module.split(".")[0]
        owners = {
            owner for owner, names in FRAMEWORKS.items() if found.target.startswith(names)
        } | ({_top(found)} & set(FRAMEWORKS))
        if owners - {package}:
            faults.append(f"{place}: {package} imports {found.target}")
    return faults


def third_party_faults(root: Path) -> list[str]:
    """Packages imported with the module that are neither the base's nor the own framework's.

    Optional ones stand inside functions, where a missing one can be told.
    """
    faults = []
    for place, module, found in _imports(root, *PACKAGES):
        package = module.split(".")[0]
        base = BASE if package == CORE else ADAPTERS_BASE
        allowed = base | sys.stdlib_module_names | {CORE}
        own = f"{found.target}.".startswith(
            tuple(f"{name}." for name in (package, *EXTRAS[package]))
        )
        at_import = found.module_level and not found.typing_only and not found.relative
        if at_import and not own and _top(found) not in allowed:
            faults.append(f"{place}: {found.target} is imported with the module")
    return faults


def private_faults(root: Path) -> list[str]:
    """Private modules and names of one package that another package imports."""
    faults = []
    for place, module, found in _imports(root, *PACKAGES):
        parts = [*found.target.split("."), *([found.name] if found.name else [])]
        of_other = parts[0] in PACKAGES and parts[0] != module.split(".", maxsplit=1)[0]
        if of_other and any(map(_is_private, parts)):
            faults.append(f"{place}: {'.'.join(parts)} is private to {parts[0]}")
    return faults


def _is_private(part: str) -> bool:
    return part.startswith("_") and not part.startswith("__")


def convert_faults(root: Path) -> list[str]:
    """Adapter files other than `_convert.py` that hold core values and framework documents.

    Counted is what the running code imports: annotations alone build nothing.
    """
    faults = []
    for place, _, tree in _each(root, LANGCHAIN, LLAMAINDEX):
        if place.endswith("/_convert.py"):
            continue
        running = [found for found in imports_of(tree) if not found.typing_only]
        core = {found.name for found in running if _top(found) == CORE} & {"Chunk", "Hit"}
        documents = {
            found.name for found in running if found.name in DOCUMENTS.get(found.target, ())
        }
        if core and documents:
            faults.append(f"{place}: {sorted(core)} meet {sorted(documents)} outside _convert.py")
    return faults


def danger_faults(root: Path) -> list[str]:
    """Pickle and its kin, `eval` and its kin, arrays loaded with pickles in them."""
    faults = [
        f"{place}: {found.target} is not allowed"
        for place, _, found in _imports(root, *PACKAGES)
        if _top(found) in FORBIDDEN_MODULES
    ]
    for place, _, tree in _each(root, *PACKAGES):
        faults += [
            f"{place}:{call.lineno}: {call.func.id}()" for call in _calls(tree, FORBIDDEN_CALLS)
        ]
        faults += [
            f"{place}:{node.value.lineno}: allow_pickle must be False"
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        ]
    return faults


def print_faults(root: Path) -> list[str]:
    """Output outside of the console."""
    return [
        f"{place}:{call.lineno}: {call.func.id}()"
        for place, module, tree in _each(root, *PACKAGES)
        if room_of(module) not in {"console", "__main__"}
        for call in _calls(tree, PRINTERS)
    ]


def _calls(tree: ast.Module, names: frozenset[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


CHECKS = {
    "rooms": room_faults,
    "frameworks": framework_faults,
    "third-party": third_party_faults,
    "private": private_faults,
    "convert": convert_faults,
    "danger": danger_faults,
    "print": print_faults,
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_source_keeps_the_rule(check):
    """No file of the three packages breaks the rule."""
    assert CHECKS[check](ROOT) == []


def test_the_source_is_there():
    """The rules above are asked of real files."""
    assert all(modules(ROOT, package) for package in PACKAGES)


def test_a_lower_room_never_sees_a_higher_one():
    """The allow-list itself has no way back: following it from any room never returns."""

    def reach(room: str, seen: frozenset[str]) -> None:
        assert room not in seen, f"{room} reaches itself through {sorted(seen)}"
        for below in ROOMS[room]:
            reach(below, seen | {room})

    for room in ROOMS:
        reach(room, frozenset())


PLANTED = [
    ("rooms", "easyrag_core/types.py", "from easyrag_core.errors import EasyRAGError"),
    ("rooms", "easyrag_core/ranking/mmr.py", "from easyrag_core.index.analyzer import X"),
    ("rooms", "easyrag_core/ranking/mmr.py", "from easyrag_core import index"),
    ("rooms", "easyrag_core/ranking/mmr.py", "from easyrag_core import BM25Index"),
    ("rooms", "easyrag_core/chunking/a.py", "def f():\n    import easyrag_core.ranking"),
    ("rooms", "easyrag_core/query/a.py", "from easyrag_core.pipeline import run_channels"),
    ("rooms", "easyrag_core/leftovers.py", "x = 1"),
    ("frameworks", "easyrag_core/text.py", "import langchain_core.documents"),
    ("frameworks", "easyrag_core/text.py", "def f():\n    from llama_index.core import Settings"),
    (
        "frameworks",
        "easyrag_core/text.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from langchain_core import x",
    ),
    ("frameworks", "langchain_easyrag/a.py", "import llamaindex_easyrag"),
    ("frameworks", "langchain_easyrag/a.py", "from llama_index.core.schema import TextNode"),
    ("frameworks", "llamaindex_easyrag/a.py", "from langchain_text_splitters import TextSplitter"),
    ("frameworks", "easyrag_core/a.py", "from langchain_easyrag import BM25Retriever"),
    ("third-party", "easyrag_core/text.py", "import tqdm"),
    (
        "third-party",
        "easyrag_core/text.py",
        "try:\n    import Stemmer\nexcept ImportError:\n    pass",
    ),
    ("third-party", "easyrag_core/text.py", "class A:\n    import regex"),
    ("third-party", "easyrag_core/text.py", "from typing_extensions import override"),
    ("third-party", "langchain_easyrag/a.py", "import requests"),
    ("third-party", "langchain_easyrag/a.py", "from langchain_classic.retrievers import x"),
    ("third-party", "llamaindex_easyrag/a.py", "from llama_index.retrievers.bm25 import x"),
    ("private", "langchain_easyrag/a.py", "from easyrag_core.index._folder import read_folder"),
    ("private", "llamaindex_easyrag/a.py", "from easyrag_core.index import _folder"),
    ("private", "llamaindex_easyrag/a.py", "from easyrag_core.index.bm25 import _hidden"),
    (
        "convert",
        "langchain_easyrag/a.py",
        "from langchain_core.documents import Document\nfrom easyrag_core import Hit",
    ),
    (
        "convert",
        "llamaindex_easyrag/a.py",
        "from llama_index.core.schema import TextNode\nfrom easyrag_core.types import Chunk",
    ),
    ("danger", "easyrag_core/text.py", "import pickle"),
    ("danger", "easyrag_core/text.py", "def f(x):\n    return eval(x)"),
    ("danger", "easyrag_core/text.py", "y = load('a', allow_pickle=True)"),
    ("print", "easyrag_core/text.py", "print('x')"),
    ("print", "langchain_easyrag/a.py", "def f():\n    print('x')"),
]


@pytest.mark.parametrize(("check", "file", "source"), PLANTED)
def test_a_planted_fault_is_caught(tmp_path, check, file, source):
    """Each rule names the file in which it was broken."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    faults = CHECKS[check](tmp_path)
    assert len(faults) == 1
    assert faults[0].startswith(file)


ALLOWED = {
    "easyrag_core/__init__.py": "from easyrag_core.index.bm25 import BM25Index",
    "easyrag_core/index/bm25/_scores.py": "import numpy\nfrom easyrag_core.index._folder import f",
    "easyrag_core/index/hybrid.py": (
        "from typing import TYPE_CHECKING\nfrom easyrag_core.ranking.fusion import x\n"
        "if TYPE_CHECKING:\n    from easyrag_core.pipeline import y\n"
        "def f():\n    import tqdm\n    import re\n    return re.compile('a')\n"
        "z = load('a', allow_pickle=False)"
    ),
    "easyrag_core/console.py": "from easyrag_core.pipeline import x\nprint('x')",
    "langchain_easyrag/_convert.py": (
        "from langchain_core.documents import Document\nfrom easyrag_core import Chunk, Hit"
    ),
    "langchain_easyrag/retrievers.py": (
        "from typing import TYPE_CHECKING\nfrom langchain_core.documents import Document\n"
        "from easyrag_core import BM25Index\nif TYPE_CHECKING:\n    from easyrag_core import Hit"
    ),
    "llamaindex_easyrag/retrievers.py": "from typing_extensions import override",
    "llamaindex_easyrag/__main__.py": "from easyrag_core.console import main\nprint(main())",
}


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_allowed_passes(tmp_path, check):
    """The rules leave alone what the design draws."""
    for file, source in ALLOWED.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    assert CHECKS[check](tmp_path) == []
