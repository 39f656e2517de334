"""Copies of a running kernel: what they keep, share and lose."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux forks kernels", allow_module_level=True)

from agentdouble.errors import KernelStartError, ResourceExhaustedError, SnapshotRefusedError
from agentdouble.processes.fork_server import processes
from tests.agentdouble.sandbox.copying import Source, error_of, value_of, with_pool

pytestmark = pytest.mark.needs("files", "pid_namespace")
CAP_SYS_RESOURCE = 1 << 24

ISOLATION = pytest.mark.parametrize("isolation", ["auto", "none"])


@pytest.mark.slow
@ISOLATION
def test_a_copy_continues_from_the_source_state(isolation: str) -> None:
    """It has the same state, imports, environment and open files, but shares none."""

    async def test(source: Source) -> None:
        setup = (
            "import json, os, tempfile, logging, sys\nstate = {'n': 41}\ndef up(): state['n'] += 1",
            "os.makedirs('data', exist_ok=True); os.chdir('data'); os.environ['MINE'] = 'yes'",
            "log = open('log.txt', 'w+'); log.write('begun\\n'); log.flush()",
            "open(os.path.join(tempfile.gettempdir(), 'scratch'), 'w').write('kept')",
            "unnamed = tempfile.TemporaryFile('w+'); unnamed.write('first '); unnamed.flush()",
            "handler = logging.StreamHandler(sys.stderr); logging.getLogger('mine').addHandler(handler)",
        )
        async with source.copies(*setup, count=2) as (first, two):
            look = (
                "up(); log.write(f'{os.environ[\"MINE\"]}'); log.flush();"
                "print(state['n'], os.path.basename(os.getcwd()), open('log.txt').read(),"
                "open(os.path.join(tempfile.gettempdir(), 'scratch')).read())"
            )
            for kernel in (first, two):
                assert "42 data begun\nyes kept\n" == await value_of(kernel, look)
            await value_of(
                first, "state['n'] = 0; open('new', 'w').close(); os.environ['MINE'] = 'no'"
            )
            rest = "print(state['n'], os.path.exists('new'), os.environ['MINE'])"
            assert "42 False yes\n" == await value_of(two, rest)
            assert "41 False yes\n" == await value_of(source.kernel, rest)
            assert "begun\n" == await value_of(
                source.kernel, "print(open('log.txt').read(), end='')"
            )
            assert "seen\n" == await value_of(first, "logging.getLogger('mine').error('seen')")

    with_pool(test, isolation=isolation)


def test_a_copy_starts_when_the_limit_of_open_files_is_near() -> None:
    """It needs no descriptor above the highest of its source."""
    setup = (
        "import os, resource; highest = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1",
        "highest = os.dup2(os.open('/dev/null', os.O_RDONLY), highest)",
    )

    async def test(source: Source) -> None:
        async with source.copies(*setup, count=1) as (copy,):
            assert "True\n" == await value_of(copy, "print(os.fstat(highest).st_rdev > 0)")

    with_pool(test)


@pytest.mark.slow
def test_random_values_differ_between_copies() -> None:
    """So do ids and names; an explicit generator is the same in each copy."""
    look = (
        "import secrets, tempfile, uuid, os\n"
        "print(random.random(), numpy.random.random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(),"
        "tempfile.mktemp(), numpy.random.default_rng().random())"
    )

    async def test(source: Source) -> None:
        setup = "import random, numpy; made = random.Random(1)"
        async with source.copies(setup, count=2) as kernels:
            values = [(await value_of(kernel, look)).split() for kernel in kernels]
            assert all(value != two for value, two in zip(*values, strict=True)), values
            same = [await value_of(kernel, "print(made.random())") for kernel in kernels]
            assert same[0] == same[1]
            ids = "print(get_ipython().kernel.ident, get_ipython().kernel.session.session)"
            first, second = [await value_of(kernel, ids) for kernel in kernels]
            assert first != second

    with_pool(test)


def test_a_copy_is_a_full_kernel() -> None:
    """It has errors, interrupts, await, threads and counts, and can die."""

    async def test(source: Source) -> None:
        setup = (
            "import asyncio, threading, time, os\nticks = []",
            "async def tick():\n    while True:\n        ticks.append(1); await asyncio.sleep(.01)",
            "ticking = asyncio.ensure_future(tick())",
        )
        async with source.copies(*setup, count=2) as (first, two):
            result = await first.execute("1/0", timeout_s=30, output_limit=1 << 20)
            assert ("error", "ZeroDivisionError") == (result.status, result.outputs[-1].ename)
            assert 4 == result.execution_count
            assert "timeout" == (await error_of(first, "time.sleep(60)", 0.2))[:7]
            assert "timeout" == (await error_of(first, "await asyncio.sleep(60)", 0.2))[:7]
            await value_of(first, "n = len(ticks)\nwhile len(ticks) == n: await asyncio.sleep(0)")
            run = "t = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()"
            assert "in a thread\n" == await value_of(first, run)
            assert "3\r\n" == await value_of(first, "!echo 3")
            await error_of(first, "os._exit(7)")
            assert "code 7" in first.how_it_ended()
            assert "2\n" == await value_of(two, "print(1 + 1)")

    with_pool(test)


OPEN_DATABASE = (
    "import sqlite3; c = sqlite3.connect('d'); c.execute('create table t(x)'); c.commit()"
)
WRITE_DATABASE = """
try:
    c.execute("insert into t values (1)")
    c.commit()
    print("written")
