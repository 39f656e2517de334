"""The deno command: where it is, what it may do, and why it is told so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
    """Have relative imports of a cell begin at ``home``.

    V8 tells deno no name for what the inspector evaluates, and deno resolves against the
    working directory as if it were a file, so one directory too high.
    """
    here = Path(home).as_uri() + "/"
    above = Path(home).parent.as_uri().rstrip("/") + "/"
    return "data:application/json," + json.dumps({"imports": {above: here, here: here}})
