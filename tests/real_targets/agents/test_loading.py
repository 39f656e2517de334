"""What the double says of agents of google-adk that do not load."""

from __future__ import annotations

import re

import pytest

from tests.real_targets.agents.conversation import Conversation

CLOSED = "expected ',' or ']', but got '<stream end>' (PLACE/root_agent.yaml:3)"
EXTRA = "instructions: Extra inputs are not permitted (PLACE/root_agent.yaml:3)"
MISTYPED = (
    "tools.0.name: Field required (PLACE/part.yaml:4); "
    "tools.0.nane: Extra inputs are not permitted (PLACE/part.yaml:4)"
)
MISSING = (
    "Invalid fully qualified name: missing_part.models.none: ModuleNotFoundError: "
    "No module named 'missing_part.models', in 'PLACE/root_agent.yaml'"
)
IMPORT = "ModuleNotFoundError: No module named 'nothing_of_that_name' (PLACE/agent.py:3)"
RAISED = "ValueError: a setting is missing (PLACE/agent.py:3)"


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("broken_yaml", CLOSED),
        ("wrong_yaml", EXTRA),
        ("broken_part", MISTYPED),
        ("missing_part", MISSING),
        ("broken_import", IMPORT),
        ("raises_value_error", RAISED),
    ],
)
def test_the_reason_is_told_with_file_and_line(
    servers: tuple[str, str], app: str, why: str
) -> None:
    """In the detail of status 500; the other agents of the directory run."""
    talk = Conversation(servers[1], app)
    talk.create()
    talk.run("hello")
    answer = talk.answers[-1]
    detail = re.sub(rf"[^ (']*/{app}/", "PLACE/", answer.body["detail"])

    assert (500, f"Failed to load agent {app!r}: {why}") == (answer.status, detail)
