"""The platforms that the magics run code on: a notebook's variable, one at a URL, or a double."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from doublecheck.client import transport
from doublecheck.client._async.platform import AsyncPlatform
from doublecheck.client._sync.platform import Platform
from doublecheck.client._sync.sandbox import Sandbox
from doublecheck.notebook.magics.options import refuse, write_line
from doublecheck.run.platform import connect
from doublecheck.target.target import Target
from doublecheck.values.executions import SessionSnapshot

DOUBLE, VARIABLE = "double", "platform"
_URL = ("http://", "https://")


@dataclass(frozen=True)
class Named:
    """A platform and its name in the notebook."""

    name: str
    platform: Platform

    def __str__(self) -> str:
        target, url = self.platform.target, self.platform.url
        name = "" if self.name in (target.kind, url) else f"{self.name}, "
        return f"{name}{target.kind} at {url}"


class Platforms:
    """The platforms that cells can run on, and the current one.

    The current platform is the one of the last ``%sandbox use``, else the notebook's variable
    ``platform``, else a new double, which starts when it is first needed. ``close()`` closes the
    platforms that were opened here.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._chosen: str | None = None
        self._last: Named | None = None  # the last one used; None after %sandbox use
        # by id, with the value, so that its id stays unique; by address; the magics' own double
        self._opened: dict[int | str, tuple[Any, Platform]] = {}
        self._stack = ExitStack()
        self.snapshots: dict[tuple[str, str], SessionSnapshot] = {}  # by URL and name

    def current(self) -> Named:
        """Return the current platform. Start a double if there is none."""
        return self.started() or self.find(DOUBLE)

    def started(self, name: str | None = None) -> Named | None:
        """Return the current or the named platform, or None for a double that has not started."""
        name = name or self._chosen or (VARIABLE if self._of_variable(VARIABLE) else DOUBLE)
        return None if name == DOUBLE and DOUBLE not in self._opened else self.find(name)

    def for_cell(self, name: str | None) -> Named:
        """Return the platform that a cell runs on. Print a line if the current one has changed."""
        if name is not None:
            return self.find(name)
        named = self.current()
        if self._last is not None and self._last.platform.url != named.platform.url:
            back = self._last.name == DOUBLE and named.name != DOUBLE
            hint = "; %sandbox use double switches back" if back else ""
            write_line(f"Cells now run on {named}{hint}.")
        self._last = named
        return named

    def find(self, name: str) -> Named:
        """Return a platform by the name of its variable, its URL, or ``double``."""
        if name == DOUBLE:
            return Named(DOUBLE, self._open(DOUBLE, None))
        if name.startswith(_URL):
            url = name.rstrip("/")
            variables = filter(None, map(self._of_variable, self.names()))
            opened = next((platform for platform in variables if platform.url == url), None)
            return Named(url, opened or self._open(url, url))  # a known one has its keys
        platform = self._of_variable(name)
        if platform is None:
            refuse(
                f"Unknown platform {name!r}. Choose from: {', '.join(self.names())}. A platform "
                "is a variable, as returned by connect(URL), or a URL that begins with http:// "
                "or https://."
            )
        return Named(name, platform)

    def names(self) -> tuple[str, ...]:
        """Return the names of the variables that are platforms, and ``double``."""
        kinds = (Platform, AsyncPlatform, *_emulator())
        variables = (
            name
            for name, value in self._variables.items()
            if isinstance(value, kinds) and not name.startswith("_")
        )
        return tuple(sorted({DOUBLE, *variables}))

    def use(self, name: str) -> Named | None:
        """Switch to a platform. Return None for a double that has not started yet."""
        self._last = None
        if not name:
            refuse("%sandbox use takes a platform variable, a URL, or double.")
        if name != DOUBLE:
            self.find(name)
        self._chosen = name
        return self.started()

    def close(self) -> None:
        """Close the magics' own double and the connections that were opened."""
        self._opened.clear()
        self.snapshots.clear()
        self._chosen = self._last = None
        self._stack.close()

    def _of_variable(self, name: str) -> Platform | None:
        value = self._variables.get(name)
        if isinstance(value, AsyncPlatform):
            transport.refuse_closed(value._connection.http, value.url)
            return self._open(id(value), value.target)
        if isinstance(value, _emulator()):
            return self._open(id(value), value)
        return value if isinstance(value, Platform) else None

    def _open(self, key: int | str, value: Any) -> Platform:
        if key not in self._opened:
            opened = Platform(value) if isinstance(value, Target) else connect(value)
            self._opened[key] = (value, self._stack.enter_context(opened))
        return self._opened[key][1]


def _emulator() -> tuple[Any, ...]:
    """Return the class of doubles, or an empty tuple if it was never imported."""
    module = sys.modules.get("agentdouble.emulator")
    return () if module is None else (module.Emulator,)


def refuse_absent(sandbox: Sandbox) -> NoReturn:
    """Raise UsageError, because a session is not active."""
    hint = ""
    if sandbox.platform.target.admin:
        hint = f" Active sessions: {', '.join(_living(sandbox)) or 'none'}."
    refuse(f"Session {sandbox.session_id!r} is not active.{hint}")


def _living(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the names of the active sessions of a sandbox's user and agent on a double."""
    prefix = replace(sandbox, session_id="").user_session_id
    ids = (session.user_session_id for session in sandbox.platform.sandboxes())
    return tuple(sorted(id_.removeprefix(prefix) for id_ in ids if id_.startswith(prefix)))
