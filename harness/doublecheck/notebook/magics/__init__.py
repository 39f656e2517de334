"""Magics for IPython and Jupyter: ``%load_ext doublecheck`` adds ``%%sandbox`` and ``%sandbox``.

This module registers both. ``cells`` runs a cell and shows its output, ``commands`` has the
subcommands of ``%sandbox``, and ``options`` parses the options of both. ``platforms`` finds the
platform that cells run on, and ``completion`` completes with the tab key.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from IPython.core.magic import Magics, line_cell_magic, magics_class

from doublecheck.notebook.magics import cells, commands, completion, options
from doublecheck.notebook.magics.cells import Cell
from doublecheck.notebook.magics.options import refuse, short_errors
from doublecheck.notebook.magics.platforms import Platforms

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@magics_class
class SandboxMagics(Magics):
    """Magics that run cells in the sandbox of a platform, by default a double."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._shell = shell
        self.platforms = Platforms(shell.user_ns)
        self.matcher = completion.matcher(self.platforms)

    @line_cell_magic
    def sandbox(self, line: str, cell: str | None = None) -> object:
        """Run a cell in a session's kernel and show its output as if it had run here.

        ::

          %%sandbox [--session NAME] [--user NAME] [--agent NAME] [--language LANGUAGE]
                    [--timeout SECONDS] [--on NAME] [--in VARIABLE] [--out VARIABLE]
                    [--no-raise-error]

        --session NAME     the session that runs it (default: ``default``)
        --user NAME        the user of that session (default: ``anonymous``)
        --agent NAME       the agent whose code runs in that session (default: ``agent``)
        --language NAME    python3, javascript, typescript or bash
        --timeout SECONDS  how long it may run, at most 300
        --on NAME          the platform: a variable of the notebook, or a URL
        --in VARIABLE      first give the session this variable of the notebook; repeatable
        --out VARIABLE     also store the result in a variable
        --no-raise-error   failed code does not fail the cell (so Run All continues, as with %%bash)

        It runs on the platform of the last ``%sandbox use``, else on the one in the variable
        ``platform``, else on a double that starts automatically. The line magic ``%sandbox``
        manages that platform's sessions, clock and log: ``%sandbox help``.
        """
        with short_errors():
            if cell is None:
                return commands.run(line, self.platforms)
            parsed = options.parse(line)
            if not cell.strip():
                refuse("The cell is empty: write code below %%sandbox.")
            platform = self.platforms.for_cell(parsed.on).platform
            cells.show(Cell(cell, parsed), platform, self._shell.user_ns)
        return None


_NAME = "sandbox"
_REGISTERED = SandboxMagics.__name__


def load(shell: InteractiveShell) -> None:
    """Register the magics in a shell, unless it has them."""
    if _REGISTERED in shell.magics_manager.registry:
        return
    magics = SandboxMagics(shell)
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(magics.matcher)
    atexit.register(magics.platforms.close)


def unload(shell: InteractiveShell) -> None:
    """Unregister the magics from a shell and close what they opened."""
    magics = shell.magics_manager.registry.pop(_REGISTERED, None)
    if magics is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_NAME, None)
    shell.configurables.remove(magics)
    shell.Completer.custom_matchers.remove(magics.matcher)
    atexit.unregister(magics.platforms.close)
    magics.platforms.close()
