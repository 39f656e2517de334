"""Where a directory of the session lies for its code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.routing import Route

from agentdouble.sandbox.workbench.paths import DIRECTORY, Paths
from agentdouble.sandbox.workbench.wire import Asked, FailedError, post


class Where(Asked):
    """A directory by the name that the session has for it."""

    path: str


def routes(paths: Paths) -> list[Route]:
    """Return the route that tells it to the double."""

    async def tell(asked: Where) -> Any:
        try:
            return _directory(paths.real(asked.path))
        except OSError as error:
            raise FailedError(str(error.strerror)) from None

    return [post(DIRECTORY, Where, tell)]


def _directory(path: str) -> str:
    if not Path(path).is_dir():
        raise FailedError("it is no directory")
    return path
