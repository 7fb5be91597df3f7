"""Importing a package brings what it needs, nothing else, and changes nothing.

Each question is asked in a fresh interpreter with every warning an error. Modules are counted,
not timed: a count is the same on every machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.packaging._source import PACKAGES, ROOT, imports_of, modules, parse

CORE, LANGCHAIN, LLAMAINDEX = PACKAGES
PROBE = Path(__file__).with_name("_probe.py")

FRAMEWORKS = {
    LANGCHAIN: (
        "langchain_core",
        "langchain_text_splitters",
        "langchain",
        "langgraph",
        "langsmith",
    ),
    LLAMAINDEX: ("llama_index", "llama_cloud", "workflows"),
}
HEAVY = ("pandas", "scipy", "torch", "transformers", "numba", "IPython", "matplotlib", "pytest")
"""What no import of ours may bring, whatever is installed beside it."""

BOUNDS = {CORE: 120, LANGCHAIN: 60, LLAMAINDEX: 60}
"""Modules that an import may add to those of its dependencies, its own not counted.

For the core the dependency is numpy; the bound leaves room for what `asyncio`, `sqlite3` and
`logging` bring. For an adapter it is the core and the framework's modules that it names.
"""

TOTALS = {CORE: 260, LANGCHAIN: 1100, LLAMAINDEX: 1500}
"""Modules of others that an import may load in all, from a bare interpreter (which has about
35). Our own are not counted: they are many because each holds one idea."""


def installed(package: str) -> bool:
    """True when the package's framework is here; the core needs none."""
    return package == CORE or find_spec(FRAMEWORKS[package][0]) is not None


@cache
def probe(package: str, *first: str, folder: str = "", cwd: str | None = None) -> dict[str, Any]:
    """What importing `package` does once the modules in `first` are there."""
    asked = [sys.executable, "-I", "-B", "-W", "error", str(PROBE), folder, package, *first]
    ran = subprocess.run(asked, cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    # An ignored exception (a warning in a finaliser) shows only here.
    assert ran.stderr == ""
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def _within(module: str, packages: tuple[str, ...]) -> bool:
    return module.split(".", maxsplit=1)[0] in packages


def foreign(package: str, loaded: list[str]) -> list[str]:
    """The modules among `loaded` that an import of `package` must not bring."""
    banned = HEAVY + tuple(
        name for owner, names in FRAMEWORKS.items() if owner != package for name in (*names, owner)
    )
    if package == CORE:
        # The core may log and parse, but it speaks to nobody.
        banned += ("requests", "httpx", "urllib3", "aiohttp", "tiktoken", "nltk", "tqdm")
    return [module for module in loaded if _within(module, banned)]


def dependencies(root: Path, package: str) -> tuple[str, ...]:
    """The modules of others that a package names at the top of its files, and the core."""
    named = {
        found.target
        for path in modules(root, package)
        for found in imports_of(parse(path))
        if found.module_level and not found.typing_only and not found.relative
    }
    others = {
        name
        for name in named
        if name.split(".")[0] not in sys.stdlib_module_names and not _within(name, PACKAGES)
    }
    core = () if package == CORE else (CORE,)
    return (*core, *sorted(others))


@pytest.fixture(params=PACKAGES)
def package(request) -> str:
    """Each of the three, if its framework is installed."""
    name: str = request.param
    if not installed(name):
        pytest.skip(f"{FRAMEWORKS[name][0]} is not installed")
    return name


def test_no_foreign_module_is_loaded(package):
    """No framework in the core, no LangChain in the LlamaIndex room and vice versa."""
    assert foreign(package, probe(package)["modules"]) == []


def test_the_import_has_no_side_effect(package):
    """No socket, file, process or thread; nothing of the process changed."""
    told = probe(package, *dependencies(ROOT, package))
    assert told["events"] == []
    assert told["threads"] == 0
    assert told["changed"] == []


def test_the_core_opens_no_socket():
    """Not through a dependency either."""
    assert [event for event in probe(CORE)["events"] if event.startswith("socket.")] == []


def test_the_import_stays_within_its_budget(package):
    """An import adds its own modules and at most the stated number of others."""
    first = ("numpy",) if package == CORE else dependencies(ROOT, package)
    added = [name for name in probe(package, *first)["modules"] if not _within(name, (package,))]
    assert len(added) <= BOUNDS[package], added
    others = [name for name in probe(package)["modules"] if not _within(name, PACKAGES)]
    assert len(others) <= TOTALS[package]


@pytest.mark.parametrize(
    ("name", "source", "symptom"),
    [
        ("writes", "open('left_behind', 'w').close()", "events"),
        ("makes_folder", "import os\nos.mkdir('left_behind')", "events"),
        ("connects", "import socket\nsocket.socket().close()", "events"),
        ("runs", "import subprocess\nsubprocess.run(['true'])", "events"),
        (
            "starts",
            "from threading import Event, Thread\nThread(target=Event().wait, daemon=True).start()",
            "threads",
        ),
        ("configures", "import logging\nlogging.basicConfig()", "changed"),
        ("shouts", "import logging\nlogging.getLogger('a').setLevel(10)", "changed"),
        ("filters", "import warnings\nwarnings.simplefilter('ignore')", "changed"),
        ("sets", "import os\nos.environ['A_NAME'] = '1'", "changed"),
        ("pauses", "import gc\ngc.disable()", "changed"),
        ("paths", "import sys\nsys.path.append('x')", "changed"),
    ],
)
def test_a_planted_side_effect_is_caught(tmp_path, name, source, symptom):
    """Each kind of side effect shows in the answer, and a quiet module shows none."""
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / f"{name}.py").write_text(source, encoding="utf-8")
    (tmp_path / "planted" / "quiet.py").write_text("import logging\nlogging.getLogger('q')\n")
    folder, cwd = str(tmp_path / "planted"), str(tmp_path)
    assert probe(name, folder=folder, cwd=cwd)[symptom]
    quiet = probe("quiet", folder=folder, cwd=cwd)
    assert quiet == {"modules": ["quiet"], "events": [], "threads": 0, "changed": []}


