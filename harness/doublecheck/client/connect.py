"""connect(): a platform from a URL, from the environment, or a double started on the spot."""

from __future__ import annotations

import asyncio
import atexit
import os
import reprlib
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from doublecheck import log_filter as quiet
from doublecheck.client import open_target as opening
from doublecheck.client._async.platform import AsyncPlatform
from doublecheck.client._sync.connection import TIMEOUT_S
from doublecheck.client._sync.platform import Platform
from doublecheck.client.arguments import checked
from doublecheck.client.doubles import answers_as_double, environment_of, start_double
from doublecheck.errors import ArgumentError, TargetError
from doublecheck.target.addresses import is_loopback
from doublecheck.target.config_files import nearest_project
from doublecheck.target.facts import FACTS
from doublecheck.target.plan import Said, plan
from doublecheck.target.target import Target, named_url

if TYPE_CHECKING:
    from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp

Stop: TypeAlias = Callable[[], None]

_ARGUMENTS = tuple(fact for fact in FACTS if fact.argument)


@checked
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
    """Return a platform: the one at ``url``, else the one the environment names, else a double.

    ``url`` may be an Emulator of this process, too, which has been started.
    The environment names one by DOUBLECHECK_URL or PLATFORM_TOOL_HOST, and its keys by the
    other PLATFORM_ variables. ``target`` names one of ``[tool.doublecheck]`` in the nearest
    pyproject.toml instead, ``staging`` say, which has its keys from the environment.

    ``apps`` are served by a double that is started for them; one may be named ``module:app``.
    A double that is started here lives in this process and stops with ``close()``, at the
    latest when the interpreter exits. What httpx, uvicorn and the like log because of it, and of
    this client, is kept out of the way; ask for it by name, and say from which level on:
    ``logging.getLogger("httpx").setLevel("INFO")``. What your applications log and print shows.

    Raises TargetError for an unusable address, UnreachableError if nothing answers at an
    address of this machine, and MissingExtraError if a double is to be started and is not
    installed.
    """
    quiet.keep_noise_out()
    found = _Found(
        url, target, control_plane, tool_id, access_key, secret_key, api_key, region, apps
    )
    where, stop = found.opened()
    if stop is None:
        return Platform(where, timeout_s=timeout_s)
    return _kept(where, timeout_s, stop)


@checked
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
    """Return what ``connect()`` returns, for async code: a cell with ``await``, say.

    ::

        platform = await doublecheck.connect_async()
        await platform.run_code("6 * 7")

    Its double stops with ``aclose()``, at the latest when the interpreter exits.
    """
    quiet.keep_noise_out()
    found = _Found(
        url, target, control_plane, tool_id, access_key, secret_key, api_key, region, apps
    )
    where, stop = await _opened(found)
    if stop is None:
        return AsyncPlatform(where, timeout_s=timeout_s)
    return _kept_async(where, timeout_s, stop)


@dataclass(frozen=True)
class _Found:
    """What was said of the platform to connect to."""

    url: str | Emulator | None
    target: str | None
    control_plane: str | None
    tool_id: str | None
    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    api_key: str | None = field(repr=False)
    region: str | None
    apps: Sequence[SimpleApp | MCPApp | A2AApp | str]

    def opened(self) -> tuple[Target, Stop | None]:
        """Return the target, and what stops it where it was started for this."""
        if self.apps != ():
            return self._double_of_apps()
        if self.target is not None:
            return self._configured(self.target)
        url = self.url or named_url()
        if url is None:
            return _own_double()
        return (self._at(url) if isinstance(url, str) else _target_of(url)), None

    def _double_of_apps(self) -> tuple[Target, Stop]:
        if isinstance(self.apps, str) or not isinstance(self.apps, Sequence):
            raise TargetError("apps is a list: connect(apps=[app]).")
        if self.url is not None or self.target is not None:
            raise TargetError(
                "apps are served by a double that connect() starts for them, and a platform was "
                "named as well: leave out url and target, or apps."
            )
        return _own_double(*self.apps)

    def _at(self, url: str) -> Target:
        is_double = is_loopback(url) and answers_as_double(url, self.api_key)
        return Target.find(
            url,
            "double" if is_double else "live",
            environ=environment_of(url) if is_double else os.environ,
            **{fact.name: getattr(self, fact.name) for fact in _ARGUMENTS if fact.name != "url"},
        )

    def _configured(self, name: str) -> tuple[Target, Stop]:
        """Return the platform that the configuration has under a name."""
        if any(fact.secret and getattr(self, fact.name) for fact in _ARGUMENTS):
            raise TargetError(f"The target {name!r} has its keys from the environment.")
        given = {fact.key: getattr(self, fact.name) for fact in _ARGUMENTS if not fact.secret}
        said = Said(given, project=nearest_project(), spelled=str)
        planned = plan(said, name)
        if planned.in_process:
            return _own_double()
        with ExitStack() as stack:
            target = stack.enter_context(opening.opened(said, planned))
            return target, stack.pop_all().close


async def _opened(found: _Found) -> tuple[Target, Stop | None]:
    """Open it in a thread; what has started by then is stopped if nobody waits for it any more."""
    opening = asyncio.ensure_future(asyncio.to_thread(found.opened))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait({opening})
        if not opening.cancelled() and opening.exception() is None:
            _, stop = opening.result()
            if stop is not None:
                await asyncio.to_thread(stop)
        raise


def _target_of(double: Emulator) -> Target:
    """Return the target that a double of this process is; raise ArgumentError for what is none."""
    kind = sys.modules.get("agentdouble.emulator")
    if kind is None or not isinstance(double, kind.Emulator):
        raise ArgumentError(
            "connect() takes url as str, as an Emulator or None, and was given "
            f"{type(double).__name__}: {reprlib.repr(double)}."
        )
    return Target.of(double)


def _own_double(*apps: SimpleApp | MCPApp | A2AApp | str) -> tuple[Target, Stop]:
    double = start_double(*apps)
    return Target.of(double), double.stop


def _kept(target: Target, timeout_s: float, stop: Stop) -> Platform:
    """Return a platform that is closed when the interpreter exits, at the latest."""

    def on_close() -> None:
        atexit.unregister(platform.close)
        stop()

    platform = Platform(target, timeout_s=timeout_s, on_close=on_close)
    atexit.register(platform.close)
    return platform


def _kept_async(target: Target, timeout_s: float, stop: Stop) -> AsyncPlatform:
    """Return a platform whose double stops when the interpreter exits, at the latest."""

    async def on_close() -> None:
        atexit.unregister(stop)
        await asyncio.to_thread(stop)

    atexit.register(stop)
    return AsyncPlatform(target, timeout_s=timeout_s, on_close=on_close)
