from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from agentdouble import Emulator
from agentdouble.sandbox.nodes import ray_token
from agentdouble.sandbox.nodes.ray_token import Access
from tests.agentdouble.calling import (
    Begun,
    body_of,
    call,
    error_of,
    has_gone,
    result,
    run,
    text,
)
from tests.agentdouble.cli.conftest import CommandLine, command_line_in
from tests.agentdouble.sandbox.nodes.fronts import MODULE, have_joined, living, nodes
from tests.agentdouble.sandbox.nodes.machines import (
    TOKEN,
    WORKERS,
    Machines,
    cluster,
    without_token,
)

pytest.importorskip("ray", reason="ray is not installed: pip install 'agentdouble[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

ROOT = Path(__file__).parents[4]
# Tests that share a double, because each double starts nodes of its own. One changes a limit of
# the module in this process, which no node sees.
DATA_PLANE = ("data_plane/test_code_routes.py", "workbench/test_files.py", "test_exec_bash.py")
OF_RAY = ("gcs_server", "raylet", "ray::IDLE", "ray::DashboardAgent")
SUITE_S = 900
SILENCES = 5
ELSEWHERE = "not test_sessions_are_limited"


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with cluster() as running:
        yield running


@pytest.fixture
def front(machines: Machines) -> Iterator[Emulator]:
    with Emulator(nodes=machines.address, pool_size=0) as double:
        have_joined(double, 3)
        yield double
        processes = [process for node in _nodes_here() for process in (node, *_children(node))]
    assert [] == [process for process in processes if not has_gone(process.pid, 30)]


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    return command_line_in(tmp_path)


def _nodes_here() -> list[psutil.Process]:
    listed = psutil.process_iter(["cmdline"])
    return [process for process in listed if MODULE in (process.info["cmdline"] or ())]


def _children(process: psutil.Process) -> list[psutil.Process]:
    children: list[psutil.Process] = process.children(recursive=True)
    return children


def check(machines: Machines, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose doubles have their sessions in the cluster."""
    environment = {**os.environ, "AGENTDOUBLE_NODES": machines.address}
    arguments = [sys.executable, "-m", *command]
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SUITE_S
    )


def test_a_cluster_whose_start_fails_leaves_no_process() -> None:
    """Its last machine refuses an option when the others run already."""
    with pytest.raises(AssertionError, match="No such option"), cluster("--wrong"):
        pass

    of_ray = [p for p in psutil.process_iter(["name"]) if p.info["name"] in OF_RAY]
    assert [] == [process for process in of_ray if not has_gone(process.pid, 30)]


def test_a_cluster_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something listens there, and never says anything."""
    monkeypatch.setattr("agentdouble.sandbox.nodes.engine.START_S", 3)
    monkeypatch.setattr("agentdouble.sandbox.nodes.node_placement.PATIENCE_S", 5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"ray://127.0.0.1:{silent.getsockname()[1]}"
        with Emulator(nodes=address, pool_size=0) as double:
            refused = error_of(call(double, body_of(double, "1")))

    assert (429, True) == (
        refused["status"],
        f"{address} could not be reached within 3 s" in refused["Message"],
    )


# Code of a session that tries to join the cluster, as one of its processes does.
JOIN = """
import os
os.environ["RAY_AUTH_MODE"] = "disabled"
import ray
try:
    ray._raylet.GcsClient(address={address!r}).internal_kv_put(b"mine", b"", True, None, 5)
    print("joined")
except ray.exceptions.AuthenticationError:
    print("a token is needed")
"""
# Code of a session that looks for the token where processes and users keep it.
SEARCH = """
import glob
places = ["/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/home/*/.ray/*", "/root/.ray/*", "{folder}/*"]
for path in (path for place in places for path in glob.glob(place)):
    try:
        with open(path, "rb") as file:
            if b"{token}" in file.read():
                print(path)
    except OSError:
        pass
print("done")
"""


def test_a_session_cannot_join_the_cluster(
    front: Emulator, machines: Machines, tmp_path: Path
) -> None:
    """It has no token, and finds none."""
    (tmp_path / "auth_token").write_text(TOKEN)
    search = SEARCH.format(token=TOKEN, folder=tmp_path)

    assert "a token is needed\n" == text(
        front, JOIN.format(address=without_scheme(machines.address))
    )
    assert "done\n" == text(front, search)


def test_a_cluster_without_a_token_is_refused(command_line: CommandLine) -> None:
    """Its sessions could join it, unless they have no network."""
    with without_token() as address:
        refused = command_line.run_here("serve", "--port", "0", "--nodes", address)
        with Emulator(nodes=address, pool_size=0, network="none") as double:
            have_joined(double, 1)
            unreachable = text(double, CONNECT.format(place=place_of(address)))
        with Emulator(nodes=address, pool_size=0, ray_without_token=True) as double:
            have_joined(double, 1)
            joined = text(double, JOIN.format(address=without_scheme(address)))

    assert (2, "") == (refused.returncode, refused.stdout)
    assert "demands no token" in refused.stderr
    assert "--ray-without-token" in refused.stderr
    assert ("refused\n", "joined\n") == (unreachable, joined)


CONNECT = """
import socket
try:
    socket.create_connection({place!r})
    print("connected")
except ConnectionRefusedError:
    print("refused")
"""


def place_of(address: str) -> tuple[str, int]:
    host, port = without_scheme(address).split(":")
    return host, int(port)


def without_scheme(address: str) -> str:
    return address.removeprefix("ray://")


def test_a_cluster_that_opens_later_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The front could not ask it at its start, and asks it when it joins."""
    monkeypatch.setattr(ray_token, "try_without", lambda *_: Access.UNKNOWN)
    with without_token() as address, Emulator(nodes=address, pool_size=0) as double:
        refused = error_of(call(double, body_of(double, "1")))

    assert (429, True) == (refused["status"], "demands no token" in refused["Message"])


def test_the_contract_of_the_sandbox_holds(machines: Machines) -> None:
    run_of_checks = check(machines, "doublecheck", "run", "-k", "SBX", "--level", "quick")

    assert 0 == run_of_checks.returncode, run_of_checks.stdout


def test_the_data_plane_s_tests_pass_unchanged(machines: Machines) -> None:
    """Code, files and commands."""
    tests = [f"tests/agentdouble/sandbox/{name}" for name in DATA_PLANE]
    options = ("-q", "-n", "0", "-m", "not slow", "-k", ELSEWHERE)
    passed = check(machines, "pytest", *options, *tests)

    assert 0 == passed.returncode, passed.stdout[-4000:]


def spread(double: Emulator) -> dict[str, str]:
    """Start sessions until each node has one; return a session of each node."""
    sessions: dict[str, str] = {}
    for number in range(60):
        result(double, "x = 41", f"s{number}")
        sessions = {session["node"]: name for name, session in living(double).items()}
        if len(sessions) == 3:
            break
    assert 3 == len(sessions)
    return sessions


def test_ray_replaces_a_node_that_is_killed(front: Emulator) -> None:
    """Its callers are told; the sessions of other machines live on, and new ones start there."""
    sessions = spread(front)
    lost = next(name for name in sessions if name.startswith("worker-2"))
    session = sessions.pop(lost)
    code = Begun(front, session, "import time; time.sleep(60)")
    (process,) = [node for node in _nodes_here() if _serves(node, nodes(front)[lost]["url"])]
    process.kill()
    answer = code.future.result()

    assert "KernelDied" == answer["data"]["outputs"][-1]["ename"]
    assert lost in answer["message"]
    assert ["42\n"] * 2 == [text(front, "print(x + 1)", name) for name in sessions.values()]
    assert "7\n" == text(front, "print(7)", "new")
    have_joined(front, 3)


def _serves(node: psutil.Process, url: str) -> bool:
    """Return whether a process listens on the port of a URL, in its own network."""
    listening = f":{int(url.rpartition(':')[2]):04X} 00000000:0000 0A"
    (line, *_) = [
        *(x for x in Path(f"/proc/{node.pid}/net/tcp").read_text().splitlines() if listening in x),
        "",
    ]
    sockets = [str(link.readlink()) for link in Path(f"/proc/{node.pid}/fd").iterdir()]
    return bool(line) and f"socket:[{line.split()[9]}]" in sockets


@pytest.mark.parametrize("machine", [WORKERS[number % 2] for number in range(SILENCES)])
def test_a_machine_whose_link_is_down_is_lost_and_returns(
    front: Emulator, machines: Machines, machine: str
) -> None:
    """Callers are told within six seconds; no other session is lost, and new ones start."""
    if not machines.apart:
        pytest.skip("no network namespaces: they need root and iproute2")
    sessions = spread(front)
    lost = next(name for name in sessions if name.startswith(machine))
    code = Begun(front, sessions.pop(lost), "import time; time.sleep(60)")
    try:
        machines.link(machine, "down")
        began = time.monotonic()
        answer = code.future.result()
        took_s = time.monotonic() - began

        assert "did not answer for 5 s" in answer["message"]
        assert took_s < 6
        assert ["42\n"] * 2 == [text(front, "print(x + 1)", name) for name in sessions.values()]
        assert "error" != run(front, "1", "new")["data"]["status"]
    finally:
        machines.link(machine, "up")
    have_joined(front, 3)
