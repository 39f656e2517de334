"""agentkit's command line: every command that asks the platform."""

from __future__ import annotations

from tests.real_targets import agentkit_commands


def test_every_command_works_or_is_refused_by_name(python: str) -> None:
    """A command of which nothing is known fails the test, too."""
    kinds = {item.command: item.kind for item in agentkit_commands.outcomes(python)}

    assert {
        **dict.fromkeys(agentkit_commands.WORKS, "works"),
        **dict.fromkeys(agentkit_commands.NOT_BUILT, "refused"),
    } == kinds
    assert [] == agentkit_commands.unlisted(agentkit_commands.names(python))
