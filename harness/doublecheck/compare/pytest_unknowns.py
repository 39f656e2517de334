"""The options about unknowns."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.compare.pytest_relied_on import Noting
from doublecheck.target import pytest_options


def add(group: pytest.OptionGroup) -> None:
    """Add the options to the plugin's group."""
    group.addoption(
        "--platform-profile",
        metavar="FILE",
        help="profile.toml whose alternatives the double uses, from doublecheck calibrate",
    )
    group.addoption(
        "--platform-strict",
        action="store_true",
        help="fail tests that rely on what the specification leaves open and no profile settles",
    )
    group.addoption(
        "--platform-sweep",
        action="store_true",
        help="repeat tests under each alternative of each unknown that they rely on",
    )


def configure(config: pytest.Config) -> None:
    """Apply the options. Raise UsageError for a wrong combination."""
    strict, sweep = config.getoption("platform_strict"), config.getoption("platform_sweep")
    if strict and sweep:
        raise pytest.UsageError(
            "--platform-strict and --platform-sweep cannot be combined: remove one of them."
        )
    if not pytest_options.in_process(config) and hasattr(config, "workerinput"):
        if strict or sweep:
            raise pytest.UsageError(
                "--platform-strict and --platform-sweep need a separate double, but these "
                "workers share a running one: remove -n, or --platform-url."
            )
        return  # the journal has the requests of all workers
    profile = config.getoption("platform_profile")
    if profile and not pytest_options.in_process(config):
        raise pytest.UsageError(
            "--platform-profile applies to a double that the tests start, but the one at "
            "--platform-url is already running. Start it with: agentdouble serve --profile "
            "FILE."
        )
    noting = Noting(strict=strict, running=not pytest_options.in_process(config))
    config.pluginmanager.register(noting, "doublecheck-unknowns-noting")
    if profile or sweep:
        from doublecheck.compare import pytest_sweep  # slow: 0.1 s, and a cycle

        if profile:
            pytest_sweep.use_profile(config, Path(profile).absolute())
        if sweep:
            sweeping = pytest_sweep.Sweeping(noting)
            config.pluginmanager.register(sweeping, "doublecheck-unknowns-sweeping")
