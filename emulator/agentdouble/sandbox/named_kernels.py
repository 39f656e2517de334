"""The named kernels of a session: each has its own name, turn and variables.

The data plane calls them Jupyter sessions. A Jupyter session that is created in a directory stays
there. In other code, ``cwd`` applies to one execution and is changed back after it. The directory
is changed by an expression of an empty request, which does not count as an execution.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import datetime as dt
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from agentdouble.errors import CodeNotBegunError, DirectoryError, SandboxError
from agentdouble.sandbox.expressions import ExpressionError
from agentdouble.sandbox.kernel import Kernel, MidRunFault
from agentdouble.sandbox.languages import PYTHON, Language
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.turn import ExecutionTurn


async def enter(kernel: Kernel, directory: str) -> str:
    """Change a kernel's working directory; return the previous one.

    Raises DirectoryError if the kernel cannot enter it.
    """
    path = json.dumps(directory, ensure_ascii=False)
    if kernel.language is PYTHON:
        expression = f"(lambda os: (os.getcwd(), os.chdir({path}))[0])(__import__('os'))"
    else:
        expression = f"((was) => (Deno.chdir({path}), was))(Deno.cwd())"
    try:
        before: str = ast.literal_eval(await kernel.evaluate(expression))
    except ExpressionError as error:
        raise DirectoryError(directory, str(error)) from None
    return before


@contextlib.asynccontextmanager
async def inside(kernel: Kernel, directory: str | None) -> AsyncIterator[None]:
    """Change the working directory for the code that runs inside, and change it back afterwards."""
    if directory is None:
        yield
        return
    before = await enter(kernel, directory)
    try:
        yield
    finally:
        if kernel.alive:
            with contextlib.suppress(DirectoryError):  # it was removed meanwhile
                await enter(kernel, before)


MOST = 16
Start = Callable[[Language], Awaitable[Kernel]]


class NamedKernel:
    """A kernel of a session, in addition to the kernels that InvokeTool uses."""

    def __init__(self, name: str, kernel: Kernel) -> None:
        self.name = name
        self.kernel = kernel
        self.created_at = self.last_used = dt.datetime.now(dt.timezone.utc)
        self.turn = ExecutionTurn(name)
        self.notice: str | None = None  # what the first result says of an earlier kernel

    def to_dict(self) -> dict[str, Any]:
        """Return the kernel's entry in the list of Jupyter sessions."""
        age = dt.datetime.now(dt.timezone.utc) - self.created_at
        return {
            "kernel_name": self.kernel.language.name,
            "last_used": self.last_used.timestamp(),
            "age_seconds": int(age.total_seconds()),
        }


class NamedKernels:
    """The named kernels of one session, at most ``MOST``."""

    def __init__(
        self, start: Start, output_limit: int, expire: Callable[[], Awaitable[None]]
    ) -> None:
        self._start = start
        self._output_limit = output_limit
        self._expire = expire
        self._living: dict[str, NamedKernel] = {}
        self._making = asyncio.Lock()

    def __len__(self) -> int:
        return len(self.living())

    def living(self) -> tuple[NamedKernel, ...]:
        """Return the living kernels, oldest first."""
        return tuple(notebook for notebook in self._living.values() if notebook.kernel.alive)

    async def open(
        self, name: str | None, language: Language, cwd: str | None = None
    ) -> NamedKernel:
        """Return the kernel of that name; if none lives, start one in ``cwd``.

        Raises DirectoryError, SandboxError if there are too many, and the errors of a kernel's
        start.
        """
        async with self._making:
            notebook = self._living.get(name or "")
            if notebook is not None and notebook.kernel.alive:
                return notebook
            if len(self) >= MOST:
                message = f"Too many Jupyter sessions (limit {MOST}): close one."
                raise SandboxError(message, "QuotaExceeded", 429)
            ended = None if notebook is None else notebook.kernel.how_it_ended()
            for dead in [name for name, old in self._living.items() if not old.kernel.alive]:
                await self.close(dead)
            new = NamedKernel(name or uuid.uuid4().hex, await self._start(language))
            if ended is not None:
                new.notice = (
                    f"This is a new kernel, without the context of the one before: {ended}."
                )
            self._living[new.name] = new  # at once: the caller may disconnect
            if cwd is not None:
                await self._place(new, cwd)
            return new

    async def _place(self, new: NamedKernel, cwd: str) -> None:
        try:
            await enter(new.kernel, cwd)
        except BaseException:
            await self.close(new.name)
            raise

    async def execute(
        self, notebook: NamedKernel, code: str, timeout_s: float, cwd: str | None = None
    ) -> ExecutionResult:
        """Run code in a kernel, one execution at a time; close it if its context is lost.

        Raises SandboxError if it is busy and the ledger says so, and CodeNotBegunError.
        """
        notebook.turn.check_free()
        fault = MidRunFault.armed(self._expire)
        async with notebook.turn.taken():
            notebook.last_used = dt.datetime.now(dt.timezone.utc)
            async with inside(notebook.kernel, cwd):
                result = await notebook.kernel.execute(
                    code, timeout_s=timeout_s, output_limit=self._output_limit, fault=fault
                )
        if not result.began:
            raise CodeNotBegunError(notebook.name, notebook.kernel.how_it_ended())
        if result.context_lost:
            await self.close(notebook.name)
        notice, notebook.notice = notebook.notice, None
        return result if notice is None else replace(result, message=f"{result.message}. {notice}")

    async def close(self, name: str) -> bool:
        """End a kernel; return whether there was one of that name."""
        notebook = self._living.pop(name, None)
        if notebook is None:
            return False
        await notebook.kernel.kill("its Jupyter session was closed")
        return True

    async def close_all(self) -> int:
        """End every kernel; return how many there were."""
        names = list(self._living)
        return sum(await asyncio.gather(*(self.close(name) for name in names)))
