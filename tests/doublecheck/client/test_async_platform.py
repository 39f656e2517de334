from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from doublecheck import AsyncPlatform, Credentials, Target
from doublecheck.client.open_target import serving_double
from doublecheck.contracts.reference.agentdouble_apps import reference_app
from doublecheck.errors import AnswerError, NotADoubleError, RefusedError, UnreachableError
from doublecheck.results import StreamEvent

pytestmark = pytest.mark.smoke


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
            assert "42\n" == (await platform.exec_bash("echo $((6 * 7))")).stdout
            assert "/tmp/f" == await platform.upload("/tmp/f", b"\0\xff")
            assert b"\0\xff" == await platform.download("/tmp/f")
            assert 1 == len(await platform.sessions())
            moved = await platform.clock.advance(minutes=30)
            assert moved <= await platform.clock.now()
            assert () == await platform.sessions()
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
