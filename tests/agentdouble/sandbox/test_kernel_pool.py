from __future__ import annotations

import asyncio
import base64
import dataclasses
import logging
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.core import ledger
from agentdouble.errors import KernelStartError
from agentdouble.processes import isolation
from agentdouble.processes.isolation import Isolation
from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.languages import PYTHON
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.settings import Settings
from tests.agentdouble.calling import (
    background,
    body_of,
    home_of,
    http,
    run,
    signed,
    text,
)

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
    """A double whose fork server has imported matplotlib and numpy."""
    with Emulator(preload=("matplotlib.pyplot",)) as double:
        yield double


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"pool_size": 0},
        {"isolation": "none"},
        {"provisioner": "local-provisioner", "pool_size": 0},
    ],
    ids=str,
)
def test_sessions_work_with_other_settings(settings: dict[str, Any]) -> None:
    """State persists, sessions are isolated, and no process remains."""
    before = set(psutil.Process().children())  # the fork servers of other doubles are at work
    with Emulator(**settings) as double:
        run(double, "x = 42", "one")
        values = text(double, "print(x)", "one"), text(double, "print('x' in globals())", "two")

    assert ("42\n", "False\n") == values
    assert before == set(psutil.Process().children())


CONNECT = "import socket; socket.create_connection({}).close(); print('connected')"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "outcome"),
    [
        ("shared", "connected\n"),
        pytest.param("none", "refused\n", marks=pytest.mark.needs("network")),
    ],
)
def test_a_session_without_a_network_reaches_no_port(network: str, outcome: str) -> None:
    """With the shared network it reaches the double and other sessions."""
    listen = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])"
    with Emulator(network=network) as double:
        of_other = int(text(double, listen, "other"))
        for port in (int(double.url.rpartition(":")[2]), of_other):
            attempt = CONNECT.format(("127.0.0.1", port))
            code = f"try: {attempt}\nexcept ConnectionRefusedError: print('refused')"

            assert outcome == text(double, code)


def test_a_kernel_does_not_start_without_network_isolation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the measure and how to enable it."""
    lacking = dataclasses.replace(
        isolation.find_out().measures["network"], why_not="EPERM", remedy="rights"
    )
    monkeypatch.setattr(isolation, "find_out", lambda: Isolation({"network": lacking}))

    async def test(kernels: KernelPool) -> None:
        with pytest.raises(
            KernelStartError,
            match=r"needs the measure network: EPERM\. What would bring it: rights",
        ):
            await kernels.take()

    with_kernels(test, network="none")


@pytest.mark.parametrize("visible", [False, True])
def test_a_visible_path_is_read_only(visible: bool) -> None:
    """Other paths do not exist."""
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        Path(directory).chmod(0o755)
        (Path(directory) / "data").write_text("seen")
        code = f"""
for mode in ("r", "w"):
    try: print(open("{directory}/data", mode).read())
    except OSError as error: print("refused")
"""
        with Emulator(pool_size=0, visible_paths=(directory,) if visible else ()) as double:
            words = text(double, code).split()

    assert ["seen" if visible else "refused", "refused"] == words


@pytest.mark.parametrize("module", ["matplotlib", "matplotlib.pyplot"])
def test_a_plot_of_a_preloaded_matplotlib_is_shown(module: str) -> None:
    """It arrives as PNG without a call to show()."""
    with Emulator(preload=(module,), pool_size=0) as double:
        inner = run(double, "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])")

    (output,) = inner["data"]["outputs"]

    assert "display_data" == output["output_type"]
    assert b"\x89PNG" == base64.b64decode(output["data"]["image/png"])[:4]


def test_each_kernel_has_its_own_random_numbers(preloaded: Emulator) -> None:
    """Forks share neither random numbers nor names of temporary files."""
    sessions = [text(preloaded, RANDOM, f"random-{i}").split() for i in range(3)]

    assert 3 * 5 == len({word for words in sessions for word in words})


def with_kernels(test: Callable[[KernelPool], Awaitable[None]], **settings: Any) -> None:
    """Run a test with its own kernels and loop."""

    async def run_test() -> None:
        with ledger.using(ledger.Ledger(None)):
            starter = ProcessStarter(Settings.load(**settings))
            kernels = KernelPool(starter)
            try:
                await test(kernels)
            finally:
                await kernels.close()
                await starter.close()

    asyncio.run(run_test())


async def until_ready(kernels: KernelPool, count: int) -> None:
    while kernels.ready != count:  # noqa: ASYNC110 (nobody sets an event for tests)
        await asyncio.sleep(0)


def test_a_kernel_that_fails_to_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its exit code and the end of its stderr."""
    broken = "from agentdouble.processes.fork_server import python_kernel as k\nk.Config = None\n"
    (tmp_path / "breaks_kernels.py").write_text(broken)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Emulator(preload=("breaks_kernels",), pool_size=0) as double:
        response = http.request(**request_of(double, "1"))

    error = response.json()["ResponseMetadata"]["Error"]
    assert (500, "ErrCreateSessionFail") == (response.status_code, error["Code"])
    assert "the kernel's process exited with code 1. It said: " in error["Message"]
    assert error["Message"].endswith("TypeError: 'NoneType' object is not callable")


