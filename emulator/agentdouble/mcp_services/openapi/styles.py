"""Values in the styles of OpenAPI and the collection formats of Swagger.

As RFC 6570 says, null and empty values are left out of a query. Everything is percent-encoded,
except in a header.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from agentdouble.mcp_services.openapi.definition import Style

Encode = Callable[[str], str]

_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_EXACT = 2**53


def encoded(text: str) -> str:
    """Percent-encode everything except RFC 3986's unreserved characters."""
    return quote(text, safe="")


def plain(text: str) -> str:
    """Return a text unchanged, for headers."""
    return text


def text_of(value: Any) -> str:
    """Return one value as text: a string unchanged, any other as JSON, 1.0 as 1."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def simple(value: Any, style: Style, encode: Encode) -> str:
    """Return a path's or a header's value."""
    if style.how == "json":
        return encode(text_of(value) if not isinstance(value, str) else json.dumps(value))
    return _joined(value, style, encode)


def in_cookie(text: str) -> str:
    """Percent-encode only what a cookie cannot carry, because many backends do not decode it."""
    return quote(text, safe=_COOKIE)


def pairs(name: str, value: Any, style: Style, encode: Encode = encoded) -> list[tuple[str, str]]:
    """Return a value as the encoded pairs of a query, a form or a cookie."""
    if value is None:
        return []
    if style.how == "json":
        return [(encoded(name), simple(value, style, encode))]
    if style.how == "deepObject":
        return [(encoded(key), encode(text)) for key, text in deep(name, value)]
    if style.explode and isinstance(value, dict):
        return [
            (encoded(key), encode(text_of(one))) for key, one in value.items() if one is not None
        ]
    if style.explode and isinstance(value, list):
        return [(encoded(name), encode(text_of(one))) for one in value if one is not None]
    written = _joined(value, style, encode)
    return [(encoded(name), written)] if written or not isinstance(value, (dict, list)) else []


def deep(name: str, value: Any) -> list[tuple[str, str]]:
    """Return the pairs of a deepObject, not yet encoded: ``a[b]=1``, in arrays ``a[0]=1``."""
    if isinstance(value, dict):
        below: Any = value.items()
    elif isinstance(value, list):
        below = enumerate(value)
    else:
        return [] if value is None else [(name, text_of(value))]
    return [pair for key, one in below for pair in deep(f"{name}[{key}]", one)]


def _joined(value: Any, style: Style, encode: Encode) -> str:
    """Return a value as one text, with a delimiter between its members."""
    between = style.delimiter if encode is plain else quote(style.delimiter, safe=",")
    if isinstance(value, dict):
        known = [
            (encode(key), encode(text_of(one))) for key, one in value.items() if one is not None
        ]
        if style.explode:
            return between.join(f"{key}={one}" for key, one in known)
        return between.join(part for pair in known for part in pair)
    if isinstance(value, list):
        return between.join(encode(text_of(one)) for one in value if one is not None)
    return encode("" if value is None else text_of(value))
