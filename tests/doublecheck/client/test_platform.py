from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from doublecheck import AsyncPlatform, Credentials, Platform, Target, connect
from doublecheck.client.doubles import serving_double
from doublecheck.contracts.reference.agentdouble_apps import reference_app
from doublecheck.errors import (
    AnswerError,
    ArgumentError,
    NoAnswerError,
    NotADoubleError,
    RefusedError,
    UnreachableError,
)
from doublecheck.results import SessionSnapshot, StreamEvent
from tests.doublecheck import bad_servers

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double(reference_app()) as target:
        yield target


def test_an_invocation_sends_fields_and_headers(client: Platform) -> None:
    received = json.loads(
        client.invoke(
            "hi",
            user_id="u",
            session_id="s",
            request_id="r",
            headers={"x-custom": "c"},
            do="echo",
            top_k=3,
        )
    )

    assert {"prompt": "hi", "do": "echo", "top_k": 3} == received["payload"]
    sent = {"user_id": "u", "session_id": "s", "request_id": "r", "x-custom": "c"}
    assert sent == {name: received["headers"].get(name) for name in sent}


MISSED = {
    "user": "user_id",
    "userId": "user_id",
    "session": "session_id",
    "sessionid": "session_id",
    "session_ids": "session_id",
    "request": "request_id",
    "header": "headers",
}


@pytest.mark.parametrize(("written", "meant"), MISSED.items())
def test_a_field_like_an_argument_is_a_warning(
    target: Target, client: Platform, written: str, meant: str
) -> None:
    """It names the line of the caller; the field is sent all the same."""
    echo = {"do": "echo", written: "ann"}
    stream = {"do": "stream", "chunks": ["a"], written: "ann"}

    async def called_async() -> str:
        async with AsyncPlatform(target) as platform:
            _ = [event async for event in platform.stream("", **stream)]
            return str(await platform.invoke("", **echo))

    def called() -> list[str]:
        _ = [*client.stream("", **stream)]
        return [client.invoke("", **echo), asyncio.run(called_async())]

    with pytest.warns(UserWarning, match=f"{written!r} .*Did you mean {meant}") as warned:
        received = called()

    assert [__file__] * 4 == [warning.filename for warning in warned]
    assert ["ann", "ann"] == [json.loads(value)["payload"][written] for value in received]


@pytest.mark.parametrize("method", ["run", "run_sse"])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("user", "userId"),
        ("user_id", "userId"),
        ("sessionid", "sessionId"),
        ("stateDeltas", "stateDelta"),
        ("checks", "check"),
        ("stream", "streaming"),
    ],
)
def test_a_field_of_a_run_like_another_is_a_warning(
    client: Platform, method: str, written: str, meant: str
) -> None:
    """The server would ignore it without a word."""
    session = client.agents.create("echo")

    with pytest.warns(UserWarning, match=re.escape(f"{method}() sends {written!r}")) as warned:
        events = [*getattr(client.agents, method)(session, "hi", **{written: "x"})]

    assert events
    assert f"Did you mean {meant}?" in str(warned[0].message).replace("state_delta", "stateDelta")
    assert [__file__] == [warning.filename for warning in warned]


def test_other_fields_are_no_warning(client: Platform) -> None:
    """Warnings are errors in these tests."""
    session = client.agents.create("echo")
    client.invoke("", do="echo", top_k=3, usage=1, language="de", users=["ann"], limit=2)
    client.agents.run(
        session, "hi", stateDelta={"x": 1}, custom_metadata={}, traceId="t", locale="de"
    )


def test_a_stream_yields_events_as_they_arrive(client: Platform) -> None:
    """The first event arrives while the application still waits."""
    with closing(client.stream("", do="stream", chunks=["a", "b"], gate="g")) as events:
        first = next(events)
        client.invoke("", do="release", gate="g")
        second = next(events)

    assert (StreamEvent("a"), StreamEvent("b")) == (first, second)


