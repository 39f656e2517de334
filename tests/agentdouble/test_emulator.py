from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from agentdouble import Emulator, SimpleApp, run_code
from agentdouble.errors import AddressInUseError, ApplicationLoadError
from tests.agentdouble.calling import background, call, http, run

LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "traitlets", "tornado")


def process_state() -> dict[str, Any]:
    """Return the process-wide state that a double must not change."""
    root = logging.getLogger()
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {
        "signals": handlers,
        "wakeup": current_wakeup_fd(),
        "logging": (list(root.handlers), root.level, root.disabled, logging.root.manager.disable),
        "loggers": {
            logger.name: (logger.level, heard_by(logger), logger.propagate)
            for logger in map(logging.getLogger, LOGGERS)
        },
        "cwd": Path.cwd(),
        "environment": dict(os.environ),
        "umask": current_umask(),
        "policy": type(asyncio.get_event_loop_policy()),
    }


def heard_by(logger: logging.Logger) -> list[logging.Handler]:
    """Return a logger's handlers, without null handlers of libraries."""
    return [handler for handler in logger.handlers if not isinstance(handler, logging.NullHandler)]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def current_wakeup_fd() -> int:
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    return fd


@dataclass(frozen=True)
class Traces:
    """Resources that a double could leave behind."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]
    directories: frozenset[Path]
    descriptors: int

    def since(self, before: Traces) -> dict[str, Any]:
        """Return new resources; earlier ones may have gone."""
        return {
            "threads": sorted(thread.name for thread in self.threads - before.threads),
            "children": self.children - before.children,
            "directories": self.directories - before.directories,
            "descriptors": max(0, self.descriptors - before.descriptors),
        }


NOTHING = {"threads": [], "children": set(), "directories": set(), "descriptors": 0}


def traces() -> Traces:
    """Return current resources.

    Other doubles briefly open descriptors while they check sessions, so the lowest of several
    counts is used; processes of their fork servers are left out.
    """
    gc.collect()
    return Traces(
        threads=frozenset(threading.enumerate()),
        children=frozenset(child.pid for child in psutil.Process().children()),
        directories=frozenset(Path(tempfile.gettempdir()).glob("agentdouble-*")),
        descriptors=min(psutil.Process().num_fds() for _ in range(1000)),
    )


@pytest.fixture
def _own_temporary_directory(monkeypatch: pytest.MonkeyPatch) -> Any:
    with tempfile.TemporaryDirectory(prefix="t-") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        yield


def use(double: Emulator) -> None:
    run(double, "import os; open('file', 'w').close()")
    http.post(f"{double.url}/invoke", json={"prompt": "print(1)"})


@pytest.mark.slow
def test_a_double_does_not_change_its_process() -> None:
    """Signal handlers, logging, directory and environment stay as they are."""
    before = process_state()

    with Emulator() as double:
        use(double)
        during = process_state()

    assert before == during
    assert before == process_state()


@pytest.mark.slow
@pytest.mark.usefixtures("_own_temporary_directory")
def test_a_double_leaves_nothing_behind() -> None:
    """No threads, processes, directories or descriptors, even after ten doubles."""
    with Emulator() as double:
        use(double)  # what is imported on first use may open something for good
    before = traces()

    for number in range(10):
        with Emulator() as double:
            if number % 5 == 0:
                use(double)

    assert NOTHING == traces().since(before)


def test_a_double_can_be_started_once() -> None:
    """The error says what to do instead."""
    with (
        Emulator() as double,
        pytest.raises(RuntimeError, match="already started or stopped; create a new one"),
    ):
        double.start()


@pytest.mark.parametrize("when", ["before", "after"])
def test_only_a_running_double_can_be_reset(when: str) -> None:
    """The error says how to run it."""
    double = Emulator()
    if when == "after":
        double.start()
    double.stop()

    with pytest.raises(RuntimeError, match="not running; use it in a with statement"):
        double.reset()


@pytest.mark.parametrize("started", [True, False])
def test_a_port_in_use_is_a_clear_error(started: bool) -> None:
    """Even if the other double has not started yet."""
    other = Emulator()
    if started:
        other.start()
    port = int(other.url.rpartition(":")[2])
    try:
        with pytest.raises(AddressInUseError, match=f"Port {port} on 127.0.0.1 is in use"):
            Emulator(port=port)
    finally:
        other.stop()


@pytest.mark.slow
def test_doubles_in_one_process_are_separate() -> None:
    """Each has its own port, keys, clock and sessions."""
    with Emulator() as first, Emulator() as other:
        run(first, "x = 1")
        foreign = Emulator.__new__(Emulator)
        foreign.url, foreign.credentials = other.url, first.credentials
        refused = call(foreign, {})
        inner = run(other, "print('x' in globals())")

    assert 401 == refused.status_code
    assert "False\n" == inner["data"]["outputs"][0]["text"]


def named(name: str) -> SimpleApp:
    app = SimpleApp(name)

    @app.entrypoint
    async def answer(payload: dict[str, Any], headers: dict[str, str]) -> str:
        return name

    return app


def test_the_first_application_is_at_the_root() -> None:
    """The others are below their names."""
    with Emulator(named("one"), named("two"), named("three")) as double:
        answers = [
            http.post(double.url + path, json={}).json()
            for path in ("/invoke", "/runtimes/two/invoke", "/runtimes/three/invoke")
        ]
        pong = http.get(f"{double.url}/runtimes/two/ping").json()

    assert (["one", "two", "three"], {"status": "pong!"}) == (answers, pong)


def test_applications_need_distinct_names() -> None:
    with pytest.raises(ApplicationLoadError, match="several are called 'one'"):
        Emulator(named("one"), named("one"))
    once = named("one")
    with pytest.raises(ApplicationLoadError, match="The application 'one' is listed twice"):
        Emulator(once, once)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "is a int, not an application. agentdouble serves SimpleApp"),
        (SimpleApp, "is a type, not an application. agentdouble serves SimpleApp"),
        ("module:app", "'module:app' is the name of an application. Import it"),
    ],
)
def test_an_invalid_application_is_refused(value: object, message: str) -> None:
    """The error names its type, or says how to name an application, and nothing is opened."""
    with pytest.raises(ApplicationLoadError, match=message):
        Emulator(value)  # type: ignore[arg-type]


def test_blocking_run_code_does_not_delay_stopping() -> None:
    """An entrypoint that waits for the sandbox ends with the double."""
    started = threading.Event()
    app = SimpleApp("blocked")

    @app.entrypoint
    async def block(payload: dict[str, Any], headers: dict[str, str]) -> str:
        started.set()
        return run_code("import time; time.sleep(60)", timeout_s=60)

    with Emulator(app) as double:
        running = background(lambda: http.post(f"{double.url}/invoke", json={}))
        assert started.wait(60)

    # Its own request is ended, with 503, or its sandbox's is: that is an error of the entrypoint's.
    with contextlib.suppress(httpx.TransportError):
        assert running.result(60).status_code in (500, 503)


def test_the_ledger_decides_whose_health_route_is_served() -> None:
    """U-HEALTH-CLASH: the simple application and the API server both have one."""
    with Emulator(named("one")) as double:
        first = http.get(f"{double.url}/health").json()["status"]
    with Emulator(named("one"), unknowns={"U-HEALTH-CLASH": "api-server"}) as double:
        answer = http.get(f"{double.url}/health")

    assert "healthy" == first
    assert (200, "application/json", {"status": "ok"}) == (
        answer.status_code,
        answer.headers["content-type"],
        answer.json(),
    )
