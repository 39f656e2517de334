"""What witnesses share: requests to a double with the reference applications.

A witness raises AssertionError for a wrong answer, or one of the client's errors for none.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import httpx

from doublecheck.client._sync.mcp import McpClient
from doublecheck.client._sync.platform import Platform
from doublecheck.client._sync.sandbox import Sandbox
from doublecheck.contracts.hosting import SIMPLE, Hosted
from doublecheck.contracts.reference import http_api
from doublecheck.values.agents import A2aAnswer, AgentEvent, AgentSession, McpResult
from doublecheck.wire import a2a, api_server, mcp

AGENT = "doublecheck_reference"
SEEN_WITHIN_S = 10.0
JSON = {"Content-Type": "application/json"}


def new_id() -> str:
    """Return an id that nobody has used."""
    return uuid.uuid4().hex


def require(expected: Any, actual: Any) -> None:
    """Fail unless two values are the same JSON, with types and signs."""
    texts = [json.dumps(value, sort_keys=True) for value in (expected, actual)]
    assert texts[0] == texts[1], f"{texts[0]:.200} is {texts[1]:.200}"


# ---- simple applications


def echo(
    platform: Platform, payload: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the payload and the headers that reach the entrypoint."""
    body = json.dumps(payload).encode()
    answer = platform.request("POST", "/invoke", headers={**JSON, **(headers or {})}, content=body)
    return dict(json.loads(answer.json()))


def require_payload(platform: Platform, payload: Mapping[str, Any]) -> None:
    """Fail unless a payload reaches the entrypoint."""
    require(payload, echo(platform, payload)["payload"])


def require_headers(platform: Platform, headers: Mapping[str, str]) -> None:
    """Fail unless headers reach the entrypoint."""
    received = echo(platform, {"prompt": ""}, headers)["headers"]
    require(headers, {name: received.get(name) for name in headers})


def strings(platform: Platform, chunks: Sequence[str], **fields: Any) -> list[str]:
    """Return the strings of a stream."""
    events = platform.stream("", do=fields.pop("do", "stream"), chunks=[*chunks], **fields)
    return [event.data for event in events]


def numbered(count: int) -> list[str]:
    """Return different texts."""
    return [f"number {number}" for number in range(count)]


def post(platform: Platform, path: str, body: Any) -> httpx.Response:
    """Post a chunked body, without its length."""
    content = json.dumps(body).encode()
    key = platform.target.api_key
    authorization = {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}
    return httpx.post(
        platform.url + path,
        content=iter([content[:5], content[5:]]),
        headers={**JSON, **authorization},
        trust_env=False,
    )


def running(platform: Platform) -> closing[Hosted]:
    """Return the runtimes, for a with block."""
    return closing(Hosted(platform))


@contextmanager
def hosted(platform: Platform, name: str = SIMPLE) -> Iterator[Platform]:
    """Yield a runtime."""
    with running(platform) as runtimes:
        yield runtimes.at(name)


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask until something holds. Fail if it does not soon."""
    deadline = time.monotonic() + SEEN_WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it is still not so"


# ---- API-server mode


def session_of(platform: Platform, user: str | None = None) -> AgentSession:
    """Create a session with a generated id, by default of a new user."""
    return platform.agents.create(AGENT, user_id=user or new_id())


def named(platform: Platform, user: str, id_: str) -> AgentSession:
    """Create a session with this id. Raise RefusedError."""
    path = api_server.session_path(AGENT, user, id_)
    answer = platform.request("POST", path, headers=JSON, content=b"{}")
    return replace(api_server.read_session(answer), app_name=AGENT, user_id=user)


def run(platform: Platform, session: AgentSession, do: str, **arguments: Any) -> list[AgentEvent]:
    """Run an action of the reference agent; return its events with content."""
    events = platform.agents.run(session, json.dumps({"do": do, **arguments}), check=True)
    return [event for event in events if event.parts]


def stream(platform: Platform, session: AgentSession, do: str, **arguments: Any) -> list[str]:
    """Stream an action of the reference agent; return the texts of its events."""
    order = json.dumps({"do": do, **arguments})
    events = platform.agents.run_sse(session, order, check=True)
    return [event.text for event in events if event.text]


def said(platform: Platform, session: AgentSession, *parts: str) -> list[AgentEvent]:
    """Run a message with these parts."""
    message = {"role": "user", "parts": [{"text": text} for text in parts]}
    return list(platform.agents.run(session, "", check=True, newMessage=message))


def history(platform: Platform, session: AgentSession) -> list[str]:
    """Return the texts in the history of a session."""
    found = platform.agents.get(session.app_name, session.id, user_id=session.user_id)
    return [event.text for event in found.events if event.text]


# ---- sandbox


def box_of(platform: Platform) -> Sandbox:
    """Return a new session of the sandbox."""
    return platform.sandbox(new_id(), user_id="witness")


def printed(box: Sandbox, code: str, language: str = "python3") -> str:
    """Return what code prints."""
    return box.run(code, language, check=True).stdout


# ---- MCP


@contextmanager
def service(platform: Platform, backend: Any = None) -> Iterator[McpClient]:
    """Yield a client of a service, by default in front of the reference tools."""
    target, name = platform.target, f"witness-{new_id()}"
    assert target.make_service is not None
    assert target.drop_service is not None
    record: Any = target.make_service(name, backend or f"{target.mcp}{mcp.PATH}")
    access = record["mcpServers"][name]
    try:
        with platform.mcp(access["httpUrl"], headers=access["headers"]) as client:
            yield client
    finally:
        target.drop_service(name)


@contextmanager
def things(platform: Platform) -> Iterator[tuple[McpClient, http_api.Api]]:
    """Yield a client of a service in front of the reference API, and the API."""
    with http_api.serving() as api, service(platform, http_api.definition(api.address)) as client:
        yield client, api


def sent_by(platform: Platform, operation: str, **arguments: Any) -> dict[str, Any]:
    """Return the request of an operation that the reference API gets."""
    with things(platform) as (client, api):
        fulfilled(client.call(operation, **arguments))
        return api.asked[-1]


def fulfilled(result: McpResult) -> McpResult:
    """Return a result. Fail if it is an error."""
    assert not result.is_error, result.text
    return result


def described(client: McpClient, fields: Any) -> Any:
    """Return an object that a tool got and returned."""
    result = client.call("describe", ratio=0.5, exact=True, tags=[], fields=fields)
    assert fulfilled(result).structured is not None
    return result.structured["fields"]


def require_fields(platform: Platform, fields: Any) -> None:
    """Fail unless an object reaches a tool and comes back."""
    with platform.mcp() as client:
        require(fields, described(client, fields))


# ---- A2A


def order(platform: Platform, do: str, texts: Sequence[str], **ids: Any) -> A2aAnswer:
    """Send an order to the reference executor."""
    return platform.a2a().send(json.dumps({"do": do, "texts": [*texts]}), **ids)


def send(platform: Platform, *texts: str) -> A2aAnswer:
    """Send a message with a part for each text to the executor, which echoes them."""
    card = a2a.card(platform.target, a2a.PATH)
    call = a2a.send(card.read(platform.send(card.request)), *texts)
    return call.read(platform.send(call.request))


def results(platform: Platform, do: str, texts: Sequence[str]) -> list[str]:
    """Stream an order to the reference executor; return its results."""
    events = platform.a2a().stream(json.dumps({"do": do, "texts": [*texts]}))
    return [text for event in events if event.kind == "artifact-update" for text in event.texts]