def test_a_failure_in_a_stream_is_an_event(client: Platform) -> None:
    events = list(client.stream("it broke", do="fail_late", chunks=["a"]))

    assert [None, "it broke"] == [event.error for event in events]


def test_an_entrypoint_that_raises_is_a_refusal(client: Platform) -> None:
    """The error has request, status and body."""
    with pytest.raises(RefusedError, match=r"POST .*/invoke returned HTTP 500") as caught:
        client.invoke("it broke", do="fail")

    assert (500, True) == (caught.value.status, "RuntimeError" in caught.value.body)


def test_invoke_and_stream_suggest_each_other(client: Platform) -> None:
    with pytest.raises(AnswerError, match=r"stream\(\) instead of invoke\(\)"):
        client.invoke("", do="stream", chunks=["a"])
    with pytest.raises(AnswerError, match=r"invoke\(\) instead of stream\(\)"):
        list(client.stream("hi"))
    with pytest.raises(RefusedError, match="HTTP 500"):
        list(client.stream("it broke", do="fail"))


def test_probes_return_text(client: Platform) -> None:
    probes = [client.ping(), client.health(), client.readiness(), client.liveness()]

    assert ["reference application", "healthy", "success", "success"] == probes


def test_refused_code_has_the_platform_error_code(client: Platform) -> None:
    with pytest.raises(RefusedError) as caught:
        client.run_code("1", "cobol")

    assert ("InvalidParameter", 400) == (caught.value.code, caught.value.status)


@pytest.mark.parametrize("language", ["bash", "shell"])
def test_run_code_refuses_bash(client: Platform, language: str) -> None:
    """Their results differ, so nothing runs."""
    with pytest.raises(ArgumentError, match=r"exec_bash\(command\)"):
        client.run_code("ls", language)
    assert () == client.journal()


def test_advancing_the_clock_expires_sessions(client: Platform) -> None:
    before = client.clock.now()
    client.run_code("1")

    after = client.clock.advance(dt.timedelta(minutes=29), minutes=0.5, seconds=30)

    assert dt.timedelta(minutes=30) <= after - before < dt.timedelta(minutes=31)
    assert () == client.sandboxes()


def test_the_journal_has_requests_and_answers(client: Platform) -> None:
    """Each entry has a curl command."""
    client.ping()

    (entry,) = client.journal()

    assert ("GET", f"{client.url}/ping", 200) == (entry.method, entry.url, entry.status)
    assert () == entry.unread
    assert entry.curl.startswith("curl -X GET")


@pytest.mark.slow
def test_the_journal_links_calls_to_their_cause() -> None:
    """The agent's sandbox call names the causing call and the session."""
    with connect() as platform:
        platform.invoke("print(6 * 7)")
        request, caused = platform.journal()
        (session,) = platform.sandboxes()

    assert (None, request.id) == (request.caused_by, caused.caused_by)
    assert session.session_id == caused.session


def test_it_works_inside_a_running_loop(client: Platform) -> None:
    """Notebook cells run in one."""

    async def cell() -> str:
        return client.ping()

    assert "reference application" == asyncio.run(cell())


def test_a_live_platform_has_no_clock() -> None:
    """The error comes before any request."""
    with Platform(Target("https://live.example.com")) as live:
        for ask in (live.clock.now, live.clock.advance, live.journal, live.sandboxes, live.reset):
            with pytest.raises(NotADoubleError, match="exists only on a double"):
                ask()


def test_a_dead_address_is_one_clear_error() -> None:
    """It names the URL and the remedy and hides the error of httpx."""
    with Platform(Target("http://127.0.0.1:1")) as dead:
        with pytest.raises(
            UnreachableError, match=r"Nothing answers at http://127\.0\.0\.1:1"
        ) as caught:
            dead.ping()
        with pytest.raises(UnreachableError):
            next(dead.stream("hi"))

    assert (True, None) == (caught.value.__suppress_context__, caught.value.__cause__)


