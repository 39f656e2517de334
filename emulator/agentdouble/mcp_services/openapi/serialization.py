"""Values as text: the styles of parameters and form fields (RFC 6570)."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from agentdouble.mcp_services.backend_credentials import cookie_name
from agentdouble.mcp_services.openapi.definition import Style

Encode = Callable[[str], str]

_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
# Those that end a query or a pair stay encoded: no value adds a parameter of its own.
_RESERVED = "/:?@!$'()*,;="
_ESCAPED = re.compile(r"(%[0-9A-Fa-f]{2})")
_EXACT = 2**53


def encoded(text: str) -> str:
    """Percent-encode everything except RFC 3986's unreserved characters."""
    return quote(text, safe="")


def with_reserved(text: str) -> str:
    """Percent-encode only what a value in a query cannot contain; keep what is encoded already."""
    parts = _ESCAPED.split(text)
    return "".join(
        part if index % 2 else quote(part, safe=_RESERVED) for index, part in enumerate(parts)
    )


def in_cookie(text: str) -> str:
    """Percent-encode only what a cookie cannot carry, because many backends do not decode it."""
    return quote(text, safe=_COOKIE)


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


def single(value: Any, style: Style, encode: Encode) -> str:
    """Return a value that stands alone: a header's, without its name, or a cookie's."""
    if style.how == "json":
        return encode(json.dumps(value) if isinstance(value, str) else text_of(value))
    return _joined(value, style, encode)


def in_path(name: str, value: Any, style: Style) -> str:
    """Return a path's value: ``blue``, as a label ``.blue``, or as a matrix ``;color=blue``."""
    if style.how == "label":
        between = "." if style.explode else ","
        return "." + _joined(value, dataclasses.replace(style, delimiter=between), encoded)
    if style.how != "matrix":
        return single(value, style, encoded)
    if value in (None, [], {}):  # RFC 6570: these are undefined
        return ""
    if style.explode and isinstance(value, (dict, list)):
        written = pairs(name, value, style)
    else:
        written = [(encoded(name), _joined(value, style, encoded))]
    return "".join(f";{key}={text}" if text else f";{key}" for key, text in written)


def pairs(name: str, value: Any, style: Style, encode: Encode = encoded) -> list[tuple[str, str]]:
    """Return a value as the encoded pairs of a query, a form or a cookie."""
    if value is None:
        return []
    named = cookie_name if encode is in_cookie else encoded
    if style.reserved:
        encode = with_reserved
    if style.how == "json":
        return [(named(name), single(value, style, encode))]
    if style.how == "deepObject":
        return [(named(key), encode(text)) for key, text in _deep(name, value)]
    if style.explode and isinstance(value, dict):
        return [
            (named(key), encode(text_of(item))) for key, item in value.items() if item is not None
        ]
    if style.explode and isinstance(value, list):
        return [(named(name), _member(item, style, encode)) for item in value if item is not None]
    written = _joined(value, style, encode)
    return [(named(name), written)] if written or not isinstance(value, (dict, list)) else []


def _deep(name: str, value: Any) -> list[tuple[str, str]]:
    """Return the pairs of a deepObject, not yet encoded: ``a[b]=1``, in arrays ``a[0]=1``."""
    if isinstance(value, dict):
        below: Any = value.items()
    elif isinstance(value, list):
        below = enumerate(value)
    else:
        return [] if value is None else [(name, text_of(value))]
    return [pair for key, item in below for pair in _deep(f"{name}[{key}]", item)]


def _joined(value: Any, style: Style, encode: Encode) -> str:
    """Return a value as one text, with a delimiter between its members."""
    between = style.delimiter if encode is plain else quote(style.delimiter, safe=",")
    if isinstance(value, dict):
        encoded_pairs = [
            (encode(key), encode(text_of(item))) for key, item in value.items() if item is not None
        ]
        if style.explode:
            return between.join(f"{key}={item}" for key, item in encoded_pairs)
        return between.join(part for pair in encoded_pairs for part in pair)
    if isinstance(value, list):
        return between.join(_member(item, style, encode) for item in value if item is not None)
    return encode("" if value is None else text_of(value))


def _member(value: Any, style: Style, encode: Encode) -> str:
    """Return a member of an array, which may be an array with a delimiter of its own."""
    if style.nested and isinstance(value, list):
        delimiter, *nested = style.nested
        return _joined(value, Style("simple", delimiter=delimiter, nested=tuple(nested)), encode)
    return encode(text_of(value))
