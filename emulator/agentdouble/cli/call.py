"""``agentdouble call``: any action of the control plane, with fields from the command line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from agentdouble.cli import env
from agentdouble.errors import AgentDoubleError


def show(action: str, words: Sequence[str], url: str | None, *, as_json: bool) -> None:
    """Call an action and print its Result."""
    from agentdouble.control_plane.action_names import OF_THE_PLATFORM  # slow: starlette, 0.1 s

    if action not in OF_THE_PLATFORM:
        near = difflib.get_close_matches(action, sorted(OF_THE_PLATFORM), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise AgentDoubleError(f"The platform has no action {action!r}.{hint}")
    result = env.connect(url).call(action, **fields(words))
    typer.echo(json.dumps(result, indent=None if as_json else 2))


def fields(words: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a request from ``NAME=VALUE`` texts; raise AgentDoubleError."""
    body: dict[str, Any] = {}
    for word in words:
        path, separator, text = word.partition("=")
        *parents, name = path.split(".")
        if not (separator and name and all(parents)):
            raise AgentDoubleError(f"{word!r} is not NAME=VALUE. See: agentdouble call --help")
        inner = body
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise AgentDoubleError(f"{path}: {parent} already has another value.")
        inner[name] = value(_content(path, text[1:]) if text.startswith("@") else text)
    return body


def value(text: str) -> Any:
    """Return the value of JSON, or any other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _content(name: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise AgentDoubleError(f"{name}: {path} cannot be read: {reason}.") from None
