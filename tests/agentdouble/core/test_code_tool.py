from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agentdouble import Emulator, SimpleApp, run_code
from agentdouble.core.code_tool import Invocation, hosted_by, invoked_by
from agentdouble.core.environment import DoubleConnection, variables
from agentdouble.errors import (
    CredentialsMissingError,
    EnvelopeError,
    PlatformError,
    PlatformUnreachableError,
    ToolIdMissingError,
)
from tests.agentdouble.calling import http
from tests.ports import served

pytestmark = pytest.mark.smoke


@dataclass
class Context:
    """A tool context like those of agent frameworks."""

    state: Any


class State:
    """A state that is not a mapping, like Google ADK's."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def to_dict(self) -> Mapping[str, Any]:
        return self._values


@pytest.fixture
def environment(shared: Emulator, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Point the environment at a double."""
    variables = shared.environment()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def printed(result: str) -> str:
    text: str = json.loads(result)["data"]["outputs"][0]["text"]
    return text


@pytest.mark.usefixtures("environment")
def test_the_result_is_returned_as_sent() -> None:
    """RUN-01: the JSON of 2.7, as a string."""
    result = run_code("print(6 * 7)", "python3")

    assert "42\n" == printed(result)
    assert result.startswith('{\n  "success": true')


def test_every_kind_of_tool_context_works(shared: Emulator) -> None:
    """It can be a mapping, an object with one, or have an ADK state."""
    variables = shared.environment()

    results = [
        run_code("print(1)", tool_context=context)
        for context in (variables, Context(variables), Context(State(variables)))
    ]

    assert ["1\n"] * 3 == [printed(result) for result in results]


