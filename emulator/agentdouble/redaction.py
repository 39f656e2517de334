"""Redaction: headers, queries and texts without the secrets that they have for the platform."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

REDACTED = "***"

_SECRET_HEADERS = frozenset({"cookie", "set-cookie", "x-security-token", "x-api-key"})
_TOKEN = re.compile(r"((?:[?&]|\\u0026|%26)Authorization(?:=|%3D))[^&\"'\s\\#]+", re.IGNORECASE)
_STRING = r'"(?:[^"\\]|\\.)*"?'
_API_KEYS = re.compile(rf'"ApiKeys"\s*:\s*\[(?:[^\]"]|{_STRING})*')
_API_KEY = re.compile(rf'("Key"\s*:\s*){_STRING}')
_SECRET_FIELD = re.compile(rf'("(?:ApiKey|LarkAppSecret|SecretAccessKey)"\s*:\s*){_STRING}')
_TELLING = r'"(?=[^"]*(?:KEY|SECRET|TOKEN|PASSW))[^"]*"'  # searched once, independent of the rest
_WHOLE = r'"(?:[^"\\]|\\.)*"'  # with its closing quote: the rest is searched only after it
_IN_QUERY = re.compile(
    r"(?i:authorization|(?:.*[-_])?(?:key|secret|signature|passw(?:or)?d|jwt|token)|apikey)"
    r"|.*[a-z](?:Key|Secret|Signature|Password|Jwt|Token)"
)
_PLACES = frozenset({"nexttoken", "pagetoken", "clienttoken"})  # positions in a list, not secrets
_VARIABLES = (  # of an environment: {"Key": "MODEL_API_KEY", "Value": "..."}, in either order
    re.compile(rf'("Key"\s*:\s*{_TELLING}\s*,\s*"Value"\s*:\s*){_STRING}()', re.IGNORECASE),
    re.compile(rf'("Value"\s*:\s*){_WHOLE}(\s*,\s*"Key"\s*:\s*{_TELLING})', re.IGNORECASE),
)


def tells_a_secret(name: str) -> bool:
    """Return whether the name of a query parameter says that the value is a secret."""
    return name.lower().replace("_", "") not in _PLACES and _IN_QUERY.fullmatch(name) is not None


def hide_in_query(query: str, is_secret: Callable[[str], bool]) -> str:
    """Return a query without the values of secret parameters, in whatever encoding."""
    if not query:
        return query
    pairs = parse_qsl(query, keep_blank_values=True)
    if not any(is_secret(name) for name, _ in pairs):
        return query
    hidden = [(name, REDACTED if is_secret(name) else value) for name, value in pairs]
    return urlencode(hidden, safe="*")


def without_tokens(text: str) -> str:
    """Return text without the tokens of session Endpoints and the keys and secrets of actions."""
    text = _TOKEN.sub(rf"\1{REDACTED}", text)
    text = _SECRET_FIELD.sub(rf'\1"{REDACTED}"', text)
    for variable in _VARIABLES:
        text = variable.sub(rf'\1"{REDACTED}"\2', text)
    return _API_KEYS.sub(lambda keys: _API_KEY.sub(rf'\1"{REDACTED}"', keys[0]), text)


def redact(name: str, value: str) -> str:
    """Return a header's value without its secret; ``name`` is lower-case."""
    if name in _SECRET_HEADERS:
        return REDACTED
    if name in ("authorization", "proxy-authorization"):
        if value.startswith("HMAC-SHA256 ") and "Signature=" in value:
            return re.sub(r"Signature=.*", f"Signature={REDACTED}", value, flags=re.S)
        scheme, _, rest = value.partition(" ")
        return f"{scheme} {REDACTED}" if rest else REDACTED
    return value
