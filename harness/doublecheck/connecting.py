"""connect(): a platform from a URL, from the environment, or a double started on the spot."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from doublecheck import opening
from doublecheck.addresses import is_loopback
from doublecheck.arguments import checked
from doublecheck.configuration.files import nearest_project
from doublecheck.configuration.plan import Said, plan
from doublecheck.doubles import answers_as_double, environment_of, start_double
from doublecheck.errors import TargetError
from doublecheck.platform import TIMEOUT_S, Platform
from doublecheck.target import Target, named_url


@checked
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
    options = {key: value for key, value in given.items() if value is not None}
    said = Said(options, project=nearest_project(), spelled=str)
    planned = plan(said, name)
    if planned.in_process:
        return _own_double(timeout_s)
    with ExitStack() as stack:
        target = stack.enter_context(opening.opened(said, planned))
        return _kept(target, timeout_s, stack.pop_all().close)


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
