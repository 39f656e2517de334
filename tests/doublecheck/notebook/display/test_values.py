"""Display of platform values without secrets."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from doublecheck import Secret
from doublecheck.results import (
    A2aAnswer,
    AgentEvent,
    AgentEvents,
    BashResult,
    BrowserInfo,
    CodeError,
    Exchange,
    Journal,
    JournalEntry,
    McpResult,
    McpTool,
    McpTools,
    Output,
    StreamEvent,
)
from doublecheck.values.double import SandboxLog
from doublecheck.wire.calls import Request
from doublecheck.wire.request_log import Exchanges

pytestmark = pytest.mark.smoke

HOSTILE = "<script>alert('x')</script>"
SHOWN = "&lt;script&gt;"
NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.timezone.utc)
PNG = "iVBORw0K"

CALL = {"functionCall": {"name": HOSTILE, "args": {HOSTILE: HOSTILE}}}
SAID = AgentEvent("model", ({"text": HOSTILE}, CALL), author=HOSTILE)
TOOL = McpTool(HOSTILE, HOSTILE, {"properties": {HOSTILE: {"type": "string"}}}, {"x": HOSTILE})
ENTRY = JournalEntry(
    1, NOON, "POST", f"http://127.0.0.1/{HOSTILE}?Authorization=t0ken", 200, 1.0, ("U-ONE",),
    (HOSTILE,), f"curl {HOSTILE} -H 'Authorization: Bearer t0ken'", {"Authorization": "Bearer t0ken"},
    HOSTILE, {}, '{"a": ["' + "x" * 100 + HOSTILE + '"]}', ("f1 fail",),
)  # fmt: skip
EXCHANGE = Exchange(
    Request("POST", f"http://127.0.0.1/{HOSTILE}?Authorization=t0ken", {"X-Api-Key": "t0ken"}),
    status=200,
    body=HOSTILE.encode(),
)

VALUES = [
    Output("stream", name="stdout", text=HOSTILE),
    CodeError("E", HOSTILE, f"\x1b[31mE\x1b[0m: {HOSTILE}"),
    BashResult("ok", 1, HOSTILE, HOSTILE, "s-1", HOSTILE),
    SAID,
    AgentEvents((SAID, SAID)),
    StreamEvent(HOSTILE),
    StreamEvent('{"a": "' + HOSTILE + '"}'),
    TOOL,
    McpTools((TOOL,)),
    McpResult(True, {HOSTILE: HOSTILE}, ({"type": "text", "text": HOSTILE},)),
    A2aAnswer("task", HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), {HOSTILE: HOSTILE}),
    BrowserInfo(HOSTILE, Secret("ws://t0ken"), 1, 1),
    ENTRY,
    Journal((ENTRY,)),
    SandboxLog((ENTRY,)),
    EXCHANGE,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_one_line_of_text_and_escaped_html(value: Any) -> None:
    """Neither form contains a token."""
    bundle = value._repr_mimebundle_()

    assert repr(value) == bundle["text/plain"]
    assert "\n" not in repr(value)
    assert len(repr(value)) < 400
    assert (False, True) == ("<script" in bundle["text/html"], SHOWN in bundle["text/html"])
    assert "t0ken" not in bundle["text/html"] + repr(value)


def test_text_increments_are_folded() -> None:
    """The complete text follows them."""
    increments = [AgentEvent("model", ({"text": text},), "coder", partial=True) for text in "abc"]
    complete = AgentEvent("model", ({"text": "abc"},), "coder")

    html = AgentEvents([*increments, complete])._repr_mimebundle_()["text/html"]

    assert (1, 1) == (html.count("<details"), html.count("3 increments"))


def test_null_parts_are_ignored() -> None:
    """A platform may list every kind of part and fill only one."""
    empty = dict.fromkeys(("functionCall", "functionResponse", "inlineData", "text"))
    event = AgentEvent("model", ({**empty, "text": "hi"}, empty))

    assert ((), (), "<AgentEvent model 'hi'>") == (
        event.function_calls,
        event.function_responses,
        repr(event),
    )
    assert "hi" in event._repr_mimebundle_()["text/html"]


def test_tool_images_are_shown() -> None:
    """An invalid image is not."""
    image = {"type": "image", "mimeType": "image/png", "data": PNG}
    broken = {"type": "image", "mimeType": "image/png", "data": '"><script>'}

    html = McpResult(False, None, (image, broken))._repr_mimebundle_()["text/html"]

    assert [f'data:image/png;base64,{PNG}"'] == [
        part.partition(" ")[0] for part in html.split('<img src="')[1:]
    ]


def test_a_journal_shows_the_newest_entries() -> None:
    """It says how to get the others."""
    html = Journal((ENTRY,) * 203)._repr_mimebundle_()["text/html"]

    assert "journal[:3] has the others" in html
    assert 200 == html.count("12:00:00")


def test_a_single_request_has_the_full_width() -> None:
    """Its details are below the row; in a journal they are folded into a cell."""
    several, _, _ = Journal((ENTRY,))._repr_mimebundle_()["text/html"].partition("</table>")
    assert ">curl</summary>" in several

    for value in (ENTRY, EXCHANGE):
        row, _, below = value._repr_mimebundle_()["text/html"].partition("</table>")
        assert (False, True) == (">curl<" in row, ">curl<" in below)


def test_json_in_a_string_is_a_tree() -> None:
    """Envelopes carry their results this way."""
    html = StreamEvent('{"Result": "[' + '\\"abcdefgh\\", ' * 20 + '1]"}')

    assert "JSON in a string" in html._repr_mimebundle_()["text/html"]


def test_empty_exchanges_have_a_message() -> None:
    assert "No requests yet." in Exchanges()._repr_mimebundle_()["text/html"]
