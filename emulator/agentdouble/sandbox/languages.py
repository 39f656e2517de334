"""Which languages a session runs, under which names (U-KERNEL-NAMES), and with which kernel."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentdouble import ledger
from agentdouble.errors import NotBuiltError, UnknownLanguageError


@dataclass(frozen=True)
class Language:
    """A language of the sandbox: its name on the wire, and its kernel.

    ``argv`` is the command that starts the kernel; the fork server knows it as ``fork_kernel``
    and configures it with ``fork_config``. ``network`` "own" gives the kernel a loopback
    device of its own; ``limit_memory`` says whether it can live with a limited address space.
    """

    name: str
    display_name: str
    argv: tuple[str, ...]
    fork_kernel: str
    fork_config: Mapping[str, Mapping[str, Any]]
    network: Literal["shared", "own"] = "shared"
    limit_memory: bool = True


PYTHON = Language(
    name="python3",
    display_name="Python",
    argv=(
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
        "--HistoryManager.enabled=False",
        "--IPKernelApp.log_level=40",
    ),
    fork_kernel="python",
    fork_config={
        "HistoryManager": {"enabled": False},  # no sqlite file and no thread for it
        "IPKernelApp": {"log_level": 40},
    },
)


def _javascript(name: str, display_name: str, **options: bool) -> Language:
    config = {"JavaScriptKernel": options}
    return Language(
        name=name,
        display_name=display_name,
        argv=(
            sys.executable,
            "-m",
            "agentdouble.sandbox.javascript",
            "-f",
            "{connection_file}",
            json.dumps(config),
        ),
        fork_kernel="javascript",
        fork_config=config,
        network="own",  # the engine's inspector listens on loopback
        limit_memory=False,  # V8 reserves far more address space than it uses
    )


JAVASCRIPT = _javascript("javascript", "JavaScript")
TYPESCRIPT = _javascript("typescript", "TypeScript", typescript=True)

_ALIASES = {"python3": PYTHON, "python": PYTHON}
# Their kernel is there; the names are given out when it has proved itself for longer.
_NOT_BUILT = {
    "javascript": JAVASCRIPT,
    "js": JAVASCRIPT,
    "node": JAVASCRIPT,
    "typescript": TYPESCRIPT,
}


def find(name: str) -> Language:
    """Return the language of that name.

    Raises UnknownLanguageError for a name nobody knows and NotBuiltError for JavaScript.
    """
    aliases = _ALIASES
    if ledger.choose("U-KERNEL-NAMES") == "python3-only":
        aliases = {"python3": PYTHON}
    elif name.lower() in _NOT_BUILT:
        raise NotBuiltError(f"The language {name!r} in the sandbox")
    found = aliases.get(name.lower())
    if found is None:
        raise UnknownLanguageError(name, tuple(aliases))
    return found
