from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from agentdouble import Emulator
from agentdouble.control_plane.wire import stamp
from tests.agentdouble.calling import act, body_of, http, refusal, result

TOOL = "t-sandbox"


@pytest.fixture
def state(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'state.db'}"


def test_tools_survive_a_restart(state: str) -> None:
    """As they were: those that were made, what was said of the fixed one, and no deleted one."""
    with Emulator(state=state) as first:
        made = act(first, "CreateTool", Name="one", ToolType="CodeEnv", ClientToken="c")["ToolId"]
        gone = act(first, "CreateTool", Name="two", ToolType="CodeEnv")["ToolId"]
        act(first, "DeleteTool", ToolId=gone)
        act(first, "UpdateTool", ToolId=TOOL, Description="changed")
        before = act(first, "ListTools")["Tools"]
        url = first.url

    with Emulator(state=state) as second:
        after = act(second, "ListTools")["Tools"]
        again = act(second, "CreateTool", Name="one", ToolType="CodeEnv", ClientToken="c")["ToolId"]
        ran = act(second, "InvokeTool", **{**body_of(second, "1"), "ToolId": made})
        second_url = second.url

    assert str(before).replace(url, second_url) == str(after)
    assert (made, made) == (again, ran["ToolId"])


def test_sessions_end_with_the_double_and_say_so(state: str) -> None:
    """A client that kept the id of a session learns that the double was restarted."""
    with Emulator(state=state) as first:
        lived = result(first, "x = 1", "lived")["SessionId"]
        deleted = result(first, "1", "deleted")["SessionId"]
        act(first, "DeleteSession", SessionId=deleted)
        (before,) = http.get(f"{first.url}/_emulator/sessions").json()["ended"]

    with Emulator(state=state) as second:
        ended = http.get(f"{second.url}/_emulator/sessions").json()["ended"]
        told = refusal(second, "GetSession", ToolId=TOOL, SessionId=lived)
        new = result(second, "1", "lived")["SessionId"]

    restarted = ended[1]
    at = stamp(dt.datetime.fromisoformat(restarted["ended_at"]))
    assert [
        before,
        {**restarted, "SessionId": lived, "reason": "the double was restarted"},
    ] == ended
    assert (
        404,
        "InvalidResource.NotFound",
        f"The instance of session {lived!r} has ended: the double was restarted, at {at}.",
    ) == told
    assert new != lived


@pytest.mark.slow
def test_an_ended_session_stays_ended_over_a_restart(state: str) -> None:
    """U-TTL-AFTER error: that the double was restarted is no reason to forget it."""
    unknowns = {"U-TTL-AFTER": "error"}
    with Emulator(state=state, unknowns=unknowns) as first:
        result(first, "1", "u")

    with Emulator(state=state, unknowns=unknowns) as second:
        refused = refusal(second, "InvokeTool", **body_of(second, "1", "u"))

    assert "the double was restarted" in refused[2]


@pytest.mark.slow
def test_a_reset_that_keeps_nothing_empties_the_file_too(state: str) -> None:
    """What a test has left behind does not come back."""
    with Emulator(state=state) as first:
        act(first, "CreateTool", Name="one", ToolType="CodeEnv")
        result(first, "1")
        first.reset(keep=())

    with Emulator(state=state) as second:
        names = [tool["Name"] for tool in act(second, "ListTools")["Tools"]]
        sessions = http.get(f"{second.url}/_emulator/sessions").json()

    assert (["sandbox"], {"sessions": [], "ended": []}) == (names, sessions)
