"""A double that goes and comes back, and tokens that are not its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from agentdouble import Emulator
from tests.console.relay import Relay

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.once


def test_a_double_that_starts_again(browser: Browser) -> None:
    """The page says that it is away, keeps what it has shown, and names where the new token is."""
    with Emulator(console=True, pool_size=0) as first:
        port, console_port = (int(address.rpartition(":")[2]) for address in addresses(first))
        httpx.get(f"{first.url}/list-apps")
        page = browser.new_page()
        page.goto(first.console_url or "")
        page.get_by_role("link", name="/list-apps").wait_for()
    page.get_by_text("The double does not answer; looking for it").wait_for()
    page.get_by_role("link", name="/list-apps").wait_for()

    with Emulator(
        console=True, pool_size=0, port=port, console_port=console_port, token="new"
    ) as second:
        page.get_by_text("This address has no valid token").wait_for(timeout=2000)
        page.get_by_role("link", name="/list-apps").wait_for()
        page.goto(second.console_url or "")  # only the fragment is another
        page.get_by_text("Connected").wait_for()
        page.get_by_text("Send a first request").wait_for()
        page.close()


def test_a_broken_connection_loses_no_row(browser: Browser, double: Emulator) -> None:
    """The page reads again what it shows."""
    double.reset(keep=())
    _, console = addresses(double)
    page = browser.new_page()
    with Relay(int(console.rpartition(":")[2])) as relay:
        page.goto((double.console_url or "").replace(console, relay.url))
        httpx.get(f"{double.url}/before")
        page.get_by_role("link", name="/before").wait_for()
        relay.cut()
        page.get_by_text("The double does not answer; looking for it").wait_for()
        for place in range(3):
            httpx.get(f"{double.url}/meanwhile-{place}")

        relay.mend()
        page.get_by_text("Connected").wait_for(timeout=2000)
        for name in ("/before", *(f"/meanwhile-{place}" for place in range(3))):
            page.get_by_role("link", name=name).wait_for()
        page.close()


def test_a_wrong_token_says_where_the_right_one_is(browser: Browser, double: Emulator) -> None:
    """It is a new one at each start of the double."""
    assert double.console_url is not None
    page = browser.new_page()

    page.goto(double.console_url.partition("=")[0] + "=wrong")

    page.get_by_text("This address has no valid token").wait_for()
    page.close()


def addresses(double: Emulator) -> tuple[str, str]:
    return double.url, (double.console_url or "").partition("/#")[0]
