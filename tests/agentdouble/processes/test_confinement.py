"""Escapes from confinement, each tried with and without its guard."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux confines kernels", allow_module_level=True)

from agentdouble.processes import isolation
from agentdouble.processes.fork_server import processes
from tests import machine
from tests.agentdouble.processes.becoming import ORDINARY, ROOT
from tests.agentdouble.processes.confined_host import SECRET, Host, Session

pytestmark = pytest.mark.once

MIB = 1024 * 1024


@pytest.fixture(scope="module", params=[ROOT, ORDINARY], ids=["root", "ordinary user"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A double that runs as root, or as an ordinary user."""
    if os.geteuid() != ROOT and request.param == ROOT:
        pytest.skip("these tests run as an ordinary user")
    started = Host(request.param if os.geteuid() == ROOT else os.geteuid())
    yield started
    started.close()


@pytest.fixture(scope="module")
def other(host: Host) -> Session:
    """Another fully confined session of the same double."""
    session = host.start()
    session.text(f"open('notes', 'w').write({SECRET!r})")
    return session


@pytest.fixture(scope="module")
def session(host: Host) -> Session:
    """A fully confined session."""
    return host.start()


@pytest.fixture(scope="module")
def sessions(host: Host) -> dict[str, Session]:
    """The started sessions by their measures."""
    return {}


def only(host: Host, sessions: dict[str, Session], measure: str) -> Session:
    """Return a session with only one measure, or with "all" or "none"."""
    if measure not in sessions:
        if measure in isolation.MEASURES:
            need(host, measure)
        names = {"all": isolation.MEASURES, "none": ()}.get(measure, (measure,))
        sessions[measure] = host.start(measures=names)
    return sessions[measure]


def need(host: Host, measure: str) -> None:
    """Skip or fail the test if the machine lacks a measure."""
    reason = host.isolation[measure]
    if reason is None:
        return
    if measure in ("user", "shared_memory") and host.uid != ROOT:
        pytest.skip(reason)
    machine.lack(f"needs the isolation of {measure}: {reason}")


BREACHES = {  # the code, and which measures stop it on their own
    "a file of the server": ("print(open('{state}').read())", ("files", "landlock")),
    "the server's environment": (
        "print(open('/proc/{server}/environ').read())",
        ("files", "landlock", "user"),
    ),
    "the server's memory": (
        "open('/proc/{server}/mem', 'rb'); print('{secret}')",
        ("files", "landlock", "user"),
    ),
    "the fork server's memory": (
        "open('/proc/{fork_server}/mem', 'rb'); print('{secret}')",
        ("files", "landlock", "user"),
    ),
    "the server's files by way of its process": (
        "print(open('/proc/{server}/root{state}').read())",
        ("files", "landlock", "user"),
    ),
    "another session's file": (
        "print(open('{other}/notes').read())",
        ("files", "landlock", "user"),
    ),
    "writing to another session's home": (
        "open('{other}/planted', 'w'); print('{secret}')",
        ("files", "landlock", "user"),
    ),
    "a signal to the server": (
        "import os; os.kill({server}, 0); print('{secret}')",
        ("landlock", "user"),
    ),
    "a signal to another session": (
        "import os; os.kill({other_pid}, 0); print('{secret}')",
        ("landlock", "user"),
    ),
}


@pytest.mark.parametrize("measure", ["none", "files", "landlock", "user", "all"])
def test_an_escape_is_stopped_by_its_guards(
    host: Host, other: Session, sessions: dict[str, Session], measure: str
) -> None:
    """Each guard stops it alone, all do together, and without any it succeeds."""
    session = only(host, sessions, measure)
    breaches = {
        name: code
        for name, (code, guards) in BREACHES.items()
        if measure in ("none", "all", *guards)
    }
    if measure == "landlock" and host.isolation["signals"] is not None:
        breaches = {name: code for name, code in breaches.items() if "signal" not in name}
    places = {
        "state": host.directory / "credentials",
        "server": host.pid,
        "fork_server": other.fork_server,
        "other": other.home,
        "other_pid": other.pid,
        "secret": SECRET,
    }

    texts = {name: session.text(code.format(**places)) for name, code in breaches.items()}

    assert dict.fromkeys(breaches, measure == "none") == {
        name: SECRET in text for name, text in texts.items()
    }


@pytest.mark.parametrize("measure", ["none", "files", "landlock", "all"])
def test_nothing_is_written_to_the_server_s_home(
    host: Host, sessions: dict[str, Session], measure: str
) -> None:
    """Writes to that path arrive only from unconfined code."""
    planted = host.directory / f"planted-{measure}"

    only(host, sessions, measure).text(f"open('{planted}', 'w')")

    assert (measure == "none") == planted.exists()