except sqlite3.OperationalError as error:
    print(error)
"""
BROKEN = {
    "threads": (
        "import threading; stop = threading.Event()\nt = threading.Thread(target=stop.wait); t.start()",
        "print(t.is_alive())",
        "False\n",
        "1 thread",
    ),
    "child processes": (
        "import subprocess; child = subprocess.Popen(['sleep', '60'])",
        "print(child.poll())",
        "-9\n",
        "1 child process",
    ),
    "connections": (
        "import socket; s = socket.create_server(('', 0)); c = socket.create_connection(s.getsockname())",
        "print(c.recv(1))",
        "b''\n",
        "1 network connection",
    ),
    "pipes": (
        "import os; r, w = os.pipe()",
        "try:\n    print(os.read(r, 1))\nexcept OSError as error:\n    print('an error')",
        "b''\n",
        None,
    ),
    "a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor as Pool; p = Pool(1); p.submit(int).result()",
        "try:\n    p.submit(int)\nexcept Exception as error:\n    print(error)",
        "its workers do not exist in this copy of the session: create a new one\n",
        "1 thread",
    ),
    "a pool of processes": (
        "import multiprocessing; p = multiprocessing.get_context('fork').Pool(1); p.apply(int)",
        "try:\n    p.apply(int)\nexcept Exception as error:\n    print(error)",
        "Pool not running\n",
        "3 threads, 1 child process",
    ),
    "named shared memory of a child": (
        "import os, pathlib; pathlib.Path('/dev/shm/block').touch()",
        "print(os.listdir('/dev/shm'))",
        "[]\n",
        "1 named shared memory block",
    ),
    "SQLite with a rollback journal": (
        OPEN_DATABASE,
        WRITE_DATABASE,
        "attempt to write a readonly database\n",
        "1 writable SQLite connection",
    ),
    "asyncio's executor": (
        "import asyncio; await asyncio.to_thread(int)",
        "print(await asyncio.to_thread(int))",
        "0\n",
        "1 thread",
    ),
}


@pytest.mark.parametrize(
    "code",
    [
        f"{OPEN_DATABASE}; c.execute('pragma journal_mode=wal').fetchall()",
        (
            f"{OPEN_DATABASE}; c.close(); c = sqlite3.connect('file:d?mode=ro', uri=True)\n"
            "c.execute('select * from t').fetchall()"
        ),
        f"{OPEN_DATABASE}; c.close()",
        "open('d', 'w+').write('SQLite format 2')",
    ],
    ids=["with a log", "read only", "closed", "another file"],
)
def test_a_snapshot_with_other_files_omits_nothing(code: str) -> None:
    async def test(source: Source) -> None:
        snapshot = await source.snapshot(code)
        copy = await source.pool.copy(snapshot)
        if "wal" in code:
            assert "written\n" == await value_of(copy.kernel, WRITE_DATABASE)
        assert () == tuple(snapshot.omitted)
        await copy.kernel.kill("the test is over")

    with_pool(test)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN)
def test_uncopyable_state_is_refused_by_name(kind: str) -> None:
    setup, use, expected, omitted = BROKEN[kind]

    async def test(source: Source) -> None:
        snapshot = await source.snapshot(setup)
        copy = await source.pool.copy(snapshot)
        assert expected == await value_of(copy.kernel, use)
        if omitted is not None:
            assert omitted in ", ".join(snapshot.omitted)
        await copy.kernel.kill("the test is over")

    with_pool(test)


@pytest.mark.slow
def test_copies_outlive_their_source_and_can_be_copied() -> None:
    """Each of five sources ends before its copy is used."""

    async def test(source: Source) -> None:
        kernel, workspace, snapshots = source.kernel, source.workspace, []
        await value_of(kernel, "generation = 0; open('g0', 'w').close()")
        for number in range(1, 6):
            snapshots.append(await source.pool.snapshot(kernel, workspace))
            await kernel.kill("its copy goes on")
            await asyncio.to_thread(workspace.remove)
            kernel, workspace = (
                (pooled := await source.pool.copy(snapshots[-1])).kernel,
                pooled.workspace,
            )
            await value_of(kernel, f"generation += 1; open('g{number}', 'w').close()")
        look = "import os; print(generation, *sorted(os.listdir('.')))"
        assert "5 g0 g1 g2 g3 g4 g5\n" == await value_of(kernel, look)
        for snapshot in snapshots:
            await snapshot.discard()
        assert "5 g0 g1 g2 g3 g4 g5\n" == await value_of(kernel, look)
        await kernel.kill("the test is over")
        await asyncio.wait_for(asyncio.gather(*(snapshot.gone for snapshot in snapshots)), 10)

    with_pool(test)


@pytest.mark.slow
def test_copies_are_isolated_from_each_other() -> None:
    async def test(source: Source) -> None:
        async with source.copies("import os, signal", count=2) as (first, two):
            processes = "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit())[1:])"
            assert "[]\n" == await value_of(first, processes)
            await value_of(first, "open('/tmp/mine', 'w').close()")
            for kernel in (two, source.kernel):
                assert "False\n" == await value_of(kernel, "print(os.path.exists('/tmp/mine'))")
            assert "must be superuser" in await value_of(first, "!umount /home/gem 2>&1")

    with_pool(test)


@pytest.mark.slow
@pytest.mark.parametrize("directory", ["/tmp", "/var/tmp"])
def test_a_copy_has_its_source_s_view_of_files(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees visible paths below /tmp, and nothing of other sessions."""
    with (
        tempfile.TemporaryDirectory(dir=directory) as place,
        tempfile.TemporaryDirectory(dir="/tmp", prefix="with a space ") as below_tmp,
    ):
        for path in (place, below_tmp):
            Path(path).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", place)
        Path(below_tmp, "visible").mkdir()
        Path(below_tmp, "visible/file").write_text("seen")
        visible = (f"{below_tmp}/visible", f"{below_tmp}/visible/file")

        async def test(source: Source) -> None:
            look = (
                f"print(open({visible[1]!r}).read());"
                f"print(os.access({visible[0]!r}, os.W_OK), os.environ['TMPDIR'], os.getcwd());"
                "runs = os.path.dirname(os.path.dirname(os.environ['JUPYTER_RUNTIME_DIR']));"
                "sessions = os.path.dirname(runs);"
                "print([os.path.join(sessions, name) == runs for name in os.listdir(sessions)])"
            )
            expected = "seen\nFalse /tmp /home/gem\n[True]\n"
            snapshot = await source.snapshot("import os")
            assert expected == await value_of(source.kernel, look)
            for _generation in range(3):
                copy = await source.pool.copy(snapshot)
                assert expected == await value_of(copy.kernel, look)
                snapshot = await source.pool.snapshot(copy.kernel, copy.workspace)

        with_pool(test, visible_paths=visible)


