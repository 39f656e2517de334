"""The options about unknowns, and the plugins that they activate."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublecheck.target import pytest_options
from doublecheck.unknowns_report.summary import Summary
from doublecheck.unknowns_report.usage import Noting

PROFILE_VARIABLE = "AGENTDOUBLE_PROFILE"


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
        help="run tests again under each alternative of each unknown that they rely on",
    )


def configure(config: pytest.Config) -> None:
    """Apply the options; raise UsageError for a wrong combination."""
    strict, sweep = config.getoption("platform_strict"), config.getoption("platform_sweep")
    if strict and sweep:
        raise pytest.UsageError(
            "--platform-strict and --platform-sweep exclude each other: choose one of them."
        )
    shared = _shared(config)
    if sweep and shared:
        raise pytest.UsageError(
            "--platform-sweep changes the answers of the double, and these workers share one "
            "that runs already: leave out -n, or --platform-url, so that each has its own."
        )
    if config.getoption("platform_profile"):
        _take_profile(config)
    noting = Noting(strict=strict, running=not pytest_options.in_process(config), shared=shared)
    config.pluginmanager.register(noting, "doublecheck-unknowns-noting")
    config.pluginmanager.register(Summary(config), "doublecheck-unknowns-summary")
    if sweep:
        from doublecheck.unknowns_report.sweep import Sweeping

        config.pluginmanager.register(Sweeping(noting), "doublecheck-unknowns-sweeping")


def _shared(config: pytest.Config) -> bool:
    """Whether several workers use one double."""
    return pytest_options.runs_already(config) and hasattr(config, "workerinput")


def _take_profile(config: pytest.Config) -> None:
    """Make every double that is started from now on use the profile."""
    if pytest_options.runs_already(config):
        raise pytest.UsageError(
            "--platform-profile is for a double that the tests start. The one at --platform-url "
            "runs already: agentdouble serve --profile FILE."
        )
    file = Path(config.getoption("platform_profile")).absolute()
    _check(file)
    patch = pytest.MonkeyPatch()
    patch.setenv(PROFILE_VARIABLE, str(file))  # also for a double of another interpreter
    config.add_cleanup(patch.undo)


def _check(file: Path) -> None:
    from agentdouble import profiles
    from agentdouble.errors import ProfileError

    try:
        profiles.read(file)
    except ProfileError as error:
        raise pytest.UsageError(f"--platform-profile: {error}") from None
