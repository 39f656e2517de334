"""connect(): a platform from a URL, from the environment, or a double started on the spot."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from agentdouble import environment
from agentdouble import running as doubles
from agentdouble.errors import MissingExtraError as DoublesMissingExtraError
from doublecheck import sending
from doublecheck.addresses import is_loopback
from doublecheck.clients import admin
from doublecheck.errors import MissingExtraError, TargetError
from doublecheck.platform import TIMEOUT_S, Platform
from doublecheck.target import Kind, Target, named_url

if TYPE_CHECKING:
    from agentdouble import A2AApp, Emulator, MCPApp, SimpleApp


def connect(
    url: str | None = None,
    *,
    target: str | None = None,
    control_plane: str | None = None,
    tool_id: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    api_key: str | None = None,
    region: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Platform:
    """Return a platform: the one at ``url``, else the one the environment names, else a double.

    The environment names one by DOUBLECHECK_URL or PLATFORM_TOOL_HOST, and its keys by the
    other PLATFORM_ variables. ``target`` names one of ``[tool.doublecheck]`` in the nearest
    pyproject.toml instead, ``staging`` say, which has its keys from the environment. A double that is started here lives in this process and stops
    with ``close()``, at the latest when the interpreter exits.

    Raises TargetError for an unusable address, UnreachableError if nothing answers at an
    address of this machine, and MissingExtraError if a double is to be started and is not
    installed.
    """
    if target is not None:
        given = {"url": url, "control_plane": control_plane, "tool_id": tool_id, "region": region}
        if access_key or secret_key or api_key:
            raise TargetError(f"The target {target!r} has its keys from the environment.")
        return _configured(target, given, timeout_s)
    url = url or named_url()
    if url is None:
        return _own_double(timeout_s)
    is_double = is_loopback(url) and answers_as_double(url, api_key)
    found = Target.find(
        url,
        "double" if is_double else "live",
        control_plane=control_plane,
        tool_id=tool_id,
        access_key=access_key,
        secret_key=secret_key,
        api_key=api_key,
        region=region,
        environ=environment_of(url) if is_double else os.environ,
    )
    return Platform(found, timeout_s=timeout_s)


def _configured(name: str, given: Mapping[str, str | None], timeout_s: float) -> Platform:
    """Return the platform that the configuration has under a name."""
    from doublecheck import opening  # which needs what is above
    from doublecheck.configuration.files import nearest_project
    from doublecheck.configuration.plan import Said, plan

    options = {key: value for key, value in given.items() if value is not None}
    said = Said(options, project=nearest_project(), spelled=str)
    planned = plan(said, name)
    if planned.in_process:
        return _own_double(timeout_s)
    with ExitStack() as stack:
        target = stack.enter_context(opening.opened(said, planned))
        return _kept(target, timeout_s, stack.pop_all().close)


def running(url: str, kind: Kind, reference_app: bool) -> Target:
    """Return the target at ``url``, its keys as ``agentdouble env`` or the environment has them.

    Raises TargetError for an unusable address, or if it is to be a double and is none, and
    UnreachableError if nothing answers.
    """
    environ = environment_of(url) if kind == "double" else os.environ
    target = Target.find(url, kind, reference_app=reference_app, environ=environ)
    if kind == "double" and not answers_as_double(url):
        raise TargetError(
            f"{url} answers, but not as a double. A live platform is opted into twice: by its URL "
            "and by --platform-target=live (doublecheck run: --target live)."
        )
    return target


def environment_of(url: str, environ: Mapping[str, str] = os.environ) -> Mapping[str, str]:
    """Return the environment, with the keys of this user's double at ``url`` if it is one."""
    try:
        found = doubles.at(urlsplit(url).port) if is_loopback(url) else None
    except ValueError:  # a port that is none: the address will be refused
        found = None
    return environ if found is None else {**environ, **environment.variables(found)}


def answers_as_double(url: str, api_key: str | None = None) -> bool:
    """Whether what answers at ``url`` is a double.

    Raises UnreachableError if nothing answers, and TargetError for an unusable address.
    """
    return is_double(Target.find(url, "double", api_key=api_key, environ=environment_of(url)))


def is_double(target: Target) -> bool:
    """Whether what answers at a target's address is a double; raise UnreachableError."""
    call = admin.health(target)
    options = sending.options(target, TIMEOUT_S)
    with sending.translated(target.url), httpx.Client(**options) as client:
        return call.read(client.request(**sending.arguments(call.request)))


def start_double(*apps: SimpleApp | MCPApp | A2AApp | str, **settings: Any) -> Emulator:
    """Start a double in this process; an application may be named as ``module:app``.

    Raises MissingExtraError if the double is not installed.
    """
    import agentdouble

    try:
        double = agentdouble.Emulator
    except DoublesMissingExtraError as error:
        raise MissingExtraError("The double", install=f"agentdouble[{error.extra}]") from error
    from agentdouble.apps.loading import load

    served = (load(app) if isinstance(app, str) else app for app in apps)
    return double(*served, **settings).start()


@contextmanager
def serving_double(
    *apps: SimpleApp | MCPApp | A2AApp | str, reference_app: bool = False, **settings: Any
) -> Iterator[Target]:
    """Yield the target that a double is, started for as long as the context lasts."""
    double = start_double(*apps, **settings)
    try:
        yield Target.of(double, reference_app=reference_app)
    finally:
        double.stop()


def _own_double(timeout_s: float) -> Platform:
    double = start_double()
    return _kept(Target.of(double), timeout_s, double.stop)


def _kept(target: Target, timeout_s: float, stop: Callable[[], None]) -> Platform:
    """Return a platform that is closed when the interpreter exits, at the latest."""

    def on_close() -> None:
        atexit.unregister(platform.close)
        stop()

    platform = Platform(target, timeout_s=timeout_s, on_close=on_close)
    atexit.register(platform.close)
    return platform
