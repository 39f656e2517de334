"""The target of a test session: a double in this process, or the platform in the options.

Every test run of an environment with the harness imports this module, so it must start fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.target import pytest_options

if TYPE_CHECKING:
    from agentdouble import A2AApp, MCPApp, SimpleApp
    from doublecheck.target.target import Target

CLOUD_HOSTS = ("open.volcengineapi.com", "agentkit.cn-beijing.volces.com")


@dataclass(frozen=True)
class PlatformConfig:
    """The configuration of a test session's double. Return yours from ``platform_config``.

    ``apps`` are applications or their names, ``module:app``; ``settings`` are agentdouble's
    settings. ``reference_app`` declares that ``apps`` are the reference applications of the
    contract checks. ``cloud_hosts`` are the host names that ``platform_mock`` answers for, the
    control plane's first.
    """

    apps: Sequence[SimpleApp | MCPApp | A2AApp | str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference_app: bool = False
    cloud_hosts: Sequence[str] = CLOUD_HOSTS

    def __post_init__(self) -> None:
        if not isinstance(self.apps, str) and isinstance(self.settings, Mapping):
            return
        from doublecheck.errors import ArgumentError  # slow: 10 ms, in every test run

        if isinstance(self.apps, str):
            raise ArgumentError(f"PlatformConfig takes apps as a list: apps=[{self.apps!r}].")
        raise ArgumentError(
            "PlatformConfig takes settings as a dict, such as {'session_ttl_s': 60}, not "
            f"{self.settings!r:.80}."
        )


@contextmanager
def serving(config: pytest.Config, served: PlatformConfig) -> Iterator[Target]:
    """Yield the target that the options name, or start a double that serves ``served``."""
    from doublecheck.client import doubles, open_target  # slow: 0.4 s
    from doublecheck.errors import TargetError  # slow: 20 ms, in every test run

    plan = pytest_options.plan_of(config)
    if plan.in_process:
        settings = {**served.settings, "allow_hosts": _allowed(served)}
        with doubles.serving_double(
            *served.apps, reference_app=served.reference_app, **settings
        ) as target:
            yield target
        return
    try:
        target = open_target.opened(plan, "--platform-target")
    except TargetError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    yield target


def _allowed(served: PlatformConfig) -> tuple[str, ...]:
    """Return the allowed Host names, including those of the cloud that ``platform_mock`` sends."""
    try:
        from agentdouble.settings import Settings  # slow: 0.3 s
    except ImportError:  # the double is not installed; starting one reports that
        return ()
    return (*Settings.load(**served.settings).allow_hosts, *served.cloud_hosts)
