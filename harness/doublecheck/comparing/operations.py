"""The operation of a request in few words, which distinguishes calls."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from doublecheck.comparing.references import parsed

_SESSION = re.compile(
    r"/apps/[^/]+/users/[^/]+/sessions(?P<session>/[^/]+)?(?P<rest>/artifacts(/[^/]+)?)?"
)


def operation(method: str, url: str, content: bytes) -> str:
    """Return ``POST /invoke``, ``InvokeTool RunCode``, ``/mcp tools/list`` and the like."""
    parts = urlsplit(url)
    document = parsed(content.decode("utf-8", "replace"))
    body = document if isinstance(document, dict) else {}
    action = parse_qs(parts.query).get("Action")
    if action:
        return f"{action[0]} {body.get('OperationType', '')}".strip()
    if body.get("jsonrpc") and isinstance(body.get("method"), str):
        return f"{parts.path or '/'} {body['method']}"
    return f"{method} {_template(parts.path or '/')}"


def _template(path: str) -> str:
    found = _SESSION.fullmatch(path)
    if found is None:
        return path
    session = "/{session}" if found["session"] else ""
    return f"/apps/{{app}}/users/{{user}}/sessions{session}{found['rest'] or ''}"