@pytest.mark.slow
def test_a_ready_kernel_is_taken_and_replaced() -> None:
    """Taking it starts nothing; the replacement is made afterwards."""

    async def test(kernels: KernelPool) -> None:
        kernels.fill()
        await until_ready(kernels, 2)
        before = set(psutil.Process().children(recursive=True))

        pooled = await kernels.take()

        assert psutil.Process(pooled.kernel.pid) in before
        assert 1 == kernels.ready
        await until_ready(kernels, 2)
        await pooled.kernel.kill("the test is over")

    with_kernels(test, pool_size=2)


@pytest.mark.parametrize(
    "network", ["shared", pytest.param("none", marks=pytest.mark.needs("network"))]
)
def test_kernels_of_a_session_share_files_and_network(network: str) -> None:
    """A second kernel sees the first one's files and ports."""

    async def test(kernels: KernelPool) -> None:
        first = await kernels.take()
        second = await kernels.start(PYTHON, first.workspace, [first.kernel])
        serve = (
            "import socket; s = socket.create_server(('127.0.0.1', 0))\n"
            "open('port', 'w').write(str(s.getsockname()[1]))"
        )
        await first.kernel.execute(serve, timeout_s=30, output_limit=100)
        code = "import socket; socket.create_connection(('127.0.0.1', int(open('port').read())))"

        done = await second.execute(code, timeout_s=30, output_limit=1000)

        assert "ok" == done.status, done
        for kernel in (first.kernel, second):
            await kernel.kill("the test is over")

    with_kernels(test, network=network, pool_size=0)


def request_of(double: Emulator, code: str, session: str = "s1", **fields: Any) -> dict[str, Any]:
    request = signed(double, body_of(double, code, session, **fields))
    return {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
        "content": request.body,
    }


def test_code_is_interrupted_if_its_caller_disconnects(
    shared: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    """The session answers at once and keeps its state."""
    text(shared, "import os; x = 42; os.mkfifo('begun')", "deserted")
    desert(shared, "deserted", "open('begun', 'w').close()\nwhile True: pass")

    began = time.monotonic()
    output = text(shared, "print(x)", "deserted")

    assert "42\n" == output
    assert time.monotonic() - began < 10  # of 30
    assert [] == [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def test_javascript_is_interrupted_if_its_caller_disconnects(shared: Emulator) -> None:
    """Its engine keeps its variables."""
    text(shared, "import os; os.mkfifo('begun')", "js-deserted")
    text(shared, "let x = 42", "js-deserted", language="javascript")
    code = "Deno.writeTextFileSync('begun', ''); while (true);"
    desert(shared, "js-deserted", code, language="javascript")

    began = time.monotonic()
    output = text(shared, "console.log(x)", "js-deserted", language="javascript")

    assert "42\n" == output
    assert time.monotonic() - began < 10  # of 30


def desert(double: Emulator, session: str, code: str, **fields: Any) -> None:
    """Run code in a session and disconnect once it has opened its fifo."""
    request = http.build_request(**request_of(double, code, session, timeout_s=30, **fields))
    with socket.create_connection((request.url.host, request.url.port)) as caller:
        head = [f"POST {request.url.raw_path.decode()} HTTP/1.1"]
        head += [f"{name}: {value}" for name, value in request.headers.items()]
        caller.sendall("\r\n".join([*head, "", ""]).encode() + request.read())
        with (home_of(double, session) / "begun").open():
            pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "flood",
    [
        "for _ in range(100): print('x' * 1_000_000)",
        "for i in range(10_000): print(i, flush=True)",
        "for i in range(5_000): display(i)",
    ],
    ids=["100 MB", "10,000 lines", "5,000 displays"],
)
def test_a_flood_of_output_does_not_delay_others(shared: Emulator, flood: str) -> None:
    text(shared, "1", "beside")
    flooding = background(lambda: run(shared, flood, "flood"))
    took = []
    while not took or (not flooding.done() and len(took) < 200):
        began = time.monotonic()
        ping = http.get(f"{shared.url}/ping")
        took.append(time.monotonic() - began)
        output = text(shared, "print(1 + 1)", "beside")
        took.append(time.monotonic() - began - took[-1])
        assert (200, "2\n") == (ping.status_code, output)

    assert flooding.result(30)["success"]
    assert statistics.median(took) < 0.5
    assert max(took) < 5  # a pause of the whole machine is not ours
