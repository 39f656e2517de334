"""A small double that runs code in confined kernels, in its own process.

``Host`` starts it as root or as an ordinary user and exchanges JSON lines with it. Run as a module,
it is the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from agentdouble.errors import KernelStartError
from agentdouble.processes import isolation
from agentdouble.processes.fork_server.client import ForkServerClient
from agentdouble.processes.isolation import Isolation
from agentdouble.processes.launcher import ForkPlan, launch
from agentdouble.processes.workspace import Workspace, Workspaces
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.kernel_channels import KernelConnection, KernelSockets
from agentdouble.sandbox.languages import PYTHON
from agentdouble.sandbox.result import CellOutput
from tests.agentdouble.processes.becoming import REPOSITORY, as_user

SECRET = "s3cret-of-the-server"


class Host:
    """The process and the answers of its kernels."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.directory = Path(tempfile.mkdtemp(prefix="t-"))  # also its home and its state
        (self.directory / "credentials").write_text(SECRET)
        self.directory.chmod(0o711)  # session users have to pass
        for path in (self.directory, self.directory / "credentials"):
            os.chown(path, uid, -1)
        self._process = subprocess.Popen(
            as_user(uid, "tests.agentdouble.processes.confined_host"),
            cwd=REPOSITORY,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.directory),
                "TMPDIR": str(self.directory),
                "SECRET_KEY": SECRET,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.isolation: dict[str, str | None] = self._hear()["isolation"]

    def start(
        self,
        *,
        measures: Iterable[str] = tuple(isolation.MEASURES),
        limits: dict[str, int] | None = None,
        of: Session | None = None,
        **changed: Any,
    ) -> Session:
        """Start a kernel on a machine that offers at most these measures.

        ``changed`` are fields of its confinement, ``of`` is its session. Raises RuntimeError.
        """
        answer = self._ask(
            op="start",
            measures=[*measures],
            changed=changed,
            limits=limits or {},
            of=None if of is None else of.number,
        )
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return Session(self, **answer)

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the host has ended"
        return json.loads(line)

    def close(self) -> None:
        """End the process and remove its files."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        shutil.rmtree(self.directory)
        assert 0 == code


@dataclasses.dataclass
class Session:
    """A confined kernel."""

    host: Host
    number: int
    pid: int
    fork_server: int
    home: str
    tmp: str
    run: str

    def text(self, code: str) -> str:
        """Run code and return its printed text, or the name of its error."""
        return str(self.host._ask(op="run", number=self.number, code=code)["text"])

    def death(self, code: str) -> str:
        """Run code that ends the kernel and return the reported cause."""
        return str(self.host._ask(op="run", number=self.number, code=code)["message"])


class _Double:
    """Starts kernels and runs code in them, like a real double."""

    def __init__(self) -> None:
        self.isolation = isolation.find_out()
        self._server = ForkServerClient()
        self._sockets = KernelSockets()
        self._workspaces = Workspaces()
        self._kernels: list[Kernel] = []
        self._places: list[Workspace] = []  # of the kernels

    async def start(
        self,
        measures: list[str],
        changed: dict[str, Any],
        limits: dict[str, int],
        of: int | None,
    ) -> dict[str, Any]:
        workspace = self._workspaces.make() if of is None else self._places[of]
        run = workspace.make_run()
        confinement = self._offering(measures).confinement_for(workspace, run)
        if confinement is not None:
            confinement = dataclasses.replace(confinement, **changed)
        plan = ForkPlan(
            server=self._server,
            kernel=PYTHON.kernel,
            config=PYTHON.config,
            limits=limits,
            confinement=None if confinement is None else dataclasses.asdict(confinement),
        )
        connection = KernelConnection(run, self._sockets)
        file = connection.file
        try:
            process = await launch(
                PYTHON.kernel, plan, workspace, run, config=plan.config, connection_file=file
            )
        except OSError as error:
            return {"error": str(error)}
        kernel = Kernel(PYTHON, process, connection, plan)
        try:
            await kernel.ready()
        except KernelStartError as error:
            await kernel.kill("it never lived")
            return {"error": str(error)}
        self._kernels.append(kernel)
        self._places.append(workspace)
        return {
            "number": len(self._kernels) - 1,
            "pid": kernel.pid,
            "fork_server": psutil.Process(kernel.pid).ppid(),
            "home": str(workspace.home),
            "tmp": str(workspace.tmp),
            "run": str(run),
        }

    def _offering(self, names: list[str]) -> Isolation:
        return Isolation(
            {
                name: measure if name in names else dataclasses.replace(measure, why_not="left out")
                for name, measure in self.isolation.measures.items()
            }
        )

    async def run(self, number: int, code: str) -> dict[str, str]:
        result = await self._kernels[number].execute(code, timeout_s=30, output_limit=100_000)
        text = "".join(map(_text_of, result.outputs)).strip()
        return {"text": text, "message": result.message}

    async def close(self) -> None:
        for kernel in self._kernels:
            await kernel.kill("the host stopped")
        await self._server.stop()
        self._sockets.close()
        self._workspaces.remove()


async def _serve() -> None:
    double = _Double()
    _say(isolation={name: measure.why_not for name, measure in double.isolation.measures.items()})
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request = json.loads(line)
        do = {"start": double.start, "run": double.run}[request.pop("op")]
        _say(**await do(**request))
    await double.close()


def _text_of(output: CellOutput) -> str:
    if output.output_type == "error":
        return output.ename or ""
    return output.text or "".join(f"<{kind}>" for kind in output.data or {})


def _say(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve())
