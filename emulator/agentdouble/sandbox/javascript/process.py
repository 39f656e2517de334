"""The engine's process: deno, started with its script, its pipes and its limits."""

from __future__ import annotations

import fcntl
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from agentdouble.processes.fork_server.capped_stream import LIMIT
from agentdouble.sandbox.javascript import deno

PIPE_SIZE = 1024 * 1024
_BOOT = Path(__file__).with_name("boot.js")
# An engine at rest has mapped 0.55 GiB of what it may write to, and uses a tenth of that.
_AT_REST = 1024 * 1024 * 1024


def start(options: deno.Options, home: str, token: str) -> subprocess.Popen[bytes]:
    """Start deno; ``token`` marks the frames in its output. Raises DenoMissingError."""
    process = subprocess.Popen(  # noqa: S603 (deno's own command)
        options.command(home),
        cwd=home,
        env=deno.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # an interrupt of the kernel's process group is not for it
        preexec_fn=_settle(options.memory) if sys.platform == "linux" else None,
    )
    for pipe in (process.stdout, process.stderr):
        _widen(pipe)
    _send_boot_script(process.stdin, token)
    return process


def _settle(memory: int) -> Callable[[], None]:
    """Return what a fresh process does before it is deno; Linux only.

    V8 limits the heap of each of its isolates, but neither buffers nor the number of workers.
    A reserve of address space costs nothing, what can be written to does.
    """
    from agentdouble.processes.fork_server import address_space, processes

    limit = 2 * memory + _AT_REST

    def settle() -> None:
        processes.die_with_parent()
        address_space.lower(resource.RLIMIT_DATA, limit)

    return settle


def _widen(pipe: IO[bytes] | None) -> None:
    assert pipe is not None
    if sys.platform == "linux":
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _send_boot_script(stdin: IO[bytes] | None, token: str) -> None:
    # from standard input, because then a relative path of an import means the session's own
    # directory, and the engine needs to read nothing of the double's
    assert stdin is not None
    script = _BOOT.read_text("utf-8").replace("@TOKEN@", token).replace("@LIMIT@", str(LIMIT))
    with stdin:
        stdin.write(script.encode())
