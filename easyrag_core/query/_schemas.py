"""The shapes of replies as JSON Schema, for models that can be held to one."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["JSONSchema", "array_of", "object_of", "text"]

JSONSchema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain data."""


def text(description: str = "", *, enum: list[str] | None = None) -> JSONSchema:
    """Return the schema of a text, or of one of several."""
    schema: JSONSchema = {"type": "string"}
    if description:
        schema["description"] = description
    return {**schema, "enum": enum} if enum else schema


def array_of(items: JSONSchema, description: str = "") -> JSONSchema:
    """Return the schema of a list."""
    schema: JSONSchema = {"type": "array", "items": items}
    return {**schema, "description": description} if description else schema


def object_of(title: str = "", description: str = "", /, **properties: JSONSchema) -> JSONSchema:
    """Return the schema of an object; every property is required, no other is allowed."""
    told = {"title": title, "description": description} if title else {}
    return {
        **told,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