def test_the_initial_environment_holds_no_secret(session: Session) -> None:
    """A fork shows its server's environment in /proc, which must be empty."""
    output = session.text(
        "import os; print(open('/proc/self/environ').read(), open('/proc/self/cmdline').read(),"
        " dict(os.environ))"
    )

    assert "PATH=" in output
    assert SECRET not in output


def test_no_descriptor_of_the_fork_server_is_open(session: Session) -> None:
    """Neither its sockets nor its epoll."""
    of_server, of_kernel = Path(f"/proc/{session.fork_server}"), Path(f"/proc/{session.pid}")
    opened = {fd.stat().st_ino: str(fd.readlink()) for fd in (of_server / "fd").iterdir()}
    sockets = {inode for inode, name in opened.items() if name.startswith("socket:")}

    inodes = {fd.stat().st_ino for fd in (of_kernel / "fd").iterdir()}
    watched = "".join(info.read_text() for info in (of_kernel / "fdinfo").iterdir())

    assert sockets
    assert set() == sockets & inodes
    assert [] == [inode for inode in sockets if f"ino:{inode:x} " in watched]


def test_home_and_tmp_belong_to_the_session(host: Host, session: Session, other: Session) -> None:
    """Files written to /home/gem and /tmp are in the session's directories."""
    need(host, "files")
    output = session.text(
        "import os, tempfile, pathlib\n"
        "pathlib.Path('/home/gem/a').write_text('1'); pathlib.Path('/tmp/b').write_text('2')\n"
        "print(os.getcwd(), os.path.expanduser('~'), tempfile.gettempdir(), os.listdir('/home'))"
    )

    assert "/home/gem /home/gem /tmp ['gem']" == output
    assert "1" == Path(session.home, "a").read_text()
    assert "2" == Path(session.tmp, "b").read_text()
    assert "FileNotFoundError" == other.text("open('/home/gem/a')")
    assert "FileNotFoundError" == other.text("open('/tmp/b')")


def test_the_system_is_read_only(session: Session) -> None:
    """Only the session's own directories are writable."""
    output = session.text(
        "for path in ('/x', '/usr/x', '/etc/x', '/dev/x', '/var/x', '/home/x'):\n"
        "    try: open(path, 'w'); print('written', path)\n"
        "    except OSError: pass"
    )

    assert "" == output


ESCAPE = """
import subprocess, sys
code = '''
import ctypes, os
libc = ctypes.CDLL(None)
print([libc.umount2(p, 2) for p in (b"/", b"/..", b"/home/gem", b"/tmp", b"/etc/passwd")])
os.chdir("/")
for _ in range(9):
    os.chdir("..")
print(os.path.exists("var"), os.path.exists("/var"), os.listdir("/home"))
'''
print(subprocess.run(["unshare", "-Urm", sys.executable, "-c", code], stdout=-1, text=True).stdout)
"""


def test_a_nested_namespace_uncovers_nothing(host: Host) -> None:
    """Its root can neither unmount parts of the view nor leave it."""
    need(host, "user")
    need(host, "files")

    output = host.start(measures=("files", "user")).text(ESCAPE)

    assert "[-1, -1, -1, -1, -1]" in output
    assert "False False ['gem']" in output


def test_a_session_user_has_no_privileges(host: Host, session: Session) -> None:
    """It has no capabilities and cannot gain any."""
    status = session.text("print(open('/proc/self/status').read())")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)

    assert ["0" * 16] * 3 == [facts[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff")]
    assert "1" == facts["NoNewPrivs"]
    assert "0" != facts["Uid"].split()[0]


def test_sessions_of_root_have_separate_users(session: Session, other: Session) -> None:
    need(session.host, "user")

    uids = {confined.text("import os; print(os.getuid())") for confined in (session, other)}

    assert 2 == len(uids)


def test_the_user_of_a_session_has_a_name(session: Session) -> None:
    """The session's view of files has a list of users of its own."""
    need(session.host, "files")

    assert "gem" == session.text("import getpass, pwd, os; print(pwd.getpwuid(os.getuid())[0])")


@pytest.mark.parametrize("network", ["shared", "own"])
def test_a_private_network_hides_ports_of_other_sessions(
    host: Host, other: Session, network: str
) -> None:
    """A shared network shows them; its own ports work in both."""
    need(host, "network")
    listening = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])"
    )
    connecting = "import socket; socket.create_connection(('127.0.0.1', {})); print('connected')"
    other_ports = other.text(listening)
    session = host.start(network=network)
    own = session.text(listening)

    assert "connected" == session.text(connecting.format(own))
    assert ("connected" if network == "shared" else "ConnectionRefusedError") == session.text(
        connecting.format(other_ports)
    )


