"""The working directory of code: ``cwd`` applies to one execution and is changed back after it.

This holds for the default kernel and for Jupyter sessions. A Jupyter session that is created in a
directory stays there. The directory is changed by an expression of an empty request, which does
not count as an execution.
"""

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
