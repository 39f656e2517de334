from __future__ import annotations

import asyncio
import base64
import json
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.provisioning.factory import KernelProvisionerFactory

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble import Emulator, ledger
from agentdouble.sandbox.kernels import Kernels
from agentdouble.settings import Settings
from tests.agentdouble.calling import (
    background,
    body_of,
    has_gone,
    home_of,
    http,
    result,
    run,
    signed,
    text,
)

PROVISIONER = '''
from pathlib import Path

from jupyter_client.provisioning import LocalProvisioner


class Recording(LocalProvisioner):
    """A local provisioner that writes down what it launched."""

    async def launch_kernel(self, cmd, **kwargs):
        with (Path(__file__).parent / "launched").open("a") as log:
            log.write(cmd[2] + "\\n")
        return await super().launch_kernel(cmd, **kwargs)
'''
RANDOM = """
import random, tempfile, uuid
from pathlib import Path
import numpy
print(random.random(), uuid.uuid4(), numpy.random.random(), numpy.random.default_rng().random())
with tempfile.NamedTemporaryFile() as file:
    print(Path(file.name).name)
"""


@pytest.fixture(scope="module")
def preloaded() -> Iterator[Emulator]:
    """A double whose fork server has imported matplotlib, and numpy with it."""
    with Emulator(preload=("matplotlib.pyplot",)) as double:
        yield double