SYSTEM_V = "import ctypes; print(ctypes.CDLL(None).shmget({key}, 64, {flags}) >= 0)"


@pytest.mark.parametrize("measure", ["none", "files"])
def test_shared_memory_without_a_file_is_private(
    host: Host, sessions: dict[str, Session], measure: str
) -> None:
    """Other sessions cannot find it by its key, and it ends with the session."""
    session = only(host, sessions, measure)
    key = 0x5E55 + host.uid
    session.text(SYSTEM_V.format(key=key, flags=0o1666))
    removing = "import ctypes; c = ctypes.CDLL(None); print(c.shmctl(c.shmget({}, 0, 0), 0, None))"

    output = host.start(measures=()).text(SYSTEM_V.format(key=key, flags=0))
    session.text(removing.format(key))

    assert str(measure == "none") == output


KEPT_BY_NOBODY = {  # how much of each is made; where it is unlimited, all of it
    "segments": f"libc.shmget(0, ctypes.c_size_t({32 * MIB}), 0o600)",
    "queues": "libc.msgget(0, 0o600)",
    "semaphores": "libc.semget(0, 250, 0o600)",
}


@pytest.mark.parametrize("resource", KEPT_BY_NOBODY)
@pytest.mark.parametrize("limit", [None, 64 * MIB])
def test_unattached_ipc_objects_are_limited(host: Host, resource: str, limit: int | None) -> None:
    """A later kernel of the session has the same limit."""
    if host.uid != ROOT:
        pytest.skip("only root can set it")
    need(host, "shared_memory")
    session = host.start(shared_memory=limit)
    making = f"""
import ctypes
libc = ctypes.CDLL(None)
made = [{KEPT_BY_NOBODY[resource]} for _ in range(300)]
print(sum(one >= 0 for one in made))
"""

    count = int(session.text(making))

    assert (count == 300) == (limit is None)
    assert count >= 2
    second = host.start(of=session, shared_memory=limit)
    assert limit is None or second.text(making) == "0"


@pytest.mark.parametrize("landlock", [False, True])
def test_abstract_sockets_of_other_sessions_are_unreachable(
    host: Host, other: Session, landlock: bool
) -> None:
    """They have no file to hide, so Landlock refuses them."""
    need(host, "signals")
    name = f"\\0of-{host.pid}-{landlock}"
    other.text(
        f"import socket; a{landlock} = socket.socket(socket.AF_UNIX); "
        f"a{landlock}.bind('{name}'); a{landlock}.listen()"
    )
    session = host.start(landlock=landlock)

    output = session.text(
        f"import socket; socket.socket(socket.AF_UNIX).connect('{name}'); print('connected')"
    )

    assert ("PermissionError" if landlock else "connected") == output


@pytest.mark.parametrize("limits", [{}, {"open_files": 128}])
def test_open_files_are_limited(host: Host, limits: dict[str, int]) -> None:
    """Exceeding the limit is an OSError, and the kernel survives."""
    session = host.start(limits=limits)

    output = session.text("held = [open('/dev/null') for _ in range(200)]; print('held')")

    assert ("OSError" if limits else "held") == output
    assert "2" == session.text("print(1 + 1)")


FORKS = """
import os, warnings
warnings.simplefilter("ignore")  # of a fork in a process with threads, since 3.12
reading, writing = os.pipe()
forked = []
try:
    for _ in range(150):
        pid = os.fork()
        if pid == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        forked.append(pid)
    print("all")
except BlockingIOError:
    print("stopped" if len(forked) > 5 else "never began")
finally:
    os.close(writing)
    for pid in forked:
        os.waitpid(pid, 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 60])
def test_a_fork_bomb_is_stopped(host: Host, limit: int | None) -> None:
    """It hits its session's limit, and the kernel survives."""
    need(host, "processes")
    session = host.start(process_limit=limit)

    assert ("stopped" if limit else "all") == session.text(FORKS)
    assert "2" == session.text("print(1 + 1)")


def test_a_kernel_that_cannot_be_confined_does_not_start(host: Host) -> None:
    """A failed measure never weakens the requested confinement."""
    need(host, "files")

    with pytest.raises(RuntimeError, match="exited with code 1"):
        host.start(visible=("/nowhere",), home="/nowhere")


@pytest.mark.slow
def test_a_kernel_dies_with_the_fork_server(host: Host) -> None:
    """Linux clears the death signal on a change of user, so it is set again."""
    doomed = Host(host.uid)
    try:
        session = doomed.start()
        kernel = os.pidfd_open(session.pid)

        processes.send(session.fork_server, signal.SIGKILL)

        assert [kernel] == select.select([kernel], [], [], 30)[0]
        os.close(kernel)
    finally:
        doomed.close()
