from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.mcp_services import McpBackend
from tests import ports
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.mcp_services.backend import (
    CREDENTIALS,
    TOOLS,
    Backend,
    server,
    talking,
)

KEY = "service-key"


def service(double: Emulator, name: str, backend: Any) -> str:
    """Create a service and return its address."""
    double.mcp.create(name, backend, key=KEY)
    record = double.mcp.record(name)
    url: str = record["mcpServers"][name]["httpUrl"]
    return url


@pytest.fixture(scope="module")
def url(services: Emulator, _serving: Backend) -> str:
    """The address of a service in front of the backend."""
    return service(services, "through", f"{_serving.url}/mcp")


def test_backend_s_tools_are_the_service_s(url: str) -> None:
    """They are listed and called through the service (SVC-01)."""
    session = mcp_wire.open_session(url, KEY)
    listed = mcp_wire.result(mcp_wire.post(url, mcp_wire.message("tools/list"), KEY, session))

    assert list(TOOLS) == [tool["name"] for tool in listed["tools"]]
    assert {"arguments": {"word": "hé"}} == mcp_wire.call(url, KEY, session, "echo", word="hé")[
        "structuredContent"
    ]


def test_events_are_streamed(url: str, backend: Backend) -> None:
    """Progress arrives while the call is running."""
    session = mcp_wire.open_session(url, KEY)
    params = {"name": "progress", "arguments": {}, "_meta": {"progressToken": "p"}}
    with mcp_wire.streamed(url, KEY, session, mcp_wire.message("tools/call", params)) as (
        _,
        events,
    ):
        first = next(events)
        backend.go_on.set()
        last = next(events)

    assert "notifications/progress" == first["method"]
    assert {"arguments": {}} == last["result"]["structuredContent"]


def test_backend_can_ask_the_caller(url: str) -> None:
    """Its request arrives in the call's stream, and the answer returns to it."""
    session = mcp_wire.open_session(url, KEY)
    message = mcp_wire.message("tools/call", {"name": "ask", "arguments": {}})
    with mcp_wire.streamed(url, KEY, session, message) as (_, events):
        question = next(events)
        result = {"action": "accept", "content": {"name": "me"}}
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        assert 202 == mcp_wire.post(url, reply, KEY, session).status_code
        last = next(events)

    assert ("elicitation/create", "who?") == (question["method"], question["params"]["message"])
    assert result == last["result"]["structuredContent"]


def test_resources_and_notifications_pass(url: str) -> None:
    """A resource is read; the GET stream has the backend's notifications."""
    session = mcp_wire.open_session(url, KEY)
    read = mcp_wire.message("resources/read", {"uri": "test://one"})

    contents = mcp_wire.result(mcp_wire.post(url, read, KEY, session))["contents"]
    with mcp_wire.streamed(url, KEY, session) as (_, events):
        mcp_wire.call(url, KEY, session, "announce")
        announced = next(events)

    assert [{"uri": "test://one", "text": "the text"}] == contents
    assert ("notifications/resources/updated", {"uri": "test://one"}) == (
        announced["method"],
        announced["params"],
    )


def test_each_side_sees_only_its_own_credentials(services: Emulator, backend: Backend) -> None:
    """The backend gets the service's headers, not the caller's key, cookie, page or address."""
    behind = McpBackend(f"{backend.url}/needy", {"Authorization": CREDENTIALS, "X-Tenant": "ours"})
    url = service(services, "credentials", behind)
    more = {"X-Tenant": "theirs", "Cookie": "a=b", "X-Forwarded-For": "10.0.0.1", "X-Mine": "1"}

    answer = mcp_wire.http.post(
        url,
        json=mcp_wire.INITIALIZE,
        headers={**mcp_wire.headers(KEY), **more, "Origin": url[:-16]},
    )

    assert 200 == answer.status_code, answer.text
    (sent,) = backend.received
    assert (CREDENTIALS, "ours", "1") == (sent["authorization"], sent["x-tenant"], sent["x-mine"])
    assert backend.url == f"http://{sent['host']}"
    assert not {"cookie", "origin", "x-forwarded-for"} & sent.keys()
    assert CREDENTIALS not in f"{answer.headers}{answer.text}"


