from __future__ import annotations

import platform
import socket
from importlib import metadata

from agentdouble import Emulator, __version__
from tests.agentdouble.calling import data_plane, text

FIELDS = ["success", "message", "data", "hint", "home_dir", "workspace", "version", "detail"]


def test_a_sandbox_says_what_it_is(shared: Emulator) -> None:
    """In the fields that the public client reads, with what its own code would find."""
    plane = data_plane(shared, "described")
    user = plane.bash("id -un 2>/dev/null || id -u")["stdout"].strip()

    answer = plane.get("/v1/sandbox").json()

    system, runtime = answer["detail"]["system"], answer["detail"]["runtime"]
    assert FIELDS == list(answer)
    assert (True, "/home/gem", __version__) == tuple(
        answer[name] for name in ("success", "home_dir", "version")
    )
    assert (platform.system(), platform.machine(), user) == tuple(
        system[name] for name in ("os", "arch", "user")
    )
    said = text(shared, "import platform; print(platform.python_version())", "described")
    assert said.strip() == runtime["python"][0]["ver"]


def test_the_text_names_languages_places_and_limits(shared: Emulator) -> None:
    """For a model that reads it."""
    said = data_plane(shared, "described").get("/v1/sandbox").json()["data"]

    assert f"Python {platform.python_version()}." in said
    assert f"JavaScript and TypeScript: deno {metadata.version('deno')}." in said
    assert "Home and working directory: /home/gem; for temporary files: /tmp." in said
    assert "4096 MiB of memory, 1024 MiB of files" in said
    assert f"code runs {shared.settings.exec_timeout_s} s, 300 s at most" in said


def test_the_limits_are_those_of_the_settings() -> None:
    """Not a text that is always the same."""
    with Emulator(exec_timeout_s=7, workspace_limit=5 * 1024 * 1024) as double:
        said = data_plane(double).get("/v1/sandbox").json()["data"]

    assert ("5 MiB of files" in said, "code runs 7 s" in said) == (True, True)


def test_what_is_there_is_listed(shared: Emulator) -> None:
    """Commands that its bash finds, and ports that are taken."""
    plane = data_plane(shared, "described")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        detail = plane.get("/v1/sandbox").json()["detail"]
        port = str(listener.getsockname()[1])

    commands = [one["name"] for one in detail["utils"][1]["tools"]]
    found = plane.bash("for c in curl gcc git tmux; do type -P $c >/dev/null && echo $c; done")
    assert "bash" in commands
    assert found["stdout"].split() == [c for c in ("curl", "gcc", "git", "tmux") if c in commands]
    assert [
        "/v1/bash",
        "/v1/browser",
        "/v1/code",
        "/v1/file",
        "/v1/jupyter",
        "/v1/shell",
    ] == sorted(one["name"] for one in detail["utils"][0]["tools"])
    assert platform.system() != "Linux" or port in detail["system"]["occupied_ports"]
