"""A double in a process of its own, and what it uses of the machine."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from agentdouble.core.signing import Credentials
from doublecheck import Platform, connect


class Served(NamedTuple):
    """A double: a client of it, and its main process."""

    platform: Platform
    process: psutil.Process

    @property
    def url(self) -> str:
        """The address."""
        return self.platform.url

    @property
    def credentials(self) -> Credentials:
        """The key pair that signs requests."""
        return self.platform.target.address().credentials

    @property
    def tool_id(self) -> str:
        """The id of its sandbox tool."""
        return self.platform.target.sandbox_tool()

    @property
    def token(self) -> str:
        """The key of its own routes."""
        token = self.platform.target.token
        return token.reveal() if token else ""


@contextmanager
def served(*words: str, folder: Path | None = None, **settings: Any) -> Iterator[Served]:
    """Run ``agentdouble serve`` with these further words and settings.

    Its requests are logged to nowhere.
    """
    environment = {f"AGENTDOUBLE_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "agentdouble", "serve", "--port", "0", "--no-console"]
    process = subprocess.Popen(
        [*command, *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        url = next(word for line in process.stdout for word in line.split() if "://" in word)
        with connect(url.rpartition("/")[0]) as platform:
            yield Served(platform, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def double(**settings: Any) -> Iterator[Platform]:
    """Serve a double that has answered a first call, and yield a client."""
    with served(**settings) as it:
        it.platform.run_code("1", session_id="warm")
        yield it.platform


def busy_s() -> float:
    """Return the CPU time that the machine has used, in seconds."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def timed(act: Callable[[], Any], times: int) -> tuple[float, float]:
    """Return the median time and the mean CPU of a call, in milliseconds."""
    took, before = [], busy_s()
    for _ in range(times):
        start = time.perf_counter()
        act()
        took.append(time.perf_counter() - start)
    return statistics.median(took) * 1e3, (busy_s() - before) / times * 1e3
