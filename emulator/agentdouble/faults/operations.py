"""Operations by their names in the specification, and the operations of a request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from agentdouble.core.suggestions import did_you_mean
from agentdouble.errors import FaultError

_PROBES = ("ping", "health", "readiness", "liveness", "list-apps", "version")
_NAMED: Mapping[str, tuple[str, str]] = {
    **{name: (name, "POST") for name in ("invoke", "run", "run_sse")},
    **{name: (name, "GET") for name in _PROBES},
    "model": ("model", "POST"),
}
_A2A: Mapping[str, tuple[str, str]] = {  # the name in version 0.3: the name in 1.0, the REST route
    "message/send": ("SendMessage", r"POST (/v1)?/message:send"),
    "message/stream": ("SendStreamingMessage", r"POST (/v1)?/message:stream"),
    "tasks/get": ("GetTask", r"GET (/v1)?/tasks/[^/:]+"),
    "tasks/list": ("ListTasks", r"GET (/v1)?/tasks"),
    "tasks/cancel": ("CancelTask", r"POST (/v1)?/tasks/[^/]+:cancel"),
    "tasks/resubscribe": ("SubscribeToTask", r"(GET|POST) (/v1)?/tasks/[^/]+:subscribe"),
    "card": ("", r"GET /\.well-known/agent(-card)?\.json"),
}
_A2A_REST = {name: re.compile(route) for name, (_, route) in _A2A.items()}
_A2A_METHODS = {name: old for old, (new, _) in _A2A.items() for name in (old, new) if name}
_RUNTIME = re.compile(r"^/runtimes/[^/]+(?=/|$)")
_PATTERN = re.compile(r"^(?:(?P<method>[A-Z]+) )?(?P<path>/\S*)$")
_RUNS_CODE = ("/v1/jupyter/", "/v1/code/")
_MODEL = "/model/"
_NEVER = "/_emulator"
_REST = "**"  # at the end of a path: everything that follows
_SHAPES = (
    "an action of the control plane such as InvokeTool, mcp:<tool> or mcp:<method> "
    "(mcp:tools/list), a2a:<method> (a2a:message/send), or a path, 'POST /v1/bash/exec' or "
    "'/v1/**'"
)


@dataclass(frozen=True)
class FaultableCall:
    """A request in terms of operations; ``names`` are the operations that it calls."""

    method: str
    path: str
    names: frozenset[str]

    @property
    def label(self) -> str:
        """The name of the call for people."""
        named = sorted(self.names)
        return ", ".join(named) if named else f"{self.method} {self.path}"


@dataclass(frozen=True)
class FaultOperation:
    """The operation that a fault is for: a name, or a pattern of paths."""

    text: str
    segments: tuple[str, ...] = ()
    method: str | None = None

    def matches(self, call: FaultableCall) -> bool:
        """Return whether a request calls this operation."""
        if not self.segments:
            return self.text in call.names
        return self.method in (None, call.method) and self._is_path(call.path.split("/"))

    def _is_path(self, segments: list[str]) -> bool:
        pattern = self.segments
        if pattern[-1] == _REST:
            pattern, segments = pattern[:-1], segments[: len(pattern) - 1]
        fits = (want in ("*", segment) for want, segment in zip(pattern, segments, strict=False))
        return len(pattern) == len(segments) and all(fits)

    @property
    def is_in_body(self) -> bool:
        """Whether only a request's body says if it calls this operation."""
        return self.text.startswith(("mcp:", "a2a:"))

    @property
    def runs_code(self) -> bool:
        """Whether this operation runs code in a kernel."""
        path = self.text.rpartition(" ")[2]
        return self.text == "InvokeTool" or path.startswith(_RUNS_CODE)


def call_of(method: str, path: str, query: str, body: bytes | None = None) -> FaultableCall:
    """Return the call of a request; the body is needed only for JSON-RPC."""
    return FaultableCall(method, path, frozenset(_names(method, path, query, body)))


def _names(method: str, path: str, query: str, body: bytes | None) -> Iterable[str]:
    if method == "POST" and path == "/":
        yield from parse_qs(query).get("Action", ())
    inner = _RUNTIME.sub("", path) or "/"
    name = inner.removeprefix("/")
    if _NAMED.get(name) == (name, method):
        yield name
    if method == "POST" and path.startswith(_MODEL):
        yield "model"
    below = inner.rstrip("/") or "/"
    yield from (f"a2a:{a}" for a, r in _A2A_REST.items() if r.fullmatch(f"{method} {below}"))
    if body is not None:
        yield from _in_body(is_mcp=f"{inner}/".startswith("/mcp/"), body=body)


def is_action(path: str, query: str) -> bool:
    """Return whether a request is an action of the control plane."""
    return path == "/" and "Action" in parse_qs(query)


def has_rpc(method: str, path: str, query: str) -> bool:
    """Return whether a request may be JSON-RPC of MCP or A2A, and is not a control-plane action."""
    inner = _RUNTIME.sub("", path) or "/"
    is_a2a = inner == "/" and not is_action(path, query)
    return method == "POST" and (is_a2a or f"{inner}/".startswith("/mcp/"))


def _in_body(*, is_mcp: bool, body: bytes) -> Iterable[str]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return
    for message in document if isinstance(document, list) else [document]:
        if isinstance(message, dict) and isinstance(message.get("method"), str):
            yield from _mcp(message) if is_mcp else _a2a(message["method"])


def _a2a(method: str) -> Iterable[str]:
    if method in _A2A_METHODS:
        yield f"a2a:{_A2A_METHODS[method]}"


def _mcp(message: Mapping[str, Any]) -> Iterable[str]:
    method, params = message["method"], message.get("params")
    if method == "tools/call" and isinstance(params, dict):
        yield f"mcp:{params.get('name')}"
    yield f"mcp:{method}"


def find(text: str, actions: Iterable[str]) -> FaultOperation:
    """Return the operation of that name; raise FaultError, which suggests the nearest name.

    ``actions`` are the names of the control plane's actions.
    """
    pattern = _PATTERN.match(text)
    if pattern is not None:
        return _by_path(text, pattern["method"], pattern["path"])
    kind, colon, name = text.partition(":")
    if kind == "mcp" and name:
        return FaultOperation(text)
    if kind == "a2a" and colon:
        if name in _A2A_METHODS or name in _A2A:
            return FaultOperation(f"a2a:{_A2A_METHODS.get(name, name)}")
        raise _unknown(text, [f"a2a:{name}" for name in (*_A2A, *_A2A_METHODS)])
    known = names(actions)
    if text in known:
        return FaultOperation(text)
    raise _unknown(text, known)


def names(actions: Iterable[str]) -> list[str]:
    """Return the operations that have a name: those of HTTP routes, and actions."""
    return [*_NAMED, *actions]


def _by_path(text: str, method: str | None, path: str) -> FaultOperation:
    if path == _NEVER or path.startswith(f"{_NEVER}/"):
        raise FaultError(
            f"{path} is the double's own: faults meet the specified surfaces only.",
            field="operation",
        )
    segments = tuple(path.split("/"))
    if _REST in segments[:-1] or any("*" in s and s not in ("*", _REST) for s in segments):
        raise FaultError(
            f"In the path {path[:200]!r} a * stands for one whole segment, and ** at the end for "
            "all the rest.",
            field="operation",
        )
    return FaultOperation(text, segments, method)


def _unknown(text: str, known: Iterable[str]) -> FaultError:
    return FaultError(
        f"There is no operation {text[:200]!r}.{did_you_mean(text, known)} It is one of "
        f"{', '.join(_NAMED)}; {_SHAPES}.",
        field="operation",
    )
