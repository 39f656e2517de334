"""Sessions of a double that runs out of something: refused by its name, and had again after."""

from __future__ import annotations

import datetime as dt
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from agentdouble import invoke_tool
from tests.agentdouble.calling import with_token
from tests.agentdouble.cli.conftest import Serving, command_line_in, serving
from tests.stress.first_calls import KEYS
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

if sys.platform != "linux" or os.geteuid() != 0:
    pytest.skip("only root on Linux mounts a small file system", allow_module_level=True)

PATIENCE_S = 60.0
MIB = 1024 * 1024


@pytest.fixture
def small() -> Iterator[Path]:
    """A file system of 16 MiB; its name is short, for sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="small-") as place:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "small", place], check=True)
        yield Path(place)
        subprocess.run(["umount", place], check=True)


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory, small: Path) -> Iterator[Serving]:
    """A double that keeps its files there."""
    command_line = command_line_in(tmp_path_factory.mktemp("pressed"))
    command_line.environment["TMPDIR"] = str(small)
    command_line.environment["AGENTDOUBLE_ACCESS_KEY"] = KEYS.access_key
    command_line.environment["AGENTDOUBLE_SECRET_KEY"] = KEYS.secret_key
    command_line.environment["AGENTDOUBLE_POOL_SIZE"] = "0"
    with serving(command_line) as serve:
        yield serve("--quiet")


@contextmanager
def _full_disk(_pid: int, place: Path) -> Iterator[None]:
    filler = place / "filler"
    with filler.open("wb") as file:
        left = os.statvfs(place)
        os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize - MIB // 2)
    yield
    filler.unlink()


@contextmanager
def _few_files(pid: int, _place: Path) -> Iterator[None]:
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 10, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


PRESSURES = {"disk": _full_disk, "open files": _few_files}


@pytest.mark.parametrize("what", PRESSURES)
def test_a_double_under_pressure(stress: Stress, served: Serving, small: Path, what: str) -> None:
    """The sessions that there are go on; new ones are refused, until there is room again."""
    hooks = {"request": [with_token]}
    with httpx.Client(timeout=PATIENCE_S, trust_env=False, event_hooks=hooks) as client:
        pid = client.get(f"{served.url}/_emulator/health").json()["pid"]

        def ask(session: str, expected: tuple[int, str]) -> None:
            answer = client.send(_run(served.url, "6 * 7", session))
            stress.tried += 1
            if (answer.status_code, expected[1] in answer.text) != (expected[0], True):
                stress.failed(f"{session}: {answer.status_code} {answer.text[:500]}")

        ask("first", (200, "42"))
        for turn in range(stress.scale(2, 100)):
            with PRESSURES[what](pid, small):
                ask("first", (200, "42"))
                for number in range(stress.random.randrange(1, 6)):
                    ask(f"more-{turn}-{number}", (429, f"for want of {what}"))
                ask("first", (200, "42"))
            ask(f"after-{turn % 5}", (200, "42"))
        living = client.get(f"{served.url}/_emulator/sessions").json()["sessions"]
    for one in living:
        if one["UserSessionId"].startswith("more"):
            stress.lost(f"{one['UserSessionId']} was refused and is there")


def _run(url: str, code: str, session: str) -> httpx.Request:
    call = invoke_tool.RunCode("t-sandbox", session, code)
    address = invoke_tool.Address(url, KEYS)
    request = invoke_tool.build(call.body(), address, dt.datetime.now(dt.timezone.utc))
    return httpx.Request("POST", request.url, content=request.body, headers=dict(request.headers))