def test_a_planted_warning_is_caught(tmp_path):
    """A module that warns on import cannot be imported here."""
    (tmp_path / "warns.py").write_text("import warnings\nwarnings.warn('x')\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="UserWarning"):
        probe("warns", folder=str(tmp_path))


@pytest.mark.parametrize(
    ("package", "module"),
    [
        (CORE, "langchain_core.documents"),
        (CORE, "llama_index.core"),
        (CORE, "llamaindex_easyrag.retrievers"),
        (CORE, "tiktoken"),
        (LANGCHAIN, "llama_index.core"),
        (LANGCHAIN, "llamaindex_easyrag"),
        (LLAMAINDEX, "langchain_core"),
        (LLAMAINDEX, "langsmith"),
        (LLAMAINDEX, "torch"),
    ],
)
def test_a_planted_foreign_module_is_caught(package, module):
    """The list of foreign modules names the other rooms, the frameworks and the heavy ones."""
    own = {CORE: "numpy", LANGCHAIN: "langchain_core.documents", LLAMAINDEX: "llama_index.core"}
    assert foreign(package, [module, own[package], CORE]) == [module]


def test_the_dependencies_are_read_from_the_source(tmp_path):
    """Only what runs at import counts, and the standard library is nobody's."""
    (tmp_path / LANGCHAIN).mkdir()
    (tmp_path / LANGCHAIN / "a.py").write_text(
        "import json\nfrom langchain_core.documents import Document\n"
        "from easyrag_core import Hit\ndef f():\n    import tqdm\n",
        encoding="utf-8",
    )
    assert dependencies(tmp_path, LANGCHAIN) == (CORE, "langchain_core.documents")
