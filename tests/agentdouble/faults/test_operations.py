from __future__ import annotations

import json

import pytest

from agentdouble.errors import FaultError
from agentdouble.faults.operations import call_of, find

ACTIONS = ("InvokeTool", "CreateTool")


def rpc(method: str, **params: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@pytest.mark.parametrize(
    ("operation", "request_", "body"),
    [
        ("invoke", "POST /invoke", None),
        ("invoke", "POST /runtimes/mine/invoke", None),
        ("ping", "GET /ping", None),
        ("list-apps", "GET /list-apps", None),
        ("run_sse", "POST /run_sse", None),
        ("InvokeTool", "POST /?Action=InvokeTool&Version=2025-10-30", None),
        ("mcp:add", "POST /mcp", rpc("tools/call", name="add")),
        ("mcp:add", "POST /mcp/service", rpc("tools/call", name="add")),
        ("mcp:add", "POST /runtimes/tools/mcp", rpc("tools/call", name="add")),
        ("mcp:tools/list", "POST /mcp", rpc("tools/list")),
        ("a2a:message/send", "POST /", rpc("message/send")),
        ("a2a:message/send", "POST /", rpc("SendMessage")),
        ("a2a:SendMessage", "POST /", rpc("message/send")),
        ("a2a:message/send", "POST /message:send", None),
        ("a2a:message/send", "POST /v1/message:send", None),
        ("a2a:message/stream", "POST /runtimes/other/", rpc("SendStreamingMessage")),
        ("a2a:tasks/get", "GET /tasks/t1", None),
        ("a2a:tasks/cancel", "POST /tasks/t1:cancel", None),
        ("a2a:card", "GET /.well-known/agent-card.json", None),
        ("POST /v1/bash/exec", "POST /v1/bash/exec", None),
        ("/v1/**", "GET /v1/jupyter/sessions", None),
        ("/**", "POST /", None),
        ("POST /apps/*/users/*/sessions", "POST /apps/a/users/u/sessions", None),
    ],
)
def test_a_request_matches_an_operation(operation: str, request_: str, body: bytes | None) -> None:
    """By its path, its Action or its body."""
    method, _, url = request_.partition(" ")
    path, _, query = url.partition("?")

    assert find(operation, ACTIONS).matches(call_of(method, path, query, body))


@pytest.mark.parametrize(
    ("operation", "request_", "body"),
    [
        ("invoke", "GET /invoke", None),
        ("run", "POST /run_sse", None),
        ("InvokeTool", "GET /?Action=InvokeTool", None),
        ("InvokeTool", "POST /invoke?Action=InvokeTool", None),
        ("mcp:add", "POST /mcp", rpc("tools/call", name="sub")),
        ("mcp:add", "POST /mcpx", rpc("tools/call", name="add")),
        ("mcp:add", "POST /mcp", b"{"),
        ("mcp:add", "POST /mcp", b"[" * 100_000),
        ("mcp:add", "POST /mcp", b'[1, {"method": 3}, {"method": "tools/call", "params": []}]'),
        ("a2a:message/send", "POST /", rpc("message/stream")),
        ("/v1/bash/exec", "POST /v1/bash/exec/more", None),
        ("POST /v1/*", "GET /v1/sandbox", None),
        ("POST /apps/*/users/*/sessions", "POST /apps/a/users/u/sessions/s", None),
    ],
)
def test_a_request_does_not_match_another_operation(
    operation: str, request_: str, body: bytes | None
) -> None:
    """Near misses and invalid bodies do not match."""
    method, _, url = request_.partition(" ")
    path, _, query = url.partition("?")

    assert not find(operation, ACTIONS).matches(call_of(method, path, query, body))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("InvokTool", "Did you mean InvokeTool?"),
        ("RUN_SSE", "Did you mean run_sse?"),
        ("a2a:message/sent", "Did you mean a2a:message/send?"),
        ("mcp:", "mcp:<tool>"),
        ("", "It is one of invoke, run, run_sse"),
        ("POST", "a path, 'POST /v1/bash/exec'"),
        ("/_emulator/health", "the double's own"),
        ("GET /_emulator", "the double's own"),
        ("/v1/ba*", "one whole segment"),
        ("/**/exec", "at the end"),
    ],
)
def test_an_unknown_operation_is_refused(operation: str, message: str) -> None:
    """The error suggests the nearest one and lists all."""
    with pytest.raises(FaultError, match=message.replace("?", "\\?")):
        find(operation, ACTIONS)
