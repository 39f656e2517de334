"""What commands say while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client.doubles import serving_double
from doublecheck.results import BashResult, LiveOutput

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double() as target:
        yield target


def stream(name: str, text: str) -> LiveOutput:
    return LiveOutput("stream", {"name": name, "text": text})


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
