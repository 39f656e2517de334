"""Deno: its command, permissions and limits, its process, and the pipe that it writes to."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agentdouble.processes.fork_server import processes
from agentdouble.processes.fork_server.protocol import OUTPUT_LIMIT

_INHERITED = ("HOME", "LANG", "PATH", "TMPDIR", "TZ")
_OF_THE_MACHINE = (  # what Python cells can learn, too
    *("cpus", "gid", "homedir", "hostname", "loadavg", "osRelease", "osUptime", "statfs"),
    *("systemMemoryInfo", "uid", "username"),
)
_READABLE = ("HOME", "LANG", "TMPDIR", "TZ")


class DenoMissingError(ModuleNotFoundError):
    """Deno is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "deno, which runs JavaScript, is not installed. "
            "Install it: pip install 'agentdouble[emulator]', or pip install 'deno>=2.9,<3'"
        )


def find() -> str:
    """Return the path of deno from PyPI's package; raise DenoMissingError if it is missing."""
    try:
        from deno import find_deno_bin  # optional: deno
    except ImportError:
        raise DenoMissingError from None
    try:
        return str(find_deno_bin())
    except FileNotFoundError:
        raise DenoMissingError from None


@dataclass(frozen=True)
class Options:
    """The engine's options in the kernel's configuration.

    ``memory`` is the largest heap in bytes. V8 reserves far more address space than it uses, so a
    limit on address space is useless. ``variables`` are the names of the session's own environment
    variables.
    """

    deno: str = ""
    memory: int = 512 * 1024 * 1024
    typescript: bool = False
    variables: Sequence[str] = ()

    def command(self, home: str) -> list[str]:
        """Return the command of an engine that reads its script from standard input."""
        places = ",".join(p.replace(",", ",,") for p in (home, os.environ.get("TMPDIR")) if p)
        return [
            self.deno or find(),
            "run",
            "--inspect=127.0.0.1:0",
            "--ext=js",
            "--no-prompt",
            # download nothing, and read no configuration of the user
            "--cached-only",
            "--no-config",
            "--no-lock",
            "--no-npm",
            "--no-remote",
            "--no-code-cache",
            f"--import-map={_import_map(home)}",
            f"--v8-flags=--max-old-space-size={max(16, self.memory // 2**20)}",
            f"--allow-read={places}",
            f"--allow-write={places}",
            f"--allow-sys={','.join(_OF_THE_MACHINE)}",
            f"--allow-env={','.join((*_READABLE, *self.variables))}",
            "--ignore-env",  # other variables are undefined, and do not raise errors
            "-",
        ]

    def environment(self) -> Mapping[str, str]:
        """Return all environment variables of an engine."""
        names = (*_INHERITED, *self.variables)
        return {
            **{name: os.environ[name] for name in names if name in os.environ},
            # No cache can be made there, so it stays in memory. This saves 10 ms per session.
            "DENO_DIR": "/dev/null/none",
            "DENO_NO_PACKAGE_JSON": "1",
            "DENO_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
        }


# What Node's require and import also take without "node:".
_BUILT_IN = (
    *("assert", "assert/strict", "async_hooks", "buffer", "child_process", "cluster", "console"),
    *("constants", "crypto", "dgram", "diagnostics_channel", "dns", "dns/promises", "domain"),
    *("events", "fs", "fs/promises", "http", "http2", "https", "inspector", "inspector/promises"),
    *("module", "net", "os", "path", "path/posix", "path/win32", "perf_hooks", "process"),
    *("punycode", "querystring", "readline", "readline/promises", "repl", "stream"),
    *("stream/consumers", "stream/promises", "stream/web", "string_decoder", "sys", "timers"),
    *("timers/promises", "tls", "trace_events", "tty", "url", "util", "util/types", "v8", "vm"),
    *("wasi", "worker_threads", "zlib"),
)


def _import_map(home: str) -> str:
    """Return an import map: relative imports start at ``home``, and built-in modules have names.

    V8 gives deno no name for code that the inspector evaluates. Deno then resolves imports as if the
    working directory were a file, so one directory too high.
    """
    root = Path(home).as_uri() + "/"
    above = Path(home).parent.as_uri().rstrip("/") + "/"
    imports = {above: root, root: root, **{name: f"node:{name}" for name in _BUILT_IN}}
    return "data:application/json," + json.dumps({"imports": imports})


PIPE_SIZE = 1024 * 1024
_BOOT = Path(__file__).with_name("boot.js")
# An idle engine has mapped 0.55 GiB of writable memory, and uses a tenth of that.
_AT_REST = 1024 * 1024 * 1024


