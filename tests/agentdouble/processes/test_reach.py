"""Reaching other processes with system calls that Landlock does not control."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux confines kernels", allow_module_level=True)

from agentdouble.processes.fork_server import processes
from tests import machine
from tests.agentdouble.calling import has_gone, pid_outside
from tests.agentdouble.processes.becoming import ORDINARY, ROOT
from tests.agentdouble.processes.confined_host import SECRET, Host, Session

LIBC = "import ctypes, os, resource; libc = ctypes.CDLL(None, use_errno=True)\n"
WAYS = {  # code that prints "done" when it has reached {pid}, a process of the same user
    "a limit": "print('done' if resource.prlimit({pid}, resource.RLIMIT_CPU) else '')",
    "a priority": "os.setpriority(os.PRIO_PROCESS, {pid}, 19); print('done')",
    "an affinity": "os.sched_setaffinity({pid}, [0]); print('done')",
    "a scheduler": "os.sched_setscheduler({pid}, os.SCHED_BATCH, os.sched_param(0)); print('done')",
    "an input priority": "print('done' if libc.syscall({ioprio_set}, 1, {pid}, 3 << 13) == 0 else '')",
    "a signal": "os.kill({pid}, 0); print('done')",
    "a session id": "os.getsid({pid}); print('done')",  # 0 where its leader is in another namespace
    "a pidfd": "os.close(os.pidfd_open({pid})); print('done')",
    "a command line": "print('done' if '{secret}' in open('/proc/{pid}/cmdline').read() else '')",
    "a status": "print('done' if open('/proc/{pid}/status').read() else '')",
    "an OOM score": (
        "with open('/proc/{pid}/oom_score_adj', 'w') as score: score.write('1000')\nprint('done')"
    ),
}
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}


@pytest.fixture(scope="module", params=[ROOT, ORDINARY], ids=["root", "ordinary user"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A double that runs as root, or as an ordinary user."""
    if os.geteuid() != ROOT and request.param == ROOT:
        pytest.skip("these tests run as an ordinary user")
    started = Host(request.param if os.geteuid() == ROOT else os.geteuid())
    missing = started.isolation["pid_namespace"]
    if missing is not None:
        started.close()
        machine.lack(f"needs the isolation of pid_namespace: {missing}")
    yield started
    started.close()


@pytest.fixture(scope="module")
def bare(host: Host) -> Session:
    """An unconfined session."""
    return host.start(measures=())


@pytest.fixture(scope="module")
def alone(host: Host) -> Session:
    """A session with only a view of the files and a process namespace."""
    return host.start(measures=("files", "pid_namespace"))


@pytest.fixture(scope="module")
def victim(host: Host) -> Iterator[int]:
    """A process of the double's user outside all sessions."""
    command = ["sh", "-c", f": {SECRET}; sleep 600; :"]
    if os.geteuid() == ROOT:
        started = subprocess.Popen(command, user=host.uid, group=host.uid, extra_groups=())
    else:
        started = subprocess.Popen(command)
    yield started.pid
    processes.kill_children(started.pid)
    started.kill()
    started.wait()


@pytest.mark.parametrize("way", WAYS)
def test_a_process_namespace_blocks_access_to_other_processes(
    bare: Session, alone: Session, victim: int, way: str
) -> None:
    """Without one, each way reaches a process of the same user."""
    number = IOPRIO_SET.get(os.uname().machine, -1)
    code = LIBC + WAYS[way].format(pid=victim, secret=SECRET, ioprio_set=number)

    assert "done" == bare.text(code)
    assert "done" != alone.text(code)


LEAVING = """
import os, subprocess
child = subprocess.run(
    ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, text=True
)
print(child.stdout)
"""
ABOUT_TO_DIE = {  # code, and how its process is told to have ended
    "os.kill(os.getpid(), signal.SIGTERM)": "was killed by signal 15 (SIGTERM)",
    "os.abort()": "was killed by signal 6 (SIGABRT)",
    "os.kill(os.getpid(), signal.SIGKILL)": "was killed by signal 9 (SIGKILL)",
    "os._exit(3)": "exited with code 3",
}


SETTING = """
import os, resource
resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
limit = resource.prlimit({pid}, resource.RLIMIT_CPU)
resource.prlimit({pid}, resource.RLIMIT_CPU, limit)
print("done")
"""


