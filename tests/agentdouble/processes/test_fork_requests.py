"""What goes wrong with one request to the fork server is that request's alone."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble.processes.fork_server.client import ForkServer
from agentdouble.processes.fork_server.protocol import ForkRequest
from tests.agentdouble.calling import has_gone
from tests.agentdouble.processes.forking import in_its_own_process, with_fork_server

STAYS = ["sleep", "600"]


def command(directory: Path, argv: list[str], *, padding: int = 0) -> ForkRequest:
    """Return a request for a command, whose environment has so many KiB more."""
    more = {f"PADDING_{i}": " " * 1000 for i in range(padding)}
    return ForkRequest(
        connection_file="",
        cwd=str(directory),
        env={"PATH": os.environ["PATH"], **more},
        kernel="command",
        config={"Command": {"argv": argv, "cwd": str(directory)}},
        outputs=True,
    )


def stays(directory: Path, *, padding: int = 0) -> ForkRequest:
    return command(directory, STAYS, padding=padding)


def open_descriptors() -> int:
    gc.collect()  # what has been let go of is not closed during the test
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def no_descriptor_free(pid: int) -> Iterator[None]:
    """Let a process open nothing more; what it has open stays."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


async def says_its_own_pid(server: ForkServer, directory: Path) -> bool:
    """Return whether a fork that is asked for now is the process that does what was asked."""
    reads, writes = os.pipe()
    request = command(directory, ["sh", "-c", "echo $$"])
    process = await asyncio.wait_for(server.fork(request, writes, writes), 30)
    os.close(writes)
    with os.fdopen(reads) as said:
        pid = await asyncio.to_thread(said.read)
    await asyncio.wait_for(process.exited, 30)
    return int(pid) == process.pid


async def is_alone(process: psutil.Process) -> bool:
    """Return whether the fork server has no child, at the latest after 30 s."""
    (fork_server,) = process.children()
    children = fork_server.children()
    return all([await asyncio.to_thread(has_gone, child.pid, 30) for child in children])


async def is_closed_again(before: int) -> bool:
    """Return whether no more descriptors are open than before; who has ended is heard of late."""
    until = time.monotonic() + 30
    while open_descriptors() > before and time.monotonic() < until:  # noqa: ASYNC110 (no event)
        await asyncio.sleep(0)
    return open_descriptors() <= before


@pytest.mark.slow
@in_its_own_process
def test_a_descriptor_that_cannot_be_copied_fails_its_own_request() -> None:
    """Those that follow get their own processes, and no copy of another one stays open."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        assert await says_its_own_pid(server, directory)
        before = open_descriptors()
        with pytest.raises(OSError, match="Bad file descriptor"):
            await server.fork(stays(directory), 1, 4095)

        assert [True] * 3 == [await says_its_own_pid(server, directory) for _ in range(3)]
        assert await is_closed_again(before)
        assert await is_alone(process)

    with_fork_server(test, "commands")


@pytest.mark.slow
@in_its_own_process
def test_a_request_that_no_datagram_holds_fails_alone() -> None:
    """It is told why; one that is as large as may be arrives."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        assert await says_its_own_pid(server, directory)
        before = open_descriptors()
        with pytest.raises(OSError, match="are more than 256 KiB") as refused:
            await server.fork(stays(directory, padding=300), 1, 1)
        largest = await server.fork(stays(directory, padding=240), 1, 1)
        await largest.end()

        assert errno.EMSGSIZE == refused.value.errno
        assert await says_its_own_pid(server, directory)
        assert await is_closed_again(before)
        assert await is_alone(process)

    with_fork_server(test, "commands")


@pytest.mark.slow
@pytest.mark.parametrize("descriptors", [(), (1, 1)], ids=["its own", "the kernel's"])
@in_its_own_process
def test_a_fork_server_without_free_descriptors_refuses(descriptors: tuple[int, ...]) -> None:
    """It lives on, and so do its kernels; it forks again when it can."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        assert await says_its_own_pid(server, directory)
        kept = await server.fork(stays(directory), 1, 1)
        (fork_server,) = process.children()
        with (
            no_descriptor_free(fork_server.pid),
            pytest.raises(OSError, match=r"descriptor|open files") as refused,
        ):
            await asyncio.wait_for(server.fork(stays(directory), *descriptors), 30)

        assert errno.EMFILE == refused.value.errno
        assert not kept.exited.done()
        await kept.end()
        assert await is_alone(process)
        assert await says_its_own_pid(server, directory)

    with_fork_server(test, "commands")


@pytest.mark.slow
@in_its_own_process
def test_whoever_leaves_before_it_is_sent_asks_for_nothing() -> None:
    """The channel is full and the fork server stands still: those that stay are forked."""

    async def test(server: ForkServer, process: psutil.Process, directory: Path) -> None:
        assert await says_its_own_pid(server, directory)
        (fork_server,) = process.children()
        fork_server.suspend()
        try:
            asked = [
                asyncio.ensure_future(server.fork(stays(directory, padding=100), 1, 1))
                for _ in range(12)
            ]
            await asyncio.sleep(0)
            assert server._unsent
            before = open_descriptors()
            for one in asked[1:]:
                one.cancel()
            await asyncio.wait(asked[1:])
            left = before - open_descriptors()
        finally:
            fork_server.resume()
        kept = await asyncio.wait_for(asked[0], 30)

        assert left > 0
        assert [] == list(server._unsent)
        await kept.end()
        assert await is_alone(process)

    with_fork_server(test, "commands")
