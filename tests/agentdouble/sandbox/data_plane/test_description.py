from __future__ import annotations

import platform

import pytest

from agentdouble import Emulator, __version__
from tests.agentdouble.calling import data_plane, http


def test_a_sandbox_describes_itself() -> None:
    """It uses the public client's fields and the configured limits."""
    with Emulator(exec_timeout_s=7, workspace_limit=5 * 1024 * 1024) as double:
        answer = data_plane(double).get("/v1/sandbox").json()

    detail, text = answer["detail"], answer["data"]
    fields = ("success", "message", "data", "hint", "home_dir", "workspace", "version", "detail")
    assert fields == tuple(answer)
    assert ("/home/gem", __version__) == (answer["home_dir"], answer["version"])
    assert platform.machine() == detail["system"]["arch"]
    assert platform.python_version() == detail["runtime"]["python"][0]["ver"]
    assert ("5 MiB of files" in text, "code runs 7 s" in text) == (True, True)


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
