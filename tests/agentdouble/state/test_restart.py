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
    """This includes changes to the fixed tool, but no deleted tools."""
    with Emulator(state=state) as first:
        tool = act(first, "CreateTool", Name="one", ToolType="CodeEnv", ClientToken="c")["ToolId"]
        deleted_id = act(first, "CreateTool", Name="two", ToolType="CodeEnv")["ToolId"]
        act(first, "DeleteTool", ToolId=deleted_id)
        act(first, "UpdateTool", ToolId=TOOL, Description="changed")
        before = act(first, "ListTools")["Tools"]
        url = first.url

    with Emulator(state=state) as second:
        after = act(second, "ListTools")["Tools"]
        again = act(second, "CreateTool", Name="one", ToolType="CodeEnv", ClientToken="c")["ToolId"]
        ran = act(second, "InvokeTool", **{**body_of(second, "1"), "ToolId": tool})
        second_url = second.url

    assert str(before).replace(url, second_url) == str(after)
    assert (tool, tool) == (again, ran["ToolId"])


def test_sessions_end_with_the_double(state: str) -> None:
    """The error for an old session id says that the double was restarted."""
    with Emulator(state=state) as first:
        lived = result(first, "x = 1", "lived")["SessionId"]
        deleted = result(first, "1", "deleted")["SessionId"]
        act(first, "DeleteSession", SessionId=deleted)
        (before,) = http.get(f"{first.url}/_emulator/sessions").json()["ended"]

    with Emulator(state=state) as second:
        ended = http.get(f"{second.url}/_emulator/sessions").json()["ended"]
        error = refusal(second, "GetSession", ToolId=TOOL, SessionId=lived)
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
    ) == error
    assert new != lived
