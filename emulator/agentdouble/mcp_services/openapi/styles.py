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

# Reserved characters that neither end a query nor begin another pair in it.
_RESERVED = ":/?@!$'()*,;=[]"
_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_EXACT = 2**53


def encoded(text: str) -> str:
    """Percent-encode everything except RFC 3986's unreserved characters."""
    return quote(text, safe="")


def encoded_but_reserved(text: str) -> str:
    """Percent-encode the characters that would break a query (allowReserved)."""
    return quote(text, safe=_RESERVED)


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
    """Return a path's or a header's value: simple, label or matrix without its name."""
    if style.how == "json":
        return encode(text_of(value) if not isinstance(value, str) else json.dumps(value))
    return _joined(value, style, encode, style.delimiters[0])


def in_path(name: str, value: Any, style: Style) -> str:
    """Return a value as it is written into a path."""
    if style.how == "label":
        return "." + _joined(value, style, encoded, "." if style.explode else ",")
    if style.how == "matrix":
        return _matrix(encoded(name), value, style)
    return simple(value, style, encoded)


def _matrix(name: str, value: Any, style: Style) -> str:
    if style.explode and isinstance(value, dict):
        return ";" + _joined(value, style, encoded, ";")
    if style.explode and isinstance(value, list):
        return "".join(f";{name}={encoded(text_of(one))}" for one in value)
    written = _joined(value, style, encoded, ",")
    return f";{name}={written}" if written else f";{name}"


def in_cookie(text: str) -> str:
    """Percent-encode only what a cookie cannot carry, because many backends do not decode it."""
    return quote(text, safe=_COOKIE)


def pairs(name: str, value: Any, style: Style, encode: Encode = encoded) -> list[tuple[str, str]]:
    """Return a value as the encoded pairs of a query, a form or a cookie."""
    if style.allow_reserved:
        encode = encoded_but_reserved
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
        inner = Style(style.how, delimiters=style.delimiters[1:] or (",",))
        return [(encoded(name), _member(one, inner, encode)) for one in value if one is not None]
    written = _joined(value, style, encode, style.delimiters[0])
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


def _joined(value: Any, style: Style, encode: Encode, delimiter: str) -> str:
    """Return a value as one text, with a delimiter between its members."""
    between = delimiter if encode is plain else quote(delimiter, safe=",;.")
    if isinstance(value, dict):
        known = [
            (encode(key), encode(text_of(one))) for key, one in value.items() if one is not None
        ]
        if style.explode:
            return between.join(f"{key}={one}" for key, one in known)
        return between.join(part for pair in known for part in pair)
    if isinstance(value, list):
        inner = Style(style.how, delimiters=style.delimiters[1:])
        return between.join(_member(one, inner, encode) for one in value if one is not None)
    return encode("" if value is None else text_of(value))


def _member(value: Any, style: Style, encode: Encode) -> str:
    """Return a member of an array as text; a nested array has its own delimiter, or is JSON."""
    if isinstance(value, list) and style.delimiters:
        return _joined(value, style, encode, style.delimiters[0])
    return encode(text_of(value))
