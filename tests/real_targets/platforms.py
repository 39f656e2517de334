"""The third-party implementations: how to serve each, and how it deviates from the specification.

They pin other protocol libraries than ours and so need environments of their own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from doublecheck.contracts import reference_files
from tests.real_targets.processes import doublecheck, serving

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Addresses = Mapping[str, str]


@dataclass(frozen=True)
class Implementation:
    """One of them: its package, the variable that names an interpreter with it, what installs it.

    ``serve(python, folder)`` is a context that yields the address of each surface it has.
    """

    package: str
    variable: str
    install: str
    serve: Callable[[str, Path], AbstractContextManager[Addresses]]


@dataclass(frozen=True)
class Report:
    """The verdict on each clause, with a reason unless it passed."""

    verdicts: Mapping[str, str]
    reasons: Mapping[str, str]

    def those(self, verdict: str) -> set[str]:
        """Return the clauses with a verdict."""
        return {id_ for id_, value in self.verdicts.items() if value == verdict}


def check(addresses: Addresses) -> Report:
    """Run every check on a live target that has these surfaces."""
    elsewhere = {name: at for name, at in addresses.items() if name != "application"}
    outcome = doublecheck(
        *("run", "--target", "live", "--offers", ",".join(addresses)),
        *("--url", addresses.get("application") or next(iter(elsewhere.values()))),
        *(f"--{name.replace('_', '-')}={at}" for name, at in elsewhere.items()),
        *("--reference-app", "--allow-writes", "--json"),
    )
    return report_of(json.loads(outcome))


def check_double() -> Report:
    """Run every check on a new double."""
    return report_of(json.loads(doublecheck("run", "--json")))


def report_of(document: Mapping[str, Any]) -> Report:
    """Parse a report in JSON."""
    clauses = document["clauses"]
    return Report(
        {clause["id"]: clause["verdict"] for clause in clauses},
        {
            clause["id"]: next(check["reason"] for check in clause["checks"] if check["reason"])
            for clause in clauses
            if clause["verdict"] != "passed"
        },
    )


@contextmanager
def _adk(python: str, folder: Path) -> Iterator[Addresses]:
    """Serve google-adk's API server with the reference agent."""
    reference_files.write("adk", folder)
    words = ("-m", "google.adk.cli", "api_server", "--host", "127.0.0.1", "--port", "{port}")
    with serving(python, *words, "agents", folder=folder) as url:
        yield {"api_server": url}


@contextmanager
def _agentkit(python: str, folder: Path) -> Iterator[Addresses]:
    """Serve the reference applications on the platform's SDK, with a double's sandbox."""
    reference_files.write("agentkit", folder)
    files = {
        "application": "app.py",
        "mcp": "mcp_app.py",
        "a2a": "a2a_app.py",
        "api_server": "agent_server.py",
    }
    with Emulator() as double, ExitStack() as stack:
        environ = double.environment("veadk")
        yield {
            surface: stack.enter_context(serving(python, file, folder=folder, environ=environ))
            for surface, file in files.items()
        }


IMPLEMENTATIONS = (
    Implementation("google-adk", "DOUBLECHECK_ADK_PYTHON", "google-adk[a2a]", _adk),
    Implementation(
        "agentkit-sdk-python",
        "DOUBLECHECK_AGENTKIT_PYTHON",
        "agentkit-sdk-python[identity-runtime]",
        _agentkit,
    ),
)


def gaps(package: str) -> Mapping[str, str]:
    """Return the observed deviations by clause."""
    text = Path(__file__).with_name("deviations.toml").read_text("utf-8")
    reasons: Mapping[str, str] = tomllib.loads(text)[package]
    return reasons


def case(*packages: str) -> pytest.MarkDecorator:
    """Run a test with each of these implementations, or with all, if they are installed."""
    chosen = [impl for impl in IMPLEMENTATIONS if impl.package in packages or not packages]
    return pytest.mark.parametrize("implementation", [_installed(impl) for impl in chosen])


def _installed(impl: Implementation) -> object:
    missing = f"{impl.variable} names no Python with it: pip install '{impl.install}'"
    absent = pytest.mark.skipif(impl.variable not in os.environ, reason=missing)
    return pytest.param(impl, id=impl.package, marks=absent)
