"""Arrays, texts and settings in one folder that is never seen half written.

```
path/
  manifest.json                  what there is, with sizes and checksums; names the generation
  generation-<16 hex digits>/    <name>.npy, <name>.utf8 with <name>-offsets.npy
  .lock                          held by the one who writes
```

A save writes a new generation beside the old one, flushes it to the disk and then replaces the
manifest by one rename: whoever reads sees the old generation or the new one, also after a kill
or a power cut. The old generation is removed afterwards; on POSIX systems arrays that are still
mapped from it go on working.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import stat
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from easyrag_core.errors import IndexFormatError, InvalidParameterError
from easyrag_core.index._folder_files import (
    checksum_of,
    flush,
    flush_folder,
    locked,
    read_array,
    read_texts,
    write_array,
    write_texts,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["FolderContents", "pack_parts", "read_folder", "remove_folder", "write_folder"]

_FORMAT = "easyrag-folder"
_LAYOUT = 1
_MANIFEST = "manifest.json"
_LOCK = ".lock"
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")
_GENERATION = re.compile(r"generation-[0-9a-f]{16}")
_LEFTOVER = re.compile(r"generation-[0-9a-f]{16}|manifest\.json\.[0-9a-f]{16}|\.lock")
_OURS = re.compile(rf"manifest\.json|{_LEFTOVER.pattern}")
_READ_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class FolderContents:
    """What one folder holds.

    Attributes:
        arrays: Name to array (numbers or bools, any shape).
        settings: JSON values; tuples come back as lists.
        texts: Name to list of strings, kept exactly (newlines, empty ones, lone surrogates).
    """

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, list[str]] = field(default_factory=dict)

    def part(self, name: str) -> FolderContents:
        """Take out what `pack_parts` put in under `name`.

        Args:
            name: The part's name.

        Returns:
            The part, with its own names.

        Raises:
            IndexFormatError: There is no such part.
        """
        if name not in self.settings:
            raise IndexFormatError(f"The saved index has no part {name!r}: rebuild it.")
        prefix = name + "/"
        return FolderContents(
            arrays={k.removeprefix(prefix): v for k, v in _under(prefix, self.arrays)},
            settings=self.settings[name],
            texts={k.removeprefix(prefix): v for k, v in _under(prefix, self.texts)},
        )


def pack_parts(parts: Mapping[str, FolderContents]) -> FolderContents:
    """Join several contents, so that one `write_folder` commits all of them in one step.

    Args:
        parts: Part name (lower-case letters, digits, `_`) to contents.

    Returns:
        Contents with names `part/name`; `FolderContents.part` takes them apart again.

    >>> both = pack_parts({"a": FolderContents(settings={"x": 1}), "b": FolderContents()})
    >>> both.part("a").settings
    {'x': 1}
    """
    return FolderContents(
        arrays={f"{p}/{k}": v for p, part in parts.items() for k, v in part.arrays.items()},
        settings={p: dict(part.settings) for p, part in parts.items()},
        texts={f"{p}/{k}": v for p, part in parts.items() for k, v in part.texts.items()},
    )


def write_folder(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    arrays: Mapping[str, NDArray[Any]],
    settings: Mapping[str, Any],
    texts: Mapping[str, list[str]] | None = None,
) -> None:
    """Save contents as a folder, in one step that holds or does not happen.

    Args:
        path: The folder; made with its parents when it does not exist. It must be empty, or
            hold an earlier save of the same kind, which is replaced.
        kind: What is saved, e.g. `"bm25"`; checked when it is read.
        version: Format version of this kind.
        arrays: Name to array; names are lower-case letters, digits, `_`, with `/` between parts.
        settings: JSON values.
        texts: Name to list of strings.

    Raises:
        IndexFormatError: The path is a file, or a folder that holds something else; nothing of
            it is touched.
        InvalidParameterError: A name, an array's type or a setting that cannot be saved.
        OSError: The disk refuses; the earlier save stays as it was.
    """
    root = Path(path)
    texts = texts or {}
    _check_names((*arrays, *texts))
    _check_ours(root, kind)
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / _LOCK):
        _check_ours(root, kind)
        generation = root / f"generation-{secrets.token_hex(8)}"
        try:
            files = _write_generation(generation, arrays, texts)
            _commit(
                root,
                {
                    "kind": kind,
                    "version": version,
                    "generation": generation.name,
                    "arrays": sorted(arrays),
                    "texts": sorted(texts),
                    "files": files,
                    "settings": dict(settings),
                },
            )
        except BaseException:
            shutil.rmtree(generation, ignore_errors=True)
            raise
        _remove_leftovers(root, keep=generation.name)


def read_folder(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    mmap: bool = True,
    verify: bool = True,
) -> FolderContents:
    """Load what `write_folder` saved.

    Args:
        path: The folder.
        kind: The kind that is expected.
        version: The format version that the caller understands.
        mmap: Map the arrays read-only instead of reading them into memory.
        verify: Compare every file's checksum; `False` compares the sizes alone.

    Returns:
        The contents.

    Raises:
        FileNotFoundError: The path does not exist.
        IndexFormatError: It is torn, truncated, damaged, foreign, of another kind or version.
    """
    root = Path(path)
    for attempt in range(_READ_ATTEMPTS):
        manifest = _read_manifest(root)
        _check_header(root, manifest, kind, version)
        try:
            return _read_generation(root, manifest, mmap=mmap, verify=verify)
        except FileNotFoundError as error:
            # A writer may have replaced the generation after we had read its name.
            replaced = _read_manifest(root)["generation"] != manifest["generation"]
            if replaced and attempt < _READ_ATTEMPTS - 1:
                continue
            _refuse(root, f"{Path(error.filename).name} is missing", error)
    raise AssertionError("the last attempt returns or raises")


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Remove a saved index, in whatever state it is.

    Args:
        path: The folder; nothing happens when it does not exist.

    Raises:
        IndexFormatError: It holds something else; nothing of it is touched.
    """
    root = Path(path)
    if not root.exists():
        return
    foreign = sorted(p.name for p in root.iterdir() if not _OURS.fullmatch(p.name))
    if foreign:
        advice = "Nothing was removed: give the folder of an index."
        raise IndexFormatError(f"{root} holds {', '.join(foreign[:3])}. {advice}")
    shutil.rmtree(root)


