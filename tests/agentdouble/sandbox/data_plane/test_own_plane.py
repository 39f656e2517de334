"""A session's data plane by the double's own routes, without its token."""

from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import data_plane, http


@pytest.fixture
def session(double: Emulator) -> str:
    plane = data_plane(double, "own-plane")
    return f"{double.url}/_emulator/sessions/{plane.query['faasInstanceName']}"


def test_files_need_no_token_and_leave_no_entry(double: Emulator, session: str) -> None:
    """A look at a session is nothing that its agent did."""
    before = len(double.journal.entries())

    written = http.post(f"{session}/v1/file/write", json={"file": "a.txt", "content": "é"})
    read = http.get(f"{session}/v1/file/download", params={"path": "a.txt"})

    assert (True, "é") == (written.json()["success"], read.content.decode())
    assert before == len(double.journal.entries())


def test_an_unknown_session_has_no_data_plane(session: str) -> None:
    answer = http.get(f"{session}x/v1/file/download", params={"path": "a.txt"})

    assert (404, "NotFound") == (answer.status_code, answer.json()["error"]["type"])


def test_a_paused_session_is_left_alone(session: str) -> None:
    """As by its own data plane."""
    http.post(f"{session}/pause").raise_for_status()

    answer = http.post(f"{session}/v1/file/list", json={"path": "/home/gem"})

    http.post(f"{session}/resume").raise_for_status()
    assert 409 == answer.status_code
    assert "paused" in answer.json()["message"]
