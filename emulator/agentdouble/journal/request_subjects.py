"""What a request is about, in a few words, for lists of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

CHARS = 120
_SESSION_PATH = re.compile(r"/apps/[^/]+/users/([^/?]+)(?:/sessions/([^/?]+))?")
_TURNS = ("contents", "messages", "input")  # of Gemini, chat completions and responses
_CONTENTS = ("parts", "content", "output")
_TEXTS = ("code", "command", "prompt", "text")


def described(url: str, headers: Mapping[str, str], body: str) -> dict[str, str]:
    """Return the caller of a request and its subject."""
    document = _document(body)
    return {"caller": caller(url, headers, document), "subject": subject(document)}


def caller(url: str, headers: Mapping[str, str], document: Mapping[str, Any]) -> str:
    """Return the user and the session that a request names, or the session of the sandbox."""
    if isinstance(named := document.get("UserSessionId"), str):
        return named[:CHARS]
    path = _SESSION_PATH.search(url)
    user = headers.get("user_id") or document.get("userId") or (path and path[1]) or ""
    session = headers.get("session_id") or document.get("sessionId") or (path and path[2]) or ""
    return " ".join(filter(None, (str(user), str(session))))[:CHARS]


def subject(document: Mapping[str, Any]) -> str:
    """Return the first line of the code, command, prompt or message of a request, or its tool.

    Of a request to a model it is the last message, which a result of a tool can be.
    """
    payload = document.get("OperationPayload")
    if isinstance(payload, str):
        document = _document(payload)
    parameters, method = document.get("params"), document.get("method")
    if isinstance(parameters, dict):
        if isinstance(tool := parameters.get("name"), str):
            return tool[:CHARS]
        document = parameters
    message = document.get("newMessage") or document.get("message")
    if isinstance(message, dict) and isinstance(parts := message.get("parts"), list):
        document = next((part for part in parts if isinstance(part, dict)), {})
    document = _last_turn(document) or document
    texts = (document.get(name) for name in _TEXTS)
    text = next((text for text in (*texts, method) if isinstance(text, str)), "")
    return text.strip().partition("\n")[0][:CHARS]


def _last_turn(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the content of the last message in a wire form of a model, or None without any."""
    turns = next((document[name] for name in _TURNS if document.get(name)), None)
    if isinstance(turns, str):
        return {"text": turns}
    if not isinstance(turns, list) or not isinstance(last := turns[-1], dict):
        return None
    content = next((last[name] for name in _CONTENTS if last.get(name)), None)
    if isinstance(content, list) and content and isinstance(part := content[0], dict):
        returned = part.get("functionResponse")
        return {"text": f"result of {returned.get('name')}"} if isinstance(returned, dict) else part
    return {"text": content}


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
