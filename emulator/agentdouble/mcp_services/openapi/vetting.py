"""Definitions of other people, read first in a process of their own.

A document can be made to take any time or memory, and the C code that parses and quotes it stops
every thread meanwhile. So a process with limits of both reads it once. The double reads what comes
back again, in a thread, as JSON: that it ends is known then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
from typing import Any

from agentdouble.errors import DefinitionError
from agentdouble.mcp_services.openapi import loading
from agentdouble.processes.fork_server.processes import lower_limit

CPU_S = 60
MEMORY = 4 * 1024**3  # bytes
LARGEST_TOOL = 2 * 1024**2  # characters of a schema as JSON
LARGEST_LIST = 64 * 1024**2  # of all schemas; Kubernetes has 13 MB


async def vet(text: str) -> str:
    """Return a document in JSON or YAML as JSON; raise DefinitionError if it is refused."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", f"from {__name__} import main; main()"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        answer, _ = await process.communicate(text.encode("utf-8", "replace"))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    head, _, document = answer.partition(b"\n")
    if process.returncode or not head:
        raise DefinitionError(
            f"to read it takes more than {CPU_S} s or {MEMORY // 1024**3} GiB of memory"
        )
    found = json.loads(head)
    if "reason" in found:
        raise DefinitionError(found["reason"], place=found["place"])
    return document.decode()


def main() -> None:
    """Read a document from standard input; print what is said of it, and it as JSON."""
    _limit()
    content = sys.stdin.buffer.read()
    try:
        answer, document = _answer(content)
    except DefinitionError as error:
        answer, document = {"reason": error.reason, "place": error.place}, ""
    except RecursionError:
        answer, document = {"reason": "it is nested too deeply", "place": ""}, ""
    sys.stdout.write(f"{json.dumps(answer)}\n{document}")


def _limit() -> None:
    for kind, wanted in ((resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_AS, MEMORY)):
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit of memory
            lower_limit(kind, wanted)
    os.nice(10)


def _answer(content: bytes) -> tuple[dict[str, Any], str]:
    definition = loading.read_text(content)
    total = 0
    for operation in definition.operations:
        size = len(json.dumps(operation.input_schema))
        total += size
        if max(size / LARGEST_TOOL, total / LARGEST_LIST) > 1:
            raise DefinitionError(
                f"the schema of its tool {operation.name!r} has {size} characters, and those up to "
                f"it {total}; at most {LARGEST_TOOL} and {LARGEST_LIST} can be listed"
            )
    return {}, json.dumps(definition.document)
