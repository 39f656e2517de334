"""The languages of a session: their names (U-KERNEL-NAMES) and the kernels that run them.

To add a language:

- Add a ``Language`` here.
- Add a module with ``run(connection_file, config)`` that is also a program with these arguments, and
  name the module in ``KERNELS`` of ``processes/fork_server/protocol.py``.
- Describe it in ``U-KERNEL-NAMES`` of ``unknowns.toml``, in ``/v1/sandbox`` and ``/v1/code/info``
  of ``data_plane/``, and in ``%%sandbox --language`` of the harness.
- Test it like ``tests/agentdouble/control_plane/test_javascript.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentdouble.core import ledger
from agentdouble.errors import SandboxError
from agentdouble.processes.fork_server import protocol

_ENGINE = "JavaScriptKernel"  # the table of the configuration with the engine's options


@dataclass(frozen=True)
class Language:
    """A language of the sandbox: its name on the wire, and its kernel.

    ``kernel`` is the kernel's name in ``protocol.KERNELS``, and ``config`` its configuration.
    ``network`` "own" gives the kernel a loopback device of its own. ``memory`` says which part of
    its memory can be limited.
    """

    name: str
    display_name: str
    kernel: str
    config: Mapping[str, Mapping[str, Any]]
    network: Literal["shared", "own"] = "shared"
    memory: Literal["address space", "heap", "commands", "nothing"] = "address space"

    def for_session(self, memory: int, variables: Iterable[str]) -> Language:
        """Return the language with the limits and names of a session, which only an engine needs.

        Its heap has at most ``memory`` bytes, and ``variables`` are the names of the session's own
        environment variables: its code may read no others.
        """
        if self.memory != "heap":
            return self
        options = {**self.config[_ENGINE], "memory": memory, "variables": sorted(variables)}
        return replace(self, config={_ENGINE: options})


PYTHON = Language(
    name="python3", display_name="Python", kernel="python", config=protocol.PYTHON_SETTINGS
)


def _javascript(name: str, display_name: str, **options: bool) -> Language:
    return Language(
        name=name,
        display_name=display_name,
        kernel="javascript",
        config={_ENGINE: options},
        network="own",  # the engine's inspector listens on loopback
        memory="heap",  # V8 reserves far more address space than it uses
    )


JAVASCRIPT = _javascript("javascript", "JavaScript")
TYPESCRIPT = _javascript("typescript", "TypeScript", typescript=True)

_ALIASES = {
    "python3": PYTHON,
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "js": JAVASCRIPT,
    "node": JAVASCRIPT,
    "typescript": TYPESCRIPT,
}


def names() -> tuple[str, ...]:
    """Return the names that are accepted (U-KERNEL-NAMES)."""
    return tuple(_accepted())


def _accepted() -> Mapping[str, Language]:
    if ledger.choose("U-KERNEL-NAMES") == "two-names":
        return {language.name: language for language in (PYTHON, JAVASCRIPT)}
    return _ALIASES


def find(name: str) -> Language:
    """Return the language of that name (SBX-08); raise SandboxError."""
    aliases = _accepted()
    language = aliases.get(name.lower())
    if language is None:
        message = f"Unknown language {name!r}. Supported: {', '.join(aliases)}."
        raise SandboxError(message, "InvalidParameter", 400)
    return language
