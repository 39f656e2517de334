"""The platform's command line, against a double."""

from __future__ import annotations

import os

import pytest

from tests.real_targets import agentkit_commands
from tests.real_targets.agentkit_commands import NOT_BUILT, VARIABLE, WORKS

pytestmark = pytest.mark.skipif(
    VARIABLE not in os.environ,
    reason=f"{VARIABLE} names no Python with it: pip install agentkit-sdk-python",
)


def test_every_command_works_or_is_refused_by_name() -> None:
    """None fails in another way, and none waits for what never comes."""
    found_outcomes = list(agentkit_commands.outcomes(os.environ[VARIABLE]))

    expected = dict.fromkeys(WORKS, "works") | dict.fromkeys(NOT_BUILT, "refused")
    assert expected == {outcome.command: outcome.kind for outcome in found_outcomes}, found_outcomes


def test_every_command_is_known() -> None:
    """A new version of the command line with a new command is noticed."""
    assert [] == agentkit_commands.unlisted(agentkit_commands.names(os.environ[VARIABLE]))
