"""A double that starts a process of each kind; ``python -m`` it to print what each answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentdouble import Emulator
from agentdouble.mcp_services import CommandBackend
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import exec_bash, http, run, text
from tests.agentdouble.processes.becoming import REPOSITORY, as_user

PROGRAMS = REPOSITORY / "tests/agentdouble/mcp_services/stdio"
ANSWERS = {
    "python": "2\n",
    "javascript": "2\n",
    "bash": ["2\n", ""],
    "MCP command": "hello",
    "runtime": "hello",
}


def answers(uid: int, *wrapper: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return what it printed when it ran as a user; ``wrapper`` is a command that runs it."""
    return subprocess.run(
        [*wrapper, *as_user(uid, __name__)],
        env={"PATH": os.environ["PATH"], "HOME": "/tmp", **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _answers() -> dict[str, Any]:
    with Emulator() as double, tempfile.TemporaryDirectory() as directory:
        bash = exec_bash(double, "echo $((1 + 1))")["data"]
        return {
            "python": text(double, "print(1 + 1)"),
            "javascript": _printed(run(double, "console.log(1 + 1)", language="javascript")),
            "bash": [bash["stdout"], bash["stderr"]],
            "MCP command": _of_mcp_command(double),
            "runtime": _of_runtime(double, Path(directory)),
        }


def _printed(result: dict[str, Any]) -> str:
    (output,) = result["data"]["outputs"]
    return str(output["text"] or output["evalue"])


def _of_mcp_command(double: Emulator) -> Any:
    command: Sequence[str] = (sys.executable, "program.py", "echo")
    double.mcp.create("echo", CommandBackend(tuple(command), PROGRAMS), key="key")
    url = f"{double.url}/mcp/echo"
    session = mcp_wire.open_session(url, "key")
    return mcp_wire.call(url, "key", session, "echo", word="hello")["content"][0]["text"]


def _of_runtime(double: Emulator, directory: Path) -> Any:
    (directory / "main.py").write_text(
        "from agentdouble import SimpleApp\n"
        "app = SimpleApp()\n"
        "@app.entrypoint\n"
        "async def answer(payload, context):\n    return payload['word']\n"
    )
    double.runtimes.create("echo", "main:app", directory=str(directory))
    answer = http.post(f"{double.runtimes.address('echo')}/invoke", json={"word": "hello"})
    assert answer.status_code == 200, answer.text
    return answer.json()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answers()))
