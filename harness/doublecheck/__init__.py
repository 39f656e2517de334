"""doublecheck: the harness that runs the same checks on a platform and on its double.

Exceptions are in ``doublecheck.errors``; the results of platforms and checks are in
``doublecheck.results``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublecheck.core.lazy_names import LazyNames

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from doublecheck.client.session_target import PlatformConfig as PlatformConfig
    from doublecheck.compare.twin import twin as twin
    from doublecheck.core.notebook_repr import Secret as Secret
    from doublecheck.errors import DoubleCheckError as DoubleCheckError
    from doublecheck.fixtures.prepared_sandboxes import prepared_sandbox as prepared_sandbox
    from doublecheck.notebook.live_display import show as show
    from doublecheck.run.check import calibrate as calibrate
    from doublecheck.run.check import check as check
    from doublecheck.run.check import unknowns as unknowns
    from doublecheck.run.platform import AsyncPlatform as AsyncPlatform
    from doublecheck.run.platform import Platform as Platform
    from doublecheck.run.platform import connect as connect
    from doublecheck.run.platform import connect_async as connect_async
    from doublecheck.target.target import Credentials as Credentials
    from doublecheck.target.target import Target as Target

_NAMES = LazyNames(__file__)
_MODULES = ("errors", "results")

__all__ = [
    "AsyncPlatform",
    "Credentials",
    "DoubleCheckError",
    "Platform",
    "PlatformConfig",
    "Secret",
    "Target",
    "calibrate",
    "check",
    "connect",
    "connect_async",
    "prepared_sandbox",
    "show",
    "twin",
    "unknowns",
]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics ``%%sandbox`` and ``%sandbox``, for ``%load_ext doublecheck``."""
    from doublecheck.notebook import magics  # optional: IPython

    magics.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Unregister the magics and stop the double that they started."""
    from doublecheck.notebook import magics  # optional: IPython

    magics.unload(shell)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return _NAMES.load(name)
    if name in _MODULES:
        return _NAMES.module(f"doublecheck.{name}")
    raise AttributeError(f"module 'doublecheck' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_NAMES)
