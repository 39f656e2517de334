from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from doublecheck import Platform, Target
from doublecheck.cli.app import app
from doublecheck.client.doubles import serving_double
from doublecheck.comparing.differences import Class
from doublecheck.errors import RecordingError
from doublecheck.recordings import recording_file, replay
from tests.doublecheck.recordings.conftest import Recorder
from tests.doublecheck.twins.conftest import application

pytestmark = [pytest.mark.libraries, pytest.mark.smoke]

Start = Callable[[Target], Recorder]
HEAD = '{"format": "doublecheck-recording/1", "target": "https://live.example.com"}\n'
LINE = '{"request": {"method": "GET", "path": "/ping"}, "response": {"status": 200}}\n'


def held(recording: Recorder) -> Path:
    """A conversation in which every later request needs an id of an earlier answer."""
    with recording.client() as client:
        session = client.create_session("echo")
        client.run(session, "hi")
        list(client.run_sse(session, "in pieces", streaming=True))
        client.get_session("echo", session.id)
        with client.mcp() as server:
            server.tools()
        client.run_code("x = 6 * 7\nprint(x)", session_id="s")
        client.run_code("x + 1", session_id="s")
        client.delete_session(session)
    return recording.path


def test_a_recording_is_replayed_with_the_doubles_own_ids(
    live: Target, double: Target, recorder: Start
) -> None:
    """Sessions of the API server and of MCP, the sandbox tool: each is the double's."""
    recording = recording_file.read(held(recorder(live)))

    with Platform(double) as platform:
        platform.reset()
        comparison = replay.replay_recording(recording, platform)

    differing = [
        (call.operation, call.differences) for call in comparison.calls if call.differences
    ]
    assert [] == differing
    assert [] == [part.skipped for part in comparison.parts if part.skipped]
    assert [
        "POST /apps/{app}/users/{user}/sessions",
        "POST /run",
        "POST /run_sse",
        "GET /apps/{app}/users/{user}/sessions/{session}",
        "/mcp initialize",
        "/mcp notifications/initialized",
        "/mcp tools/list",
        "DELETE /mcp",
        "InvokeTool RunCode",
        "DELETE /apps/{app}/users/{user}/sessions/{session}",
    ] == [part.name for part in comparison.parts]


def test_divergence_is_told_by_operation(live: Target, recorder: Start) -> None:
    """A double whose application says something else diverges in /invoke alone."""
    recording = recorder(live)
    with recording.client() as client:
        client.ping()
        client.invoke("x")
        client.invoke("y")

    with serving_double(application("Good day.")) as other, Platform(other) as platform:
        comparison = replay.replay_recording(recording_file.read(recording.path), platform)

    assert [("GET /ping", Class.SAME, 1), ("POST /invoke", Class.DIVERGES, 2)] == [
        (part.name, part.cls, len(part.calls)) for part in comparison.parts
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"request": {"method": "POST", "path": "/invoke", "cut": true}, "response": {"status": 200}}',
            "it was too large to be recorded completely",
        ),
        (
            '{"request": {"method": "GET", "path": "/v1/x?Authorization=***"}, "response": {"status": 200}}',
            "its URL has a token, which is not recorded",
        ),
        (
            '{"request": {"method": "GET", "path": "/ping"}, "response": null, "error": "reset"}',
            "the recording has no answer to it (reset)",
        ),
    ],
)
def test_what_cannot_be_sent_again_is_said(
    double: Target, tmp_path: Path, line: str, expected: str
) -> None:
    """With the line of the recording."""
    path = tmp_path / "recording.jsonl"
    path.write_text(HEAD + line)

    with Platform(double) as platform:
        (part,) = replay.replay_recording(recording_file.read(path), platform).parts

    assert (expected, True) == (part.skipped, part.name.endswith("(line 2)"))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", None, "it is empty"),
        ("no JSON", 1, "line 1: it is no JSON, or was cut"),
        ("{}", 1, "line 1: it does not say that it is a recording"),
        (HEAD.replace("/1", "/2"), 1, "line 1: it is of the version doublecheck-recording/2"),
        (HEAD + LINE + LINE[:30], 3, "line 3: it is no JSON, or was cut"),
        (HEAD + "[]", 2, "line 2: it is no JSON object"),
        (HEAD + '{"request": {}}', 2, "line 2: it is no exchange (KeyError: 'response')"),
        (HEAD + LINE.replace("/ping", "http://x"), 2, "is no request"),
        (HEAD + LINE.replace("200", '"x"'), 2, "'x' is no status"),
        (HEAD + "[" * 2000, 2, "line 2: it is no JSON, or was cut"),
        (HEAD.replace("{", '{"x": ' + "[" * 300 + "]" * 300 + ", ", 1), 1, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(
    tmp_path: Path, text: str, line: int | None, said: str
) -> None:
    """With the line where it stops being one."""
    path = tmp_path / "recording.jsonl"
    path.write_text(text)

    with pytest.raises(RecordingError) as refused:
        recording_file.read(path)

    assert (line, True) == (refused.value.line, said in str(refused.value)), str(refused.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """One that is missing, and one that is no text."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")

    for path, said in ((tmp_path / "missing", "cannot be read"), (binary, "not UTF-8")):
        with pytest.raises(RecordingError, match=said):
            recording_file.read(path)


def test_bytes_survive_a_recording(tmp_path: Path) -> None:
    """A body that is no text is written in base64."""
    (one,) = recording_file.read(_written(tmp_path, b"\xff\x00")).exchanges

    assert b"\xff\x00" == one.exchange.body


def _written(folder: Path, body: bytes) -> Path:
    from doublecheck.wire.calls import Request
    from doublecheck.wire.exchanges import Exchange

    path = folder / "recording.jsonl"
    with path.open("w") as file:
        writer = recording_file.Writer(file, "http://x")
        writer.add(Exchange(Request("GET", "/x"), 200, {}, body))
    return path


def test_the_command_replays_and_exits_by_what_came_out(
    double: Target, live: Target, recorder: Start
) -> None:
    """0 for the same; 1 when it diverges."""
    recording = recorder(live)
    with recording.client() as client:
        client.invoke("x")
    words = ["replay", str(recording.path), "--url", double.url, "--json"]

    same = CliRunner().invoke(app, words)
    changed = recording.path.read_text("utf-8").replace("Hello.", "Good day.")
    recording.path.write_text(changed, "utf-8")
    other = CliRunner().invoke(app, words)

    assert [0, 1] == [same.exit_code, other.exit_code]
    assert ["same", "diverges"] == [json.loads(one.stdout)["class"] for one in (same, other)]
