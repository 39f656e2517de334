"""The bash of a session: one process that keeps its state and runs the commands that it receives.

It reads NUL-terminated commands from one pipe and writes their exit codes to another pipe, so
only the commands use stdin, stdout and stderr.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAVED = "__agentdouble_saved"


def program(commands: int, results: int, memory_limit: int | None) -> str:
    """Return the script, which reads commands from one descriptor and answers on the other.

    ``memory_limit`` (bytes) is the address space of each process that the script starts.
    """
    limit = "" if memory_limit is None else f"ulimit -v {memory_limit // 1024} 2>/dev/null\n"
    return (
        f"{limit}while IFS= read -r -d '' __agentdouble <&{commands}; do\n"
        '  eval -- "$__agentdouble"\n'
        '  __agentdouble="$? $PWD"\n'
        f"  printf '%s\\0' \"$__agentdouble\" >&{results}\n"
        "done"
    )


def chunk(
    command: str,
    *,
    commands: int,
    results: int,
    exec_dir: str | None,
    env: Mapping[str, str | None],
) -> bytes:
    """Return the bytes that make the script run a command.

    ``exec_dir`` remains the working directory for later commands. ``env`` applies to this command
    only; the value None removes a variable. The command does not get the script's own descriptors.
    """
    prefix = " ".join(f"{name}={quote(value)}" for name, value in env.items() if value is not None)
    unset = [name for name, value in env.items() if value is None]
    lines = [] if exec_dir is None else [f"cd -- {quote(exec_dir)}"]
    lines += [f"{_SAVED}_{n}=$(declare -p {n} 2>/dev/null); unset {n}" for n in unset]
    lines += [f"{prefix} eval -- {quote(command)} {commands}<&- {results}>&-"]
    if unset:
        restored = "; ".join(f'eval "${_SAVED}_{name}"' for name in unset)
        lines += [f"{_SAVED}=$?; {restored}; (exit ${_SAVED})"]
    return "\n".join(lines).encode() + b"\0"


def read_result(record: bytes) -> tuple[int, str]:
    """Return the exit code and the working directory in an answer of the script."""
    code, _, directory = record.partition(b" ")
    return int(code), directory.decode("utf-8", "replace")
