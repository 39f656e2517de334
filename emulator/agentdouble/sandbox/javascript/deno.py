"""Deno: its command, its permissions, its limits, and the process that runs our script."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agentdouble.processes.fork_server.protocol import OUTPUT_LIMIT

_INHERITED = ("HOME", "LANG", "PATH", "TMPDIR", "TZ")
_READABLE = ("HOME", "LANG", "TMPDIR", "TZ")


class DenoMissingError(ModuleNotFoundError):
    """Deno is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "deno, which runs JavaScript, is not installed. "
            "Install it: pip install 'agentdouble[emulator]', or pip install 'deno>=2.9,<3'"
        )


def find() -> str:
    """Return the path of the deno that PyPI's package has installed; raise DenoMissingError."""
    try:
        from deno import find_deno_bin
    except ImportError:
        raise DenoMissingError from None
    try:
        return str(find_deno_bin())
    except FileNotFoundError:
        raise DenoMissingError from None


@dataclass(frozen=True)
class Options:
    """What the kernel's configuration says of the engine.

    ``memory`` is the largest heap in bytes; V8 reserves far more address space than it uses,
    so a limit on address space is no use. ``network`` lets code connect and listen.
    """

    deno: str = ""
    memory: int = 512 * 1024 * 1024
    network: bool = False
    typescript: bool = False

    def command(self, home: str) -> list[str]:
        """Return the command that runs an engine which reads its script from standard input."""
        return [
            self.deno or find(),
            "run",
            "--inspect=127.0.0.1:0",
            "--ext=js",
            "--no-prompt",
            # nothing is downloaded, and no file of the user's changes how deno behaves
            "--cached-only",
            "--no-config",
            "--no-lock",
            "--no-npm",
            "--no-remote",
            "--no-code-cache",
            f"--import-map={_import_map(home)}",
            f"--v8-flags=--max-old-space-size={max(16, self.memory // 2**20)}",
            *self._permissions(home),
            "-",
        ]

    def _permissions(self, home: str) -> list[str]:
        places = ",".join(p.replace(",", ",,") for p in (home, os.environ.get("TMPDIR")) if p)
        network = ["--allow-net"] if self.network else []
        return [
            f"--allow-read={places}",
            f"--allow-write={places}",
            f"--allow-env={','.join(_READABLE)}",
            "--ignore-env",  # any other variable is undefined instead of an error
            *network,
        ]


def environment() -> Mapping[str, str]:
    """Return the whole environment of an engine."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {
        **inherited,
        # a cache that cannot be made stays in memory: 10 ms faster than one of the session's own
        "DENO_DIR": "/dev/null/none",
        "DENO_NO_PACKAGE_JSON": "1",
        "DENO_NO_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
    }


def _import_map(home: str) -> str:
    """Return an import map by which relative imports of a cell begin at ``home``.

    V8 tells deno no name for what the inspector evaluates, and deno resolves against the
    working directory as if it were a file, so one directory too high.
    """
    here = Path(home).as_uri() + "/"
    above = Path(home).parent.as_uri().rstrip("/") + "/"
    return "data:application/json," + json.dumps({"imports": {above: here, here: here}})


PIPE_SIZE = 1024 * 1024
_BOOT = Path(__file__).with_name("boot.js")
# An engine at rest has mapped 0.55 GiB of what it may write to, and uses a tenth of that.
_AT_REST = 1024 * 1024 * 1024


def start(options: Options, home: str, token: str) -> subprocess.Popen[bytes]:
    """Start deno; ``token`` marks the frames in its output. Raises DenoMissingError."""
    process = subprocess.Popen(  # noqa: S603 (deno's own command)
        options.command(home),
        cwd=home,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # an interrupt of the kernel's process group is not for it
        preexec_fn=_limiting(options.memory) if sys.platform == "linux" else None,
    )
    for pipe in (process.stdout, process.stderr):
        _widen(pipe)
    _send_boot_script(process.stdin, token)
    return process


def _limiting(memory: int) -> Callable[[], None]:
    """Return what a new process does before it executes deno; Linux only.

    V8 limits the heap of each of its isolates, but neither buffers nor the number of workers: a
    limit on data does. V8 could not live with one on address space, of which it reserves far more
    than it uses.
    """
    from agentdouble.processes.fork_server import processes

    limit = 2 * memory + _AT_REST

    def limit_process() -> None:
        processes.die_with_parent()
        processes.lower_limit(resource.RLIMIT_DATA, limit)

    return limit_process


def _widen(pipe: IO[bytes] | None) -> None:
    assert pipe is not None
    if sys.platform == "linux":
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _send_boot_script(stdin: IO[bytes] | None, token: str) -> None:
    # from standard input, because then a relative path of an import means the session's own
    # directory, and the engine needs to read nothing of the double's
    assert stdin is not None
    script = (
        _BOOT.read_text("utf-8").replace("@TOKEN@", token).replace("@LIMIT@", str(OUTPUT_LIMIT))
    )
    with stdin:
        stdin.write(script.encode())
