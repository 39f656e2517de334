"""A Ray cluster of three machines: network namespaces as root, else processes of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.agentdouble.calling import TIMEOUT_S, eventually
from tests.ports import reserved

NET = "10.77.0"
BRIDGE = "adbridge"
TOKEN = "token-of-the-test-cluster-0123456789"
WORKERS = ("worker-2", "worker-3")
_RAY = [sys.executable, "-m", "ray.scripts.scripts", "start"]
_OPTIONS = ["--num-cpus=4", "--object-store-memory=80000000", "--disable-usage-stats", "--block"]
_HEAD = ["--head", "--include-dashboard=false"]
_MARK = "AGENTDOUBLE_TEST_CLUSTER"  # a variable that all processes of a cluster inherit
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0"}


@dataclass
class Machines:
    """The machines of a cluster at ``address``; ``apart`` says whether they have own networks."""

    address: str
    apart: bool

    def link(self, name: str, state: str) -> None:
        """Set a machine's link ``up`` or ``down``."""
        ip("link", "set", f"ad-{name}", state)


def ip(*arguments: str) -> None:
    """Run a command of iproute2."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=TIMEOUT_S)


@contextmanager
def without_token() -> Iterator[str]:
    """Run a cluster of one machine that demands no token; yield its address."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="ad-ray-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port = stack.enter_context(reserved())
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("RAY_AUTH_MODE", "disabled")
        start(stack, folder, "open", [*_HEAD, f"--port={port}", f"--temp-dir={folder}"], [])
        yield f"ray://127.0.0.1:{port}"


@contextmanager
def cluster(*of_the_last: str) -> Iterator[Machines]:
    """Run a cluster with a head on this machine and two workers, the last one with more options.

    It demands TOKEN, which is in the environment of this process meanwhile.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        apart = stack.enter_context(_networks())
        folder = Path(tempfile.mkdtemp(prefix="ad-ray-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port, host = stack.enter_context(reserved()), f"{NET}.1" if apart else "127.0.0.1"
        head = [*_HEAD, f"--port={port}", f"--temp-dir={folder}"]
        stack.callback(_end_all, folder)
        start(stack, folder, "head", [*head, f"--node-ip-address={host}"], [])
        for number, name in enumerate(WORKERS, start=2):
            inside = ["ip", "netns", "exec", f"ad-{name}"] if apart else []
            own = [f"--node-ip-address={NET}.{number}"] if apart else []
            more = of_the_last if name == WORKERS[-1] else ()
            start(stack, folder, name, [f"--address={host}:{port}", *own, *more], inside)
        yield Machines(f"ray://{host}:{port}", apart)


def start(stack: ExitStack, folder: Path, name: str, options: list[str], inside: list[str]) -> None:
    """Start Ray on a machine; return when it runs, and raise AssertionError if it does not."""
    log = folder / f"{name}.log"  # nobody would read a pipe later, and Ray would wait for room
    with log.open("w") as output:
        process = subprocess.Popen(
            [*inside, *_RAY, f"--node-name={name}", *_OPTIONS, *options],
            env={**os.environ, **_ENVIRONMENT, _MARK: str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    stack.callback(process.wait, TIMEOUT_S)
    stack.callback(_end_all, folder)
    says = "--block"  # Ray says that it stays in the foreground
    eventually(
        lambda: (says in log.read_text(), process.poll()), lambda seen: seen != (False, None)
    )
    assert says in log.read_text(), log.read_text()


def _end_all(folder: Path) -> None:
    """End what ``start`` has started, with all that came of it, in whatever state it is."""
    until = time.monotonic() + TIMEOUT_S
    while of_cluster := [*filter(lambda p: _belongs_to(p, folder), psutil.process_iter())]:
        assert time.monotonic() < until, of_cluster
        for process in of_cluster:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(of_cluster, 1)


def _belongs_to(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process comes from a cluster: some of Ray overwrite their environment."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        files = [file.path for file in process.open_files()]
        return process.environ().get(_MARK) == str(folder) or any(
            file.startswith(f"{folder}/") for file in files
        )
    except psutil.Error:
        return False


@contextmanager
def _networks() -> Iterator[bool]:
    """Make a network for each worker, and a bridge; yield whether that was possible."""
    with ExitStack() as stack:
        if os.geteuid() or not shutil.which("ip") or not Path("/proc/self/ns/net").exists():
            yield False
            return
        try:
            ip("link", "add", BRIDGE, "type", "bridge")
        except subprocess.CalledProcessError:
            yield False
            return
        stack.callback(ip, "link", "del", BRIDGE)
        ip("addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(WORKERS, start=2):
            space = f"ad-{name}"
            ip("netns", "add", space)
            stack.callback(ip, "netns", "del", space)
            ip("link", "add", space, "type", "veth", "peer", "name", "eth0", "netns", space)
            stack.callback(ip, "link", "del", space)  # the kernel removes it late by itself
            ip("link", "set", space, "master", BRIDGE, "up")
            ip("-n", space, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                ip("-n", space, "link", "set", device, "up")
        yield True
