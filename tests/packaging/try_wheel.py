"""Builds the distribution and uses it as a stranger would: `python -m tests.packaging.try_wheel`.

The sdist is built from the project, the wheel from the sdist, both into a temporary folder. Then
three clean virtual environments are made (the core alone, one framework each); the wheel is
installed there with the pinned versions and tried from a folder far from the source.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.packaging._source import PACKAGES, ROOT

__all__ = ["Tally", "main", "sdist_faults", "wheel_faults"]

PINS = ROOT / "tests" / "constraints.txt"
FOLDER = Path(__file__).parent
STRANGE = {".venv", "dist", "build", ".git", ".mypy_cache", "__pycache__"}


@dataclass
class Tally:
    """Counts what passed and what failed, and prints each as it comes."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)

    def note(self, name: str, faults: list[str], seconds: float = 0.0) -> bool:
        """Print one line for a step, and one more for each of its faults."""
        print(f"{'FAIL' if faults else 'ok  '} {name} ({seconds:.1f} s)", flush=True)
        for fault in faults:
            print(f"     {fault}", flush=True)
        if faults:
            self.failed.append(name)
        else:
            self.passed += 1
        return not faults

    def run(self, name: str, command: list[str | Path], cwd: Path, *, shown: str = "") -> bool:
        """Run a command; it fails by its exit code, or when `shown` is not in its output."""
        started = time.monotonic()
        ran = subprocess.run(
            [os.fspath(part) for part in command],
            cwd=cwd,
            env=_environment(cwd),
            capture_output=True,
            check=False,
            encoding="utf-8",
        )
        faults = []
        if ran.returncode or shown not in ran.stdout:
            faults = [f"exit code {ran.returncode}", *_tail(ran.stdout), *_tail(ran.stderr)]
        return self.note(name, faults, time.monotonic() - started)


def _environment(cwd: Path) -> dict[str, str]:
    """The environment of the commands: nothing of the source, caches in the temporary folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "XDG_CACHE_HOME": os.fspath(cwd / "cache"), "PYTHONUTF8": "1"}


def _tail(text: str) -> list[str]:
    return text.strip().splitlines()[-25:]


def wheel_faults(names: list[str]) -> list[str]:
    """What is missing in the wheel, and what does not belong there."""
    faults = [
        f"{package}/{file} is missing"
        for package in PACKAGES
        for file in ("__init__.py", "py.typed")
        if f"{package}/{file}" not in names
    ]
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        faults.append("LICENSE is missing")
    faults += [
        f"{name} does not belong in the wheel"
        for name in names
        if name.split("/")[0] not in PACKAGES and ".dist-info/" not in name
    ]
    faults += [f"{name} is no source" for name in names if name.endswith((".pyc", ".ipynb"))]
    return faults


def sdist_faults(names: list[str]) -> list[str]:
    """What is missing in the sdist, and what does not belong there."""
    inside = {name.partition("/")[2] for name in names}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/__init__.py"}
    wanted |= {f"{package}/__init__.py" for package in PACKAGES}
    faults = [f"{name} is missing" for name in sorted(wanted - inside)]
    strange = {".venv", "dist", "build", ".git", ".mypy_cache", "__pycache__"}
    return faults + [
        f"{name} is strange" for name in sorted(inside) if strange & {*name.split("/")}
    ]


def build(folder: Path, tally: Tally) -> Path | None:
    """Build sdist and wheel into `folder`, check their content and give the wheel."""
    command = [sys.executable, "-m", "build", "--outdir", folder, ROOT]
    if not tally.run("build sdist and wheel", command, folder):
        return None
    wheel, sdist = next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        tally.note("content of the sdist", sdist_faults(archive.getnames()))
    with zipfile.ZipFile(wheel) as archive:
        tally.note("content of the wheel", wheel_faults(archive.namelist()))
    return wheel


def try_environment(name: str, wheel: Path, folder: Path, tally: Tally) -> None:
    """Install the wheel with the extra `name` (or `core`: none) and use it."""
    started = time.monotonic()
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    tally.note(f"{name}: make the environment", [], time.monotonic() - started)
    wanted = os.fspath(wheel) + ("" if name == "core" else f"[{name}]")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if not tally.run(f"{name}: install", [*pip, "--constraint", PINS, wanted], folder):
        return
    tally.run(f"{name}: pip check", [python, "-m", "pip", "check"], folder)
    smoke = FOLDER / f"_smoke_{name}.py"
    tally.run(f"{name}: first steps", [python, "-I", "-W", "error", smoke], folder, shown="found")
    if name != "core":
        _try_command(name, python, folder, tally)


def _try_command(name: str, python: Path, folder: Path, tally: Tally) -> None:
    documents = folder / "documents"
    documents.mkdir()
    (documents / "places.md").write_text("# Places\n\nEvery chunk knows its place.\n")
    (documents / "ranks.txt").write_text("排序由名次融合而成。\n", encoding="utf-8")
    command = [python, "-I", "-m", f"{name}_easyrag", documents]
    tally.run(f"{name}: command line", [*command, "place"], folder, shown="places.md:")
    asked = [*command, "名次", "--json"]
    tally.run(f"{name}: command line in Chinese", asked, folder, shown='ranks.txt"')


def main() -> int:
    """Build, install, try; give 1 when something failed."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "dist").mkdir()
        wheel = build(folder / "dist", tally)
        for name in ("core", "langchain", "llamaindex") if wheel else ():
            (folder / name).mkdir()
            try_environment(name, wheel, folder / name, tally)
    print(f"{tally.passed} passed, {len(tally.failed)} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
