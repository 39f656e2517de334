"""Mutants of the protocol that MCP applications and services speak."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.mutants import Mutant, lossy, wire

ENDPOINT = "/mcp*"
STREAMABLE = "speaking MCP over streamable HTTP (4.3)"


def messages(change: Callable[..., Any], method: str = "") -> wire.Change:
    """Change whole JSON-RPC answers, of one method or of all."""

    def changed(document: Any, request: wire.Request) -> Any:
        asked = request.json
        chosen = isinstance(asked, dict) and method in ("", asked.get("method"))
        return change(document, request) if chosen and isinstance(document, dict) else document

    return wire.answers(f"POST {ENDPOINT}", changed)


def in_result(change: lossy.Change) -> Callable[[Any], Any]:
    """Return a change of the texts in a tool's result, also of those in structured content."""

    def on_result(result: Any) -> Any:
        content = [
            {**block, "text": change(block["text"])} if "text" in block else block
            for block in result["content"]
        ]
        changed = {**result, "content": content}
        if "structuredContent" in result:
            changed["structuredContent"] = lossy.in_texts(result["structuredContent"], change)
        return changed

    return on_result


def _initialized(**changed: Any) -> wire.Change:
    return wire.calls("initialize", lambda result: {**result, **changed})


def _without(name: str) -> wire.Change:
    return wire.calls("initialize", lossy.without(name))


def _agree_to_any_version(result: Any, request: wire.Request) -> Any:
    return {**result, "protocolVersion": request.json["params"]["protocolVersion"]}


def _refuse_a_newer_version(document: Any, request: wire.Request) -> Any:
    if request.json["params"]["protocolVersion"] <= "2026-12-31":
        return document
    error = {"code": -32602, "message": "Unsupported protocol version"}
    return {"jsonrpc": "2.0", "id": document["id"], "error": error}


def _tell_unknown_methods_as_success(document: Any, _request: wire.Request) -> Any:
    if document.get("error", {}).get("code") != -32601:
        return document
    return {"jsonrpc": "2.0", "id": document["id"], "result": {}}


def _answer_notifications(answer: wire.Answer, request: wire.Request) -> None:
    if isinstance(request.json, dict) and "id" not in request.json:
        answer.status, answer.body = 200, b'{"jsonrpc": "2.0", "id": null, "result": {}}'


def _refuse_notifications(answer: wire.Answer, request: wire.Request) -> None:
    if isinstance(request.json, dict) and "id" not in request.json:
        answer.status, answer.body = 400, b'{"error": "a request has an id"}'


def _lose_session_header(request: wire.Request) -> None:
    request.headers.pop("mcp-session-id", None)


def _only_the_first_session(patch: pytest.MonkeyPatch) -> None:
    """Answer only the session that was opened first, once there are two."""
    opened: list[str] = []

    def forget(request: wire.Request) -> None:
        session = request.headers.get("mcp-session-id", "")
        if session and session not in opened:
            opened.append(session)
        if session in opened[1:]:
            _lose_session_header(request)

    wire.install(patch, wire.requested(f"POST {ENDPOINT}", forget))


def _end_every_session(patch: pytest.MonkeyPatch) -> None:
    """End all sessions when one is ended."""
    opened: set[str] = set()
    ended: set[str] = set()

    def forget(request: wire.Request) -> None:
        session = request.headers.get("mcp-session-id", "")
        opened.add(session)
        if request.method == "DELETE":
            ended.update(opened - {session})
        if session in ended:
            request.headers["mcp-session-id"] = "gone"

    wire.install(patch, wire.requested(f"* {ENDPOINT}", forget))


def _answer_listeners_with_json(request: wire.Request) -> None:
    request.path = "/ping"


MUTANTS = (
    Mutant(
        "answer_with_another_id",
        "MCP-01",
        STREAMABLE,
        messages(lambda document, _: {**document, "id": 4711} if "id" in document else document),
    ),
    Mutant(
        "answer_with_the_id_as_a_text",
        "MCP-01",
        STREAMABLE,
        messages(
            lambda document, _: (
                {**document, "id": str(document["id"])} if "id" in document else document
            )
        ),
    ),
    Mutant(
        "answer_without_an_id",
        "MCP-01",
        STREAMABLE,
        messages(lambda document, _: lossy.without("id")(document)),
    ),
    Mutant(
        "answer_in_json_rpc_1_0",
        "MCP-01",
        STREAMABLE,
        messages(lambda document, _: {**document, "jsonrpc": "1.0"}),
    ),
    Mutant(
        "name_no_protocol_version",
        "MCP-01",
        STREAMABLE,
        _without("protocolVersion"),
    ),
    Mutant(
        "name_a_protocol_version_that_nobody_asked_for",
        "MCP-01",
        STREAMABLE,
        _initialized(protocolVersion="1999-12-31"),
    ),
    Mutant(
        "agree_to_any_protocol_version",
        "MCP-01",
        STREAMABLE,
        wire.calls("initialize", _agree_to_any_version),
    ),
    Mutant(
        "refuse_a_client_of_a_newer_version",
        "MCP-01",
        STREAMABLE,
        messages(_refuse_a_newer_version, "initialize"),
    ),
    Mutant(
        "name_no_server",
        "MCP-01",
        STREAMABLE,
        _without("serverInfo"),
    ),
    Mutant(
        "say_that_there_are_no_tools",
        "MCP-01",
        STREAMABLE,
        _initialized(capabilities={}),
    ),
    Mutant(
        "refuse_notifications",
        "MCP-01",
        STREAMABLE,
        wire.answered(f"POST {ENDPOINT}", _refuse_notifications),
    ),
    Mutant(
        "answer_notifications_with_a_result",
        "MCP-01",
        STREAMABLE,
        wire.answered(f"POST {ENDPOINT}", _answer_notifications),
    ),
    Mutant(
        "answer_ping_with_an_error",
        "MCP-01",
        STREAMABLE,
        messages(
            lambda document, _: {
                "jsonrpc": "2.0",
                "id": document["id"],
                "error": {"code": -32601, "message": "Method not found"},
            },
            "ping",
        ),
    ),
    Mutant(
        "tell_unknown_methods_as_success",
        "MCP-01",
        STREAMABLE,
        messages(_tell_unknown_methods_as_success),
    ),
    Mutant(
        "say_event_stream_and_send_bare_json",
        "MCP-01",
        STREAMABLE,
        wire.raw_events(
            f"POST {ENDPOINT}",
            lambda raw: raw.partition(b"data: ")[2].strip() or raw,
        ),
    ),
    Mutant(
        "answer_listeners_with_json",
        "MCP-01",
        STREAMABLE,
        wire.requested(f"GET {ENDPOINT}", _answer_listeners_with_json),
    ),
    Mutant(
        "know_only_the_session_that_was_opened_first",
        "MCP-01",
        STREAMABLE,
        _only_the_first_session,
    ),
    Mutant(
        "end_every_session_with_one",
        "MCP-01",
        STREAMABLE,
        _end_every_session,
    ),
)
