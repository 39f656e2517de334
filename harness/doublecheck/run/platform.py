"""connect(), and the classes Platform and AsyncPlatform: the clients, with the contract checks.

The checks use the clients, so the clients cannot import them. Therefore ``check()`` is added here.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doublecheck.client._async import platform as async_client
from doublecheck.client._async.connection import TIMEOUT_S
from doublecheck.client._sync import platform as sync_client
from doublecheck.client.open_target import ConnectArguments, Stop
from doublecheck.run import checks_process
from doublecheck.target.target import Target

if TYPE_CHECKING:
    from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp
    from doublecheck.reports.report import Report


class Platform(sync_client.Platform):
    """A platform, double or live. Use it in a with statement, or call ``close()``.

    It blocks, so it also works inside a running event loop. ``timeout_s`` is the timeout for the
    application; run_code waits as long as its code may run. ``exchanges`` holds the last requests
    with their answers. Every method raises UnreachableError, NoAnswerError, RefusedError if the
    platform refuses, and AnswerError for an answer in another format.
    """

    def check(
        self,
        *,
        only: str | None = None,
        level: str | None = None,
        strict_should: bool = False,
        allow_writes: bool = False,
        examples: int | None = None,
        seed: int | None = None,
        baseline: Report | str | Path | None = None,
    ) -> Report:
        """Run the contract checks on the platform. See ``doublecheck.check``."""
        return checks_process.check_target(
            self.target,
            only=only,
            level=level,
            strict_should=strict_should,
            allow_writes=allow_writes,
            examples=examples,
            seed=seed,
            baseline=baseline,
        )


class AsyncPlatform(async_client.AsyncPlatform):
    """Platform for async code, with the same methods as coroutines. Use it in an async with.

    Without ``keep_connections`` each request uses a new connection, no connection stays open
    between two requests, and the platform may be used in several event loops, one after the other.
    """

    async def check(
        self,
        *,
        only: str | None = None,
        level: str | None = None,
        strict_should: bool = False,
        allow_writes: bool = False,
        examples: int | None = None,
        seed: int | None = None,
        baseline: Report | str | Path | None = None,
    ) -> Report:
        """Run the contract checks on the platform. See ``doublecheck.check``.

        Other tasks of the loop continue meanwhile. Cancelling this interrupts the checks.
        """
        return await checks_process.check_target_async(
            self.target,
            only=only,
            level=level,
            strict_should=strict_should,
            allow_writes=allow_writes,
            examples=examples,
            seed=seed,
            baseline=baseline,
        )


def connect(
    url: str | Emulator | None = None,
    *,
    target: str | None = None,
    control_plane: str | None = None,
    tool_id: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    api_key: str | None = None,
    region: str | None = None,
    timeout_s: float = TIMEOUT_S,
    apps: Sequence[SimpleApp | MCPApp | A2AApp | str] = (),
) -> Platform:
    """Return a platform: the one at ``url``, else the environment's, else a new double.

    ``url`` may also be a started Emulator of this process. The environment gives the URL in
    DOUBLECHECK_URL or PLATFORM_TOOL_HOST, and the keys in the other PLATFORM_ variables. ``target``
    names a target of ``[tool.doublecheck]`` in the nearest pyproject.toml, for example ``staging``;
    its keys come from the environment.

    ``apps`` are served by a new double; an application may be given as ``module:app``. A double
    that is started here runs in this process and stops with ``close()``, at the latest when the
    interpreter exits. The logs that httpx, uvicorn and others write for it and for this client are
    hidden; to see them, set a level: ``logging.getLogger("httpx").setLevel("INFO")``. The logs and
    the output of your applications are shown.

    Raises TargetError for an unusable address, UnreachableError if nothing answers at an address of
    this machine, and MissingExtraError if a double is needed but not installed.
    """
    arguments = ConnectArguments(
        url, target, control_plane, tool_id, access_key, secret_key, api_key, region, apps
    )
    where, stop = arguments.open()
    if stop is None:
        return Platform(where, timeout_s=timeout_s)

    def on_close() -> None:
        atexit.unregister(platform.close)
        stop()

    platform = Platform(where, timeout_s=timeout_s, on_close=on_close)
    atexit.register(platform.close)
    return platform


async def connect_async(
    url: str | Emulator | None = None,
    *,
    target: str | None = None,
    control_plane: str | None = None,
    tool_id: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    api_key: str | None = None,
    region: str | None = None,
    timeout_s: float = TIMEOUT_S,
    apps: Sequence[SimpleApp | MCPApp | A2AApp | str] = (),
) -> AsyncPlatform:
    """Return what ``connect()`` returns, for async code such as a cell with ``await``.

    ::

        platform = await doublecheck.connect_async()
        await platform.run_code("6 * 7")

    Its double stops with ``aclose()``, at the latest when the interpreter exits.
    """
    arguments = ConnectArguments(
        url, target, control_plane, tool_id, access_key, secret_key, api_key, region, apps
    )
    where, stop = await _open_in_thread(arguments)
    if stop is None:
        return AsyncPlatform(where, timeout_s=timeout_s)

    async def on_close() -> None:
        atexit.unregister(stop)
        await asyncio.to_thread(stop)

    atexit.register(stop)  # at exit no event loop runs that could close the platform
    return AsyncPlatform(where, timeout_s=timeout_s, on_close=on_close)


async def _open_in_thread(arguments: ConnectArguments) -> tuple[Target, Stop | None]:
    """Open the target in a thread. If cancelled, stop a double that has already started."""
    opening = asyncio.ensure_future(asyncio.to_thread(arguments.open))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait({opening})
        if not opening.cancelled() and opening.exception() is None:
            _, stop = opening.result()
            if stop is not None:
                await asyncio.to_thread(stop)
        raise
