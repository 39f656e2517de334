"""The name of the operation that a request asks for."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from agentdouble.core.diff.json_texts import parsed

_SESSION = re.compile(
    r"/apps/[^/]+/users/[^/]+/sessions(?P<session>/[^/]+)?(?P<rest>/artifacts(/[^/]+)?)?"
)


def operation(method: str, url: str, content: bytes) -> str:
    """Return ``POST /invoke``, ``InvokeTool RunCode``, ``/mcp tools/list`` and the like."""
    address = urlsplit(url)
    path = address.path or "/"
    document = parsed(content.decode("utf-8", "replace"))
    body = document if isinstance(document, dict) else {}
    action = parse_qs(address.query).get("Action")
    if action:
        return f"{action[0]} {body.get('OperationType', '')}".strip()
    if body.get("jsonrpc") and isinstance(body.get("method"), str):
        return f"{path} {body['method']}"
    match = _SESSION.fullmatch(path)
    if match is not None:
        session = "/{session}" if match["session"] else ""
        path = f"/apps/{{app}}/users/{{user}}/sessions{session}{match['rest'] or ''}"
    return f"{method} {path}"
