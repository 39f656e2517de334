"""Parts of a document as the types they should have; what has another type is as if not there."""

from __future__ import annotations

import re
from typing import Any

from agentdouble.mcp_services.openapi.definition import Json

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


def is_header_name(text: str) -> bool:
    """Tell whether a text can be the name of a header."""
    return _TOKEN.match(text) is not None


def mapping(value: Any) -> Json:
    """Return an object, empty where there is none."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return an array, empty where there is none."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a string, empty where there is none."""
    return value if isinstance(value, str) else ""


def boolean(value: Any) -> bool:
    """Tell whether a value is true."""
    return value is True
