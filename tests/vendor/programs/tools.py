"""veadk's built-in tools for a sandbox: InvokeTool, and the Endpoint of a session."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from double import advance, run_at
from veadk.tools.builtin_tools._agentkit import (
    ensure_agentkit_session_endpoint,
    invoke_agentkit_exec_bash,
    invoke_agentkit_run_code,
)
from veadk.tools.builtin_tools.run_code import run_code

USER_SESSION = "agent_ann_s1"


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    session = SimpleNamespace(id="s1")
    agent = SimpleNamespace(name="agent")
    invocation = SimpleNamespace(session=session, agent=agent, user_id="ann")
    context = SimpleNamespace(_invocation_context=invocation, state={})
    first = run_code("x = 6 * 7", "python3", context)
    answer = invoke(facts, "print(x)")
    shell = run_code("cd /tmp && pwd", "bash", context)
    endpoint = session_endpoint(facts, "one")
    return {
        "is text": isinstance(first, str),
        "user session": answer["Result"]["UserSessionId"],
        "one session": json.loads(answer["Result"]["Result"])["data"]["outputs"][0]["text"],
        "shell": json.loads(shell)["data"]["stdout"],
        "shell with a variable": bash(facts, "echo $GREETING", env={"GREETING": "hello"}),
        "exit code": exit_code(facts, "exit 3"),
        "error": json.loads(run_code("1 / 0", "python3", context))["data"]["outputs"][0]["ename"],
        "endpoint": run_at(endpoint, "print(1 + 1)"),
        "same endpoint": session_endpoint(facts, "one", wait_until_ready=True) == endpoint,
        "other endpoint": session_endpoint(facts, "two") != endpoint,
        "a repeated Ttl renews nothing": renewed(facts),
    }


def invoke(facts: dict[str, Any], code: str, **how: Any) -> dict[str, Any]:
    """Run code with InvokeTool."""
    given = {"tool_user_session_id": USER_SESSION, "timeout": 30, "kernel_name": "python3", **how}
    return invoke_agentkit_run_code(tool_id=facts["tool"], code=code, **given)


def bash(facts: dict[str, Any], command: str, **how: Any) -> str:
    """Return what a command printed."""
    return executed(facts, command, **how)["stdout"]


def exit_code(facts: dict[str, Any], command: str) -> int:
    """Return the exit code of a command."""
    return executed(facts, command)["exit_code"]


def executed(facts: dict[str, Any], command: str, **how: Any) -> dict[str, Any]:
    """Return the data of a command."""
    answer = invoke_agentkit_exec_bash(
        tool_id=facts["tool"], tool_user_session_id=USER_SESSION, command=command, **how
    )
    return json.loads(answer["Result"]["Result"])["data"]


def session_endpoint(facts: dict[str, Any], user_session: str, **how: Any) -> str:
    """Return the Endpoint of a session."""
    return ensure_agentkit_session_endpoint(
        tool_id=facts["tool"], tool_user_session_id=user_session, poll_interval=0.05, **how
    )


def renewed(facts: dict[str, Any]) -> bool:
    """Say whether a session ends at its first deadline although each call sends a Ttl."""
    ids = []
    for _ in range(3):
        ids.append(invoke(facts, "1", tool_user_session_id="ttl", ttl=1800)["Result"]["SessionId"])
        advance(facts, 1000)
    return ids[0] == ids[1] != ids[2]
