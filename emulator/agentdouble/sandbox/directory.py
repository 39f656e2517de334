"""The working directory of code: where an execution runs, and where the next one does again."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import AsyncIterator

from agentdouble.errors import DirectoryError
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.languages import PYTHON
from agentdouble.sandbox.questions import ExpressionError


async def enter(kernel: Kernel, directory: str) -> str:
    """Have a kernel's code run in a directory; return where it ran before.

    Raises DirectoryError where it cannot be entered.
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
    """Have what runs meanwhile run in a directory, and what comes after where it ran before."""
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
