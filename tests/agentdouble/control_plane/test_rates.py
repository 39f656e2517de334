"""The rates of control-plane requests, and the largest number of tools."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, refusal, result, send, signed

SECOND = dt.timedelta(seconds=1)
MOMENT = dt.timedelta(milliseconds=1)
TOOL = "t-sandbox"


@pytest.fixture(scope="module")
def _serving() -> Iterator[Emulator]:
    with Emulator(unknowns={"U-LIMITS": "rates"}, rate_per_s=5) as double:
        yield double


@pytest.fixture
def limited(_serving: Emulator) -> Iterator[Emulator]:
    _serving.reset()
    with _serving.clock.freeze():
        yield _serving
    _serving.reset()


def status_of(double: Emulator, action: str, **body: Any) -> int:
    return send(signed(double, body, action=action)).status_code


def test_requests_above_the_rate_are_refused(limited: Emulator) -> None:
    """The refusal says when to try again, and names the unknown."""
    for _ in range(5):
        act(limited, "ListTools")

    response = send(signed(limited, {}, action="ListTools"))

    error = response.json()["ResponseMetadata"]["Error"]
    assert (429, "1") == (response.status_code, response.headers["retry-after"])
    assert "RequestLimitExceeded" == error["Code"]
    assert error["Message"] == (
        "QPS limit exceeded: 5 requests a second are allowed. Try again in a second."
    )
    assert "U-LIMITS" in limited.journal.entries()[-1].unknowns
    assert "U-LIMITS" not in limited.journal.entries()[0].unknowns


def test_a_second_allows_as_many_again(limited: Emulator) -> None:
    """Refused requests do not count, and any second has at most that many."""
    first = [status_of(limited, "ListTools") for _ in range(3)]
    limited.clock.advance(SECOND / 2)
    second = [status_of(limited, "ListTools") for _ in range(4)]
    limited.clock.advance(SECOND / 2 - MOMENT)
    early = status_of(limited, "ListTools")
    limited.clock.advance(MOMENT)
    third = [status_of(limited, "ListTools") for _ in range(4)]

    assert ([200] * 3, [200, 200, 429, 429], 429) == (first, second, early)
    assert [200, 200, 200, 429] == third


def test_writes_of_tools_have_a_lower_rate(limited: Emulator) -> None:
    """Three a second; other actions are still answered, and nothing is created."""
    created = act(limited, "CreateTool", Name="one", ToolType="CodeEnv")["ToolId"]
    act(limited, "UpdateTool", ToolId=created, Description="changed")
    act(limited, "DeleteTool", ToolId=created)

    status, code, message = refusal(limited, "CreateTool", Name="two", ToolType="CodeEnv")

    assert (429, "RequestLimitExceeded") == (status, code)
    assert "QPS limit exceeded: 3 writes of tools a second are allowed." in message
    assert ["sandbox"] == [tool["Name"] for tool in act(limited, "ListTools")["Tools"]]
    limited.clock.advance(SECOND)
    act(limited, "CreateTool", Name="two", ToolType="CodeEnv")


def test_refused_call_creates_no_session(limited: Emulator) -> None:
    """It is refused before its body is read."""
    for _ in range(5):
        act(limited, "ListSessions", ToolId=TOOL)

    assert 429 == refusal(limited, "CreateSession", ToolId=TOOL, UserSessionId="u")[0]

    limited.clock.advance(SECOND)
    assert [] == act(limited, "ListSessions", ToolId=TOOL)["SessionInfos"]
    assert result(limited, "1", "u")["SessionId"]


def test_requests_that_name_no_action_do_not_count(limited: Emulator) -> None:
    """Neither do those with a wrong signature."""
    for _ in range(6):
        assert 404 == status_of(limited, "NoSuchAction")
        unsigned = signed(limited, {}, action="ListTools")
        unsigned.headers["Authorization"] = "HMAC-SHA256 nonsense"
        assert send(unsigned).status_code in (400, 401)

    assert 200 == status_of(limited, "ListTools")


def test_reset_allows_requests_again(limited: Emulator) -> None:
    """Its clock is set back, and the times of earlier requests are forgotten."""
    limited.clock.advance(3600 * SECOND)
    for _ in range(5):
        act(limited, "ListTools")
    assert 429 == status_of(limited, "ListTools")

    limited.reset()

    assert 200 == status_of(limited, "ListTools")


def test_without_the_choice_there_is_no_rate(double: Emulator) -> None:
    """By default U-LIMITS has none, and no request relies on it."""
    with double.clock.freeze():
        assert {200} == {status_of(double, "ListTools") for _ in range(40)}

    assert not any("U-LIMITS" in entry.unknowns for entry in double.journal.entries())


def test_number_of_tools_can_be_limited() -> None:
    """The double's own tool counts; a deleted one makes room."""
    with Emulator(max_tools=2) as double:
        body = {"Name": "one", "ToolType": "CodeEnv", "ClientToken": "c"}
        created = act(double, "CreateTool", **body)["ToolId"]

        refused = refusal(double, "CreateTool", Name="two", ToolType="CodeEnv")
        again = act(double, "CreateTool", **body)["ToolId"]
        act(double, "DeleteTool", ToolId=created)

        assert (429, "QuotaExceeded.Tool") == refused[:2]
        assert "There are 2 tools and the setting max_tools allows no more." in refused[2]
        assert created == again
        assert act(double, "CreateTool", Name="two", ToolType="CodeEnv")["ToolId"]
