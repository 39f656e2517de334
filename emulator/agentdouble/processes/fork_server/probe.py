"""A program that tries each confinement measure here: ``python -m ...probe UID``.

UID is the session user. The program prints a JSON object: for each measure, null if it works, else
the reason. A measure works if the forbidden action was tried and refused, so nothing is guessed
from versions and settings.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from agentdouble.processes.fork_server import processes
from agentdouble.processes.fork_server.confinement import Confinement, confine
from agentdouble.processes.fork_server.namespaces import ProcessNamespaces

_PROCESS_LIMIT = 8
_SEGMENT = 1 << 20


def main() -> None:
    """Try the measures in turn and print the result; later ones build on those that work."""
    processes.adopt_orphans()
    uid = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        print(json.dumps(probe(Path(directory), uid)))  # noqa: T201 (its answer)


def probe(directory: Path, uid: int) -> dict[str, str | None]:
    """Return why each confinement measure does not work here, or None if it works."""
    root = os.geteuid() == 0
    directory.chmod(0o711)
    kind: Literal["plain", "user"] = "plain" if root else "user"
    places = [directory / name for name in ("home", "tmp", "run")]
    for place in places:
        place.mkdir(mode=0o700)
    home, tmp, run = map(str, places)
    base = Confinement(home=home, tmp=tmp, run=run)
    landlock = _try(replace(base, landlock=True), _outside_is_closed)
    files = _try(replace(base, namespaces=kind), _home_is_writable)
    reasons = {"files": files, "landlock": landlock}
    if files is None:
        base = replace(base, namespaces=kind)
    reasons["signals"] = _try(replace(base, landlock=True), _parent_is_out_of_reach)
    reasons["limits"] = _try(replace(base, own_limits=True), _others_limits_are_refused)
    reasons["network"] = files or _try(replace(base, network="own"), _has_loopback)
    reasons["user"] = "only root can give each session its own user"
    if root:
        for place in places:
            os.chown(place, uid, uid)
        reasons["user"] = _try(replace(base, uid=uid), _python_is_readable)
        if reasons["user"] is None:
            base, reasons["signals"] = replace(base, uid=uid), None
    reasons["shared_memory"] = files or _try(replace(base, shared_memory=_SEGMENT), _segments_end)
    reasons["pid_namespace"] = files or _try(replace(base, processes="own"), _host_is_out_of_sight)
    reasons["processes"] = "it would count all processes of this user"
    if base.uid is not None or base.namespaces == "user":
        reasons["processes"] = _try(replace(base, process_limit=_PROCESS_LIMIT), _forks_end)
    return reasons


def _try(confinement: Confinement, check: Callable[[], None]) -> str | None:
    """Confine a child and call ``check`` in it; return the reason of a failure, or None."""
    reading, writing = os.pipe()
    namespaces = ProcessNamespaces()
    try:
        pid = namespaces.fork(asdict(confinement))
    except OSError as error:
        return str(error)
    if pid == 0:
        try:
            os.close(reading)
            confine(confinement)
            check()
        except BaseException as error:
            os.write(writing, (str(error) or type(error).__name__).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        reason = answer.read()
    while os.wait()[0] != pid:
        pass  # it was the process that forked this one into its namespace
    namespaces.end_left_by({pid})
    return reason or None


def _home_is_writable() -> None:
    Path("probe").write_text("")
    Path("probe").unlink()


def _python_is_readable() -> None:
    _home_is_writable()
    for path in (sys.executable, os.__file__, __file__):
        if not os.access(path, os.R_OK):
            raise PermissionError(f"a session's user could not read {path}")


def _outside_is_closed() -> None:
    os.close(os.open("/dev/null", os.O_WRONLY))
    outside = Path("/proc/self/comm")  # writable without Landlock
    _refused(lambda: outside.open("w").close())


def _parent_is_out_of_reach() -> None:
    _refused(lambda: os.kill(os.getppid(), 0))  # noqa: TID251 (0 sends no signal)


def _host_is_out_of_sight() -> None:
    visible = sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    if visible != [os.getpid()]:
        raise OSError(f"processes {visible} are visible")


def _others_limits_are_refused() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))

    def limit_parent() -> None:
        limits = resource.prlimit(os.getppid(), resource.RLIMIT_CORE)
        resource.prlimit(os.getppid(), resource.RLIMIT_CORE, limits)

    _refused(limit_parent)


def _segments_end() -> None:
    libc = ctypes.CDLL(None)
    segments = [libc.shmget(0, _SEGMENT, 0o600) for _ in range(2)]
    if segments[0] < 0 or segments[1] >= 0:
        raise OSError("a second segment is not refused")


def _has_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(listener.getsockname()).close()


def _forks_end() -> None:
    reading, writing = os.pipe()  # the children live until it is closed
    forked = 0
    try:
        while forked <= _PROCESS_LIMIT:
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
            forked += 1
    except BlockingIOError:
        if forked == 0:
            raise OSError("it counts processes that are not the session's") from None
        return
    finally:
        os.close(writing)
    raise OSError("it does not stop forks")


def _refused(attempt: Callable[[], None]) -> None:
    try:
        attempt()
    except OSError:
        return
    raise OSError("the forbidden action is still possible")


if __name__ == "__main__":
    main()
