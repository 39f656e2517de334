"""A first look at a deployment: what can be seen without the reference application.

Each check is marked with its clause. In the full level it replaces checks of that clause that need
the reference application. The smoke level has these checks, and a few more that need as little
(see ``verdicts``).
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import httpx

from agentdouble.core.signing import Credentials
from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.clauses import clause, for_clauses
from doublecheck.contracts.mcp_servers import validator
from doublecheck.contracts.sentences import listed, short
from doublecheck.contracts.verdicts import not_observable
from doublecheck.target.facts import variable
from doublecheck.wire import a2a, api_server, event_stream, mcp
from doublecheck.wire.mcp import McpServer

NOBODYS = "doublecheck-nobody-has-this"
NO_TOOL = {"ToolId": f"t-{NOBODYS}", "OperationType": "RunCode", "OperationPayload": "{}"}
REFUSED = (401, 403)
ERRORS_OF_JSON_RPC = range(-32768, -31999)
NONSENSE: dict[str, tuple[str, dict[str, Any]]] = {
    "A2A-02": ("send", {}),
    "A2A-04": ("task", {"id": uuid.uuid4().hex}),
}


@clause("MCP-03", smoke=True)
def test_an_mcp_server_agrees_and_lists_tools(platform: Platform) -> None:
    """After the handshake every tool has a unique, non-empty name."""
    with platform.mcp() as client:
        names = [tool.name for tool in client.tools()]

    assert [] == [name for name in names if not name], "a tool has no name"
    assert sorted(set(names)) == sorted(names), f"two tools share a name: {listed(names)}"


@clause("MCP-04", smoke=True)
def test_each_tool_has_a_valid_schema(platform: Platform) -> None:
    """The schema of a tool's arguments is a valid JSON Schema of an object."""
    with platform.mcp() as client:
        schemas = [tool.input_schema for tool in client.tools()]

    for schema in schemas:
        validator(schema)
    types = {schema.get("type") for schema in schemas}
    assert types <= {"object"}, f"a schema is of another type than object: {listed(types)}"


@clause("MCP-02", smoke=True)
def test_an_mcp_server_refuses_without_its_key(platform: Platform) -> None:
    """A handshake is refused without a key, and with a wrong key."""
    key = platform.target.key_of("mcp")
    if key is None:
        held_in = f"{variable('api_key')} or DOUBLECHECK_MCP_API_KEY"
        not_observable(f"needs a server with a key, set in {held_in}")
    wrong = [{"Authorization": text} if text else {} for text in ("", "Bearer no", key.reveal())]
    servers = [McpServer(platform.target.mcp + mcp.PATH, headers) for headers in wrong]

    statuses = {platform.send(mcp.initialize(server).request).status_code for server in servers}

    assert statuses <= {*REFUSED}, f"initialize without the key is answered {listed(statuses)}"


@for_clauses(NONSENSE, smoke=True)
def test_an_empty_message_and_an_unknown_task_are_refused(platform: Platform, id_: str) -> None:
    """They return a protocol error, and nothing runs."""
    _require_refused(_rpc(platform, *NONSENSE[id_]))


@clause("A2A-02", smoke=True, writes=True)
def test_a_message_is_answered_or_refused(platform: Platform) -> None:
    """The answer is a task, a message, or a protocol error."""
    agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))

    answer = _rpc(platform, "send", a2a.message(agent, ["hello"], {}))

    if "error" in answer:
        _require_refused(answer)
    else:
        result = answer.get("result")
        assert isinstance(result, dict), f"the answer has no result: {short(answer)}"
        content = result.get("task") or result.get("message") or result
        is_answer = "status" in content or "parts" in content
        assert is_answer, f"the result is neither a task nor a message: {short(answer)}"


@clause("INV-04", smoke=True, writes=True)
def test_an_invocation_is_answered(platform: Platform) -> None:
    """The answer is JSON or a stream of events. Its content is up to the agent."""
    answer = wire.invoke(platform, {"prompt": "hello"})

    assert answer.is_success, f"POST /invoke is answered {answer.status_code}"
    if not event_stream.is_stream(answer):
        wire.json_of(answer)


@clause("API-04", smoke=True)
def test_a_strangers_sessions_are_listed(platform: Platform, app: str) -> None:
    """An unknown user has no sessions."""
    sessions = list(platform.agents.list(app, user_id=uuid.uuid4().hex))
    assert [] == sessions, f"a user who has no sessions has {len(sessions)}"


@clause("API-06", smoke=True)
def test_an_unknown_session_is_refused(platform: Platform, app: str) -> None:
    """The id of a session that never existed returns an error."""
    path = api_server.session_path(app, uuid.uuid4().hex, uuid.uuid4().hex)

    answer = platform.request("GET", path)

    refused = 400 <= answer.status_code < 500 or not wire.words_of(answer)
    assert refused, f"an unknown session is answered {answer.status_code}: {short(answer.text)}"


@clause("CTL-04", smoke=True)
def test_a_tool_that_nobody_has_is_refused(platform: Platform) -> None:
    """The request is signed, so only its tool is wrong."""
    _require_keys(platform)

    wire.refusal(wire.control_plane(platform, NO_TOOL))


@clause("CTL-03", smoke=True)
def test_an_unsigned_request_is_refused(platform: Platform) -> None:
    """The refusal is about the signature: a signed request is refused for its tool."""
    refused = wire.control_plane_unsigned(platform, NO_TOOL)

    wire.refusal(refused)
    _require_about_the_signature(platform, refused)


@clause("CTL-03", smoke=True)
def test_a_wrong_signature_is_refused(platform: Platform) -> None:
    """The refusal is about the signature: a correct one is refused for its tool."""
    credentials = _require_keys(platform)
    wrong = replace(credentials, secret_key=credentials.secret_key[::-1])

    refused = wire.control_plane(platform, NO_TOOL, credentials=wrong)

    wire.refusal(refused)
    _require_about_the_signature(platform, refused)


def _require_keys(platform: Platform) -> Credentials:
    """Return the target's key pair. Skip if there is none."""
    if platform.target.credentials is None:
        names = " and ".join(map(variable, ("access_key", "secret_key")))
        not_observable(f"needs a key pair, set in {names}")
    return platform.target.credentials


def _require_about_the_signature(platform: Platform, refused: httpx.Response) -> None:
    """Skip if a request may have been refused for its tool, which does not exist."""
    if refused.status_code in REFUSED and platform.target.credentials is None:
        return
    keys = platform.target.credentials
    if keys is None or _code(wire.control_plane(platform, NO_TOOL)) == _code(refused):
        reason = "the request is refused for its tool, whatever its signature"
        more = "" if platform.target.tool_id else f", for which {variable('tool_id')} is to be set"
        not_observable(f"{reason}; the full level uses a tool that exists{more}")


def _code(refused: httpx.Response) -> str:
    return wire.refusal(refused).partition(":")[0]


def _rpc(platform: Platform, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to any JSON-RPC method, whatever its status."""
    agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))
    return wire.parsed(platform.send(a2a.request(agent, method, params)).text)


def _require_refused(answer: dict[str, Any]) -> None:
    """Fail unless an answer is an error of JSON-RPC."""
    error = answer.get("error")
    assert isinstance(error, dict), f"not refused: {short(answer)}"
    code = error.get("code")
    assert isinstance(code, int), f"an error without a code: {short(answer)}"
    assert code in ERRORS_OF_JSON_RPC, f"{code} is no code of JSON-RPC"
