"""Unknown data-plane paths and methods, in unusual spellings."""

from __future__ import annotations

import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import data_plane, http


@pytest.mark.parametrize(
    "path", ["%00", "%0a", "%7f", "%1b%5b2J", "%ff", "%c0%af", "%ed%a0%80", "nowhere", "%2e%2e"]
)
@pytest.mark.parametrize("area", ["bash", "file", "shell", "jupyter", "nowhere"])
def test_unknown_paths_answer_404_in_the_envelope(shared: Emulator, area: str, path: str) -> None:
    """This includes control characters and invalid UTF-8."""
    plane = data_plane(shared, "paths")

    answer = http.get(f"{plane.url}/v1/{area}/{path}", params=plane.query)

    assert (404, False) == (answer.status_code, answer.json()["success"]), answer.text


@pytest.mark.parametrize("path", ["/v1/bash/exec", "/v1/file/read"])
def test_unsupported_methods_answer_405_in_the_envelope(shared: Emulator, path: str) -> None:
    """The Allow header lists the supported methods."""
    plane = data_plane(shared, "paths")

    answer = http.delete(f"{plane.url}{path}", params=plane.query)

    assert (405, False) == (answer.status_code, answer.json()["success"]), answer.text
    assert "POST" in answer.headers["allow"]