def refused(answer: httpx.Response, backend: Backend) -> tuple[int, str]:
    """Return status and message of an error, without the backend's address in it."""
    text = f"{answer.headers.raw}{answer.text}"
    port = backend.url.rpartition(":")[2]
    assert port not in text.replace(f":{answer.request.url.port}", "")
    assert not {"location", "www-authenticate"} & answer.headers.keys()
    assert "secret-server" not in text
    return mcp_wire.error(answer)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("needy", 502, "refuses the credentials that the service has for it (401)"),
        ("elsewhere", 502, "redirects elsewhere (307)"),
        ("page", 502, "answers 200 with text/html, which is not MCP"),
        ("fault", 502, "answers 500 with text/plain, which is not MCP"),
        ("nothing-here", 404, None),
    ],
)
def test_non_mcp_errors_are_rephrased(
    services: Emulator, backend: Backend, path: str, status: int, message: str | None
) -> None:
    """Neither the backend's own text nor its address is shown."""
    url = service(services, f"not-mcp-{path}", f"{backend.url}/{path}")
    expected = f"The backend of the MCP service 'not-mcp-{path}' {message or 'refuses this'}."

    assert (status, expected) == refused(mcp_wire.post(url, mcp_wire.INITIALIZE, KEY), backend)


def test_redirect_on_the_same_server_is_followed(services: Emulator, backend: Backend) -> None:
    """For example to a trailing slash."""
    url = service(services, "moved", f"{backend.url}/moved")

    assert mcp_wire.open_session(url, KEY)


EMPTY = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
PLAIN = b"Content-Type: text/plain;charset=UTF-8\r\n"
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"202 Accepted\r\n" + PLAIN + EMPTY, 202),
        (b"202 Accepted\r\n" + PLAIN + b"Content-Length: 8\r\n\r\nAccepted", 202),
        (b"204 No Content\r\n" + PLAIN + b"\r\n", 204),
    ],
    ids=["hono", "express", "204"],
)
def test_response_without_content_may_have_any_type(
    services: Emulator, request: pytest.FixtureRequest, raw: bytes, status: int
) -> None:
    """To a notification, and to the end of a session."""
    name = f"no-content-{'-'.join(request.node.callspec.id.split())}"
    with talking(b"HTTP/1.1 " + raw, stays=True) as address:
        url = service(services, name, address)
        answers = [
            mcp_wire.post(url, NOTE, KEY),
            mcp_wire.http.delete(url, headers=mcp_wire.headers(KEY)),
        ]

    assert [(status, b"", None)] * 2 == [
        (reply.status_code, reply.content, reply.headers.get("content-type")) for reply in answers
    ]


def test_non_mcp_content_does_not_answer_a_request(services: Emulator) -> None:
    """The client would wait forever."""
    text = "The backend of the MCP service 'receipt' answers 202 with text/plain, which is not MCP."
    head = b"HTTP/1.1 202 Accepted\r\n" + PLAIN + b"Content-Length: 8\r\n\r\n"
    with talking(head + b"Accepted") as address:
        url = service(services, "receipt", address)

        assert (502, text) == mcp_wire.error(mcp_wire.post(url, mcp_wire.INITIALIZE, KEY))


