"""Saves and restores the process state that building and running a kernel changes.

The fork server builds the kernel for its later forks. But it is not a kernel itself, and not all of
its forks are Python kernels.
"""

from __future__ import annotations

import asyncio
import atexit
import builtins
import linecache
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ipykernel.ipkernel

_ATTRIBUTES = (
    *((sys, name) for name in ("stdin", "stdout", "stderr", "displayhook", "excepthook")),
    *((sys, name) for name in ("ps1", "ps2", "ps3")),
    *((sys, f"last_{name}") for name in ("type", "value", "traceback", "exc")),
    *((builtins, name) for name in ("display", "__IPYTHON__", "get_ipython", "_")),
    (ipykernel.ipkernel, "_comm_manager"),
)
_MISSING = object()
_CELLS = (
    "1+1",
    "1/0",
)


@dataclass(frozen=True)
class Traces:
    """The parts of this process's state that a kernel changes when it is built or runs code."""

    attributes: Mapping[tuple[Any, str], Any]
    environment: Mapping[str, str]
    main: Any
    on_interrupt: Any

    @classmethod
    def take(cls) -> Traces:
        """Return the present state."""
        attributes = {attribute: getattr(*attribute, _MISSING) for attribute in _ATTRIBUTES}
        main, on_interrupt = sys.modules.get("__main__"), signal.getsignal(signal.SIGINT)
        return cls(attributes, dict(os.environ), main, on_interrupt)

    def restore(self) -> None:
        """Restore this state."""
        self.restore_attributes()
        os.environ.clear()
        os.environ.update(self.environment)
        sys.modules["__main__"] = self.main
        signal.signal(signal.SIGINT, self.on_interrupt)
        for name in [name for name in linecache.cache if "ipykernel_" in name]:
            del linecache.cache[name]

    def restore_attributes(self) -> None:
        """Set the attributes of ``sys`` and ``builtins`` alone."""
        for (holder, name), value in self.attributes.items():
            if value is not _MISSING:
                setattr(holder, name, value)
            elif hasattr(holder, name):
                delattr(holder, name)


def warm_up(app: Any) -> None:
    """Run a cell that works and one that fails in a built kernel, and drop the output."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_run_cells(app))
    finally:
        loop.close()


async def _run_cells(app: Any) -> None:
    sys.stdout, sys.stderr = app.outputs
    for cell in _CELLS:
        content = {"code": cell, "silent": False, "stop_on_error": False}
        request = app.session.msg("execute_request", content)
        parts = app.session.serialize(request)
        _, parts = app.session.feed_identities(parts)
        message = app.session.deserialize(parts)
        app.kernel.set_parent([], message)
        app.kernel._publish_status("busy", "shell")
        await app.kernel.execute_request(None, [], message)
        sys.stdout.write(cell)
        for stream in app.outputs:
            stream._flush()


def warm_formatters(app: Any) -> None:
    """Make the objects that a shell makes for its first output."""
    app.shell.display_formatter.format(1)


def discard(app: Any) -> None:
    """Remove all references to a kernel."""
    atexit.unregister(app.shell.atexit_operations)
    for part in (app, app.kernel, app.shell):
        type(part).clear_instance()