# Refusals


def _refuse(root: Path, what: str, cause: BaseException | None = None) -> NoReturn:
    message = f"{root} cannot be read as an index: {what}. Rebuild it, or give another path."
    raise IndexFormatError(message) from cause


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            allowed = "use lower-case letters, digits and _, with / between parts"
            raise InvalidParameterError("name", name, allowed)


def _check_ours(root: Path, kind: str) -> None:
    """Refuse to write where something else lives."""
    advice = "Nothing was written: give an empty folder or a new path."
    if root.is_symlink() and not root.exists():
        raise IndexFormatError(f"{root} is a link to something that is not there. {advice}")
    if not root.exists():
        return
    if not root.is_dir():
        raise IndexFormatError(f"{root} is a file, an index needs a folder. {advice}")
    if (root / _MANIFEST).exists():
        found = _read_manifest(root)["kind"]
        if found != kind:
            raise IndexFormatError(f"{root} holds a {found!r} index, not {kind!r}. {advice}")
        return
    foreign = sorted(p.name for p in root.iterdir() if not _LEFTOVER.fullmatch(p.name))
    if foreign:
        shown = ", ".join(foreign[:3])
        raise IndexFormatError(f"{root} is not empty and not an index (it has {shown}). {advice}")


def _check_header(root: Path, manifest: Mapping[str, Any], kind: str, version: int) -> None:
    if manifest["kind"] != kind:
        _refuse(root, f"it holds a {manifest['kind']!r} index and {kind!r} is expected")
    found = manifest["version"]
    if found > version:
        _refuse(
            root,
            f"format version {found} was written by a newer easyrag-core, this one reads "
            f"{version} (upgrading also helps)",
        )
    if found < version:
        _refuse(root, f"format version {found} is too old, this easyrag-core reads {version}")


# Manifest


def _manifest_checksum(manifest: Mapping[str, Any]) -> int:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return zlib.crc32(json.dumps(rest, sort_keys=True).encode())


