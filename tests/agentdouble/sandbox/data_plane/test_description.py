from __future__ import annotations

import platform

from agentdouble import Emulator, __version__
from tests.agentdouble.calling import data_plane


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
