"""The agent card as served (sections 4.4.1 and 8 of the protocol), and the official client."""

from __future__ import annotations

import asyncio

import pytest
from a2a.types import AgentCard
from google.protobuf.json_format import ParseDict

from agentdouble import Emulator, agent_card
from tests.agentdouble.apps.a2a.protocol.ordinary import ordinary
from tests.agentdouble.apps.a2a.protocol.receiver import Receiver
from tests.agentdouble.apps.a2a.wire import V1, Wire, kinds, talk
from tests.agentdouble.calling import http
from tests.real_clients.expected import OUTCOME, PUSHED
from tests.real_clients.programs.a2a_1 import converse_over

CARD = "/.well-known/agent-card.json"


def test_card_has_all_required_fields(ordinary_double: Emulator) -> None:
    """And none of an earlier version (4.4.1)."""
    answer = http.get(ordinary_double.url + CARD, headers=V1)
    url = ordinary_double.url
    skill = {
        "id": "ordinary",
        "name": "ordinary",
        "description": "An executor as in the specification: no cancel, no task event first.",
        "tags": ["agent"],
    }

    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
    assert {
        "name": "ordinary",
        "description": skill["description"],
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": True},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [skill],
    } == answer.json()


@pytest.mark.parametrize(
    "headers",
    [V1, {"A2A-Version": "1.0.0"}, {"Accept": "application/a2a+json, application/json"}],
    ids=["version", "patch", "accept"],
)
@pytest.mark.parametrize("versions", [("1.0",), ("1.0", "0.3")], ids=["one", "both"])
def test_strict_1_0_parser_accepts_the_card(
    headers: dict[str, str], versions: tuple[str, ...]
) -> None:
    """It has no field of 0.3, even if an application's card declares that version."""
    url = "http://localhost"
    app = ordinary(card=agent_card("x", url, protocol_versions=versions))

    async def conversation(wire: Wire) -> None:
        written = (await wire.http.get(CARD, headers=headers)).json()
        card = ParseDict(written, AgentCard())  # it refuses unknown fields
        assert ["1.0", "1.0"] == [entry.protocol_version for entry in card.supported_interfaces]

    talk(app, conversation)


@pytest.mark.parametrize(
    ("path", "headers"), [(CARD, {"A2A-Version": "0.3"}), ("/.well-known/agent.json", {})]
)
def test_card_of_0_3_is_served_on_request(
    ordinary_double: Emulator, path: str, headers: dict[str, str]
) -> None:
    """With the fields of that version, and the same address."""
    card = http.get(ordinary_double.url + path, headers=headers).json()

    assert (ordinary_double.url, "JSONRPC", "0.3") == (
        card["url"],
        card["preferredTransport"],
        card["protocolVersion"][:3],
    )
    assert "supportedInterfaces" not in card


def test_application_may_accept_more_than_text() -> None:
    """Its card lists the media types, and messages may use them."""
    parts = [{"raw": "dGNr", "mediaType": "image/png"}]
    image = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}}

    async def conversation(wire: Wire) -> None:
        card = (await wire.http.get(CARD)).json()
        assert ["text/plain", "image/*"] == card["defaultInputModes"]
        assert "task" in (await wire.rpc("SendMessage", image))["result"]

    talk(ordinary(input_modes=["text/plain", "image/*"]), conversation)


BOUND_S = 120


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_official_client_has_a_whole_conversation(
    ordinary_double: Emulator, receiver: Receiver, binding: str
) -> None:
    """Messages, streams, input, cancelling, failing, resuming and notifications."""
    talk = converse_over(ordinary_double.url, binding, receiver.url)

    assert OUTCOME == asyncio.run(asyncio.wait_for(talk, BOUND_S))
    assert PUSHED == kinds(receiver.until("completed"))
