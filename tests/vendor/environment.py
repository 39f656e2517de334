"""The environment of the vendor's packages, and its programs."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentdouble import Emulator
from tests.real_clients.environments import PROGRAMS as LAUNCHER
from tests.real_clients.environments import Python

VARIABLE = "DOUBLECHECK_VENDOR_PYTHON"
PACKAGES = ("veadk-python==1.1.19", "agentkit-sdk-python==0.9.1")
ENVIRONMENT = Python("veadk-python", PACKAGES)
PROGRAMS = Path(__file__).with_name("programs")
TIMEOUT_S = 240


def run(python: str, program: str, double: Emulator, **facts: Any) -> dict[str, Any]:
    """Return what a program tells; it gets the facts and the variables of all clients."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = {"url": double.url, "token": double.token, "tool": double.tool_id}
        (folder / "facts").write_text(json.dumps({**own, **facts}), "utf-8")
        ended = subprocess.run(
            [python, "-W", "ignore", LAUNCHER / "launch.py", program, "facts", "outcome"],
            cwd=folder,
            env=variables(double, folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert 0 == ended.returncode, (ended.stderr or ended.stdout)[-4000:]
        told: dict[str, Any] = json.loads((folder / "outcome").read_text("utf-8"))
        return told


def variables(double: Emulator, home: Path) -> Mapping[str, str]:
    """Return an environment that leads the vendor's clients to a double, and to no one else."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    clients = [double.environment(client) for client in ("agentkit", "veadk", "model")]
    return {
        **kept,
        **{name: value for environment in clients for name, value in environment.items()},
        "HOME": str(home),
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": str(PROGRAMS),
    }