def test_a_provisioner_is_taken_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is installed as jupyter_client's entry point starts the kernels."""
    (tmp_path / "recording_provisioner.py").write_text(PROVISIONER)
    installed = tmp_path / "recording_provisioner-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: recording\nVersion: 1\n")
    (installed / "entry_points.txt").write_text(
        "[jupyter_client.kernel_provisioners]\nits-name = recording_provisioner:Recording\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(KernelProvisionerFactory, "provisioners", {})
    KernelProvisionerFactory.clear_instance()  # it knows what was installed when it was made

    with Emulator(provisioner="its-name", pool_size=0) as double:
        said = text(double, "print(6 * 7)")

    assert "42\n" == said
    assert "ipykernel_launcher\n" == (tmp_path / "launched").read_text()


def test_a_provisioner_that_nobody_installed_is_named() -> None:
    """The call is told which one is missing."""
    with Emulator(provisioner="no-such", pool_size=0) as double:
        response = http.request(**request_of(double, "1"))

    error = response.json()["ResponseMetadata"]["Error"]
    assert (500, "ErrCreateSessionFail") == (response.status_code, error["Code"])
    assert "Kernel provisioner 'no-such' has not been registered." in error["Message"]


@pytest.mark.parametrize(
    "settings",
    [
        {"pool_size": 0},
        {"isolation": "none"},
        {"provisioner": "local-provisioner", "pool_size": 0},
    ],
    ids=str,
)
def test_a_double_with_other_settings_works_and_leaves_nothing(settings: dict[str, Any]) -> None:
    """State is kept, sessions are apart, and no process of theirs is left."""
    before = set(psutil.Process().children(recursive=True))
    with Emulator(**settings) as double:
        run(double, "x = 42", "one")
        seen = text(double, "print(x)", "one"), text(double, "print('x' in globals())", "two")

    assert ("42\n", "False\n") == seen
    assert before == set(psutil.Process().children(recursive=True))


def test_what_is_preloaded_is_there_before_an_import(preloaded: Emulator) -> None:
    """A fresh kernel finds the module in sys.modules."""
    code = "import sys; print('matplotlib.pyplot' in sys.modules)"

    assert "True\n" == text(preloaded, code, "preloaded")


def test_without_preloading_a_kernel_has_nothing_of_it(shared: Emulator) -> None:
    """The kernels of a double that preloads nothing start small."""
    code = "import sys; print([name in sys.modules for name in ('matplotlib', 'numpy')])"

    assert "[False, False]\n" == text(shared, code, "not-preloaded")


@pytest.mark.parametrize("module", ["matplotlib", "matplotlib.pyplot"])
def test_a_plot_of_a_preloaded_matplotlib_is_shown(module: str) -> None:
    """It arrives as a PNG image without a call of show()."""
    with Emulator(preload=(module,), pool_size=0) as double:
        inner = run(double, "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])")

    (shown,) = inner["data"]["outputs"]

    assert "display_data" == shown["output_type"]
    assert b"\x89PNG" == base64.b64decode(shown["data"]["image/png"])[:4]


def test_each_kernel_has_random_numbers_of_its_own(preloaded: Emulator) -> None:
    """Forks of one process repeat neither each other's numbers nor names of temporary files."""
    sessions = [text(preloaded, RANDOM, f"random-{i}").split() for i in range(3)]

    assert 3 * 5 == len({word for words in sessions for word in words})


def with_kernels(test: Callable[[Kernels], Awaitable[None]], **settings: Any) -> None:
    """Run a test with kernels of its own, in a loop of its own."""

    async def run_test() -> None:
        with ledger.using(ledger.Ledger(None)):
            kernels = Kernels(Settings.load(**settings))
            try:
                await test(kernels)
            finally:
                await kernels.close()

    asyncio.run(run_test())


async def until_ready(kernels: Kernels, count: int) -> None:
    while kernels.ready != count:  # noqa: ASYNC110 (nobody sets an event for tests)
        await asyncio.sleep(0)


def test_a_ready_kernel_is_taken_and_replaced() -> None:
    """Nothing is started for who takes one that is ready; another is made ready after."""

    async def test(kernels: Kernels) -> None:
        kernels.fill()
        await until_ready(kernels, 2)
        before = set(psutil.Process().children(recursive=True))

        berth = await kernels.take()

        assert psutil.Process(berth.kernel.pid) in before
        assert 1 == kernels.ready
        await until_ready(kernels, 2)
        await berth.kernel.kill("the test is over")

    with_kernels(test, pool_size=2)


def test_a_ready_kernel_that_died_is_not_handed_out() -> None:
    """Who comes next gets one that works."""

    async def test(kernels: Kernels) -> None:
        first = await kernels.take()
        await until_ready(kernels, 1)
        (ready,) = kernels_beside(first.kernel.pid)
        ready.kill()
        await until_ready(kernels, 0)

        berth = await kernels.take()

        assert ready.pid != berth.kernel.pid
        done = await berth.kernel.execute("print(1)", timeout_s=30, output_limit=100)
        assert "ok" == done.status
        await first.kernel.kill("the test is over")
        await berth.kernel.kill("the test is over")

    with_kernels(test, pool_size=1)


def kernels_beside(pid: int | None) -> list[psutil.Process]:
    """Return the other kernels of a kernel's fork server."""
    fork_server = psutil.Process(pid).parent()
    assert fork_server is not None
    return [kernel for kernel in fork_server.children() if kernel.pid != pid]


def test_no_kernel_is_kept_ready_where_none_is_asked_for() -> None:
    """With a pool of none, the fork server has one kernel: that which was taken."""

    async def test(kernels: Kernels) -> None:
        berth = await kernels.take()

        assert ([], 0) == (kernels_beside(berth.kernel.pid), kernels.ready)
        await berth.kernel.kill("the test is over")

    with_kernels(test, pool_size=0)


def request_of(double: Emulator, code: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    request = signed(double, body_of(double, code, session, **fields))
    return {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
        "content": request.body,
    }


def test_code_whose_caller_goes_away_is_interrupted(shared: Emulator) -> None:
    """The socket is closed while it runs: its session answers at once and has its state."""
    text(shared, "import os; x = 42; os.mkfifo('begun')", "deserted")
    code = "open('begun', 'w').close()\nwhile True: pass"
    request = http.build_request(**request_of(shared, code, "deserted", timeout_s=30))
    with socket.create_connection((request.url.host, request.url.port)) as caller:
        head = [f"POST {request.url.raw_path.decode()} HTTP/1.1"]
        head += [f"{name}: {value}" for name, value in request.headers.items()]
        caller.sendall("\r\n".join([*head, "", ""]).encode() + request.read())
        with (home_of(shared, "deserted") / "begun").open():
            pass

    began = time.monotonic()
    said = text(shared, "print(x)", "deserted")

    assert "42\n" == said
    assert time.monotonic() - began < 2


def test_code_in_c_that_heeds_no_interrupt_is_killed(shared: Emulator) -> None:
    """The answer says that the context is lost; the next call gets a fresh instance."""
    before = result(shared, "import os; x = 1; print(os.getpid())", "in-c")
    (said,) = json.loads(before["Result"])["data"]["outputs"]

    inner = run(shared, "sum(range(10**11))", "in-c", timeout_s=1)
    after = result(shared, "print('x' in globals())", "in-c")

    assert ("timeout", "killed; the context is lost.") == (
        inner["data"]["status"],
        inner["message"][-len("killed; the context is lost.") :],
    )
    assert has_gone(int(said["text"]), timeout_s=0)
    assert before["SessionId"] != after["SessionId"]
    assert '"text": "False\\n"' in after["Result"]


@pytest.mark.parametrize(
    "flood",
    [
        "for _ in range(100): print('x' * 1_000_000)",
        "for i in range(20_000): print(i, flush=True)",
        "for i in range(5_000): display(i)",
    ],
    ids=["100 MB", "20,000 lines", "5,000 displays"],
)
def test_others_are_answered_during_a_flood(shared: Emulator, flood: str) -> None:
    """While one session prints what it can, no other caller waits for a second."""
    text(shared, "1", "beside")
    flooding = background(lambda: run(shared, flood, "flood"))
    took = []
    while not took or (not flooding.done() and len(took) < 200):
        began = time.monotonic()
        ping = http.get(f"{shared.url}/ping")
        took.append(time.monotonic() - began)
        said = text(shared, "print(1 + 1)", "beside")
        took.append(time.monotonic() - began - took[-1])
        assert (200, "2\n") == (ping.status_code, said)

    assert flooding.result(30)["success"]
    assert max(took) < 1


def test_a_flood_of_displays_arrives_whole() -> None:
    """More messages than zmq keeps by default: none is dropped, and all are in order."""
    with Emulator(output_limit=10_000_000, pool_size=0) as double:
        inner = run(double, "for i in range(15_000): display(i)", timeout_s=60)

    expected = [{"text/plain": str(i)} for i in range(15_000)]
    assert expected == [one["data"] for one in inner["data"]["outputs"]]
