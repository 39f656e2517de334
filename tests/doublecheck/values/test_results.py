from __future__ import annotations

import base64
import copy
import datetime as dt
import pickle
from typing import Any

import pytest

from doublecheck.errors import ResultError
from doublecheck.results import (
    A2aAnswer,
    AgentEvent,
    AgentEvents,
    BashResult,
    CodeError,
    CodeResult,
    McpResult,
    Output,
    SandboxInfo,
    SandboxInfos,
    StreamEvent,
)
from doublecheck.values.executions import CanFail

PNG = base64.b64encode(b"\x89PNG").decode()


def result(*outputs: Output, status: str = "ok") -> CodeResult:
    return CodeResult(status == "ok", status, "it ran", outputs, 3, "s-1", "code")


def test_result_properties() -> None:
    """Streams are joined, the text is that of the last value and images are bytes."""
    html = result(
        Output("stream", name="stdout", text="a\n"),
        Output("display_data", data={"text/plain": "<Figure>", "image/png": PNG}),
        Output("stream", name="stderr", text="careful\n"),
        Output("stream", name="stdout", text="b\n"),
        Output("execute_result", data={"text/plain": "42"}),
    )

    assert ("a\nb\n", "careful\n") == (html.stdout, html.stderr)
    assert ("42", (b"\x89PNG",), None) == (html.text, html.images, html.error)


def test_a_failure_has_its_error() -> None:
    failed = result(
        Output("error", ename="ValueError", evalue="no", traceback=("one", "two")), status="error"
    )

    assert CodeError("ValueError", "no", "one\ntwo") == failed.error
    assert "<CodeResult error [3] error='ValueError: no'>" == repr(failed)


def test_a_repr_is_short() -> None:
    """Long output is cut, and empty fields are omitted."""
    html = result(Output("stream", name="stdout", text="x" * 1000))

    assert f"<CodeResult ok [3] stdout='{'x' * 57}...'>" == repr(html)
    assert "<CodeResult ok [3]>" == repr(result())


def test_invalid_images_are_left_out() -> None:
    broken = [Output("display_data", data={"image/png": raw}) for raw in ("a", "é", "no image!")]
    drawn = Output("display_data", data={"image/png": "é", "image/svg+xml": "<svg/>"})

    assert (b"<svg/>",) == result(*broken, drawn).images
    assert "<CodeResult ok [3]>" == repr(result(*broken))


def test_images_may_have_line_breaks() -> None:
    """Encoders and the notebook format produce them."""
    lines = [f"{PNG[:4]}\n", f"{PNG[4:]}\n"]
    html = result(
        *(Output("display_data", data={"image/png": image}) for image in (lines, "".join(lines)))
    )

    assert (b"\x89PNG",) * 2 == html.images


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"error": "it broke"}', "it broke"),
        ('{"error": {"message": "no string"}}', None),
        ("[1]", None),
        ("plain text", None),
    ],
)
def test_an_event_with_an_error_is_a_failure(data: str, expected: str | None) -> None:
    """It is a JSON object with a string ``error``."""
    assert expected == StreamEvent(data).error


def test_an_event_is_read_as_json() -> None:
    """A text that is sent as it is need not be JSON."""
    assert {"n": 1} == StreamEvent('{"n": 1}').json()
    with pytest.raises(ValueError, match=r"a text, which data has \(Expecting value"):
        StreamEvent("plain text").json()


NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.timezone.utc)


def session(name: str, left_s: float) -> SandboxInfo:
    deadline = NOON + dt.timedelta(minutes=30)
    return SandboxInfo(f"s-{name}", name, "t-1", NOON, deadline, left_s, 1, (1,))


TWO = (session("a", 1799.9), session("<b>", 61))


def test_collections_are_tuples() -> None:
    sessions = SandboxInfos(TWO)

    assert TWO == sessions == copy.deepcopy(sessions)
    assert hash(TWO) == hash(sessions)
    assert TWO[0] is sessions[0]


