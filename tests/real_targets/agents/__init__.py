"""Many kinds of google-adk agents behave the same on ``adk api_server`` and on the double.

``applications.txt`` has the sources of the agents, ``cases.py`` their scripts, ``comparing.py``
the allowed differences. Both servers run in one environment, and start once for all agents::

    python3 -m venv adk && adk/bin/pip install 'google-adk[a2a]' -e '.[emulator]'
    export DOUBLECHECK_ADK_PYTHON=$PWD/adk/bin/python
    python -m pytest tests/real_targets/agents
    python -m tests.real_targets.agents         # prints a table; names of agents choose some
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.real_targets.processes import serving

_SOURCES = Path(__file__).with_name("applications.txt")
_EMULATOR = Path(__file__).parents[3] / "emulator"
_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
INSTALL = "pip install 'google-adk[a2a]' -e '.[emulator]'"

_REAL = ("google.adk.cli", "api_server", "--host", "127.0.0.1", "--port", "{port}")
_IN_MEMORY = tuple(f"--{kind}_service_uri=memory://" for kind in ("session", "artifact", "memory"))
_DOUBLE = ("agentdouble", "serve", "--quiet", "--port", "{port}", "--agents", "agents")


def write(folder: Path) -> None:
    """Write the sources: ``agents``, the ``shared`` modules, and ``veadk``."""
    _, *parts = _FILE.split(_SOURCES.read_text("utf-8"))
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def names() -> set[str]:
    """Return the names of the agents."""
    files = _FILE.findall(_SOURCES.read_text("utf-8"))
    apps = {name.split("/")[1].removesuffix(".py") for name in files if name.startswith("agents/")}
    return {name for name in apps if not name.startswith(".")}


@contextlib.contextmanager
def serve(python: str, folder: Path, more: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the addresses of the real server and of the double, which has more options."""
    write(folder)
    environ = {"PYTHONPATH": f"{folder / 'shared'}:{_EMULATOR}", "SET_BEFORE": "by the user"}
    with (
        serving(
            python, "-m", *_REAL, *_IN_MEMORY, "agents", folder=folder, environ=environ
        ) as real,
        serving(python, "-m", *_DOUBLE, *more, folder=folder, environ=environ) as double,
    ):
        yield real, double


def has_both(python: str) -> bool:
    """Return whether an interpreter has google-adk and the double's requirements."""
    code = "import google.adk, mcp, uvicorn, ipykernel"
    return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
