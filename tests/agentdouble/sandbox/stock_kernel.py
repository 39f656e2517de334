"""Run cells in a stock kernel: ``python -m ... DIRECTORY ANSWERS < CELLS``, a JSON list of code.

It writes a JSON list to the file ANSWERS: for each cell the status and the execution count of the
reply, and the outputs as a notebook has them. It is a process of its own, because jupyter_client
leaves its loops and sockets open.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

PATIENCE_S = 60
_KINDS = ("stream", "display_data", "execute_result", "error")


class CellRunner:
    """Runs cells in a kernel as jupyter_client starts it, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._manager = KernelManager(kernel_name="python3")
        names = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV")
        inherited = {name: os.environ[name] for name in names if name in os.environ}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"HOME": str(directory), "PATH": path, "PYTHONIOENCODING": "utf-8"}
        self._manager.start_kernel(cwd=str(directory), env={**inherited, **environment})
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(PATIENCE_S)

    def run(self, code: str) -> dict[str, Any]:
        id_ = self._client.execute(code, allow_stdin=False, stop_on_error=False)
        outputs: list[dict[str, Any]] = []
        while True:
            message = self._client.get_iopub_msg(PATIENCE_S)
            if message["parent_header"].get("msg_id") != id_:
                continue
            if message["content"].get("execution_state") == "idle":
                break
            _collect(outputs, message["msg_type"], message["content"])
        message = self._client.get_shell_msg(PATIENCE_S)
        while message["parent_header"].get("msg_id") != id_:  # of the start
            message = self._client.get_shell_msg(PATIENCE_S)
        reply = message["content"]
        return {
            "status": reply["status"],
            "count": reply["execution_count"],
            "outputs": [output for output in outputs if "clear" not in output],
        }

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


def _collect(outputs: list[dict[str, Any]], kind: str, content: dict[str, Any]) -> None:
    """Add a message to a cell's outputs, as a notebook does."""
    if outputs and outputs[-1].get("clear") and kind in _KINDS:
        outputs.clear()
    if kind == "clear_output":
        outputs[:] = [*outputs, {"clear": True, **content}] if content["wait"] else []
    elif kind == "update_display_data":
        for shown in outputs:
            if shown.get("transient") == content["transient"]:
                shown.update(data=content["data"], metadata=content["metadata"])
    elif kind in _KINDS:
        outputs.append({**content, "output_type": kind})


def main() -> None:
    """Run the cells of standard input in their order."""
    stock = CellRunner(Path(sys.argv[1]))
    try:
        outcomes = [stock.run(code) for code in json.load(sys.stdin)]
    finally:
        stock.close()
    Path(sys.argv[2]).write_text(json.dumps(outcomes))  # the kernel prints to our output


if __name__ == "__main__":
    main()
