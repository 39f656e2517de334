"""The cards of A2A applications behind the gateway: who follows them stays there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from agentdouble import Emulator
from agentdouble.runtimes.proxying import Place
from tests.agentdouble.calling import TIMEOUT_S, http

APPLICATIONS = Path(__file__).with_name("applications")
CARD = "/.well-known/agent-card.json"
PLACE = Place("https", "double.example:8000", "/behind", "/behind/runtimes/echo", 12345)
GATEWAY = "https://double.example:8000/behind/runtimes/echo"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double whose runtimes know their own port only."""
    where = {"directory": str(APPLICATIONS), "max_instances": 1}
    tables = [
        {"name": "carded", "application": "carded:app", **where},
        {"name": "anything", "application": "carded:anything", **where},
    ]
    with Emulator(runtimes=tables) as double:
        yield double


def addresses(card: dict[str, Any]) -> set[str]:
    """Return the interface addresses of a card."""
    one = [card["url"]] if "url" in card else []
    interfaces = card.get("supportedInterfaces", []) + card.get("additionalInterfaces", [])
    return {*one, *(interface["url"] for interface in interfaces)}


@pytest.mark.parametrize("version", ["", "1.0", "0.3"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_card_names_the_gateway(double: Emulator, version: str, slash: str) -> None:
    """In the form of each version, although the application's own card names its port."""
    url = f"{double.url}/runtimes/carded"
    answer = http.get(url + CARD + slash, headers={"A2A-Version": version})

    assert {url} == addresses(answer.json())
    assert str(len(answer.content)) == answer.headers["content-length"]


def test_the_card_of_the_time_before_names_the_gateway(double: Emulator) -> None:
    """Version 0.3 had it at another path first."""
    url = f"{double.url}/runtimes/carded"

    assert {url} == addresses(http.get(url + "/.well-known/agent.json").json())


def test_the_official_client_stays_at_the_gateway(double: Emulator) -> None:
    """It follows the card, and the gateway counts each of its requests."""
    url = f"{double.url}/runtimes/carded"

    async def talk() -> str:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
            config = ClientConfig(streaming=False, httpx_client=client)
            async with await create_client(url, config) as agent:
                asked = SendMessageRequest(message=new_text_message("hi", role=Role.ROLE_USER))
                return str([event async for event in agent.send_message(asked)])

    double.journal.clear()
    assert "TASK_STATE_COMPLETED" in asyncio.run(talk())
    assert ["GET", "POST"] == [entry.method for entry in double.journal.entries()]


def test_only_the_interfaces_of_the_instance_are_rewritten(double: Emulator) -> None:
    """Each keeps its path and query; others and all else stay, and so does the tag."""
    url = f"{double.url}/runtimes/anything"
    answer = http.get(url + CARD, headers={"Accept-Encoding": "gzip"})
    *interfaces, last = answer.json()["supportedInterfaces"]

    assert [
        f"{url}/",
        f"{url}/rpc?a=b",
        "https://elsewhere.example/a2a",
        f"{url}/rpc",
    ] == [one["url"] for one in interfaces]
    assert (7, '"one"') == (last, answer.headers["etag"])
    assert "localhost" in answer.json()["provider"]["url"]


@pytest.mark.parametrize(
    "path", ["/signed" + CARD, "/large" + CARD, "/wrong" + CARD, "/other.json"]
)
def test_what_cannot_be_rewritten_is_passed_on(double: Emulator, path: str) -> None:
    """Signatures cover the addresses; neither a huge answer nor a text is a card."""
    answer = http.get(f"{double.url}/runtimes/anything{path}")

    assert 200 == answer.status_code
    assert "http://localhost:" in answer.text


def test_the_head_of_a_card_tells_no_wrong_length(double: Emulator) -> None:
    """The application knows only the length of its own."""
    answer = http.head(f"{double.url}/runtimes/carded{CARD}")

    assert (200, False) == (answer.status_code, "content-length" in answer.headers)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:12345", GATEWAY),
        ("http://[::1]:12345/a", f"{GATEWAY}/a"),
        ("HTTP://LOCALHOST:12345/?a", f"{GATEWAY}/?a"),
        ("http://localhost:12345?a", f"{GATEWAY}?a"),
        ("http://localhost:12345/behind/runtimes/echo/a", f"{GATEWAY}/a"),
        ("http://localhost:12345/behind/runtimes/echoes", f"{GATEWAY}/behind/runtimes/echoes"),
        ("https://double.example:8000", GATEWAY),
        ("https://double.example:8000/behind/a", f"{GATEWAY}/a"),
        (f"{GATEWAY}/a", f"{GATEWAY}/a"),
        ("http://double.example:8000/runtimes/other", "http://double.example:8000/runtimes/other"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://other.example:12345", "http://other.example:12345"),
        ("127.0.0.1:12345", "127.0.0.1:12345"),
        ("http://[", "http://["),
        ("http://localhost:x/", "http://localhost:x/"),
        ("", ""),
    ],
)
def test_an_address_at_the_gateway(url: str, expected: str) -> None:
    """Of the instance's own port, or of the gateway's host without the runtime's prefix."""
    assert expected == PLACE.address(url)
