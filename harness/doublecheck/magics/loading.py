"""Giving a shell the magics, and taking them away again."""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from doublecheck.magics.sandbox import SandboxMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_NAME = "sandbox"
_REGISTERED = SandboxMagics.__name__


def load(shell: InteractiveShell) -> None:
    """Give a shell the magics; those that it has stay."""
    if _REGISTERED in shell.magics_manager.registry:
        return
    magics = SandboxMagics(shell)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(magics.matcher)
    atexit.register(magics.platforms.close)


def unload(shell: InteractiveShell) -> None:
    """Take the magics from a shell and close what they opened."""
    magics = shell.magics_manager.registry.pop(_REGISTERED, None)
    if magics is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_NAME, None)
    shell.configurables.remove(magics)
    shell.Completer.custom_matchers.remove(magics.matcher)
    atexit.unregister(magics.platforms.close)
    magics.platforms.close()
