"""Unmodified clients of the platform, from interpreters that have them installed.

They pin older protocol libraries and cannot share our environment. ``DOUBLECHECK_VEADK_PYTHON`` and
``DOUBLECHECK_AGENTKIT_PYTHON`` name interpreters with veadk-python and agentkit-sdk-python; without
these the tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from agentdouble import Emulator
from tests.agentdouble.runtimes.asking import APPLICATIONS

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
    """CTL-08: its run_code needs only the printed variables.

    Version 0.2.15 requires https; a newer one takes either.
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
snapshot = {"ToolId": tool, "SnapshotId": client.create_session_snapshot(
    types.CreateSessionSnapshotRequest(**one, RetentionCount=2)
).snapshot_id}
client.delete_session(types.DeleteSessionRequest(**one))
kept = client.list_session_snapshots(
    types.ListSessionSnapshotsRequest(ToolId=tool, UserSessionId="s1", MaxResults=1)
)
got = client.get_session_snapshot(types.GetSessionSnapshotRequest(**snapshot)).snapshot
again = client.resume_session_from_snapshot(
    types.ResumeSessionFromSnapshotRequest(**snapshot, Ttl=60, CreateNewInstance=False)
)
named = client.get_session(types.GetSessionRequest(ToolId=tool, SessionId=again.session_id))
client.delete_session_snapshot(types.DeleteSessionSnapshotRequest(**snapshot))
client.delete_tool(types.DeleteToolRequest(ToolId=tool))
left = [one.name for one in client.list_tools(types.ListToolsRequest()).tools]
found = [len(listed.session_infos), shown.endpoint == made.endpoint, shown.status, left]
found += [kept.total_count, got == type(got)(**kept.snapshots[0].model_dump(by_alias=True))]
found += [named.user_session_id]
open(sys.argv[1], "w").write(repr(found))
"""


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_agentkit_manages_tools_sessions_and_snapshots(tmp_path: Path) -> None:
    """The SDK's typed client reads every answer."""
    answer = tmp_path / "answer"
    with Emulator() as double:
        _agentkit(double, tmp_path, os.environ[AGENTKIT], "-c", _MANAGE, str(answer))

    assert "[1, True, 'Ready', ['sandbox'], 1, True, 's1']" == answer.read_text()


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_agentkit_cli_uses_a_session(tmp_path: Path) -> None:
    """It uploads a file, reads it with a command and downloads it."""
    command = str(Path(os.environ[AGENTKIT]).parent / "agentkit")
    (tmp_path / "in").write_text("6 * 7")
    with Emulator() as double:
        named = ("--tool-id", double.tool_id, "--session-id", "s1")
        sandbox = (command, "sandbox")
        _agentkit(double, tmp_path, *sandbox, "shell", *named, "--command", "true")  # makes it
        _agentkit(double, tmp_path, *sandbox, "scp", *named, "in", "sandbox:/home/gem/f")
        shell = ("shell", *named, "--command", "echo $(( $(cat f) )) | tee out")
        output = _agentkit(double, tmp_path, *sandbox, *shell)
        _agentkit(double, tmp_path, *sandbox, "scp", *named, "sandbox:/home/gem/out", "out")

    assert '"output": "42\\n"' in output
    assert "42\n" == (tmp_path / "out").read_text()


_HOST = """
import sys, urllib.request
from agentkit.sdk.runtime import types
from agentkit.sdk.runtime.client import AgentkitRuntimeClient

client, answers = AgentkitRuntimeClient(), []
by_key = {"KeyAuth": {"ApiKeyName": "API-KEY-1", "ApiKeyLocation": "HEADER"}}
made = client.create_runtime(types.CreateRuntimeRequest(
    Name="made", RoleName="role", ArtifactType="file", ArtifactUrl=sys.argv[2],
    AuthorizerConfiguration=by_key, Envs=[{"Key": "SAYS", "Value": "one"}], MinInstance=0,
))
one = {"RuntimeId": made.runtime_id}

def call():
    shown = client.get_runtime(types.GetRuntimeRequest(**one))
    key = shown.authorizer_configuration.key_auth.api_key
    headers = {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(shown.network_configurations[0].endpoint, headers=headers)
    with urllib.request.urlopen(request) as answer:
        answers.append((shown.status, answer.read().decode()))

call()
client.update_runtime(types.UpdateRuntimeRequest(**one, Envs=[{"Key": "SAYS", "Value": "two"}]))
call()
client.release_runtime(types.ReleaseRuntimeRequest(**one))
while client.get_runtime(types.GetRuntimeRequest(**one)).status != "Ready":
    pass
call()
found = client.list_runtime_instances(types.ListRuntimeInstancesRequest(**one))
versions = client.list_runtime_versions(types.ListRuntimeVersionsRequest(**one))
log = client.get_runtime_instance_logs(types.GetRuntimeInstanceLogsRequest(
    **one, InstanceName=found.instance_items[0].instance_name,
)).logs
client.delete_runtime(types.DeleteRuntimeRequest(**one))
left = client.list_runtimes(types.ListRuntimesRequest()).agent_kit_runtimes
counted = (found.running_instance, len(versions.agent_kit_runtime_versions), len(left))
open(sys.argv[1], "w").write(repr([answers, counted, "asked for" in log]))
"""


@pytest.mark.skipif(AGENTKIT not in os.environ, reason=f"{AGENTKIT} names no Python with agentkit")
def test_agentkit_manages_runtimes(tmp_path: Path) -> None:
    """It creates, calls, updates, releases and lists one."""
    answer = tmp_path / "answer"
    query = urlencode({"command": f"{sys.executable} -S saying.py"})
    with Emulator(runtime_sources=(APPLICATIONS,)) as double:
        arguments = (str(answer), f"file://{APPLICATIONS}?{query}")
        _agentkit(double, tmp_path, os.environ[AGENTKIT], "-c", _HOST, *arguments)

    called = [("Ready", "one"), ("UnReleased", "one"), ("Ready", "two")]
    assert repr([called, (1, 2, 0), True]) == answer.read_text()


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
