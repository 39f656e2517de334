"""connect(): a platform from a URL, from the environment, or a double started on the spot."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from agentdouble.errors import MissingExtraError as DoublesMissingExtraError
from doublecheck import sending
from doublecheck.clients import admin
from doublecheck.errors import MissingExtraError
from doublecheck.platform import TIMEOUT_S, Platform
from doublecheck.secret import Secret
from doublecheck.target import Target, is_loopback, named_url

if TYPE_CHECKING:
    from agentdouble import Emulator, SimpleApp


def connect(
    url: str | None = None,
    *,
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
    other PLATFORM_ variables. A double that is started here lives in this process and stops
    with ``close()``, at the latest when the interpreter exits.

    Raises TargetError for an unusable address, UnreachableError if nothing answers at an
    address of this machine, and MissingExtraError if a double is to be started and is not
    installed.
    """
    url = url or named_url()
    if url is None:
        return _own_double(timeout_s)
    target = Target.find(
        url,
        "double" if is_double(url, api_key) else "live",
        control_plane=control_plane,
        tool_id=tool_id,
        access_key=access_key,
        secret_key=secret_key,
        api_key=api_key,
        region=region,
    )
    return Platform(target, timeout_s=timeout_s)


def is_double(url: str, api_key: str | None = None) -> bool:
    """Whether a double answers at an address of this machine; others are not even asked.

    Raises UnreachableError if nothing answers, and TargetError for an unusable address.
    """
    target = Target(url=url, api_key=Secret(api_key) if api_key else None)
    if not is_loopback(url):
        return False
    call = admin.health(target)
    with sending.translated(url), httpx.Client(**sending.options(target, TIMEOUT_S)) as client:
        return call.read(client.request(**sending.arguments(call.request)))


def start_double(*apps: SimpleApp, **settings: Any) -> Emulator:
    """Start a double in this process; raise MissingExtraError if it is not installed."""
    import agentdouble

    try:
        double = agentdouble.Emulator
    except DoublesMissingExtraError as error:
        raise MissingExtraError("The double", install=f"agentdouble[{error.extra}]") from error
    return double(*apps, **settings).start()


@contextmanager
def serving_double(
    *apps: SimpleApp, reference_app: bool = False, **settings: Any
) -> Iterator[Target]:
    """Yield the target that a double is, started for as long as the context lasts."""
    double = start_double(*apps, **settings)
    try:
        yield Target.of(double, reference_app=reference_app)
    finally:
        double.stop()


def _own_double(timeout_s: float) -> Platform:
    double = start_double()
    atexit.register(double.stop)

    def stop() -> None:
        atexit.unregister(double.stop)
        double.stop()

    return Platform(Target.of(double), timeout_s=timeout_s, on_close=stop)
