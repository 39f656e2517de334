from __future__ import annotations

import json
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.api_server.wire import (
    NO_ACTIONS,
    create,
    detail,
    event,
    generalised,
    lines,
    new_user,
    read,
    run_body,
    run_order,
    run_sse,
    sessions_of,
    texts,
)
from tests.agentdouble.calling import http

TEXT = {"text": "ünï"}
DATA = {"inlineData": {"data": "-_8=", "mimeType": "x/y"}}


class Files:
    """The artifacts of a session."""

    def __init__(self, double: Emulator, user: str, session: str = "s1") -> None:
        self.path = f"{double.url}{sessions_of(user)}/{session}/artifacts"

    def save(self, name: str, part: Any, **more: Any) -> Any:
        body = {"filename": name, "artifact": part, **more}
        response = http.post(self.path, json=body)
        assert 200 == response.status_code, response.text
        return response.json()

    def get(self, path: str = "") -> Any:
        response = http.get(self.path + path)
        assert 200 == response.status_code, response.text
        return response.json()


@pytest.fixture
def files(shared: Emulator) -> Files:
    return Files(shared, new_user())


def test_artifact_versions_are_kept(files: Files) -> None:
    """From 0; a name alone returns the newest; the session need not exist."""
    saved = [files.save("a/b.txt", part) for part in (TEXT, DATA)]

    assert [0, 1] == [version["version"] for version in saved] == files.get("/a/b.txt/versions")
    assert [DATA, TEXT, DATA, TEXT, DATA] == [
        files.get(f"/a/b.txt{path}")
        for path in ("", "?version=0", "?version=1", "/versions/0", "/versions/latest")
    ]
    assert ["a/b.txt"] == files.get()


def test_version_metadata(files: Files) -> None:
    """URI, type, time and the saver's own metadata."""
    user = files.path.split("/")[6]
    described = files.save("f.txt", TEXT, customMetadata={"k": [1]})
    files.save("f.txt", {"fileData": {"fileUri": "gs://x/y", "mimeType": "a/b"}})

    expected = {
        "version": 0,
        "canonicalUri": f"memory://apps/echo/users/{user}/sessions/s1/artifacts/f.txt/versions/0",
        "customMetadata": {"k": [1]},
        "createTime": "<time>",
        "mimeType": "text/plain",
    }
    assert expected == generalised(described)
    assert described == files.get("/f.txt/versions/0/metadata")
    all_of_them = files.get("/f.txt/versions/metadata")
    assert [described, files.get("/f.txt/versions/latest/metadata")] == all_of_them
    assert "a/b" == all_of_them[1]["mimeType"]


def test_user_artifacts_are_shared(shared: Emulator) -> None:
    """Names with ``user:`` are the same in all of the user's sessions."""
    user = new_user()
    mine, other, stranger = (
        Files(shared, user),
        Files(shared, user, "s2"),
        Files(shared, new_user()),
    )

    described = mine.save("user:f", TEXT)
    mine.save("own", TEXT)

    uri = f"memory://apps/echo/users/{user}/artifacts/user:f/versions/0"
    assert uri == described["canonicalUri"]
    assert [["own", "user:f"], ["user:f"], []] == [mine.get(), other.get(), stranger.get()]
    assert TEXT == other.get("/user:f")


def test_deleted_artifact_is_gone(files: Files) -> None:
    """Every version; 200 null, also for an unknown one; numbers restart."""
    files.save("f", TEXT)

    answers = [http.delete(f"{files.path}/f") for _ in range(2)]

    assert [(200, "null")] * 2 == [(answer.status_code, answer.text) for answer in answers]
    assert ([], []) == (files.get(), files.get("/f/versions"))
    assert 0 == files.save("f", TEXT)["version"]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/nope", 404, "Artifact not found"),
        ("/f?version=7", 404, "Artifact not found"),
        ("/f?version=-1", 404, "Artifact not found"),
        ("/f/versions/7", 404, "Artifact not found"),
        ("/f/versions/-1", 404, "Artifact not found"),
        ("/f/versions/x", 422, "Invalid version ID"),
        ("/f/versions/x/metadata", 422, "Invalid version ID"),
        ("/f/versions/7/metadata", 404, "Artifact version not found"),
        ("/nope/versions/latest/metadata", 404, "Artifact version not found"),
    ],
)
def test_unknown_artifacts_are_not_found(files: Files, path: str, status: int, reason: str) -> None:
    """Unknown names and versions."""
    files.save("f", TEXT)

    assert (status, reason) == detail(http.get(files.path + path))


@pytest.mark.parametrize("part", [{}, {"functionCall": {"name": "x"}}])
def test_part_without_content_cannot_be_saved(files: Files, part: Any) -> None:
    """400."""
    body = {"filename": "f", "artifact": part}

    assert (400, "Not supported artifact type.") == detail(http.post(files.path, json=body))
    assert [] == files.get()


@pytest.mark.parametrize(
    ("body", "type_", "loc"),
    [
        ({"artifact": TEXT}, "missing", ["filename"]),
        ({"filename": "f"}, "missing", ["artifact"]),
        ({"filename": 5, "artifact": TEXT}, "string_type", ["filename"]),
        (
            {"filename": "f", "artifact": {"inlineData": {"data": "!"}}},
            "bytes_invalid_encoding",
            ["artifact", "inlineData", "data"],
        ),
        ({"filename": "f", "artifact": {"txt": "x"}}, "extra_forbidden", ["artifact", "txt"]),
    ],
)
def test_invalid_body_is_refused(files: Files, body: Any, type_: str, loc: list[str]) -> None:
    """The 422 names the field."""
    status, (problem,) = detail(http.post(files.path, json=body))

    assert (422, type_, ["body", *loc]) == (status, problem["type"], problem["loc"])


def test_agent_saves_and_loads_artifacts(agents: Emulator) -> None:
    """A saved artifact is in the next event's delta, and clients can load it."""
    user = new_user()

    (answer,) = run_order(agents.url, user, do="files")

    names = ["a.txt", "user:b"]
    assert [[0, 1, 0], [0, 255], "text", None, names] == json.loads(texts([answer])[0])
    assert {"a.txt": 1, "user:b": 0} == answer["actions"]["artifactDelta"]
    path = f"{agents.url}{sessions_of(user, 'scripted')}/s1/artifacts"
    assert names == http.get(path).json()


def test_stream_separates_content_and_artifacts(agents: Emulator) -> None:
    """Two lines with one id and time; one line if ``functionCallEventId`` is set."""
    user = new_user()
    create(agents.url, user, {"sessionId": "s1"}, "scripted")
    body = run_body(user, do="files")

    apart = lines(run_sse(agents.url, body))
    together = lines(run_sse(agents.url, {**body, "functionCallEventId": "e1"}))

    delta = {**NO_ACTIONS, "artifactDelta": {"a.txt": 1, "user:b": 0}}
    assert [event(texts(apart)[0]), event(actions=delta)] == generalised(apart)
    assert apart[0]["id"] == apart[1]["id"]
    assert {"a.txt": 3, "user:b": 1} == together[0]["actions"]["artifactDelta"]
    assert [1, 1] == [len(together), len([event for event in together if "content" in event])]
    stored = read(agents.url, user, "s1", "scripted")["events"][1]
    assert {**apart[0], "actions": apart[1]["actions"]} == stored
