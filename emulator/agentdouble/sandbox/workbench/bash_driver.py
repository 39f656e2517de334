"""The bash of a session: one process that keeps its state and runs what it is handed.

Commands come over a pipe of their own, NUL-terminated, and their exit codes go back over
another, so that stdin, stdout and stderr are the commands' alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAVED = "__agentdouble_saved"


def program(commands: int, results: int, memory_limit: int | None, mark: str = "") -> str:
    """Return the script: it reads from one descriptor and answers on the other.

    ``memory_limit`` (bytes) is the address space of each process that it starts. With a
    ``mark`` its standard input is a terminal, which it makes its own, and on which it shows
    the mark behind the output of each command: a terminal delivers later than a pipe.
    """
    limit = "" if memory_limit is None else f"ulimit -v {memory_limit // 1024}\n"
    own = 'exec <>"$(tty)" >&0 2>&0; shopt -s checkwinsize\n' if mark else ""
    shown = f"  printf '%s' '{mark}' >/dev/tty 2>/dev/null\n" if mark else ""
    return (
        f"{own}{limit}while IFS= read -r -d '' __agentdouble <&{commands}; do\n"
        '  eval -- "$__agentdouble"\n'
        '  __agentdouble="$? $PWD"\n'
        f"{shown}"
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
    """Return what the script is to be handed, so that it runs a command.

    ``exec_dir`` stays the working directory; ``env`` holds for this command alone, None takes
    a variable away. The command does not see the script's own descriptors.
    """
    given = " ".join(f"{name}={quote(value)}" for name, value in env.items() if value is not None)
    taken = [name for name, value in env.items() if value is None]
    lines = [] if exec_dir is None else [f"cd -- {quote(exec_dir)}"]
    lines += [f"{_SAVED}_{n}=$(declare -p {n} 2>/dev/null); unset {n}" for n in taken]
    lines += [f"{given} eval -- {quote(command)} {commands}<&- {results}>&-"]
    if taken:
        restored = "; ".join(f'eval "${_SAVED}_{name}"' for name in taken)
        lines += [f"{_SAVED}=$?; {restored}; (exit ${_SAVED})"]
    return "\n".join(lines).encode() + b"\0"


def read_result(record: bytes) -> tuple[int, str]:
    """Return exit code and working directory of an answer."""
    code, _, directory = record.partition(b" ")
    return int(code), directory.decode("utf-8", "replace")
