"""What commands say while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.errors import InterruptedRunError
from doublecheck.results import BashResult, LiveOutput, Output

pytestmark = pytest.mark.once

LAST_WORDS = (
    "x=kept; bash -c 'trap \"echo last; exit 1\" INT; echo begun; while :; do sleep 0.1; done'"
)


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double() as target:
        yield target


@pytest.fixture
def platform(target: Target) -> Iterator[Platform]:
    with Platform(target) as platform:
        yield platform


def stream(name: str, text: str) -> LiveOutput:
    return LiveOutput("stream", {"name": name, "text": text})


@pytest.mark.slow
def test_output_is_handed_over_before_the_command_ends(platform: Platform) -> None:
    """The command goes on because its first output has come here; the result has all of it."""
    said: list[LiveOutput] = []

    def let_go(output: LiveOutput) -> None:
        said.append(output)
        if len(said) == 1:
            go.write_text("")

    platform.exec_bash("mkfifo go", session_id="live")
    listed = platform.request("GET", "/_emulator/sessions").json()["sessions"]
    go = Path(next(s["home"] for s in listed if s["UserSessionId"].endswith("live"))) / "go"
    command = "echo first; cat go; echo second >&2; (exit 3)"
    result = platform.exec_bash(command, session_id="live", on_output=let_go)

    assert [stream("stdout", "first\n"), stream("stderr", "second\n")] == said
    written = (Output("stream", "stdout", "first\n"), Output("stream", "stderr", "second\n"))
    assert (3, written) == (result.exit_code, result.outputs)


def test_each_of_two_at_once_has_its_own(target: Target) -> None:
    """Also in one session, and in the caller's loop; the second waits for the first."""

    async def use(platform: AsyncPlatform, word: str) -> tuple[BashResult, list[LiveOutput]]:
        said: list[LiveOutput] = []
        run = platform.exec_bash(f"echo {word}", session_id="two", on_output=said.append)
        return await run, said

    async def both() -> list[tuple[BashResult, list[LiveOutput]]]:
        async with AsyncPlatform(target) as platform:
            return await asyncio.gather(use(platform, "one"), use(platform, "two"))

    ran = asyncio.run(both())

    assert ["one\n", "two\n"] == [result.stdout for result, _ in ran]
    assert [[stream("stdout", "one\n")], [stream("stdout", "two\n")]] == [said for _, said in ran]


def test_a_live_platform_has_it_at_the_end(target: Target) -> None:
    """Nobody can listen to it; all the command wrote is handed over when it is here."""
    said: list[LiveOutput] = []
    with Platform(replace(target, kind="live")) as platform:
        platform.exec_bash("echo warned >&2; echo said", session_id="end", on_output=said.append)

    assert [stream("stdout", "said\n"), stream("stderr", "warned\n")] == said


def test_an_interrupted_command_says_its_last(platform: Platform) -> None:
    """What it has started is interrupted, what that says is handed over, its bash is kept."""
    said: list[str] = []

    def interrupt(output: LiveOutput) -> None:
        said.append(output.content["text"])
        if len(said) == 1:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match=r"'i' was interrupted.* keeps its state"):
        platform.exec_bash(LAST_WORDS, session_id="i", on_output=interrupt)

    assert "begun\nlast\n" == "".join(said)
    assert "kept\n" == platform.exec_bash("echo $x", session_id="i").stdout


def test_a_command_that_is_cancelled_says_its_last(target: Target) -> None:
    """So it does with AsyncPlatform, whose caller sees the cancellation."""
    said: list[str] = []

    async def use() -> str:
        def hear(output: LiveOutput) -> None:
            said.append(output.content["text"])
            running.cancel()

        async with AsyncPlatform(target) as platform:
            running = asyncio.ensure_future(
                platform.exec_bash(LAST_WORDS, session_id="c", on_output=hear)
            )
            with pytest.raises(asyncio.CancelledError):
                await running
            return (await platform.exec_bash("echo $x", session_id="c")).stdout

    assert "kept\n" == asyncio.run(use())
    assert "begun\nlast\n" == "".join(said)