@pytest.mark.parametrize("raw", [b"", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_backend_without_http_is_a_clear_error(services: Emulator, raw: bytes) -> None:
    """502, which names only the service."""
    name = f"no-http-{len(raw)}"
    with talking(raw) as address:
        url = service(services, name, address)

        assert (
            502,
            f"The backend of the MCP service {name!r} broke off, or does not speak HTTP.",
        ) == mcp_wire.error(mcp_wire.post(url, mcp_wire.INITIALIZE, KEY))


def test_dead_backend_is_a_clear_error_until_it_restarts(services: Emulator) -> None:
    """502 while nothing listens; then the service works again."""
    with ports.reserved() as port:
        with Backend().serving(port) as backend:
            url = service(services, "reviving", f"{backend.url}/mcp")
            lost = mcp_wire.open_session(url, KEY)

        assert (502, "The backend of the MCP service 'reviving' cannot be reached.") == refused(
            mcp_wire.post(url, mcp_wire.INITIALIZE, KEY), backend
        )
        with Backend().serving(port):
            assert 404 == mcp_wire.post(url, mcp_wire.message("ping"), KEY, lost).status_code
            assert mcp_wire.call(url, KEY, mcp_wire.open_session(url, KEY), "echo")


def test_call_interrupted_by_the_backend_gets_an_error(services: Emulator) -> None:
    """The stream ends with an error for the pending request."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    event = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
    with talking(head + b"%x\r\n" % len(event) + event + b"\r\n") as address:
        url = service(services, "breaking-off", address)
        messages = mcp_wire.replies(mcp_wire.post(url, mcp_wire.message("ping", id_=42), KEY))

    message = "The backend of the MCP service 'breaking-off' broke off amid its answer."
    assert ["notifications/message", {"code": -32603, "message": message}] == [
        messages[0]["method"],
        messages[1]["error"],
    ]
    assert 42 == messages[1]["id"]


@pytest.mark.parametrize(
    "event", [b"id: 1\ndata: {}\n\n", b'data: {"half"'], ids=["resumable", "amid an event"]
)
def test_resumable_or_cut_stream_ends_without_an_error(services: Emulator, event: bytes) -> None:
    """An error would discard resumable events, or land inside an event."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with talking(head + b"%x\r\n" % len(event) + event + b"\r\n") as address:
        url = service(services, f"cut-{len(event)}", address)
        answer = mcp_wire.post(url, mcp_wire.message("ping"), KEY)

    assert event == answer.content


def test_truncated_json_response_is_detected(services: Emulator) -> None:
    """The connection breaks, like the backend's."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    with talking(head + b"{") as address:
        url = service(services, "half", address)

        with pytest.raises(httpx.TransportError):
            mcp_wire.post(url, mcp_wire.INITIALIZE, KEY)


def test_mute_backend_is_released_with_the_caller(services: Emulator, backend: Backend) -> None:
    """A caller that gives up cancels the request to the backend."""
    url = service(services, "mute", f"{backend.url}/mute")
    with mcp_wire.waiting(url, mcp_wire.INITIALIZE, mcp_wire.headers(KEY)):
        assert backend.entered.wait(TIMEOUT_S)
        assert not backend.exited.is_set()

    assert backend.exited.wait(TIMEOUT_S)


def test_unknown_http_method_is_refused(url: str, backend: Backend) -> None:
    """405 lists the valid ones."""
    answer = mcp_wire.http.request("PUT", url, headers=mcp_wire.headers(KEY))

    assert (405, "GET, POST, DELETE") == (answer.status_code, answer.headers["allow"])
    assert [] == backend.received


def test_https_backend_is_verified_with_the_environment_s_cas(
    services: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE names the authorities."""
    with Emulator(tls=True) as secure:
        secure.mcp.create("inner", server(Backend()), key=KEY)
        behind = McpBackend(f"{secure.url}/mcp/inner", {"Authorization": f"Bearer {KEY}"})
        untrusting = service(services, "untrusting", behind)

        assert (502, "The backend of the MCP service 'untrusting' cannot be reached.") == (
            mcp_wire.error(mcp_wire.post(untrusting, mcp_wire.INITIALIZE, KEY))
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(secure.ca_file))
        trusting = service(services, "trusting", behind)
        assert mcp_wire.call(trusting, KEY, mcp_wire.open_session(trusting, KEY), "echo")


def test_service_in_front_of_itself_is_refused(services: Emulator) -> None:
    """It would call itself forever."""
    services.mcp.create("circle", f"{services.url}/mcp/circle", key=KEY)
    services.mcp.update(
        "circle",
        McpBackend(f"{services.url}/mcp/circle", {"Authorization": f"Bearer {KEY}"}),
    )
    answer = mcp_wire.post(f"{services.url}/mcp/circle", mcp_wire.INITIALIZE, KEY)

    assert (502, "The backend of the MCP service 'circle' leads back to the service itself.") == (
        mcp_wire.error(answer)
    )


def test_log_has_the_reason_and_the_answer_does_not(
    services: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator learns more than the callers."""
    with talking(b"nonsense\r\n\r\n") as address:
        url = service(services, "logged", address)
        with caplog.at_level(logging.WARNING, "agentdouble.mcp_services"):
            mcp_wire.post(url, mcp_wire.INITIALIZE, KEY)

    (record,) = (log for log in caplog.records if log.name.startswith("agentdouble.mcp_services"))
    prefix = "The backend of the MCP service logged: it does not speak HTTP: "
    assert prefix == record.getMessage()[: len(prefix)]
