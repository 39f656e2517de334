"""The list of tools on the wire, the first time and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentdouble import serving
from agentdouble.mcp_services import openapi
from tests.agentdouble import mcp_wire
from tests.agentdouble.mcp_services.openapi.calling import openapi_3

pytestmark = pytest.mark.libraries

TOOL = {
    "name": "op",
    "description": "POST /echo",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}
MODERN: dict[str, Any] = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": mcp_wire.MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server of generated tools."""
    server = openapi.server(openapi.load(openapi_3()), base_url="http://api.example")
    listener = serving.open_socket("127.0.0.1", 0)
    thread = serving.ServerThread(server.streamable_http_app(), listener)
    address = f"{serving.address_of(listener)}/mcp"
    thread.start()
    yield address
    thread.stop()


def listed(url: str, session: str) -> dict[str, Any]:
    return mcp_wire.result(mcp_wire.post(url, mcp_wire.message("tools/list"), None, session))


def modern(url: str) -> httpx.Response:
    headers = mcp_wire.headers(None) | {
        "MCP-Protocol-Version": mcp_wire.MODERN,
        "Mcp-Method": "tools/list",
    }
    return mcp_wire.http.post(url, json=mcp_wire.message("tools/list", MODERN), headers=headers)


def test_the_list_is_the_same_each_time(url: str) -> None:
    """For every session of a version."""
    sessions = [mcp_wire.open_session(url, None) for _ in range(2)]
    answers = [listed(url, session) for session in [*sessions, *sessions]]

    assert [[TOOL]] * 4 == [answer["tools"] for answer in answers]


def test_each_version_has_the_list_as_it_wants_it(url: str) -> None:
    """2026-07-28 has more around it than the versions before."""
    session = mcp_wire.open_session(url, None)
    old = listed(url, session)
    answers = [modern(url).json()["result"] for _ in range(2)]

    assert ("resultType" in old, "resultType" in answers[0]) == (False, True)
    assert [[TOOL]] * 2 == [answer["tools"] for answer in answers]
    assert answers[0] == answers[1]


def test_what_is_not_right_is_refused_after_it_too(url: str) -> None:
    """Parameters that are wrong, and a session that is not open."""
    session = mcp_wire.open_session(url, None)
    listed(url, session)

    wrong = mcp_wire.post(url, mcp_wire.message("tools/list", {"cursor": 5}), None, session)
    closed = mcp_wire.post(url, mcp_wire.message("tools/list"), None)

    assert "-32602" in wrong.text
    assert 400 == closed.status_code
