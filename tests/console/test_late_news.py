"""A page acts on what the double says at the click, also if its event stream is late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import act, act_on_session, data_plane
from tests.console.driving import PATIENCE_MS, ask, create_service, go, session_id
from tests.console.relay import Relay

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.once


@pytest.fixture
def relay(double: Emulator) -> Iterator[Relay]:
    with Relay(int((double.console_url or "").partition("/#")[0].rpartition(":")[2])) as relay:
        yield relay


@pytest.fixture
def page(browser: Browser, double: Emulator, relay: Relay) -> Iterator[Page]:
    """The overview, with a session, behind the relay."""
    double.reset(keep=())
    ask(double)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{relay.url}/{(double.console_url or '').rpartition('/')[2]}")
    page.get_by_role("link", name="coder_ann_s0").wait_for()
    yield page
    page.close()


def test_sessions_that_will_end_are_counted_at_the_click(
    page: Page, double: Emulator, relay: Relay
) -> None:
    """A new session, a shorter life and a moved clock have not reached the page."""
    relay.hold_events()
    ask(double, "s1")
    act_on_session(double, "SetSessionTtl", session_id(double), Ttl=1920, TtlUnit="second")
    double.clock.advance(minutes=28)

    page.get_by_role("button", name="Advance the time by 5 min").click()
    page.get_by_text("2 sessions will end.").wait_for()
    ask(double, "s2")
    page.get_by_role("button", name="Advance", exact=True).click()

    page.get_by_text("2 sessions ended.").wait_for(state="attached")


def test_a_new_key_of_a_service_keeps_those_of_others(
    page: Page, double: Emulator, relay: Relay
) -> None:
    service = create_service(double, "keys", BackendConfiguration=BACKEND, ProtocolType="MCP")
    go(page, f"/tools/service/{service}")
    page.get_by_label("Name of a new key").wait_for()
    relay.hold_events()
    first = key_names(double, service)
    update_keys(double, service, [*first, "theirs"])

    page.get_by_label("Name of a new key").fill("mine")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("button", name="Revoke mine").wait_for()

    assert [*first, "theirs", "mine"] == key_names(double, service)


def test_a_file_that_changed_since_it_was_opened_is_not_overwritten(
    page: Page, double: Emulator
) -> None:
    """The page asks first."""
    plane = data_plane(double, "coder_ann_s0")
    plane.data("/v1/file/write", file="/home/gem/notes", content="first")
    go(page, f"/sessions/{session_id(double)}/files")
    page.get_by_role("button", name="notes").click()
    page.get_by_label("Text of the file").fill("mine")
    plane.data("/v1/file/write", file="/home/gem/notes", content="theirs")

    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("The file has changed since you opened it.").wait_for()
    assert "theirs" == plane.get("/v1/file/download", path="notes").text
    dialog.get_by_role("button", name="Overwrite").click()
    page.get_by_text("The file is saved.").wait_for(state="attached")

    assert "mine" == plane.get("/v1/file/download", path="notes").text


BACKEND = {"CustomConfiguration": {"Domain": "127.0.0.1", "ProtocolType": "http", "Port": 9}}


def update_keys(double: Emulator, service: str, names: list[str]) -> None:
    keys = {"ApiKeys": [{"Name": name} for name in names]}
    authorizer = {"AuthorizerType": "ApiKey", "Authorizer": {"KeyAuth": keys}}
    act(double, "UpdateMCPService", MCPServiceId=service, InboundAuthorizerConfiguration=authorizer)


def key_names(double: Emulator, service: str) -> list[str]:
    record = act(double, "GetMCPService", MCPServiceId=service)["MCPService"]
    keys = record["InboundAuthorizerConfiguration"]["Authorizer"]["KeyAuth"]["ApiKeys"]
    return [key["Name"] for key in keys]
