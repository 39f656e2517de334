"""Shared memory of a kernel is private in each copy, with the snapshot's content."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble.errors import SnapshotRefusedError
from tests.agentdouble.sandbox.copying import Source, value_of, with_pool

pytestmark = pytest.mark.needs("files", "pid_namespace")

OPENED = "import mmap, os; file = open('{0}', 'wb+'); file.truncate(5000); file.flush()\n"
MAPPED = OPENED + "memory = mmap.mmap(file.fileno(), 5000)\nmemory[:4] = b'set '"

# code that maps memory; that writes b"copy" to it; that prints it, and the file behind it
KINDS = {
    "a file": (MAPPED, "memory[:4] = b'copy'", "print(memory[:4], open('{0}', 'rb').read(4))"),
    "numpy.memmap": (
        "import numpy; memory = numpy.memmap('{0}', mode='w+', shape=(5000,)); memory[:4] = [*b'set ']",
        "memory[:4] = [*b'copy']; memory.flush()",
        "print(bytes(memory[:4]), open('{0}', 'rb').read(4))",
    ),
    "a removed file": (
        MAPPED + "\nos.remove('{0}')",
        "memory[:4] = b'copy'",
        "print(memory[:4], os.pread(file.fileno(), 4, 0))",
    ),
    "a file shorter than its mapping": (
        MAPPED + "\nos.truncate('{0}', 100)",
        "memory[:4] = b'copy'",
        "print(memory[:4], os.pread(file.fileno(), 4, 0))",
    ),
    "a file in memory": (
        (
            "import mmap, os; file = os.memfd_create('{0}'); os.truncate(file, 5000)\n"
            "memory = mmap.mmap(file, 5000); memory[:4] = b'set '"
        ),
        "memory[:4] = b'copy'",
        "print(memory[:4], os.pread(file, 4, 0))",
    ),
    "no file": (
        "import mmap, os; memory = mmap.mmap(-1, 3 << 20); memory[2 << 20:(2 << 20) + 4] = b'set '",
        "memory[2 << 20:(2 << 20) + 4] = b'copy'",
        "print(*2 * [memory[2 << 20:(2 << 20) + 4]])",
    ),
    "a value of multiprocessing": (
        (
            "import multiprocessing; context = multiprocessing.get_context('fork')\n"
            "value = context.Value('I', int.from_bytes(b'set ', 'big'))\n"
            "def change(value): value.value = int.from_bytes(b'copy', 'big')"
        ),
        "process = context.Process(target=change, args=(value,)); process.start(); process.join()",
        "print(*2 * [value.value.to_bytes(4, 'big')])",
    ),
    "named shared memory": (
        (
            "from multiprocessing.shared_memory import SharedMemory\n"
            "memory = SharedMemory('{0}', create=True, size=100); memory.buf[:4] = b'set '"
        ),
        "memory.buf[:4] = b'copy'",
        "again = SharedMemory('{0}'); print(bytes(memory.buf[:4]), bytes(again.buf[:4]))",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "isolation"),
    [(kind, "auto") for kind in KINDS] + [("a file", "none"), ("no file", "none")],
)
def test_a_copy_has_its_own_shared_memory(kind: str, isolation: str) -> None:
    name = f"shared-{kind.replace(' ', '-')}"
    setup, write, look = (code.format(name) for code in KINDS[kind])

    async def test(source: Source) -> None:
        snapshot = await source.snapshot(setup)
        await value_of(source.kernel, write.replace("copy", "late"))
        first = await source.pool.copy(snapshot)
        await value_of(first.kernel, write)
        second = await source.pool.copy(snapshot)
        assert "b'copy' b'copy'" in await value_of(first.kernel, look)
        assert "b'set ' b'set '" in await value_of(second.kernel, look)
        expected = "b'copy'" if "change" in write else "b'late'"
        assert f"{expected} {expected}" in await value_of(source.kernel, look)

    with_pool(test, isolation=isolation)


@pytest.mark.slow
def test_a_multiprocessing_lock_is_held_in_one_copy_only() -> None:
    async def test(source: Source) -> None:
        setup = "import multiprocessing; lock = multiprocessing.Lock()"
        async with source.copies(setup, count=2) as copies:
            for kernel in (*copies, source.kernel):
                assert "True\n" == await value_of(kernel, "print(lock.acquire(timeout=5))")

    with_pool(test)


@pytest.mark.slow
def test_uncopyable_shared_memory_is_refused_by_name() -> None:
    setup = (
        "import ctypes, mmap, os; libc = ctypes.CDLL(None)\n"
        "ring = libc.syscall(425, 8, ctypes.create_string_buffer(120))\n"
        "kept = mmap.mmap(ring, 4096) if ring >= 0 else None"
    )

    async def test(source: Source) -> None:
        await value_of(source.kernel, setup)
        if "None" in await value_of(source.kernel, "print(kept)"):
            pytest.skip("this machine has no io_uring")
        with pytest.raises(
            SnapshotRefusedError, match=r"shares memory with anon_inode:\[io_uring\]"
        ):
            await source.snapshot()

    with_pool(test)