EXCHANGE = """
import ctypes, os, subprocess, sys
os.mkdir("directory"); os.symlink({host!r}, "link")
code = (
    "import ctypes; libc = ctypes.CDLL(None); print(flush=True)\\n"
    "while True: libc.renameat2(-100, b'directory', -100, b'link', 2)"
)
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
_ = child.stdout.readline()
"""


@pytest.mark.slow
def test_session_links_never_lead_to_host_files(tmp_path: Path) -> None:
    """Neither when files are copied nor when a copy's end is explained."""
    (tmp_path / "secret").write_text("a secret of the host")

    async def test(source: Source) -> None:
        await source.snapshot(EXCHANGE.format(host=str(tmp_path)))
        for _ in range(20):
            snapshot = await source.snapshot()
            names = {path.name for path in snapshot.files.home.rglob("*")}
            assert names <= {"directory", "link"}
            await snapshot.discard()
        replace = (
            "from agentdouble.processes.fork_server import child\n"
            "def redirect(_, path):\n"
            f"    os.symlink({str(tmp_path / 'secret')!r}, path)\n"
            "    os._exit(3)\n"
            "child.redirect_stdio = redirect"
        )
        snapshot = await source.snapshot(replace)
        with pytest.raises(KernelStartError) as refusal:
            await source.pool.copy(snapshot)
        assert "secret" not in str(refusal.value)

    with_pool(test)


