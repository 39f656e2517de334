"""Both servers, for the same copy of the agents, in the same environment."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.real_targets.processes import serving

HERE = Path(__file__).parent
EMULATOR = HERE.parents[2] / "emulator"
INSTALL = "pip install 'google-adk[a2a]' -e '.[emulator]'"

_REAL = ("google.adk.cli", "api_server", "--host", "127.0.0.1", "--port", "{port}")
_IN_MEMORY = tuple(f"--{one}_service_uri=memory://" for one in ("session", "artifact", "memory"))
_DOUBLE = ("agentdouble", "serve", "--quiet", "--port", "{port}", "--agents", "agents")


@contextlib.contextmanager
def both(python: str, folder: Path, more: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the addresses of the real server and of the double, which has more options."""
    agents = folder / "agents"
    shutil.copytree(HERE / "applications", agents, ignore=shutil.ignore_patterns("__pycache__"))
    environ = {"PYTHONPATH": f"{HERE / 'shared'}:{EMULATOR}", "SET_BEFORE": "by the user"}
    with (
        serving(
            python, "-m", *_REAL, *_IN_MEMORY, "agents", folder=folder, environ=environ
        ) as real,
        serving(python, "-m", *_DOUBLE, *more, folder=folder, environ=environ) as double,
    ):
        yield real, double


def has_both(python: str) -> bool:
    """Return whether an interpreter has google-adk and what the double needs."""
    code = "import google.adk, mcp, uvicorn, ipykernel"
    return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
