"""Magics for IPython and Jupyter: ``%load_ext doublecheck`` brings ``%%sandbox`` and ``%sandbox``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Give a shell the magics."""
    from doublecheck.magics.sandbox import SandboxMagics

    shell.register_magics(SandboxMagics(shell))