def _read_manifest(root: Path) -> dict[str, Any]:
    if not root.exists():
        raise FileNotFoundError(2, "No index here; check the path or save one first", str(root))
    if not root.is_dir():
        _refuse(root, "it is a file, not a folder")
    try:
        manifest = json.loads((root / _MANIFEST).read_bytes())
    except FileNotFoundError as error:
        _refuse(root, f"it has no {_MANIFEST}", error)
    except OSError as error:
        if not (root / _MANIFEST).is_dir():
            raise
        _refuse(root, f"{_MANIFEST} is a folder", error)
    except ValueError as error:
        _refuse(root, f"{_MANIFEST} is torn or not JSON", error)
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        _refuse(root, f"{_MANIFEST} belongs to something else")
    if manifest.get("layout") != _LAYOUT:
        _refuse(root, f"its layout {manifest.get('layout')!r} is not the one known here")
    if manifest.get("checksum") != _manifest_checksum(manifest):
        _refuse(root, f"{_MANIFEST} was changed or damaged")
    if not _GENERATION.fullmatch(str(manifest.get("generation"))):
        _refuse(root, f"{_MANIFEST} names no generation")
    return manifest


def _commit(root: Path, facts: dict[str, Any]) -> None:
    manifest = {"format": _FORMAT, "layout": _LAYOUT, **facts}
    try:
        # Through JSON once, so that the checksum is over what will be read.
        manifest = json.loads(json.dumps(manifest, allow_nan=False))
    except (TypeError, ValueError) as error:
        allowed = f"plain JSON values are needed ({error})"
        raise InvalidParameterError("settings", facts["settings"], allowed) from error
    manifest["checksum"] = _manifest_checksum(manifest)
    aside = root / f"{_MANIFEST}.{secrets.token_hex(8)}"
    try:
        with aside.open("wb") as file:
            file.write(json.dumps(manifest, sort_keys=True, indent=1).encode())
            flush(file)
        aside.replace(root / _MANIFEST)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    flush_folder(root)
    flush_folder(root.resolve().parent)


# Generation


def _file_name(name: str, suffix: str) -> str:
    return name.replace("/", ".") + suffix


def _write_generation(
    folder: Path, arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, list[str]]
) -> dict[str, list[int]]:
    folder.mkdir()
    files = {}
    for name, array in arrays.items():
        file_name = _file_name(name, ".npy")
        files[file_name] = write_array(folder / file_name, array)
    for name, strings in texts.items():
        blob, offsets = _file_name(name, ".utf8"), _file_name(name, "-offsets.npy")
        files[blob], places = write_texts(folder / blob, strings)
        files[offsets] = write_array(folder / offsets, places)
    flush_folder(folder)
    return files


def _read_generation(
    root: Path, manifest: Mapping[str, Any], *, mmap: bool, verify: bool
) -> FolderContents:
    folder = root / manifest["generation"]
    for file_name, (size, checksum) in manifest["files"].items():
        _check_file(root, folder / file_name, size, checksum if verify else None)
    try:
        return FolderContents(
            arrays={
                name: read_array(folder / _file_name(name, ".npy"), mmap=mmap)
                for name in manifest["arrays"]
            },
            settings=manifest["settings"],
            texts={name: _read_texts(folder, name) for name in manifest["texts"]},
        )
    except (ValueError, EOFError) as error:
        _refuse(root, f"{folder.name} is damaged ({error})", error)


def _read_texts(folder: Path, name: str) -> list[str]:
    offsets = read_array(folder / _file_name(name, "-offsets.npy"), mmap=False)
    return read_texts(folder / _file_name(name, ".utf8"), offsets)


def _check_file(root: Path, file_path: Path, size: int, checksum: int | None) -> None:
    found = file_path.stat()  # asked once: by the next question another process may have saved
    if not stat.S_ISREG(found.st_mode) or found.st_size != size:
        _refuse(root, f"{file_path.name} is no file of {size} bytes as it was saved, but truncated")
    if checksum is not None and checksum_of(file_path) != checksum:
        _refuse(root, f"{file_path.name} has another checksum than when it was saved")


def _remove_leftovers(root: Path, *, keep: str) -> None:
    """Remove earlier generations and what killed writers left."""
    for entry in root.iterdir():
        if entry.name in (keep, _LOCK) or not _LEFTOVER.fullmatch(entry.name):
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _under(prefix: str, mapping: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in mapping.items() if key.startswith(prefix))