def test_the_hosting_double_overrides_the_environment(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application in a double uses that double's sandbox."""
    monkeypatch.setenv("PLATFORM_TOOL_HOST", "elsewhere.invalid")
    monkeypatch.setenv("PLATFORM_SECRET_KEY", "elsewhere")

    with hosted_by(environment):
        assert "1\n" == printed(run_code("print(1)"))


@pytest.mark.usefixtures("environment")
def test_a_missing_tool_id_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """RUN-02."""
    monkeypatch.delenv("PLATFORM_TOOL_ID")

    with pytest.raises(ToolIdMissingError, match="set PLATFORM_TOOL_ID"):
        run_code("1")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("name", ["PLATFORM_ACCESS_KEY", "PLATFORM_SECRET_KEY"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_credentials_error_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    """RUN-03."""
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)

    with pytest.raises(
        CredentialsMissingError, match="PLATFORM_ACCESS_KEY and PLATFORM_SECRET_KEY"
    ):
        run_code("1")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("host", "message"),
    [
        (None, "PLATFORM_TOOL_HOST is not set; it is host or host:port"),
        ("127.0.0.1:1", "Nothing answers at http://127.0.0.1:1"),
        ("127.0.0.1:port", "Nothing answers at http://127.0.0.1:port"),
    ],
)
def test_an_unreachable_platform_is_named(
    monkeypatch: pytest.MonkeyPatch, host: str | None, message: str
) -> None:
    """The error has the address and its variable."""
    if host is None:
        monkeypatch.delenv("PLATFORM_TOOL_HOST")
    else:
        monkeypatch.setenv("PLATFORM_TOOL_HOST", host)

    with pytest.raises(PlatformUnreachableError) as caught:
        run_code("1")

    assert message in str(caught.value)
    assert "PLATFORM_TOOL_HOST and PLATFORM_TOOL_SCHEME" in str(caught.value)


@pytest.mark.usefixtures("environment")
def test_a_local_double_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network proxy cannot reach loopback."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    assert "1\n" == printed(run_code("print(1)"))


@pytest.mark.usefixtures("environment")
def test_a_platform_error_is_raised_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_TOOL_ID", "t-other")

    with pytest.raises(PlatformError) as caught:
        run_code("1")

    assert ("InvalidResource.NotFound", 404) == (caught.value.code, caught.value.status)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A platform that answers like a broken gateway, with the requests it received."""
    requests: list[Any] = []

    async def answer(request: Request) -> Response:
        requests.append(await request.json())
        return PlainTextResponse("Bad Gateway", 502)

    with served(Starlette(routes=[Route("/", answer, methods=["POST"])])) as url:
        for name, value in variables(DoubleConnection(url, "t-1", "AK", "SK", "r")).items():
            monkeypatch.setenv(name, value)
        yield requests


def test_an_invalid_envelope_is_an_error(gateway: list[Any]) -> None:
    """A gateway's page is never taken for a result."""
    with pytest.raises(EnvelopeError, match=r"not JSON \(HTTP 502\): 'Bad Gateway'"):
        run_code("1")


def test_language_timeout_and_ttl_are_sent(
    gateway: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PLATFORM_TOOL_TTL sets the validity of a new instance."""
    monkeypatch.setenv("PLATFORM_TOOL_TTL", "60")

    with pytest.raises(EnvelopeError):
        run_code("1", "js", {"user_id": "u", "session_id": "s", "agent": "a"}, timeout_s=5)

    payload = '{"code": "1", "kernel_name": "js", "timeout": 5}'
    assert [
        {
            "ToolId": "t-1",
            "UserSessionId": "a_u_s",
            "OperationType": "RunCode",
            "OperationPayload": payload,
            "Ttl": 60,
        }
    ] == gateway


def test_the_invocation_determines_the_session(gateway: list[Any]) -> None:
    """SBX-12: agent, user and session take precedence over the context."""
    with invoked_by(Invocation("u", "s", "a")), pytest.raises(EnvelopeError):
        run_code("1", tool_context={"user_id": "other"})

    assert "a_u_s" == gateway[0]["UserSessionId"]


def make_app(*, blocking: bool) -> SimpleApp:
    app = SimpleApp("runner")

    @app.entrypoint
    async def run(payload: dict[str, Any], headers: dict[str, str]) -> str:
        code = payload["prompt"]
        if blocking:
            return printed(run_code(code))
        return printed(await asyncio.to_thread(run_code, code))

    return app


@pytest.mark.slow
@pytest.mark.parametrize("blocking", [True, False])
def test_the_session_id_header_selects_the_sandbox(blocking: bool) -> None:
    """INV-09, SBX-12: a session keeps its names, apart from other sessions and users."""
    with Emulator(make_app(blocking=blocking)) as double:

        def ask(user_id: str, session_id: str, code: str) -> str:
            response = http.post(
                f"{double.url}/invoke",
                json={"prompt": code},
                headers={"user_id": user_id, "session_id": session_id},
            )
            answer: str = response.json()
            return answer

        ask("u1", "s1", "x = 1; print()")
        values = [
            ask(user, session, "print('x' in globals())")
            for user, session in (("u1", "s1"), ("u1", "s2"), ("u2", "s1"))
        ]
        sessions = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]

    assert ["True\n", "False\n", "False\n"] == values
    assert ["runner_u1_s1", "runner_u1_s2", "runner_u2_s1"] == [
        session["UserSessionId"] for session in sessions
    ]


def test_invalid_session_ids_are_the_caller_s_error() -> None:
    """They get 400 with the reason; an application's invalid name gets 500."""
    answers = []
    for name, user in (("good", "a@b.c"), ("bad.name", "ann")):
        app = SimpleApp(name)

        @app.entrypoint
        async def main(_payload: dict[str, Any], _headers: dict[str, str]) -> str:
            return await asyncio.to_thread(run_code, "1")

        with Emulator(app) as double:
            ids = {"user_id": user, "session_id": "s1"}
            answer = http.post(f"{double.url}/invoke", json={}, headers=ids)
            answers.append((answer.status_code, answer.json()["error"]))

    (my_answer, about), (their_answer, _) = answers
    assert (400, 500, "InvalidParameter") == (my_answer, their_answer, about["type"])
    assert "'good_a@b.c_s1' must be 1 to 200 letters, digits, '_' and '-'" in about["message"]
