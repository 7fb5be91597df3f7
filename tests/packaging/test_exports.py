"""What is offered: `__all__` in every module, complete, in order, importable, documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from importlib.metadata import version
from importlib.util import find_spec
from itertools import zip_longest
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from tests.packaging._source import PACKAGES, ROOT, module_name, modules, parse

if TYPE_CHECKING:
    from pathlib import Path

CORE, LANGCHAIN, LLAMAINDEX = PACKAGES
NEEDS = {CORE: "numpy", LANGCHAIN: "langchain_core", LLAMAINDEX: "llama_index"}
VARIABLES = {"TypeVar", "ParamSpec", "TypeVarTuple"}
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def offered(tree: ast.Module) -> list[str] | None:
    """What a module's `__all__` lists; `None` when it has none or computes it."""
    for node in tree.body:
        for name, value in _assigned(node):
            if name == "__all__" and isinstance(value, ast.List | ast.Tuple):
                return [ast.literal_eval(element) for element in value.elts]
    return None


def _assigned(node: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [(node.target.id, node.value)]
    return []


def public_names(tree: ast.Module, *, facade: str) -> set[str]:
    """The names without underscore that a module defines.

    A facade (a package's dotted name; empty for a plain module) also offers what it imports from
    its own modules.
    """
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, _Definition):
            names.add(node.name)
        elif facade and isinstance(node, ast.ImportFrom) and _is_below(node.module, facade):
            names |= {alias.asname or alias.name for alias in node.names}
        names |= {name for name, value in _assigned(node) if not _is_variable(value)}
    return {name for name in names if not name.startswith("_") and name != "logger"}


def _is_below(module: str | None, package: str) -> bool:
    return (module or "").startswith(f"{package}.")


def _is_variable(value: ast.expr | None) -> bool:
    """Type variables are told by every checker and nobody imports them."""
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") in VARIABLES