@pytest.mark.parametrize("measure", ["none", "limits"])
def test_limits_of_other_processes_cannot_be_set(host: Host, victim: int, measure: str) -> None:
    """Without a process namespace they can be read, and its own can be set."""
    session = host.start(measures=("landlock", measure))

    output = session.text(SETTING.format(pid=victim))

    assert ("PermissionError" if measure == "limits" else "done") == output


def test_the_init_process_is_unreachable(host: Host, alone: Session) -> None:
    """Its root is the host's; signals have no effect, and its limits are the session's."""
    output = alone.text(
        "import os, signal\n"
        "for name in ('root/etc', 'environ', 'mem', 'cwd'):\n"
        "    try: os.listdir(f'/proc/1/{name}') if '/' in name else open(f'/proc/1/{name}', 'rb')\n"
        "    except OSError: pass\n"
        "    else: print(name)\n"
        "for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):\n"
        "    try: os.kill(1, number)\n"
        "    except OSError: pass\n"
        "print('alive')"
    )

    assert "alive" == output


def test_processes_of_a_session_can_reach_each_other(host: Host) -> None:
    """A terminal can list and end what a kernel has started."""
    first = host.start()
    orphan = int(first.text(LEAVING))
    second = host.start(of=first)

    output = second.text(f"import os; os.kill({orphan}, 15); print('sent')")

    assert "sent" == output
    assert "gone" == second.text(
        f"import os\nwhile os.path.exists('/proc/{orphan}/root'): pass\nprint('gone')"
    )


def test_a_kernel_ends_only_its_own_processes(host: Host) -> None:
    """The namespace lives until its last kernel has ended."""
    first = host.start()
    second = host.start(of=first)
    orphan = pid_outside(int(first.text(LEAVING)), first.pid)
    survivor = pid_outside(int(second.text(LEAVING)), second.pid)

    processes.send(first.pid, signal.SIGKILL)

    assert has_gone(orphan, timeout_s=30)
    assert not has_gone(survivor, timeout_s=0)
    assert "2" == second.text("print(1 + 1)")
    processes.send(second.pid, signal.SIGKILL)
    assert has_gone(survivor, timeout_s=30)


@pytest.mark.parametrize("code", ABOUT_TO_DIE)
def test_the_end_of_a_kernel_is_reported_as_usual(host: Host, code: str) -> None:
    """It is not process 1, which would ignore its own signals."""
    session = host.start()

    assert ABOUT_TO_DIE[code] in session.death(f"import os, signal; {code}")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["fork server", "init"])
def test_a_session_ends_with_its_fork_server_or_init(host: Host, victim: str) -> None:
    """Killing either leaves nothing running."""
    doomed = Host(host.uid)
    try:
        session = doomed.start()
        orphan = pid_outside(int(session.text(LEAVING)), session.pid)
        init = pid_outside(1, session.pid)

        processes.send(session.fork_server if victim == "fork server" else init, signal.SIGKILL)

        assert all(has_gone(pid, timeout_s=30) for pid in (session.pid, orphan, init))
    finally:
        doomed.close()


KEYRING = {"x86_64": (248, 250), "aarch64": (217, 219)}
SEARCH = "print('found' if libc.syscall({keyctl}, 10, -3, b'user', b'{name}', 0) >= 0 else 'none')"


@pytest.mark.slow
def test_the_keyring_of_the_double_is_hidden() -> None:
    """Ordinary child processes inherit the keys of the shell."""
    if os.uname().machine not in KEYRING:
        pytest.skip("the numbers of system calls are not known here")
    add_key, keyctl = KEYRING[os.uname().machine]
    name = f"agentdouble-{os.getpid()}"
    search = LIBC + SEARCH.format(keyctl=keyctl, name=name)
    script = f"""
import ctypes, subprocess, sys
from agentdouble import Emulator
from tests.agentdouble.calling import text
libc = ctypes.CDLL(None)
libc.syscall({keyctl}, 1, None)
assert libc.syscall({add_key}, b"user", b"{name}", b"secret", 6, -3) > 0
with Emulator(pool_size=0, isolation="none") as double:
    child = subprocess.run([sys.executable, "-c", {search!r}], stdout=-1, text=True)
    print(child.stdout.strip(), text(double, {search!r}).strip())
"""

    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert "found none\n" == output.stdout, output.stderr