def start(options: Options, home: str, token: str) -> subprocess.Popen[bytes]:
    """Start deno; ``token`` marks the frames in its output. Raises DenoMissingError."""
    process = subprocess.Popen(  # noqa: S603 (deno's own command)
        options.command(home),
        cwd=home,
        env=options.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # an interrupt of the kernel's process group must not reach it
        preexec_fn=_limiting(options.memory) if sys.platform == "linux" else None,
    )
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        if sys.platform == "linux":
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    _send_boot_script(process.stdin, token)
    return process


def _limiting(memory: int) -> Callable[[], None]:
    """Return a function that limits a new process before it executes deno; Linux only.

    V8 limits the heap of each of its isolates, but neither its buffers nor the number of workers,
    so we limit the process's data. A limit on address space is impossible, because V8 reserves far
    more of it than it uses.
    """
    limit = 2 * memory + _AT_REST

    def limit_process() -> None:
        processes.die_with_parent()
        processes.lower_limit(resource.RLIMIT_DATA, limit)

    return limit_process


def _send_boot_script(stdin: IO[bytes] | None, token: str) -> None:
    # Deno reads the script from standard input, so relative imports start at the session's own
    # directory, and the engine needs no permission to read the double's files.
    assert stdin is not None
    script = (
        _BOOT.read_text("utf-8").replace("@TOKEN@", token).replace("@LIMIT@", str(OUTPUT_LIMIT))
    )
    with stdin:
        stdin.write(script.encode())


Send = Callable[[str, dict[str, Any]], None]

_DELAY_S = 0.02
_ENOUGH = 256 * 1024


class EngineStreams:
    """Collects the text for stdout and stderr, and sends it as Jupyter messages."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._name = "stdout"
        self._parts: list[str] = []
        self._size = 0
        self._left: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def renew(self) -> None:
        """Reset the limits of the streams, because an execution begins."""
        self._left.clear()

    def write(self, name: str, text: str) -> None:
        """Add text to a stream, up to the stream's limit."""
        remaining = self._left.get(name, OUTPUT_LIMIT)
        text = text[:remaining]
        self._left[name] = remaining - len(text)
        if not text:
            return
        if name != self._name:
            self.flush()
            self._name = name
        self._parts.append(text)
        self._size += len(text)
        if self._size >= _ENOUGH:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_DELAY_S, self.flush)

    def flush(self) -> None:
        """Send the collected text."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parts:
            text = "".join(self._parts)
            self._parts, self._size = [], 0
            self._send("stream", {"name": self._name, "text": text})


class FrameReader:
    """Splits the pipe's data: calls ``on_text`` with text, ``on_frame`` with kind and payload."""

    def __init__(
        self, token: str, on_text: Callable[[str], None], on_frame: Callable[[str, str], None]
    ) -> None:
        self._mark = b"\0" + token.encode()
        self._header = re.compile(re.escape(self._mark) + rb" (\w+) (\d+)\n")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._on_text = on_text
        self._on_frame = on_frame
        self._rest = bytearray()
        self._needed = 0

    def feed(self, data: bytes) -> None:
        """Handle data that was read from the pipe."""
        self._rest += data
        if len(self._rest) < self._needed:  # do not parse a large frame before it is complete
            return
        data, self._needed = bytes(self._rest), 0
        start = 0
        while (mark := data.find(self._mark, start)) >= 0:
            self._text(data[start:mark])
            start = mark
            end = self._frame(data, mark)
            if end is None:
                break
            start = end
        else:
            overlap = _overlap(data[start:], self._mark)
            self._text(data[start : len(data) - overlap])
            start = len(data) - overlap
        self._rest = bytearray(data[start:])

    def _frame(self, data: bytes, start: int) -> int | None:
        """Handle the frame at ``start`` and return its end, or None if it is incomplete."""
        header = self._header.match(data, start)
        if header is None:
            return None
        end = header.end() + int(header[2])
        if end > len(data):
            self._needed = end - start
            return None
        self._on_frame(header[1].decode(), data[header.end() : end].decode("utf-8", "replace"))
        return end

    def _text(self, data: bytes) -> None:
        if data:
            self._on_text(self._decoder.decode(data))


def _overlap(data: bytes, mark: bytes) -> int:
    """Return how many of the last bytes can be the beginning of a mark."""
    start = data.rfind(b"\0", max(0, len(data) - len(mark)))
    return len(data) - start if start >= 0 and mark.startswith(data[start:]) else 0
