"""Checks of who may call (AUT)."""

from __future__ import annotations

import pytest

from doublecheck.contracts.clauses import clause
from doublecheck.platform import Platform
from doublecheck.verdicts import Verdict


@clause("AUT-01")
def test_no_authentication_is_asked_for(platform: Platform) -> None:
    """A request that proves nothing about itself is answered."""
    if platform.target.api_key is not None or not platform.target.loopback:
        pytest.skip(f"{Verdict.NOT_APPLICABLE.value}: this target is not a local one without a key")

    answers = [platform.request("GET", path) for path in ("/list-apps", "/version")]

    assert [] == [one for one in answers if "authorization" in one.request.headers]
    assert [200, 200] == [one.status_code for one in answers], [one.text for one in answers]