def _may_raise_limits() -> bool:
    text = Path("/proc/self/status").read_text()
    return bool(int(text.split("CapEff:")[1].split()[0], 16) & CAP_SYS_RESOURCE)


@pytest.mark.slow
def test_copies_share_the_process_limit_of_their_source() -> None:
    """A copy beyond it is refused by name. Root may be able to raise it."""

    async def test(source: Source) -> None:
        snapshot = await source.snapshot("x = 1")
        kernels = [(await source.pool.copy(snapshot)).kernel]
        if not _may_raise_limits():
            with pytest.raises(ResourceExhaustedError, match="process_limit = 40 of them"):
                kernels += [(await source.pool.copy(snapshot)).kernel for _ in range(5)]
        assert "1\n" == await value_of(kernels[0], "print(x)")
        assert "1\n" == await value_of(source.kernel, "print(x)")

    with_pool(test, process_limit=40)


@pytest.mark.slow
def test_a_dead_template_or_kernel_refuses_copies() -> None:

    async def test(source: Source) -> None:
        snapshot = await source.snapshot("x = 1")
        processes.send(snapshot.template.process.pid, 9)
        await asyncio.wait_for(snapshot.gone, 10)
        with pytest.raises(KernelStartError, match="the template of its snapshot has ended"):
            await source.pool.copy(snapshot)
        await source.kernel.kill("it is to be dead")
        with pytest.raises(SnapshotRefusedError):
            await source.snapshot()

    with_pool(test)


@pytest.mark.slow
def test_a_copy_that_starts_survives_the_end_of_others() -> None:
    """The processes that fork copies end late, and were killed with their new copies."""

    async def test(source: Source) -> None:
        snapshot = await source.snapshot("state = bytearray(64 << 20)")

        async def start_and_end() -> None:
            for _ in range(12):
                copy = await source.pool.copy(snapshot)
                assert "67108864" == await value_of(copy.kernel, "len(state)")
                await copy.kernel.kill("the next one comes")

        await asyncio.gather(*(start_and_end() for _ in range(4)))
        await snapshot.discard()

    with_pool(test)
