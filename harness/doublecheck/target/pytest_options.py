"""The plugin's options about the platform, and the plan that results from them.

Every test run loads this module; the readers of configurations are imported only if there is one.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from doublecheck.target.facts import BY_NAME, OPTIONS

if TYPE_CHECKING:
    from doublecheck.target.plan import Plan, Sources

_HELP = {  # options with another meaning in pytest, which can start a double in its process
    "target": "what the platform is: double (default), live, or a target of the configuration",
    "url": "the address of a running platform (default: a double starts in this process)",
}
# the specification's variables are often set, for the code under test
_VARIABLES = tuple(fact.variable for fact in OPTIONS if fact.variable.startswith("DOUBLECHECK_"))
# a line that may begin the table; a parser is imported only if there is one
_TABLE = re.compile(rb"(?m)^[\s\[]*(?:[\"']?tool[\"']?\s*\.\s*)?[\"']?doublecheck[\"']?\s*[\].=]")
PLAN = pytest.StashKey["Plan"]()  # given to the run, or made from the options


def add(group: pytest.OptionGroup) -> None:
    """Add the options."""
    for fact in OPTIONS:
        help_text = _HELP.get(fact.name) or _in_pytest(fact.help or "")
        if fact.type == "flag":
            group.addoption(
                f"--platform-{fact.option}", action="store_true", default=None, help=help_text
            )
        else:
            group.addoption(f"--platform-{fact.option}", metavar=fact.metavar, help=help_text)
    group.addoption("--platform-project", help=argparse.SUPPRESS)


def _in_pytest(text: str) -> str:
    return text[:1].lower() + text[1:].removesuffix(".").replace("--", "--platform-")


def plan_of(config: pytest.Config) -> Plan:
    """Return the plan of the platform. Raise TargetError if it is invalid."""
    from doublecheck.target.plan import plan  # slow: 20 ms, in every test run

    if PLAN not in config.stash:
        config.stash[PLAN] = plan(_sources(config))
    return config.stash[PLAN]


def in_process(config: pytest.Config) -> bool:
    """Whether the platform is a double that starts in this process."""
    return not _anything_configured(config) or plan_of(config).in_process


def check(config: pytest.Config) -> None:
    """Raise UsageError if the options of the platform are invalid."""
    if not _anything_configured(config):
        return
    from doublecheck.errors import TargetError  # slow: 10 ms, in every test run

    try:
        plan_of(config)
    except TargetError as error:
        raise pytest.UsageError(str(error)) from None


def header(config: pytest.Config) -> list[str] | None:
    """Return the header lines about the platform, if it is configured."""
    if not _anything_configured(config):
        return None
    from doublecheck.target.plan import described  # slow: 20 ms, in every test run

    return described(plan_of(config))


def words(config: pytest.Config) -> list[str]:
    """Return the facts of the platform as options of ``doublecheck run``."""
    options = plan_of(config).options
    written = []
    for name, value in options.items():
        if name == "url" or value != options.get("url"):
            option = f"--{BY_NAME[name].option}"
            written += [option] if value is True else [option, str(value)]
    return written


def _sources(config: pytest.Config) -> Sources:
    """Return the sources of the facts about the platform."""
    from doublecheck.target.plan import Sources  # slow: 20 ms, in every test run

    return Sources(_options(config), os.environ, _project(config))


def _options(config: pytest.Config) -> dict[str, Any]:
    values = {fact.name: config.getoption(f"platform_{fact.name}") for fact in OPTIONS}
    return {name: value for name, value in values.items() if value is not None}


def _project(config: pytest.Config) -> Path:
    return Path(config.getoption("platform_project") or config.rootpath / "pyproject.toml")


def _anything_configured(config: pytest.Config) -> bool:
    if PLAN in config.stash or _options(config) or any(map(os.environ.get, _VARIABLES)):
        return True
    project = _project(config)
    return project.is_file() and _TABLE.search(project.read_bytes()) is not None
