"""Unmodified clients of the platform, from interpreters that have them installed.

They pin older protocol libraries than ours and so cannot share an environment with the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agentdouble import Emulator

PYTHON = "DOUBLECHECK_VEADK_PYTHON"
AGENTKIT = "DOUBLECHECK_AGENTKIT_PYTHON"

_RUN_CODE = """
import sys, types
from veadk.tools.builtin_tools.run_code import run_code

context = types.SimpleNamespace(
    state={},
    _invocation_context=types.SimpleNamespace(
        user_id="u1",
        session=types.SimpleNamespace(id="s1"),
        agent=types.SimpleNamespace(name="veAgent"),
    ),
)
run_code("x = 6", "python3", context)
open(sys.argv[1], "w").write(run_code("print(x * 7)", "python3", context))
"""


@pytest.mark.skipif(PYTHON not in os.environ, reason=f"{PYTHON} names no Python that has veadk")
@pytest.mark.parametrize("tls", [True, False], ids=["https", "http"])
def test_veadk_runs_code(tls: bool, tmp_path: Path) -> None:
    """CTL-08: its run_code works with nothing but the variables that the double prints.

    Version 0.2.15 speaks https only; a newer one takes either.
    """
    answer = tmp_path / "answer"
    with Emulator(tls=tls) as double:
        ended = subprocess.run(
            [os.environ[PYTHON], "-W", "ignore", "-c", _RUN_CODE, str(answer)],
            cwd=tmp_path,
            env={**os.environ, **double.environment("veadk")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    if not tls and "SSL" in ended.stderr:
        pytest.skip("this version speaks https only")

    assert 0 == ended.returncode, ended.stderr
    assert "42\n" == json.loads(answer.read_text())["data"]["outputs"][0]["text"]


_MANAGE = """
import sys
from agentkit.sdk.tools import types
from agentkit.sdk.tools.client import AgentkitToolsClient

client = AgentkitToolsClient()
tool = client.create_tool(types.CreateToolRequest(Name="mine", ToolType="CodeEnv")).tool_id
made = client.create_session(
    types.CreateSessionRequest(ToolId=tool, UserSessionId="s1", Ttl=10, TtlUnit="minute")
)
one = {"ToolId": tool, "SessionId": made.session_id}
shown = client.get_session(types.GetSessionRequest(**one))
listed = client.list_sessions(types.ListSessionsRequest(ToolId=tool))
client.delete_session(types.DeleteSessionRequest(**one))
client.delete_tool(types.DeleteToolRequest(ToolId=tool))
left = [one.name for one in client.list_tools(types.ListToolsRequest()).tools]
found = [len(listed.session_infos), shown.endpoint == made.endpoint, shown.status, left]
open(sys.argv[1], "w").write(repr(found))
"""


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_agentkit_manages_tools_and_sessions(tmp_path: Path) -> None:
    """The SDK's typed client reads every answer."""
    answer = tmp_path / "answer"
    with Emulator() as double:
        _agentkit(double, tmp_path, os.environ[AGENTKIT], "-c", _MANAGE, str(answer))

    assert "[1, True, 'Ready', ['sandbox']]" == answer.read_text()


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_agentkit_s_command_line_works_in_a_session(tmp_path: Path) -> None:
    """On its data plane: a file goes in, a command reads it, and it comes back."""
    command = str(Path(os.environ[AGENTKIT]).parent / "agentkit")
    (tmp_path / "in").write_text("6 * 7")
    with Emulator() as double:
        named = ("--tool-id", double.tool_id, "--session-id", "s1")
        sandbox = (command, "sandbox")
        _agentkit(double, tmp_path, *sandbox, "shell", *named, "--command", "true")  # makes it
        _agentkit(double, tmp_path, *sandbox, "scp", *named, "in", "sandbox:/home/gem/f")
        shell = ("shell", *named, "--command", "echo $(( $(cat f) )) | tee out")
        said = _agentkit(double, tmp_path, *sandbox, *shell)
        _agentkit(double, tmp_path, *sandbox, "scp", *named, "sandbox:/home/gem/out", "out")

    assert '"output": "42\\n"' in said
    assert "42\n" == (tmp_path / "out").read_text()


def _agentkit(double: Emulator, folder: Path, *command: str) -> str:
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **double.environment("agentkit"), "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == ended.returncode, ended.stdout + ended.stderr
    return ended.stdout
