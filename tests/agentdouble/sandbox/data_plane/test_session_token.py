from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import DataPlane, act_on_session, data_plane, http

LIST = "/v1/bash/sessions"


def status(plane: DataPlane, headers: dict[str, str] | None = None, **query: Any) -> Any:
    fields = {name: value for name, value in {**plane.query, **query}.items() if value is not None}
    response = http.get(plane.url + LIST, params=fields, headers=headers)
    document = response.json()
    assert document["success"] == response.is_success
    return response.status_code, document["message"].partition(":")[0]


def test_the_session_token_is_accepted(shared: Emulator) -> None:
    """It can be in the query, as in the Endpoint, or a bearer token."""
    plane = data_plane(shared, "door")
    token = plane.query["Authorization"]

    assert 200 == status(plane)[0]
    bearer = {"Authorization": f"Bearer {token}"}
    assert 200 == status(plane, bearer, Authorization=None)[0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"faasInstanceName": None}, (404, "The query must name the session instance")),
        ({"faasInstanceName": ""}, (404, "The query must name the session instance")),
        ({"faasInstanceName": "s-no"}, (404, "There is no session instance 's-no'.")),
        ({"Authorization": ""}, (401, "The data plane of {id!r} is opened by the token of its")),
        ({"Authorization": None}, (401, "The data plane of {id!r} is opened by the token of its")),
        ({"Authorization": "x"}, (403, "That is not the token of the session instance {id!r}.")),
        ({"Authorization": "ü"}, (403, "That is not the token of the session instance {id!r}.")),
    ],
    ids=str,
)
def test_a_request_without_a_valid_token_is_refused(
    shared: Emulator, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    """The error says what is missing."""
    plane = data_plane(shared, "door")
    code, message = expected

    refusal = status(plane, **query)

    expected_message = message.format(id=plane.query["faasInstanceName"])
    assert (code, expected_message) == (refusal[0], refusal[1][: len(expected_message)])


def test_another_session_s_token_is_refused(shared: Emulator) -> None:
    plane, other = data_plane(shared, "door"), data_plane(shared, "other-door")

    assert 403 == status(plane, Authorization=other.query["Authorization"])[0]


def test_an_ended_session_answers_410(double: Emulator) -> None:
    """The error says when and why it ended."""
    plane = data_plane(double)
    double.clock.advance(dt.timedelta(minutes=30))

    response = plane.get(LIST)

    assert 410 == response.status_code
    assert "has ended: expired at " in response.json()["message"]


def test_a_paused_session_refuses_requests(double: Emulator) -> None:
    """They answer 409 until it is resumed."""
    plane = data_plane(double)
    session = plane.query["faasInstanceName"]
    act_on_session(double, "PauseSession", session)
    paused = status(plane)
    act_on_session(double, "ResumeSession", session)

    assert (409, 200) == (paused[0], status(plane)[0])


@pytest.mark.slow
def test_the_session_token_replaces_the_api_key() -> None:
    with Emulator(api_key="s3cret") as double:
        plane = data_plane(double)
        code = plane.get(LIST).status_code
        without = http.get(f"{double.url}/ping").status_code

    assert (200, 401) == (code, without)


@pytest.mark.slow
@pytest.mark.parametrize(("extends", "alive"), [("sliding", True), ("absolute", False)])
def test_a_data_plane_request_counts_as_use(extends: str, alive: bool) -> None:
    """U-TTL-EXTENDS: it extends the deadline if the ledger says so."""
    with Emulator(unknowns={"U-TTL-EXTENDS": extends}) as double:
        plane = data_plane(double)
        double.clock.advance(dt.timedelta(minutes=20))
        plane.get(LIST)
        double.clock.advance(dt.timedelta(minutes=20))

        assert (200 if alive else 410) == plane.get(LIST).status_code


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/browser/restart", "This route of a session's browser"),
        ("/v1/mcp/servers", "The MCP hub of a session"),
        ("/v1/nodejs/info", "The Node.js runtime of a session"),
        ("/v1/file/watch", "The file operation watch"),
        ("/a2a", "The agent of a session (/a2a)"),
        ("/vnc/index.html", "The screen of a session (/vnc)"),
    ],
)
def test_unsupported_features_are_refused_by_name(shared: Emulator, path: str, name: str) -> None:
    """The answer is 501, in the data plane's own envelope."""
    response = data_plane(shared, "door").get(path)

    expected = f"{name} is part of the platform, but this version of agentdouble has not built it"
    assert (501, False, f"{expected} yet.") == (
        response.status_code,
        response.json()["success"],
        response.json()["message"],
    )


@pytest.mark.parametrize("path", ["/v1/none", "/v1/", "/v1/bash", "/v1/bash/none"])
def test_unknown_paths_answer_404(shared: Emulator, path: str) -> None:
    assert 404 == data_plane(shared, "door").get(path).status_code


def test_a_foreign_origin_is_refused_despite_the_token(shared: Emulator) -> None:
    plane = data_plane(shared, "door")

    response = http.get(
        plane.url + LIST, params=plane.query, headers={"Origin": "https://evil.example"}
    )

    assert 403 == response.status_code
