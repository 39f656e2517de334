"""The fixtures. All begin with ``platform`` and request only each other.

So a fixture of yours that is called ``clock`` or ``server`` never reaches into ours. What
they need is imported when the first test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agentdouble import A2AApp, MCPApp, SimpleApp
    from doublecheck.platform import Platform, PlatformClock
    from doublecheck.target import Target


@dataclass(frozen=True)
class PlatformConfig:
    """What the double of a test session serves; return yours from ``platform_config``.

    ``apps`` are applications or their names, ``module:app``; ``settings`` are agentdouble's; ``reference_app`` declares that ``apps`` are the reference
    applications of the contract checks.
    """

    apps: Sequence[SimpleApp | MCPApp | A2AApp | str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    reference_app: bool = False


@pytest.fixture(scope="session")
def platform_config() -> PlatformConfig:
    """What the double serves; override it to serve applications or settings of your own."""
    return PlatformConfig()


@pytest.fixture(scope="session")
def platform_server(
    request: pytest.FixtureRequest, platform_config: PlatformConfig
) -> Iterator[Target]:
    """The Target of this session: a double in this process, or what the options name."""
    if not isinstance(platform_config, PlatformConfig):
        raise pytest.UsageError(
            "The fixture platform_config must return a doublecheck.PlatformConfig, not a "
            f"{type(platform_config).__name__}."
        )
    with serving(request.config, platform_config) as target:
        yield target


@pytest.fixture
def platform(platform_server: Target) -> Iterator[Platform]:
    """A Platform of this test's own; a double is reset first, a live platform never."""
    from doublecheck.platform import Platform

    with Platform(platform_server) as platform:
        if platform_server.admin:
            platform.reset()
        yield platform


@pytest.fixture
def platform_clock(platform: Platform) -> PlatformClock:
    """The double's clock: ``advance(minutes=30)`` instead of waiting."""
    return platform.clock


@pytest.fixture
def platform_env(platform_server: Target) -> Iterator[PlatformEnv]:
    """This test's environment, in which the PLATFORM_ variables point at the platform."""
    with pytest.MonkeyPatch.context() as patch:
        environment = PlatformEnv(platform_server, patch)
        environment.use("platform")
        yield environment


class PlatformEnv:
    """Sets environment variables until the test ends."""

    def __init__(self, target: Target, patch: pytest.MonkeyPatch) -> None:
        self._target = target
        self._patch = patch

    def __repr__(self) -> str:
        return f"<PlatformEnv of {self._target.url}>"

    def use(self, client: str) -> Mapping[str, str]:
        """Set the variables that a real client reads, ``veadk`` say, and return them.

        Raises ValueError, naming those there are, for another client.
        """
        variables = self._target.environment(client)
        for name, value in variables.items():
            self._patch.setenv(name, value)
        return variables

    def unset(self, *names: str) -> None:
        """Unset variables, whether or not they are set."""
        for name in names:
            self._patch.delenv(name, raising=False)


@contextmanager
def serving(config: pytest.Config, served: PlatformConfig) -> Iterator[Target]:
    """Yield the target that the options name, or start a double that serves ``served``."""
    from doublecheck import connecting
    from doublecheck.errors import TargetError

    url = config.getoption("platform_url")
    if url is None:
        with connecting.serving_double(
            *served.apps, reference_app=served.reference_app, **served.settings
        ) as target:
            yield target
        return
    reference_app = config.getoption("platform_reference_app")
    try:
        target = connecting.running(url, config.getoption("platform_target"), reference_app)
    except TargetError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    yield target
