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


def test_the_token_opens_the_door(shared: Emulator) -> None:
    """In the query, as the Endpoint has it, or as a bearer token."""
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
def test_without_its_token_nobody_enters(
    shared: Emulator, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    """And the answer says what is missing."""
    plane = data_plane(shared, "door")
    code, message = expected

    refusal = status(plane, **query)

    expected_message = message.format(id=plane.query["faasInstanceName"])
    assert (code, expected_message) == (refusal[0], refusal[1][: len(expected_message)])


def test_another_session_s_token_does_not_open_it(shared: Emulator) -> None:
    """Each session has a token of its own."""
    plane, other = data_plane(shared, "door"), data_plane(shared, "other-door")

    assert 403 == status(plane, Authorization=other.query["Authorization"])[0]


def test_a_session_that_has_ended_says_when_and_why(double: Emulator) -> None:
    """410, so that a client knows that it need not try again."""
    plane = data_plane(double)
    double.clock.advance(dt.timedelta(minutes=30))

    response = plane.get(LIST)

    assert 410 == response.status_code
    assert "has ended: expired at " in response.json()["message"]


def test_a_paused_session_is_not_entered(double: Emulator) -> None:
    """Not until it is resumed."""
    plane = data_plane(double)
    session = plane.query["faasInstanceName"]
    act_on_session(double, "PauseSession", session)
    paused = status(plane)
    act_on_session(double, "ResumeSession", session)

    assert (409, 200) == (paused[0], status(plane)[0])


@pytest.mark.slow
def test_an_api_key_is_not_asked_for_where_the_token_is() -> None:
    """The token proves more: it is the session's own."""
    with Emulator(api_key="s3cret") as double:
        plane = data_plane(double)
        code = plane.get(LIST).status_code
        without = http.get(f"{double.url}/ping").status_code

    assert (200, 401) == (code, without)


@pytest.mark.slow
@pytest.mark.parametrize(("extends", "alive"), [("sliding", True), ("absolute", False)])
def test_the_data_plane_is_use(extends: str, alive: bool) -> None:
    """U-TTL-EXTENDS: it sets the deadline anew where the ledger says so."""
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
def test_what_is_not_built_is_refused_by_name(shared: Emulator, path: str, name: str) -> None:
    """501, in the data plane's own shape."""
    response = data_plane(shared, "door").get(path)

    expected = f"{name} is part of the platform, but this version of agentdouble has not built it"
    assert (501, False, f"{expected} yet.") == (
        response.status_code,
        response.json()["success"],
        response.json()["message"],
    )


@pytest.mark.parametrize("path", ["/v1/none", "/v1/", "/v1/bash", "/v1/bash/none"])
def test_what_does_not_exist_is_not_found(shared: Emulator, path: str) -> None:
    """404, whoever would have answered."""
    assert 404 == data_plane(shared, "door").get(path).status_code


def test_the_guard_stands_before_the_door(shared: Emulator) -> None:
    """A web page does not get in, even if it knew the token."""
    plane = data_plane(shared, "door")

    response = http.get(
        plane.url + LIST, params=plane.query, headers={"Origin": "https://evil.example"}
    )

    assert 403 == response.status_code
