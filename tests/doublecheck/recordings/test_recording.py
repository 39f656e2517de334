from __future__ import annotations

import dataclasses
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from doublecheck import Platform, Secret, Target
from doublecheck.errors import AnswerError, RefusedError, TargetError
from doublecheck.recordings import command, recording_file
from doublecheck.twins.command import PlatformOptions
from tests.doublecheck.recordings.conftest import Recorder

pytestmark = pytest.mark.libraries

Start = Callable[[Target], Recorder]


def lines(recorder: Recorder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recorder.path.read_text("utf-8").splitlines()]


def test_what_is_asked_and_answered_is_written(live: Target, recorder: Start) -> None:
    """A line an exchange, written before the client has the end of its answer."""
    recording = recorder(live)
    with recording.client() as client:
        assert "Hello." == client.invoke("x", user_id="u")

        head, line = lines(recording)
    assert ("doublecheck-recording/1", live.url) == (head["format"], head["target"])
    assert ("POST", "/invoke", '{"prompt": "x"}', "u") == (
        line["request"]["method"],
        line["request"]["path"],
        line["request"]["body"],
        line["request"]["headers"]["user_id"],
    )
    assert (200, '"Hello."', False, None) == (
        line["response"]["status"],
        line["response"]["body"],
        line["response"]["cut"],
        line["error"],
    )


def test_signed_requests_are_signed_anew(live: Target, recorder: Start) -> None:
    """The client signs for the proxy, with its key pair; the target sees its own."""
    recording = recorder(live)
    with recording.client() as client:
        result = client.run_code("print(6 * 7)")

    assert "42\n" == result.stdout
    assert "/?Action=InvokeTool&Version=2025-10-30" == lines(recording)[1]["request"]["path"]


@pytest.mark.parametrize("pair", ["of nobody", "of the target"])
def test_nothing_is_signed_for_a_stranger(live: Target, recorder: Start, pair: str) -> None:
    """Whoever does not know the key pair of the recording gets no signature of the target's."""
    recording = recorder(live)
    credentials = command.own_credentials() if pair == "of nobody" else live.credentials

    with recording.client(credentials) as client, pytest.raises((RefusedError, AnswerError)) as no:
        client.run_code("1")

    assert 401 == no.value.status
    assert 1 == len(lines(recording))


def test_without_the_targets_key_pair_a_signed_request_is_refused(
    live: Target, recorder: Start
) -> None:
    """With what is missing."""
    recording = recorder(dataclasses.replace(live, credentials=None))

    with recording.client() as client, pytest.raises(AnswerError) as refused:
        client.run_code("1")

    assert (502, True) == (refused.value.status, "PLATFORM_ACCESS_KEY" in refused.value.body)


def test_no_secret_is_written(live: Target, recorder: Start) -> None:
    """Neither keys that are sent, nor those that the target is known to have."""
    recording = recorder(dataclasses.replace(live, api_key=Secret("correct-horse")))
    with recording.client() as client:
        client.request("GET", "/ping?x=correct-horse", headers={"Authorization": "Bearer b4tt3ry"})
        client.run_code("1")

    written = recording.path.read_text("utf-8")
    assert live.credentials is not None
    found = [live.credentials.secret_key, recording.own.secret_key, "correct-horse", "b4tt3ry"]
    assert [] == [secret for secret in found if secret in written]
    assert "Signature=" not in written
    assert "Bearer ***" in written


def test_a_stream_passes_as_it_comes(recorder: Start) -> None:
    """The first event is there while the second has not been sent yet."""
    go_on = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        server = threading.Thread(target=_two_events, args=(listener, go_on))
        server.start()
        recording = recorder(Target(f"http://127.0.0.1:{port}"))
        with recording.client() as client:
            events = client.stream("x")
            first = next(events)
            go_on.set()
            rest = list(events)
        server.join()

    assert ["one", "two"] == [first.data, *(event.data for event in rest)]
    assert "data: one\n\ndata: two\n\n" == lines(recording)[1]["response"]["body"]


def _two_events(listener: socket.socket, go_on: threading.Event) -> None:
    connection, _ = listener.accept()
    with connection:
        asked = b""
        while b"}" not in asked:  # the end of its body
            asked += connection.recv(65536)
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        connection.sendall(f"{head}data: one\n\n".encode())
        assert go_on.wait(60)
        connection.sendall(b"data: two\n\n")


def test_a_target_that_does_not_answer_is_told_and_written(recorder: Start) -> None:
    """To the client as a 502, to the file as an exchange without an answer."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        dead = listener.getsockname()[1]
    recording = recorder(Target(f"http://127.0.0.1:{dead}"))

    with recording.client() as client:
        assert 502 == client.request("GET", "/ping").status_code

    line = lines(recording)[1]
    assert (None, True) == (line["response"], line["error"].startswith("ConnectError"))


def test_a_web_page_cannot_use_it(live: Target, recorder: Start) -> None:
    """Neither by its Origin nor by a Host that it has rebound."""
    recording = recorder(live)
    with recording.client() as client:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            assert 403 == client.request("GET", "/ping", headers=headers).status_code

    assert 1 == len(lines(recording))


def test_bodies_that_are_too_large_are_marked_as_cut(
    live: Target, recorder: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They pass in full all the same."""
    monkeypatch.setattr("doublecheck.recordings.proxy.KEPT", 10)
    recording = recorder(live)
    with recording.client() as client:
        assert "Hello." == client.invoke("a long prompt")

    request = lines(recording)[1]["request"]
    assert (True, 10) == (request["cut"], len(request["body"]))


def test_ctrl_c_ends_it(live: Target, tmp_path: Path) -> None:
    """With a whole file that only its user can read, and without a traceback."""
    output = tmp_path / "recording.jsonl"
    words = ["record", "--url", live.url, "--target", "live", "-o", str(output)]
    command = [sys.executable, "-c", "from doublecheck.cli import main; main()", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        address = said.partition("Ask ")[2].partition(";")[0]
        with Platform(Target(address)) as client:
            client.ping()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)

    assert (0, f"{output}: 1 exchanges.\n") == (process.returncode, error)
    assert "export PLATFORM_SECRET_KEY=" in out
    assert 0o600 == output.stat().st_mode & 0o777
    assert ["GET"] == [one.exchange.request.method for one in recording_file.read(output).exchanges]


def test_a_recording_that_is_there_is_kept(live: Target, tmp_path: Path) -> None:
    """It may be the only one of something that does not come again."""
    output = tmp_path / "recording.jsonl"
    output.write_text("kept")

    with pytest.raises(TargetError, match="is there already"):
        command.record(PlatformOptions("live", live.url), output, 0)

    assert "kept" == output.read_text()
