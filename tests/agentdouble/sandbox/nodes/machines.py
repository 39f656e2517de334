"""A Ray cluster of three machines: network namespaces as root, else processes of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.ports import reserved

NET = "10.77.0"
BRIDGE = "adbridge"
WORKERS = ("worker-2", "worker-3")
_RAY = [sys.executable, "-m", "ray.scripts.scripts", "start"]
_OPTIONS = ["--num-cpus=4", "--object-store-memory=80000000", "--disable-usage-stats", "--block"]
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0"}


@dataclass
class Machines:
    """The machines of a cluster at ``address``; ``apart`` says whether they have own networks."""

    address: str
    apart: bool
    processes: dict[str, psutil.Popen] = field(default_factory=dict)

    def link(self, name: str, state: str) -> None:
        """Set a machine's link ``up`` or ``down``."""
        ip("link", "set", f"ad-{name}", state)


def ip(*arguments: str) -> None:
    """Run a command of iproute2."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def cluster() -> Iterator[Machines]:
    """Run a cluster with a head on this machine and two workers."""
    with ExitStack() as stack:
        apart = stack.enter_context(_networks())
        folder = tempfile.mkdtemp(prefix="ad-ray-", dir="/tmp")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port, host = stack.enter_context(reserved()), f"{NET}.1" if apart else "127.0.0.1"
        machines = Machines(f"ray://{host}:{port}", apart)
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        stack.callback(_stop, machines)
        _start(machines, "head", [*head, f"--node-ip-address={host}"], [])
        for number, name in enumerate(WORKERS, start=2):
            inside = ["ip", "netns", "exec", f"ad-{name}"] if apart else []
            own = [f"--node-ip-address={NET}.{number}"] if apart else []
            _start(machines, name, [f"--address={host}:{port}", *own], inside)
        yield machines


def _start(machines: Machines, name: str, options: list[str], inside: list[str]) -> None:
    process = psutil.Popen(
        [*inside, *_RAY, f"--node-name={name}", *_OPTIONS, *options],
        env={**os.environ, **_ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    machines.processes[name] = process
    lines: list[str] = []
    while "--block" not in (line := process.stdout.readline()):  # it stays in the foreground
        assert line, "".join(lines)
        lines.append(line)


def _stop(machines: Machines) -> None:
    for process in reversed(machines.processes.values()):
        children = process.children(recursive=True) if process.is_running() else []
        process.terminate()
        process.wait(30)
        process.stdout.close()
        _, alive = psutil.wait_procs(children, 10)
        for child in alive:
            child.kill()


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
            ip("link", "set", space, "master", BRIDGE, "up")
            ip("-n", space, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                ip("-n", space, "link", "set", device, "up")
        yield True