def test_slices_and_copies_keep_their_type() -> None:
    sessions = SandboxInfos(TWO)

    for copied in (sessions[:1], copy.copy(sessions), pickle.loads(pickle.dumps(sessions))):
        assert SandboxInfos is type(copied)
    assert "<1 session: <SandboxInfo a 29:59 left, 1 execution>>" == repr(sessions[:1])
    assert "<0 sessions>" == repr(sessions[2:])


def test_a_long_repr_shows_the_first_values() -> None:
    assert repr(SandboxInfos(TWO * 3)).endswith(
        "01:01 left, 1 execution>, <SandboxInfo a 29:59 left, 1 execution>, ...>"
    )


def test_sessions_show_their_remaining_time() -> None:
    """The shortest comes first."""
    html = SandboxInfos(TWO)._repr_mimebundle_()["text/html"]

    assert html.index("&lt;b&gt;") < html.index("s-a")
    assert ("01:01", "29:59") == (
        html[html.index("01:01") :][:5],
        html[html.index("29:59") :][:5],
    )


RAISED = Output("error", ename="E", evalue="no", traceback=("\x1b[31mE\x1b[0m", "no"))


def code(success: bool, status: str, *outputs: Output) -> CodeResult:
    return CodeResult(success, status, "It took too long.", outputs, 1, "s-1", "x")


def bash(exit_code: int | None) -> BashResult:
    return BashResult("hard_timeout", exit_code, "", "no\n", "s-1", "x")


def answer(state: str | None) -> A2aAnswer:
    return A2aAnswer("task", "t", "c", state, ("no",), {})


def event(error: str | None, **raw: Any) -> AgentEvent:
    return AgentEvent("model", (), error=error, raw=raw)


@pytest.mark.parametrize(
    "result",
    [
        *(code(True, "ok"), bash(0), answer("completed"), answer("input-required"), answer(None)),
        *(StreamEvent("no"), event(None), AgentEvents(), AgentEvents([event(None)])),
        McpResult(False, None, ()),
    ],
    ids=repr,
)
def test_a_successful_result_returns_itself(result: CanFail) -> None:
    """This allows chained calls."""
    assert result is result.raise_for_error()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (code(False, "error", RAISED), ("E", "no", "E\nno", "The code raised E: no:\nE\nno")),
        (
            code(False, "timeout"),
            ("timeout", "It took too long.", "", "The code failed: timeout: It took too long."),
        ),
        (bash(3), ("exit code 3", "no", "", "The command failed: exit code 3: no.")),
        (bash(None), ("hard_timeout", "no", "", "The command failed: hard_timeout: no.")),
        (answer("failed"), ("failed", "no", "", "The task ended: failed: no.")),
        (answer("rejected"), ("rejected", "no", "", "The task ended: rejected: no.")),
        (StreamEvent('{"error": "no"}'), ("", "no", "", "The application failed: no.")),
        (event("no", errorCode="E"), ("E", "no", "", "The agent failed: E: no.")),
        (
            McpResult(True, None, ({"type": "text", "text": "no"},)),
            ("", "no", "", "The tool failed: no."),
        ),
        (McpResult(True, None, ()), ("", "", "", "The tool failed.")),
    ],
    ids=repr,
)
def test_a_failure_raises(result: CanFail, expected: tuple[str, ...]) -> None:
    """The exception has the name, the message and the traceback of the result."""
    with pytest.raises(ResultError) as raised:
        result.raise_for_error()

    error = raised.value
    assert expected == (error.ename, error.evalue, error.traceback, str(error))
    assert result is error.result


def test_events_raise_the_first_failure() -> None:
    """Later failures follow from it."""
    failed = event("first")
    with pytest.raises(ResultError) as raised:
        AgentEvents([event(None), failed, event("second")]).raise_for_error()

    assert failed is raised.value.result
