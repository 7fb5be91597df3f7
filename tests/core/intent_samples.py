"""A tree of 300 topics in English and Chinese, and questions with the topic that is meant."""

from __future__ import annotations

from pathlib import Path

from easyrag_core.query import IntentTree

__all__ = ["labelled_questions", "large_tree"]

_DATA = Path(__file__).parents[1] / "data" / "intents"


def large_tree() -> IntentTree:
    """Domains, categories and topics; ids are numbered by place."""
    rows: list[dict] = []
    domain = category = ""
    for at, line in enumerate((_DATA / "topics.md").read_text(encoding="utf-8").splitlines()):
        if line.startswith("## "):
            category = f"c{at}"
            rows.append({"id": category, "name": line[3:], "parent_id": domain})
        elif line.startswith("# "):
            domain = f"d{at}"
            rows.append({"id": domain, "name": line[2:]})
        else:
            name, description = line.split(" | ")
            row = {"id": f"t{at}", "name": name, "description": description}
            rows.append({**row, "parent_id": category, "collection": domain})
    return IntentTree.from_rows(rows)


def labelled_questions() -> list[tuple[str, str]]:
    """Question and name of the topic."""
    lines = (_DATA / "questions.tsv").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]
