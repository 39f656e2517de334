from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.mcp_official.conftest import (
    APP,
    DIRECT,
    FRONT,
    ORDINARY,
    ORDINARY_FRONT,
    server_of,
)
from tests.mcp_official.suite import Suite

# sampling and logs are deprecated by the newest revision, and required by the one before
pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.once,
    pytest.mark.slow,
]

# what a revision does not require, and is found all the same
BESIDE = {
    "2025-11-25": {"json-schema-2020-12", "server-session-lifecycle", "server-sse-polling"},
    "2026-07-28": {
        "http-custom-header-server-validation",
        "http-header-validation",
        "json-schema-2020-12",
    },
}
# a schema of one's own, and streams that are taken up again, are no matter of decorators
NOT_OF_DECORATORS = {"json-schema-2020-12", "server-sse-polling"}


@pytest.mark.parametrize(
    ("service", "revision", "required"),
    [
        *((way, "2025-11-25", 30) for way in (DIRECT, FRONT, ORDINARY, ORDINARY_FRONT, APP)),
        # a command has a process for each session: tests.real_servers runs it
        *((way, "2026-07-28", 37) for way in (DIRECT, FRONT, ORDINARY, ORDINARY_FRONT, APP)),
    ],
)
def test_service_passes_the_scenarios_of_a_revision(
    suite: Suite,
    with_key: Callable[[str], str],
    service: str,
    revision: str,
    required: int,
    tmp_path: Path,
) -> None:
    """Each passes directly with a key, and behind a second service."""
    outcome = suite.revision(with_key(service), revision, tmp_path)

    assert ({}, required) == (outcome.failed, len(outcome.scored))
    unscored = BESIDE[revision]
    if service in (ORDINARY, ORDINARY_FRONT, APP):
        unscored = unscored - NOT_OF_DECORATORS
    assert unscored - outcome.extra_passed == set()


def test_suite_fails_without_the_key(suite: Suite, double: Emulator, tmp_path: Path) -> None:
    address = server_of(double, DIRECT)["httpUrl"]

    (bad,) = suite.scenario(address, "ping", "2025-11-25", tmp_path)

    assert "has no API key" in bad