def test_a_missing_answer_differs_from_a_dead_address() -> None:
    """A server that hangs up did accept the request."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = Platform(Target(f"http://127.0.0.1:{server.getsockname()[1]}"), timeout_s=0.1)
        with silent, pytest.raises(NoAnswerError, match="did not finish its answer"):
            silent.ping()


def test_async_methods_return_the_same(tmp_path: Path) -> None:
    async def use(target: Target) -> None:
        async with AsyncPlatform(target) as platform:
            assert "hi" == await platform.invoke("hi", do="say")
            stream = platform.stream("", do="stream", chunks=["a", "b"])
            assert [StreamEvent("a"), StreamEvent("b")] == [event async for event in stream]
            probes = [platform.ping(), platform.health(), platform.readiness(), platform.liveness()]
            texts = ["reference application", "healthy", "success", "success"]
            assert texts == list(await asyncio.gather(*probes))
            assert "42" == (await platform.run_code("6 * 7")).text
            assert "42\n" == (await platform.sandbox().exec_bash("echo $((6 * 7))")).stdout
            assert "/tmp/f" == await platform.sandbox().upload("/tmp/f", b"\0\xff")
            assert b"\0\xff" == await platform.sandbox().download("/tmp/f")
            assert 1 == len(await platform.sandboxes())
            moved = await platform.clock.advance(minutes=30)
            assert moved <= await platform.clock.now()
            assert () == await platform.sandboxes()
            assert 12 == len(await platform.journal())
            await platform.reset()
            assert () == await platform.journal()
            with pytest.raises(RefusedError):
                await platform.invoke("it broke", do="fail")
            with pytest.raises(AnswerError, match="instead of stream"):
                await anext(platform.stream("hi"))

    with serving_double(reference_app()) as target:
        asyncio.run(use(target))


@pytest.mark.parametrize("hooks", [True, False], ids=["a loop", "one of nest_asyncio"])
def test_a_stream_can_be_left_early(hooks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing it closes the connection without warnings at collection."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: complaints.append(error.exc_value))

    async def use(target: Target) -> StreamEvent:
        if not hooks:
            sys.set_asyncgen_hooks(None, None)  # asyncio puts its own back
        async with AsyncPlatform(target) as platform:
            stream = platform.stream("", do="stream", chunks=["a", "b"], gate="left")
            async with contextlib.aclosing(stream) as events:
                return await anext(events)

    with serving_double(reference_app()) as target:
        assert (StreamEvent("a"), []) == (asyncio.run(use(target)), complaints)


def test_errors_are_the_same() -> None:
    async def use() -> None:
        async with AsyncPlatform(
            Target("http://127.0.0.1:1", tool_id="t-1", credentials=Credentials("AK", "SK"))
        ) as dead:
            with pytest.raises(UnreachableError):
                await dead.ping()
            with pytest.raises(UnreachableError):
                await dead.run_code("1")
            with pytest.raises(UnreachableError):
                await anext(dead.stream("hi"))
            with pytest.raises(NotADoubleError):
                await dead.clock.now()

    asyncio.run(use())


@pytest.mark.parametrize("kept_kinds", ["agent_sessions", ["agent_sessions", "clock"]])
def test_a_reset_keeps_named_parts(client: Platform, kept_kinds: str | list[str]) -> None:
    client.agents.create("echo", session_id="s")
    client.run_code("1")

    client.reset(keep=kept_kinds)

    assert ("s",) == tuple(session.id for session in client.agents.list("echo"))
    assert () == client.sandboxes()


def test_unknown_parts_are_refused(client: Platform) -> None:
    """The error lists the valid parts."""
    with pytest.raises(
        RefusedError, match="it can keep faults, clock, model, sessions, session_snap"
    ):
        client.reset(keep=["everything"])


def test_a_live_platform_is_not_reset() -> None:
    """The error comes before any request."""
    with (
        Platform(Target(url="http://127.0.0.1:1", kind="live")) as live,
        pytest.raises(NotADoubleError),
    ):
        live.reset()


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_that_is_kept_alive_has_a_limit(whole: bool) -> None:
    """The timeout begins again with each piece, so it would never be reached."""
    with bad_servers.serving(bad_servers.keep_alive) as server:
        target = Target(server.url)

        def read() -> None:
            with Platform(target, longest_answer_s=0.2) as platform:
                platform.invoke("hi") if whole else list(platform.stream("hi"))

        async def read_async() -> None:
            async with AsyncPlatform(target, longest_answer_s=0.2) as platform:
                if whole:
                    await platform.invoke("hi")
                else:
                    [event async for event in platform.stream("hi")]

        for attempt in (read, lambda: asyncio.run(read_async())):
            with pytest.raises(NoAnswerError, match=r"has not ended within 0\.2 s"):
                attempt()


@pytest.mark.parametrize(
    ("call", "taken"),
    [
        (lambda it: it.agents.run("s1", "hi"), "run() takes the session that create() or get()"),
        (lambda it: next(it.agents.run_sse("s1", "hi")), "run_sse() takes the session that"),
        (lambda it: it.agents.delete("s1"), "delete() takes the session that"),
        (lambda it: it.agents.list_artifacts("s1"), "list_artifacts() takes the session that"),
        (
            lambda it: it.agents.download_artifact("s1", "a"),
            "download_artifact() takes the session",
        ),
        (lambda it: it.sandbox().resume("snap"), "resume() takes the snapshot that snapshot()"),
        (lambda it: it.sandbox_from("snap"), "sandbox_from() takes the snapshot that snapshot()"),
        (
            lambda it: it.clock.advance(30),
            "advance() takes a duration such as '30m', a timedelta, or units such as minutes=30",
        ),
        (lambda it: it.faults.wait("f1"), "wait() takes the fault that arm() or fail() returned"),
        (lambda it: it.faults.release("f1"), "release() takes the fault"),
        (lambda it: it.faults.disarm(None), "disarm() takes the fault"),
        (lambda it: it.mcp(8000), "mcp() takes address as text, not 8000"),
        (lambda it: it.a2a(8000), "a2a() takes path as text, not 8000"),
        (lambda it: it.invoke("hi", headers={"a": 1}), "value of the header a must be text, not 1"),
        (lambda it: it.invoke("hi", headers={1: "a"}), "name of a header must be text, not 1"),
        (lambda it: it.invoke("hi", headers=["a"]), "headers must be a mapping of names to values"),
        (lambda it: it.invoke("hi", user_id=7), "value of the header user_id must be text, not 7"),
        (lambda it: list(it.stream("hi", session_id=b"s")), "header session_id must be text"),
        (lambda it: it.mcp(headers={"a": 1}).tools(), "value of the header a must be text, not 1"),
        (lambda it: it.mcp(headers="a: 1"), "headers must be a mapping of names to values"),
        (lambda it: it.request(1, "/ping"), "method must be text, not 1"),
        (lambda it: it.request("GET", 1), "path must be text, not 1"),
        (lambda it: it.request("POST", "/invoke", content="{}"), "content must be bytes, not '{}'"),
        (
            lambda it: it.request("GET", "/ping", timeout_s="5"),
            "timeout_s must be a number of seconds, not '5'",
        ),
        (lambda it: it.request("GET", "/ping", headers={"ä": "a"}), "must be ASCII, not 'ä'"),
    ],
)
def test_a_wrong_kind_of_argument_is_refused(
    client: Platform, call: Callable[[Platform], object], taken: str
) -> None:
    """The error says what the method takes, and nothing was sent."""
    with pytest.raises(ArgumentError, match=re.escape(taken)):
        call(client)
    assert () == client.journal()


def test_a_snapshot_of_another_session_is_not_resumed(client: Platform) -> None:
    """That would change the other session."""
    other = SessionSnapshot("snap-1", "Ready", "s-1", "agent_ann_s1", "")
    with pytest.raises(ArgumentError, match=r"is of the session agent_ann_s1.*sandbox_from"):
        client.sandbox().resume(other)
