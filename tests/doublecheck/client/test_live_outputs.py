from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doublecheck import AsyncPlatform, Platform, Target
from doublecheck.client import loop_thread
from doublecheck.client.doubles import serving_double
from doublecheck.errors import InterruptedRunError
from doublecheck.results import CodeResult, Completion, LiveOutput, Output
from doublecheck.values.executions import OnOutput
from tests.agentdouble.calling import TIMEOUT_S, background

PYTHON = """
import base64, sys
from IPython.display import HTML, Image, clear_output, display

print("gone")
clear_output()
print("out")
print("err", file=sys.stderr)
shown = display("first", display_id=True)
print("more", end="")
shown.update(HTML("<b>second</b>"))
display("same", display_id=shown.display_id)
shown.update("third")
_ = display(Image(data=base64.b64decode("iVBORw0KGgo="), format="png"))
6 * 7
"""
CLEARED_LATER = """
from IPython.display import clear_output
for step in range(3):
    clear_output(wait=True)
    print(step)
clear_output(wait=True)
1 / 0
"""
JAVASCRIPT = """
console.log("out");
console.error("err");
await Deno.jupyter.display({"text/html": "<b>shown</b>"}, {raw: true});
({a: [1, 2]})
"""
PNG = "iVBORw0KGgo="
# each is one write, and so one message
GO_ON = """
try:
    print('begun\\n', end='')
    while True: pass
except KeyboardInterrupt:
    print('last\\n', end='')
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with pytest.MonkeyPatch.context() as patch, serving_double() as target:
        patch.setattr("agentdouble.sandbox.kernel.INTERRUPT_GRACE_S", 60)  # or they are killed
        yield target


@pytest.fixture
def platform(target: Target) -> Iterator[Platform]:
    with Platform(target) as platform:
        yield platform


def as_shown(live_outputs: Iterable[LiveOutput]) -> tuple[Output, ...]:
    """Return the final outputs that a notebook shows for these messages (2.7)."""
    merged: list[Output] = []
    ids: list[str | None] = []
    clear = False
    for output in live_outputs:
        content = output.content
        if clear or (output.msg_type == "clear_output" and not content["wait"]):
            merged, ids, clear = [], [], False
        if output.msg_type == "clear_output":
            clear = content["wait"]
            continue
        if output.msg_type == "update_display_data":
            for place, display_id in enumerate(ids):
                if display_id == content["transient"]["display_id"]:
                    data = {"data": content["data"], "metadata": content["metadata"]}
                    merged[place] = replace(merged[place], **data)
            continue
        if merged and output.msg_type == "stream" and merged[-1].name == content["name"]:
            merged[-1] = replace(merged[-1], text=f"{merged[-1].text}{content['text']}")
            continue
        fields = {name: value for name, value in content.items() if name != "transient"}
        if "traceback" in fields:
            fields["traceback"] = tuple(fields["traceback"])
        merged.append(Output(output.msg_type, **fields))
        ids.append(content.get("transient", {}).get("display_id"))
    return tuple(merged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "code", "kinds"),
    [
        pytest.param(
            "python3",
            PYTHON,
            "stream stream display_data stream display_data display_data execute_result",
            id="python",
        ),
        pytest.param("python3", CLEARED_LATER, "error", id="cleared before the next"),
        pytest.param(
            "javascript",
            JAVASCRIPT,
            "stream stream display_data execute_result",
            id="javascript",
        ),
        pytest.param("javascript", "console.log(1); nowhere", "stream error", id="an error"),
        pytest.param("python3", "print('x' * 2_000_000); 1", "stream stream", id="too much"),
        pytest.param("python3", "import os; os._exit(3)", "error", id="a kernel that dies"),
    ],
)
def test_live_outputs_equal_those_of_the_result(
    platform: Platform, language: str, code: str, kinds: str
) -> None:
    """The callback does not change the result."""
    live: list[LiveOutput] = []
    result = platform.run_code(code, language, session_id="same", on_output=live.append)

    assert kinds.split() == [output.output_type for output in result.outputs]
    assert result.outputs == as_shown(live)


@contextmanager
def gate(platform: Platform, session: str) -> Iterator[Path]:
    """Yield the pipe that releases session code which opens ``go``."""
    platform.run_code("import os; os.mkfifo('go')", session_id=session)
    listed = platform.request("GET", "/_emulator/sessions").json()["sessions"]
    yield Path(next(s["home"] for s in listed if s["UserSessionId"].endswith(session))) / "go"


WAITS = "print('first', flush=True)\nopen('go').close()\nprint('second')"


def test_an_output_arrives_before_the_code_ends(platform: Platform) -> None:
    """The code ends only after its first output has arrived."""
    live: list[LiveOutput] = []

    def let_go(output: LiveOutput) -> None:
        if not live:
            go.open("w").close()
        live.append(output)

    with gate(platform, "live") as go:
        result = platform.run_code(WAITS, session_id="live", timeout_s=60, on_output=let_go)

    assert "first\nsecond\n" == result.stdout
    assert result.outputs == as_shown(live)


def test_concurrent_runs_have_separate_outputs(target: Target) -> None:
    """In one session, the second run waits for the first."""

    async def use(platform: AsyncPlatform, word: str) -> tuple[CodeResult, list[LiveOutput]]:
        live: list[LiveOutput] = []
        result = await platform.run_code(
            f"print({word!r})", session_id="two", on_output=live.append
        )
        return result, live

    async def run_both() -> list[tuple[CodeResult, list[LiveOutput]]]:
        async with AsyncPlatform(target) as platform:
            return await asyncio.gather(use(platform, "one"), use(platform, "two"))

    ran = asyncio.run(run_both())

    assert ["one\n", "two\n"] == [result.stdout for result, _ in ran]
    assert [result.outputs for result, _ in ran] == [as_shown(live) for _, live in ran]


def test_an_error_in_the_listener_ends_the_run(platform: Platform) -> None:
    """The session can run further code."""

    def fail(_output: LiveOutput) -> None:
        raise LookupError("of the listener")

    with pytest.raises(LookupError, match="of the listener"):
        platform.run_code("kept = 1; print(1)\nwhile True: pass", session_id="f", on_output=fail)

    assert "1" == platform.run_code("kept", session_id="f").text


def test_an_interrupted_run_delivers_its_last_outputs(platform: Platform) -> None:
    """The code is interrupted, too, and the session keeps its state."""
    texts: list[str] = []

    def interrupt(output: LiveOutput) -> None:
        texts.append(output.content["text"])
        if len(texts) == 1:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match=r"'i' was interrupted.* keeps its state"):
        platform.run_code(f"kept = 1\n{GO_ON}", session_id="i", on_output=interrupt)

    assert ("begun", "last\n") == (texts[0][:5], "".join(texts)[-5:])
    assert "1" == platform.run_code("kept", session_id="i").text


def test_a_cancelled_run_delivers_its_last_outputs(target: Target) -> None:
    texts: list[str] = []

    async def use() -> None:
        def hear(output: LiveOutput) -> None:
            texts.append(output.content["text"])
            running.cancel()

        async with AsyncPlatform(target) as platform:
            running = asyncio.ensure_future(
                platform.run_code(GO_ON, session_id="c", on_output=hear)
            )
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(use())

    assert ("begun", "last\n") == (texts[0][:5], "".join(texts)[-5:])


def test_a_live_platform_delivers_outputs_at_the_end(target: Target) -> None:
    outputs: list[LiveOutput] = []
    with Platform(replace(target, kind="live")) as live:
        result = live.run_code("print('out')\n6 * 7", session_id="live", on_output=outputs.append)

    assert ["stream", "execute_result"] == [output.msg_type for output in outputs]
    assert result.outputs == as_shown(outputs)


def test_a_session_kernel_completes_code(platform: Platform) -> None:
    """Positions count characters. Without a kernel there are no matches."""
    assert Completion((), 2, 2) == platform.sandbox(session_id="complete-none").complete("pr")
    platform.run_code("colour_red = 1", session_id="complete")

    completion = Completion((), 0, 0)
    while not completion.matches:  # a kernel has a second to answer
        completion = platform.sandbox(session_id="complete").complete("x = colour_r + 1", 12)
    assert Completion(("colour_red",), 4, 12) == completion


def test_a_listener_error_after_the_work_has_ended_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop is already closed, so nothing can be cancelled."""
    closed, cancelled = threading.Event(), threading.Event()

    class Loop(asyncio.SelectorEventLoop):
        def close(self) -> None:
            super().close()
            closed.set()
            cancelled.wait()

        def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
            if closed.is_set():
                cancelled.set()
            return super().call_soon_threadsafe(*args, **kwargs)

    async def work(on_output: OnOutput) -> None:
        on_output(LiveOutput("stream", {"name": "stdout", "text": "last"}))

    def fail(_output: LiveOutput) -> None:
        closed.wait()
        raise LookupError("of the listener")

    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    with pytest.raises(LookupError, match="of the listener"):
        loop_thread.run(work, fail)


def test_an_interrupt_after_the_last_output_does_not_wait_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(_on_output: OnOutput) -> None:
        pass

    def interrupt(_thread: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop_thread._Thread, "result", interrupt)
    ending = background(lambda: loop_thread.run(work, lambda _output: None))

    assert isinstance(ending.exception(timeout=TIMEOUT_S), KeyboardInterrupt)
