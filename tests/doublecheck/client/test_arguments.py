"""Arguments that cannot be: refused in words, before anything is sent."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import doublecheck
from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client import arguments
from doublecheck.client._sync.clock import PlatformClock
from doublecheck.client._sync.faults import PlatformFaults
from doublecheck.errors import ArgumentError, ClosedError
from doublecheck.fixtures import PlatformSession
from doublecheck.results import A2aClient, Browser, McpClient

NOWHERE = Target(url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda platform: platform.run_code(None),
            "Platform.run_code() takes code as str, and was given NoneType: None.",
        ),
        (
            lambda platform: platform.run_code("1", user_id=3),
            (
                "Platform.run_code() takes user_id as str, and was given int: 3. Pass it as "
                "text: str(...)."
            ),
        ),
        (
            lambda platform: platform.exec_bash(b"ls"),
            (
                "Platform.exec_bash() takes command as str, and was given bytes: b'ls'. Decode "
                "it: .decode()."
            ),
        ),
        (
            lambda platform: platform.upload("name", "text"),
            (
                "Platform.upload() takes content as bytes, and was given str: 'text'. Encode "
                "it: .encode()."
            ),
        ),
        (
            lambda platform: platform.download(Path("name")),
            (
                f"Platform.download() takes path as str, and was given {type(Path()).__name__}: "
                f"{Path('name')!r}. Pass it as text: str(...)."
            ),
        ),
        (
            lambda platform: platform.run_code("1", timeout_s="soon"),
            "Platform.run_code() takes timeout_s as int or None, and was given str: 'soon'.",
        ),
        (
            lambda platform: platform.run("echo", "message"),
            "Platform.run() takes session as AgentSession, and was given str: 'echo'.",
        ),
        (
            lambda platform: platform.invoke("hello", headers={"x": 1}),
            (
                "Platform.invoke() takes headers as a mapping of str to str or None, and was given "
                "dict: {'x': 1}."
            ),
        ),
        (
            lambda platform: platform.run_code("1", sesion_id="s"),
            "Platform.run_code() takes no argument sesion_id. Did you mean session_id?",
        ),
        (
            lambda platform: platform.get_session("echo"),
            (
                "Platform.get_session(): missing a required argument: 'session_id'. It takes app, "
                "session_id, user_id."
            ),
        ),
        (
            lambda platform: platform.get_session("echo", ""),
            "session_id is empty, but it is a part of the request's path.",
        ),
        (
            lambda platform: platform.get_session("echo", "\udcff"),
            (
                "Platform.get_session() cannot send session_id: it has half a character (a lone "
                r"surrogate), which is not text: '\udcff'."
            ),
        ),
        (
            lambda platform: platform.clock.advance(3),
            "PlatformClock.advance() takes by as timedelta or None, and was given int: 3.",
        ),
        (
            lambda platform: platform.clock.advance(minutes=-5),
            (
                "The clock only moves forward, and -300 seconds would move it back. "
                "platform.reset() sets it to the time of this machine."
            ),
        ),
        (
            lambda platform: platform.clock.advance(seconds=float("nan")),
            "The clock cannot be advanced by that: cannot convert float NaN to integer.",
        ),
        (
            lambda platform: platform.invoke("hello", count=object),
            "The value cannot be sent as JSON: Object of type type is not JSON serializable.",
        ),
        (
            lambda platform: platform.request("GET", "ping"),
            "A path begins with a slash, and 'ping' does not.",
        ),
        (
            lambda platform: platform.request("GET", "/a\nb"),
            (
                "A request to http://127.0.0.1:1/a\nb cannot be sent: Invalid non-printable ASCII "
                "character in URL, '\\n' at position 20."
            ),
        ),
        (
            lambda platform: doublecheck.connect(8000),
            ("connect() takes url as str, as an Emulator or None, and was given int: 8000."),
        ),
    ],
)
def test_a_wrong_argument_is_refused_in_words(call: Any, message: str) -> None:
    """It says which, of what type it must be, and what to do, where that is plain."""
    with Platform(NOWHERE) as platform, pytest.raises(ArgumentError) as refused:
        call(platform)

    assert message == str(refused.value)


def test_a_platform_that_was_closed_says_so() -> None:
    """Whatever it is asked, a stream too."""
    platform = Platform(NOWHERE)
    platform.close()

    for call in (platform.ping, lambda: list(platform.stream("hello"))):
        with pytest.raises(ClosedError, match=r"has been closed.* connect\(\) again"):
            call()


def test_so_do_both_for_async_code() -> None:
    """Of wrong arguments and of having been closed."""

    async def use() -> None:
        platform = AsyncPlatform(NOWHERE)
        with pytest.raises(ArgumentError, match=r"AsyncPlatform.run_code\(\) takes code as str"):
            await platform.run_code(None)  # type: ignore[arg-type]
        await platform.aclose()
        with pytest.raises(ClosedError):
            await platform.ping()

    asyncio.run(use())


@pytest.mark.parametrize(
    "kind", [Platform, PlatformClock, PlatformFaults, McpClient, A2aClient, Browser]
)
def test_the_arguments_of_every_method_are_looked_at(kind: type) -> None:
    """None is left out because its types cannot be read."""
    methods = [one for name, one in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"]

    for method in methods:
        signature, hints = arguments._taken(inspect.unwrap(method))
        named = [one.name for one in signature.parameters.values() if one.kind not in (2, 4)]
        assert named == ["self", *hints]
        assert Any not in hints.values()


MISNAMED = {
    "user_id": ("user", "userId", "user_ID", "User-Id", "uid", "userid", "usser_id"),
    "session_id": ("session", "sessionId", "UserSessionId", "user_session_id", "sid", "sesion_id"),
    "request_id": ("requestId", "request-id"),
}


@pytest.mark.parametrize("method", ["invoke", "stream"])
@pytest.mark.parametrize(
    ("name", "meant"), [(name, meant) for meant, names in MISNAMED.items() for name in names]
)
def test_who_asks_is_not_a_field_of_the_body(method: str, name: str, meant: str) -> None:
    """With the name of the argument that says it; nothing is sent."""
    message = rf"\.{method}\(\) would send {name} as a field .* Did you mean {meant}\?"

    with Platform(NOWHERE) as platform, pytest.raises(ArgumentError, match=message):
        getattr(platform, method)("hi", **{name: "ann"})
    with pytest.raises(ArgumentError, match=message):
        asyncio.run(getattr(AsyncPlatform(NOWHERE), method)("hi", **{name: "ann"}))


@pytest.mark.parametrize("method", ["run", "run_sse"])
@pytest.mark.parametrize("name", ["user_id", "userId", "session_id", "sid"])
def test_a_run_is_that_of_its_session(
    platform: Platform, platform_session: PlatformSession, method: str, name: str
) -> None:
    """Which has the user already."""
    message = rf"Platform\.{method}\(\) would send {name} .* The session says who asks"

    with pytest.raises(ArgumentError, match=message):
        list(getattr(platform, method)(platform_session.session, "hi", **{name: "ann"}))
    with pytest.raises(ArgumentError, match=message):
        list(getattr(platform_session, method)("hi", **{name: "ann"}))


def test_other_fields_are_sent(platform: Platform) -> None:
    """Whatever they are called."""
    fields = {"users": 1, "username": 2, "version_id": 3, "sessions": 4, "header": 5, "prompts": 6}
    platform.invoke("hi", **fields, user_id="ann")

    entry = platform.journal()[0]  # the agent makes further requests
    assert {**fields, "prompt": "hi"} == json.loads(entry.request_body)
