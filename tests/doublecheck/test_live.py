from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from doublecheck import (
    AsyncPlatform,
    Completion,
    LiveOutput,
    NotADoubleError,
    Platform,
    Target,
)
from doublecheck.doubles import serving_double

SAYS = """
import sys
from IPython.display import HTML, display
print("out")
print("err", file=sys.stderr)
_ = display(HTML("<b>shown</b>"))
6 * 7
"""
SAID = [
    LiveOutput("stream", {"name": "stdout", "text": "out\n"}),
    LiveOutput("stream", {"name": "stderr", "text": "err\n"}),
    LiveOutput(
        "display_data",
        {
            "data": {
                "text/plain": "<IPython.core.display.HTML object>",
                "text/html": "<b>shown</b>",
            },
            "metadata": {},
        },
    ),
    LiveOutput(
        "execute_result", {"data": {"text/plain": "42"}, "metadata": {}, "execution_count": 1}
    ),
]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with serving_double() as target:
        yield target


@pytest.fixture
def platform(target: Target) -> Iterator[Platform]:
    with Platform(target) as platform:
        yield platform


def test_every_output_is_handed_over(platform: Platform) -> None:
    """In order, each as a kernel's message; the result is what it is without that."""
    said: list[LiveOutput] = []
    result = platform.run_code(SAYS, session_id="outputs", on_output=said.append)

    assert SAID == said
    assert ("out\n", "err\n", "42") == (result.stdout, result.stderr, result.text)


def test_an_error_is_handed_over(platform: Platform) -> None:
    """Its traceback is a list of lines, as in a kernel's message."""
    said: list[LiveOutput] = []
    result = platform.run_code("1 / 0", session_id="error", on_output=said.append)

    assert ["error"] == [output.msg_type for output in said]
    assert result.error is not None
    assert "\n".join(said[0].content["traceback"]) == result.error.traceback


def test_outputs_are_handed_over_in_the_callers_loop(target: Target) -> None:
    """AsyncPlatform does what Platform does."""

    async def use() -> list[LiveOutput]:
        said: list[LiveOutput] = []
        async with AsyncPlatform(target) as platform:
            await platform.run_code(SAYS, session_id="async", on_output=said.append)
        return said

    assert SAID == asyncio.run(use())


def test_a_session_s_kernel_completes_code(platform: Platform) -> None:
    """Where its names stand is told in characters; there is nothing where there is no kernel."""
    assert Completion((), 2, 2) == platform.complete("pr", session_id="complete-none")
    platform.run_code("colour_red = 1", session_id="complete")

    found = Completion((), 0, 0)
    while not found.matches:  # a kernel has a second to answer
        found = platform.complete("x = colour_r + 1", 12, session_id="complete")
    assert Completion(("colour_red",), 4, 12) == found


def test_a_live_platform_completes_nothing() -> None:
    """It has no way to ask."""

    async def ask(target: Target) -> None:
        async with AsyncPlatform(target) as platform:
            with pytest.raises(NotADoubleError, match="Completion"):
                await platform.complete("pr")

    asyncio.run(ask(Target("http://127.0.0.1:1")))