def order(name: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Constants, then classes, then the rest; numbers by value: the order that ruff keeps."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    parts = re.split(r"(\d+)", name)
    return kind, [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def undocumented_constants(tree: ast.Module) -> list[str]:
    """Offered constants and aliases without a docstring below them."""
    missing = []
    for node, after in zip_longest(tree.body, tree.body[1:]):
        told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for name, _ in _assigned(node):
            if name in (offered(tree) or []) and not name.startswith("__") and not told:
                missing.append(name)
    return missing


def export_faults(root: Path, package: str) -> list[str]:
    """What is wrong with the `__all__` of each module and with the constants it offers."""
    faults = []
    for path in modules(root, package):
        if path.name == "__main__.py":
            continue
        tree, place = parse(path), path.relative_to(root).as_posix()
        names = offered(tree)
        is_facade = path.name == "__init__.py"
        defined = public_names(tree, facade=module_name(root, path) if is_facade else "")
        if names is None:
            faults += [f"{place}: no __all__"] if defined else []
            continue
        faults += [
            f"{place}: {name} is missing in __all__" for name in sorted(defined - set(names))
        ]
        if "/_" not in place.replace("/__init__", ""):
            faults += [f"{place}: {name} has no docstring" for name in undocumented_constants(tree)]
        if names != sorted(names, key=order):
            faults.append(f"{place}: __all__ is not sorted")
        if len(names) != len(set(names)):
            faults.append(f"{place}: __all__ says a name twice")
    return faults


def undocumented(owner: str, thing: Any) -> list[str]:
    """The public functions, classes and methods at or below `thing` that have no docstring.

    A method that overrides a documented one may leave it to that one.
    """
    if not inspect.isclass(thing):
        return [owner] if inspect.isroutine(thing) and not thing.__doc__ else []
    missing = [] if thing.__doc__ else [owner]
    for name, member in vars(thing).items():
        asked = isinstance(member, FunctionType | classmethod | staticmethod | property)
        told = any(getattr(vars(base).get(name), "__doc__", None) for base in thing.__mro__)
        if asked and not name.startswith("_") and not told:
            missing.append(f"{owner}.{name}")
    return missing


@pytest.fixture(params=PACKAGES)
def package(request) -> str:
    """Each of the three packages."""
    name: str = request.param
    return name


def test_all_is_complete_and_in_order(package):
    """Every module lists what it offers, sorted, nothing twice, nothing forgotten."""
    assert export_faults(ROOT, package) == []


def _imported(package: str) -> list[Any]:
    if find_spec(NEEDS[package]) is None:
        pytest.skip(f"{NEEDS[package]} is not installed")
    names = (module_name(ROOT, path) for path in modules(ROOT, package))
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def test_what_is_offered_can_be_imported(package):
    """Each name of each `__all__` exists, so a star import works."""
    gone = [
        f"{module.__name__}.{name}"
        for module in _imported(package)
        for name in getattr(module, "__all__", ())
        if not hasattr(module, name)
    ]
    assert gone == []


def test_what_is_offered_is_documented(package):
    """Every module, public function, class and method has a docstring."""
    found = _imported(package)
    missing = [module.__name__ for module in found if not module.__doc__]
    for module in found:
        for name in getattr(module, "__all__", ()):
            missing += undocumented(f"{module.__name__}.{name}", getattr(module, name, None))
    assert missing == []


def test_types_are_shipped(package):
    """`py.typed` tells type checkers to read the annotations."""
    assert (ROOT / package / "py.typed").is_file()


def test_a_package_offers_something(package):
    """The facade is not empty."""
    assert offered(parse(ROOT / package / "__init__.py"))


def test_the_version_is_the_installed_one(package):
    """Where a package tells a version it is that of the distribution."""
    if find_spec(NEEDS[package]) is None:
        pytest.skip(f"{NEEDS[package]} is not installed")
    module = importlib.import_module(package)
    assert getattr(module, "__version__", version("easyrag-core")) == version("easyrag-core")


FINE = '''"""Doc."""
from typing import TypeVar
__all__ = ["LIMIT", "Alpha", "Beta2", "Beta10", "act"]
LIMIT = 3
"""How many."""
T = TypeVar("T")
_hidden = 1
class Alpha: ...
class Beta2: ...
class Beta10: ...
def act(): ...
'''


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (FINE, []),
        ("x = 1", ["no __all__"]),
        (FINE.replace('"act"]', "]"), ["act is missing in __all__"]),
        (FINE.replace('"LIMIT", "Alpha"', '"Alpha", "LIMIT"'), ["__all__ is not sorted"]),
        (FINE.replace('"act"]', '"act", "act"]'), ["__all__ says a name twice"]),
        (FINE.replace('"""How many."""', ""), ["LIMIT has no docstring"]),
    ],
)
@pytest.mark.parametrize("file", ["__init__.py", "room.py"])
def test_a_planted_fault_is_caught(tmp_path, file, source, told):
    """Each way to forget a name is told; a module in order is left alone."""
    (tmp_path / CORE).mkdir()
    (tmp_path / CORE / file).write_text(source, encoding="utf-8")
    assert export_faults(tmp_path, CORE) == [f"{CORE}/{file}: {text}" for text in told]


def test_a_facade_that_forgets_an_import_is_caught(tmp_path):
    """What `__init__` imports it offers."""
    (tmp_path / CORE).mkdir()
    source = (
        "from importlib.util import find_spec\n"
        "from easyrag_core.a import One, Two\n__all__ = ['One']\n"
    )
    (tmp_path / CORE / "__init__.py").write_text(source, encoding="utf-8")
    assert export_faults(tmp_path, CORE) == [f"{CORE}/__init__.py: Two is missing in __all__"]


def test_a_missing_docstring_is_caught():
    """Classes, functions, methods and properties are asked; private ones and constants are not."""

    class Told:
        """A class."""

        def documented(self):
            """Do."""

        def silent(self): ...

        def _private(self): ...

        @property
        def quiet(self): ...

        @classmethod
        def build(cls): ...

    class Child(Told):
        """Overrides."""

        def documented(self): ...

    assert undocumented("m.Told", Told) == ["m.Told.silent", "m.Told.quiet", "m.Told.build"]
    assert undocumented("m.Child", Child) == []
    assert undocumented("m.f", lambda: None) == ["m.f"]
    assert undocumented("m.X", 3) == []
