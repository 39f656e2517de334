"""The reference applications as runtimes: how a double declares them, where they answer."""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublecheck.contracts import reference, writing
from doublecheck.platform import Platform

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from doublecheck.target import Target

SIMPLE, NEIGHBOUR = "hosted", "hosted-neighbour"
TOOLS, EXECUTOR, AGENTS = "hosted-tools", "hosted-executor", "hosted-agents"
START_WITHIN_S = 60.0
_NEIGHBOUR = Path(reference.__file__).parent / "neighbour"


@contextmanager
def declared() -> Iterator[tuple[Mapping[str, Any], ...]]:
    """Yield the reference runtimes as a double's settings declare them, from folders of their own.

    They are those of the agentdouble.toml that ``doublecheck contracts app`` writes, but for the
    neighbour, which is put beside the others' folder here, and so is not inside it.
    """
    with tempfile.TemporaryDirectory(prefix="doublecheck-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # instances may be users of their own
        applications, neighbour = folder / "applications", folder / "neighbour"
        writing.write("agentdouble", applications)
        shutil.copytree(_NEIGHBOUR, neighbour, ignore=shutil.ignore_patterns("__pycache__"))
        tables = tomllib.loads((applications / "agentdouble.toml").read_text("utf-8"))["runtimes"]
        yield tuple(_placed(table, applications, neighbour) for table in tables)


def _placed(table: Mapping[str, Any], applications: Path, neighbour: Path) -> Mapping[str, Any]:
    if table["name"] == NEIGHBOUR:
        hides = {"DOUBLECHECK_SECRET": secrets.token_hex(16)}
        return {**table, "directory": str(neighbour), "environment": hides}
    return {**table, "directory": str(applications)}


class Hosted:
    """The runtimes of a platform, each as a platform of its own by its name."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._stack = ExitStack()
        self._found: dict[str, Platform] = {}

    def at(self, name: str) -> Platform:
        """Return a reference runtime; skip where the platform has none of that name."""
        if name not in self._found:
            target = self._target(name)
            self._found[name] = self._stack.enter_context(
                Platform(target, timeout_s=START_WITHIN_S)
            )
        return self._found[name]

    @property
    def asked(self) -> tuple[Platform, ...]:
        """Those that have been asked for, the last one first."""
        return tuple(reversed(self._found.values()))

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def _target(self, name: str) -> Target:
        target = self._platform.target
        address = f"{target.url}/runtimes/{name}"
        return replace(target, url=address, api_server=address, mcp=address, a2a=address)
