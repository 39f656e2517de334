from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentdouble.cli.control import ControlPlane
from agentdouble.environment import Connection
from agentdouble.errors import EnvelopeError, PlatformError, PlatformUnreachableError
from tests.agentdouble.cli.conftest import PATIENCE_S, CommandLine, Serving

pytestmark = pytest.mark.once


def control_plane(command_line: CommandLine, double: Serving) -> ControlPlane:
    variables = json.loads(command_line.run("env", "--json").stdout)
    keys = (variables["PLATFORM_ACCESS_KEY"], variables["PLATFORM_SECRET_KEY"])
    return ControlPlane(
        Connection(
            double.url, variables["PLATFORM_TOOL_ID"], *keys, variables["PLATFORM_TOOL_REGION"]
        )
    )


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_acknowledged(
    command_line: CommandLine, serve: Callable[..., Serving]
) -> None:
    """Eight clients make tools and sessions when the double is killed; all they were told is there."""
    first = serve("--state", "sqlite:///kept.db", "--quiet")
    plane = control_plane(command_line, first)
    tools: list[str] = []
    sessions: list[str] = []
    enough = threading.Event()

    def work(worker: int) -> None:
        for number in range(1000):
            try:
                name = f"w{worker}-{number}"
                tools.append(plane.call("CreateTool", Name=name, ToolType="CodeEnv")["ToolId"])
                made = plane.call("CreateSession", ToolId=plane.tool_id, UserSessionId=name)
                sessions.append(made["SessionId"])
                plane.call("DeleteSession", SessionId=made["SessionId"])
            except (PlatformUnreachableError, EnvelopeError):
                return
            if len(sessions) > 40:
                enough.set()

    with ThreadPoolExecutor(8) as pool:
        for worker in range(8):
            pool.submit(work, worker)
        assert enough.wait(PATIENCE_S)
        first.process.send_signal(signal.SIGKILL)
    first.process.wait(PATIENCE_S)

    plane = control_plane(command_line, serve("--state", "sqlite:///kept.db", "--quiet"))
    kept = {tool["ToolId"] for tool in plane.all("ListTools", "Tools")}
    assert set() == set(tools) - kept
    assert [] == [one for one in sessions if "has ended: " not in why(plane, one)]


def why(plane: ControlPlane, session_id: str) -> str:
    try:
        plane.call("GetSession", ToolId=plane.tool_id, SessionId=session_id)
    except PlatformError as error:
        return error.message
    return "It lives."
