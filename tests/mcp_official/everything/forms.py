"""Questions to a user, as forms with schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Form = dict[str, Any]


def form(properties: dict[str, Form], required: Sequence[str] = ()) -> Form:
    """Return the schema of a form."""
    schema: Form = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def one_text(name: str) -> Form:
    """Return a form with one required string."""
    return form({name: {"type": "string"}}, [name])


USER = form(
    {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    ["username", "email"],
)

DEFAULTS = form(
    {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
)


def _titled(**titles: str) -> list[Form]:
    return [{"const": value, "title": title} for value, title in titles.items()]


_OPTIONS = ["option1", "option2", "option3"]
_FIRST = {"value1": "First", "value2": "Second", "value3": "Third"}

CHOICES = form(
    {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _titled(**_FIRST)},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled(**_FIRST)}},
    }
)
