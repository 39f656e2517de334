"""Which languages a session runs, under which names (U-KERNEL-NAMES), and with which kernel."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentdouble import ledger
from agentdouble.errors import NotBuiltError, UnknownLanguageError


@dataclass(frozen=True)
class Language:
    """A language of the sandbox: its name on the wire, and its kernel.

    ``argv`` is the command that starts the kernel; the fork server knows it as ``fork_kernel``
    and configures it with ``fork_config``.
    """

    name: str
    display_name: str
    argv: tuple[str, ...]
    fork_kernel: str
    fork_config: Mapping[str, Mapping[str, Any]]


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

_ALIASES = {"python3": PYTHON, "python": PYTHON}
_NOT_BUILT = ("javascript", "js", "node", "typescript")


def find(name: str) -> Language:
    """Return the language of that name.

    Raises UnknownLanguageError for a name nobody knows and NotBuiltError for JavaScript.
    """
    aliases = dict(_ALIASES)
    if ledger.choose("U-KERNEL-NAMES") == "python3-only":
        aliases = {"python3": PYTHON}
    elif name.lower() in _NOT_BUILT:
        raise NotBuiltError(f"The language {name!r} in the sandbox")
    found = aliases.get(name.lower())
    if found is None:
        raise UnknownLanguageError(name, tuple(aliases))
    return found
