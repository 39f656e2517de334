"""Magics for IPython and Jupyter: ``%load_ext doublecheck`` adds ``%%sandbox`` and ``%sandbox``.

``sandbox`` registers both. ``cells`` runs a cell and shows its output, ``commands`` has the
subcommands of ``%sandbox``, and ``options`` parses the options of both. ``platforms`` finds the
platform that cells run on, and ``completion`` completes with the tab key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Register the magics in a shell."""
    from doublecheck.notebook.magics import sandbox

    sandbox.load(shell)


def unload(shell: InteractiveShell) -> None:
    """Unregister the magics from a shell and close what they opened, with their double."""
    from doublecheck.notebook.magics import sandbox

    sandbox.unload(shell)
