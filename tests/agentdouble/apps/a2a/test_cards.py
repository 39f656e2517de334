"""Agent cards: generated from an agent and a URL, validated if given."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from agentdouble import A2AApp, agent_card
from agentdouble.agents.agent import Agent
from agentdouble.errors import CardError
from tests.agentdouble.apps.a2a.wire import V1, Wire, talk

URL = "http://127.0.0.1:8000"
CARD = "/.well-known/agent-card.json"


def helper(message: Any, session: Any) -> None:
    """Helps."""


class Named:
    name = "ann"
    description = "Knows everything."


@pytest.mark.parametrize(
    ("agent", "name", "description"),
    [
        (Named(), "ann", "Knows everything."),
        (Agent("bob", helper, "Runs."), "bob", "Runs."),  # type: ignore[arg-type]
        (helper, "helper", "Helps."),
        ("eve", "eve", "The agent eve."),
        (A2AApp("app", runner=Named()), "app", "Knows everything."),
        (object(), "agent", "The agent agent."),
    ],
    ids=["object", "agent", "function", "name", "app", "nameless"],
)
def test_card_is_generated_from_an_agent_and_a_url(agent: Any, name: str, description: str) -> None:
    """A2A-01: any agent gets a complete card."""
    card = MessageToDict(agent_card(agent, URL + "/"))

    assert {
        "name": name,
        "description": description,
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": URL, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": True},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{"id": name, "name": name, "description": description, "tags": ["agent"]}],
    } == card


def test_given_card_is_served_unchanged() -> None:
    """As an AgentCard or as its JSON, with an ETag."""
    card = agent_card(Named(), "https://elsewhere.example/agent")

    async def conversation(wire: Wire) -> Any:
        answer = await wire.http.get(CARD, headers=V1)
        tag = answer.headers["etag"]
        again = await wire.http.get(CARD, headers={**V1, "If-None-Match": tag})
        assert (200, 304) == (answer.status_code, again.status_code)
        assert "last-modified" in answer.headers
        return answer.json()

    expected = MessageToDict(card)
    assert expected == talk(A2AApp(card=card), conversation)
    assert expected == talk(A2AApp(card=expected), conversation)


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ({}, "lacks name, description"),
        ({"name": "x"}, "lacks description"),
        ({"name": 7}, "This is not an agent card"),
        ("text", "is an AgentCard or its JSON, not str"),
        ({**MessageToDict(agent_card("x", URL)), "skills": [{"id": "s"}]}, r"skills\[?0?\]?"),
    ],
    ids=["empty", "name", "type", "text", "skill"],
)
def test_incomplete_card_is_refused(card: Any, reason: str) -> None:
    """When the application is created, and when it is run."""
    with pytest.raises(CardError, match=reason):
        A2AApp(card=card)
    with pytest.raises(CardError, match=reason):
        A2AApp(runner="echo").run(card, port=0)
