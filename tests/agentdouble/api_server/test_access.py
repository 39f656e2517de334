"""Access (AUT-01): no key by default, and web pages only if a setting allows them."""

from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import http

PAGE = "http://page.example:3000"
PREFLIGHT = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}


@pytest.mark.parametrize("headers", [{"Origin": PAGE}, {"Host": "page.example"}])
def test_foreign_origin_or_host_is_refused(shared: Emulator, headers: dict[str, str]) -> None:
    """By Origin, and by a Host rebound to this machine; also for reads."""
    assert 403 == http.get(f"{shared.url}/list-apps", headers=headers).status_code


@pytest.mark.parametrize("origin", [PAGE, "*"])
def test_setting_allows_an_origin(origin: str) -> None:
    """CORS as the real server's --allow_origins: a preflight, and the header on each answer."""
    with Emulator(allow_origins=(origin,)) as double:
        preflight = http.options(f"{double.url}/run", headers=PREFLIGHT)
        answer = http.get(f"{double.url}/list-apps", headers={"Origin": PAGE})
        stranger = http.get(f"{double.url}/list-apps", headers={"Origin": "http://other.example"})

    assert (200, "OK") == (preflight.status_code, preflight.text)
    assert (200, origin) == (answer.status_code, answer.headers["access-control-allow-origin"])
    assert (200 if origin == "*" else 403) == stranger.status_code
