"""Paths of the data plane that name nothing, as clients spell them."""

from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import data_plane, http


@pytest.mark.parametrize(
    "path", ["%00", "%0a", "%7f", "%1b%5b2J", "%ff", "%c0%af", "%ed%a0%80", "nowhere", "%2e%2e"]
)
@pytest.mark.parametrize("area", ["bash", "file", "shell", "jupyter", "nowhere"])
def test_what_there_is_not_is_said_in_the_envelope(shared: Emulator, area: str, path: str) -> None:
    """Control characters and bytes that are no text included."""
    plane = data_plane(shared, "paths")

    answer = http.get(f"{plane.url}/v1/{area}/{path}", params=plane.query)

    assert (404, False) == (answer.status_code, answer.json()["success"]), answer.text


@pytest.mark.parametrize("path", ["/v1/bash/exec", "/v1/file/read"])
def test_a_method_that_there_is_not_is_said_in_the_envelope(shared: Emulator, path: str) -> None:
    """With the methods that there are."""
    plane = data_plane(shared, "paths")

    answer = http.delete(f"{plane.url}{path}", params=plane.query)

    assert (405, False) == (answer.status_code, answer.json()["success"]), answer.text
    assert "POST" in answer.headers["allow"]
