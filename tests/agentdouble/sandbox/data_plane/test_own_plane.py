"""A session's data plane by the double's own routes, without its token."""

from __future__ import annotations

import httpx
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import data_plane


@pytest.fixture
def session(double: Emulator) -> str:
    plane = data_plane(double, "own-plane")
    return f"{double.url}/_emulator/sessions/{plane.query['faasInstanceName']}"


def test_files_need_no_token_and_leave_no_entry(double: Emulator, session: str) -> None:
    """A look at a session is nothing that its agent did."""
    before = len(double.journal.entries())

    written = httpx.post(f"{session}/v1/file/write", json={"file": "a.txt", "content": "é"})
    read = httpx.get(f"{session}/v1/file/download", params={"path": "a.txt"})

    assert (True, "é") == (written.json()["success"], read.content.decode())
    assert before == len(double.journal.entries())


def test_a_client_reaches_only_what_the_platform_has(double: Emulator, session: str) -> None:
    """With a token, too: drawn terminals and the browser's page are the console's."""
    plane = data_plane(double, "own-plane")

    outside = [
        httpx.post(f"{double.url}{path}", params=plane.query, json={"columns": 80, "rows": 24})
        for path in ("/terminals", "/v1/terminals", "/browser/page", "/v1/browser/page")
    ]
    unknown = httpx.get(session[:-4] + "none/v1/file/download", params={"path": "a.txt"})

    assert {401, 404, 405, 501} >= {one.status_code for one in outside}
    assert (404, "NotFound") == (unknown.status_code, unknown.json()["error"]["type"])


def test_a_paused_session_is_left_alone(session: str) -> None:
    """As by its own data plane."""
    httpx.post(f"{session}/pause").raise_for_status()

    answer = httpx.post(f"{session}/v1/file/list", json={"path": "/home/gem"})

    httpx.post(f"{session}/resume").raise_for_status()
    assert 409 == answer.status_code
    assert "paused" in answer.json()["message"]
