"""Every route of a double that runs as a target: its routes, actions and JSON-RPC methods."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args
from urllib.parse import parse_qsl

import mcp.types
from a2a.server.routes import jsonrpc_dispatcher

from agentdouble import Emulator
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.sandbox.workbench import process as workbench
from agentdouble.sandbox.workbench.paths import Paths
from agentdouble.surfaces import HostedA2A
from tests.agentdouble.calling import TOKEN, act, http
from tests.agentdouble.mcp_wire import ACCEPT, INITIALIZE
from tests.stress.malformed.documents import (
    ACTIONS,
    ANY_ACTION,
    LEGACY_MESSAGE,
    MESSAGE,
    PUSH,
    documents,
)
from tests.stress.malformed.routes import Found, routes_of
from tests.stress.malformed.target import Target

KEY = "malformed-key"
SERVICE = "behind"
RUNTIME = "small"
_JSON = {"Content-Type": "application/json"}


def targets_of(double: Emulator, session: Mapping[str, str]) -> list[Target]:
    """Return every target; ``session`` is the query that opens a session's data plane."""
    http.get(f"{double.url}/tasks")  # the A2A application is put together with its first request
    return [
        *(_target(one, session) for one in _found(double)),
        *_actions(),
        *_json_rpc(),
        *_mcp(),
        *_runtimes(),
    ]


def open_session(double: Emulator) -> dict[str, str]:
    """Return the query of the Endpoint of the session that is used."""
    wanted = {"ToolId": double.tool_id, "UserSessionId": "malformed"}
    endpoint: str = act(double, "CreateSession", **wanted)["Endpoint"]
    return dict(parse_qsl(endpoint.partition("/?")[2]))


def _found(double: Emulator) -> Iterator[Found]:
    for path in ("/list-apps", "/v1/sandbox"):  # what is imported when it is first asked
        http.get(double.url + path)
    yield from routes_of(double.app)
    yield from routes_of(workbench.build(Paths(), None))
    running: Any = double._platform.context.surface(HostedA2A).hosted.root._running
    yield from routes_of(running.result().service)


def _target(found: Found, session: Mapping[str, str]) -> Target:
    path = found.path
    in_session = path.startswith("/v1/") and "tasks" not in path and "message" not in path
    return Target(
        path,
        found.methods,
        found.websocket,
        query=session if in_session else _query_of(path),
        headers={**_JSON, "X-API-Key": TOKEN} if path.startswith("/_emulator") else _JSON,
        documents=documents(path),
        parameters={
            "app": ("echo", "coder", "nobody"),
            "session_id": (session["faasInstanceName"], "s-none"),
            "name": (SERVICE, RUNTIME, "a.txt"),
            "rest": ("exec", "echo/users/u/sessions", f"{RUNTIME}/x", "sessions"),
            "tenant": ("v1", "tenant"),
        },
    )


def _query_of(path: str) -> Mapping[str, str]:
    known = {
        "/_emulator/outputs": {"user_session_id": "none", "tool_id": "t"},
        "/_emulator/journal": {"after": "0", "limit": "1"},
        "/_emulator/unknowns": {"after": "0"},
        "/_emulator/reset": {"wait": "false"},
        "/tasks": {
            "status": "TASK_STATE_WORKING",
            "pageSize": "1",
            "pageToken": "",
            "historyLength": "1",
        },
        "/list-apps": {"detailed": "true"},
    }
    return known.get(path, {})


def _actions() -> Iterator[Target]:
    for name in sorted(OF_THE_PLATFORM):
        query = {"Action": name, "Version": "2025-10-30"}
        yield Target(
            "/", ("POST",), query=query, headers=_JSON, documents=(ACTIONS.get(name, ANY_ACTION),)
        )


def _json_rpc() -> Iterator[Target]:
    """Yield the methods of both versions of A2A, at the root."""
    params = (
        MESSAGE,
        PUSH,
        {"id": "t", "taskId": "t", "historyLength": 1, "pushNotificationConfigId": "c"},
    )
    legacy = (
        LEGACY_MESSAGE,
        {"id": "t", "taskId": "t", "pushNotificationConfig": PUSH, "historyLength": 1},
    )
    for version, methods, given in (
        ("1.0", jsonrpc_dispatcher.JsonRpcDispatcher.METHOD_TO_MODEL, params),
        ("0.3", jsonrpc_dispatcher.JSONRPC03Adapter.METHOD_TO_MODEL, legacy),
    ):
        for method in methods:
            bodies = tuple(
                {"jsonrpc": "2.0", "id": 1, "method": method, "params": one} for one in given
            )
            yield Target(
                "/", ("POST",), headers={**_JSON, "A2A-Version": version}, documents=bodies
            )


def _mcp() -> Iterator[Target]:
    """Yield the methods of MCP, at the application and at a service in front of it."""
    params = {
        "name": "run_code",
        "arguments": {"code": "1"},
        "uri": "a:b",
        "cursor": "",
        "level": "debug",
        "ref": {"type": "ref/prompt", "name": "a"},
        "argument": {"name": "a", "value": "b"},
        "_meta": {"progressToken": 1},
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
        "taskId": "t",
        "requestId": 1,
        "reason": "r",
    }
    for path in ("/mcp", f"/mcp/{SERVICE}"):
        for method in _mcp_methods():
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            for version in ("2025-11-25", "2026-07-28"):
                headers = {
                    **_JSON,
                    "Accept": ACCEPT,
                    "Authorization": f"Bearer {KEY}",
                    "Mcp-Protocol-Version": version,
                    "Mcp-Method": method,
                }
                yield Target(path, ("POST",), headers=headers, documents=(body, INITIALIZE))


def _mcp_methods() -> list[str]:
    kinds = [one for _, one in inspect.getmembers(mcp.types, inspect.isclass)]
    fields = [getattr(one, "model_fields", {}).get("method") for one in kinds]
    found = {name for one in fields if one is not None for name in get_args(one.annotation)}
    return sorted(name for name in found if isinstance(name, str))


def _runtimes() -> Iterator[Target]:
    for path in ("", "/", "/{rest:path}", "/a.txt"):
        yield Target(f"/runtimes/{RUNTIME}{path}", ("GET", "POST"), headers=_JSON)
    yield Target(f"/runtimes/{RUNTIME}/ws", (), websocket=True)
