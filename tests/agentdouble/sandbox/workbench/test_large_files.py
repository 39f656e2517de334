"""A large file passes through, up and down, in pieces."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Iterator

import httpx
import psutil
import pytest

from agentdouble import Emulator
from tests.agentdouble.calling import data_plane

pytestmark = pytest.mark.once

MIB = 1024 * 1024
SIZE = 256 * MIB
MOST = 64 * MIB

if sys.platform != "linux":
    pytest.skip("reads the peak of a process's memory from /proc", allow_module_level=True)


class Pieces(httpx.SyncByteStream):
    """A form with a file of ``SIZE`` bytes that nobody ever holds whole."""

    head = (
        b'--x\r\nContent-Disposition: form-data; name="path"\r\n\r\n/home/gem/large\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    )
    tail = b"\r\n--x--\r\n"

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        yield self.head
        piece = os.urandom(MIB)
        for number in range(SIZE // MIB):
            part = number.to_bytes(8, "big") + piece[8:]
            self.digest.update(part)
            yield part
        yield self.tail


class Peak:
    """The largest memory of processes while something happens, above what they had before."""

    def __init__(self, *processes: psutil.Process) -> None:
        self._processes = processes
        self._stop = threading.Event()
        self.grown = 0

    def __enter__(self) -> Peak:
        before = [process.memory_info().rss for process in self._processes]
        self._thread = threading.Thread(target=self._watch, args=(before,))
        self._thread.start()
        return self

    def _watch(self, before: list[int]) -> None:
        while not self._stop.wait(0.01):
            for process, had in zip(self._processes, before, strict=True):
                self.grown = max(self.grown, process.memory_info().rss - had)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.slow
def test_a_large_file_costs_no_memory() -> None:
    """256 MiB up and down take less than 64 MiB more, in the double and in the workbench."""
    with Emulator(pool_size=0) as double:
        plane = data_plane(double)
        workbench = psutil.Process(plane.pid_outside(int(plane.bash("echo $PPID")["stdout"])))
        sent, received = Pieces(), hashlib.sha256()
        headers = {
            "Content-Type": "multipart/form-data; boundary=x",
            "Content-Length": str(SIZE + len(Pieces.head) + len(Pieces.tail)),
        }
        with httpx.Client(timeout=120, trust_env=False, verify=False) as http:
            with Peak(psutil.Process(), workbench) as up:
                http.post(
                    f"{plane.url}/v1/file/upload",
                    params=plane.query,
                    content=sent,
                    headers=headers,
                ).raise_for_status()
            with Peak(psutil.Process(), workbench) as down:
                query = {**plane.query, "path": "/home/gem/large"}
                with http.stream("GET", f"{plane.url}/v1/file/download", params=query) as response:
                    for piece in response.iter_bytes():
                        received.update(piece)

    assert sent.digest.hexdigest() == received.hexdigest()
    assert up.grown < MOST
    assert down.grown < MOST
