"""The cards of A2A applications behind the gateway: their addresses lead to the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http

APPLICATIONS = Path(__file__).with_name("applications")
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    """A double whose runtimes know only their own port."""
    where = {"directory": str(APPLICATIONS), "max_instances": 1}
    tables = [
        {"name": "carded", "application": "carded:app", **where},
        {"name": "anything", "application": "carded:anything", **where},
    ]
    with Emulator(runtimes=tables) as double:
        yield double


def addresses(card: dict[str, Any]) -> set[str]:
    """Return the interface addresses of a card."""
    urls = [card["url"]] if "url" in card else []
    interfaces = card.get("supportedInterfaces", []) + card.get("additionalInterfaces", [])
    return {*urls, *(interface["url"] for interface in interfaces)}


@pytest.mark.parametrize("version", ["", "1.0", "0.3"])
def test_card_names_the_gateway(double: Emulator, version: str) -> None:
    """In both versions' forms, although the application's card names its port."""
    url = f"{double.url}/runtimes/carded"
    answer = http.get(url + CARD, headers={"A2A-Version": version})

    assert {url} == addresses(answer.json())
    assert str(len(answer.content)) == answer.headers["content-length"]


def test_only_the_instance_s_address_is_rewritten(double: Emulator) -> None:
    """Paths and queries are kept; other addresses and the tag stay."""
    url = f"{double.url}/runtimes/anything"
    answer = http.get(url + CARD, headers={"Accept-Encoding": "gzip"})
    addresses = [interface["url"] for interface in answer.json()["supportedInterfaces"][:3]]

    assert [f"{url}/", f"{url}/rpc?a=b", "https://elsewhere.example/a2a"] == addresses
    assert '"one"' == answer.headers["etag"]


@pytest.mark.parametrize("path", ["/signed" + CARD, "/large" + CARD, "/other.json"])
def test_unsuitable_documents_are_passed_on(double: Emulator, path: str) -> None:
    """Signed cards, huge answers and other documents stay unchanged."""
    answer = http.get(f"{double.url}/runtimes/anything{path}")

    assert 200 == answer.status_code
    assert "http://localhost:" in answer.text
