"""The runtimes of one double and everything that serves them, started and stopped together.

Their own routes are ``/_emulator/runtimes`` and ``/_emulator/metrics``: the runtimes, their logs
and metrics.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from agentdouble.core.clock import Clock
from agentdouble.core.threads import pause, run_in_thread
from agentdouble.errors import LogQueryError
from agentdouble.processes import usage
from agentdouble.runtimes import definition
from agentdouble.runtimes.gateway import Gateway
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.launching import Launcher
from agentdouble.runtimes.logs import LINES, Line, RuntimeLogs, shown_time
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.runtime import Runtime
from agentdouble.settings import MIB, Settings
from agentdouble.state import Store

INTERVAL_S = 0.25  # if an instance has a memory limit
_LONG_INTERVAL_S = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Used:
    """What an instance uses: resident memory (bytes), processes, processor time (seconds)."""

    memory: int = 0
    processes: int = 0
    cpu_s: float = 0.0


class Watch:
    """Measures what instances use; belongs to one event loop, with blocking work in a thread.

    An instance is ended when a measurement shows it over its memory limit, so it can exceed the
    limit for a moment. Memory is measured, not limited by the system. A limit of the address space
    would refuse memory that programs merely reserve (threads, engines with a heap of their own),
    and would apply to each child separately. The limit here applies to all processes of an
    instance together.
    """

    def __init__(self, registry: RuntimeRegistry, monitor: Monitor) -> None:
        self._registry = registry
        self._monitor = monitor
        self._busy: dict[Instance, float] = {}  # processor time at the last measurement
        self._measuring = asyncio.Lock()

    async def run(self) -> None:
        """Measure the instances until it is cancelled."""
        while True:
            limited = any(instance.definition.memory_limit for _, instance in self._begun())
            await pause(INTERVAL_S if limited else _LONG_INTERVAL_S)
            try:
                await self.measure()
            except Exception:  # the next measurement may succeed
                _log.exception("What the runtimes use could not be measured.")

    async def measure(self) -> Mapping[str, Used]:
        """Return what each instance uses, by name; add up its time, and end it above its limit."""
        async with self._measuring:
            pairs = [
                (runtime, instance)
                for runtime, instance in self._begun()
                if instance.pid is not None
            ]
            instances = [instance for _, instance in pairs]
            used = await run_in_thread(lambda: _measure(instances)) if instances else {}
        for runtime, instance in pairs:
            cpu_s = used[instance.name].cpu_s
            self._monitor.spent(runtime.name, max(0.0, cpu_s - self._busy.get(instance, 0.0)))
            self._busy[instance] = cpu_s
            await self._judge(runtime, instance, used[instance.name].memory)
        for ended in self._busy.keys() - set(instances):
            del self._busy[ended]
        return used

    async def _judge(self, runtime: Runtime, instance: Instance, memory: int) -> None:
        limit = instance.definition.memory_limit
        if limit is None or memory <= limit:
            return
        mib = f"{memory // MIB} MiB, and its limit is {limit // MIB} MiB"
        instance.log.note(f"killed: its processes had {mib}")
        runtime.end(instance, "memory")
        await instance.kill()

    def _begun(self) -> list[tuple[Runtime, Instance]]:
        runtimes = self._registry.runtimes()
        return [(runtime, instance) for runtime in runtimes for instance in runtime.begun]


def _measure(instances: list[Instance]) -> Mapping[str, Used]:
    measured = {}
    for instance in instances:
        tree = usage.walk((instance.pid or 0,))
        limit = instance.definition.memory_limit
        resident = sum(process.resident for process in tree)
        memory = resident if limit is None else usage.memory(tree, limit)
        busy_s = sum(process.busy_s for process in tree)
        measured[instance.name] = Used(memory, len(tree), busy_s)
    return measured


_PARAMETERS = ("tail", "instance", "format")


def printed(request: Request, logs: RuntimeLogs) -> Response:
    """Return the lines that a request asks for; raise LogQueryError."""
    query = {"tail": "1000", "instance": None, "format": "json", **request.query_params}
    for name in query.keys() - _PARAMETERS:
        raise LogQueryError(name, f"is not known; known are {', '.join(_PARAMETERS)}")
    tail, instance, form = str(query["tail"]), query["instance"], query["format"]
    if form not in ("json", "text"):
        raise LogQueryError("format", "must be one of json, text")
    if not re.fullmatch("[0-9]{1,5}", tail) or int(tail) > LINES:
        raise LogQueryError("tail", f"must be a number from 0 to {LINES}, not {tail[:40]!r}")
    if instance is not None and logs.of(instance) is None:
        names = ", ".join(logs.instances) or "none"
        reason = f"names no instance whose log is kept; there is {names}"
        raise LogQueryError("instance", reason)
    lines = logs.read(instance, int(tail))
    if form == "text":
        return Response("".join(map(_plain, lines)), media_type="text/plain; charset=utf-8")
    return Response("".join(map(_json, lines)), media_type="application/x-ndjson")


def _json(line: Line) -> str:
    return json.dumps({**asdict(line), "at": line.at.isoformat()}) + "\n"


def _plain(line: Line) -> str:
    return f"{shown_time(line.at)} {line.instance} {line.stream} {line.text}\n"


class Hosting:
    """Hosts runtimes for one double; belongs to one event loop.

    ``reserved`` are the names that are already used below ``PREFIX``. Hosted code finds its double by the
    ``variables``. Raises DeclarationError for wrong tables in the settings, and MissingExtraError.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        store: Store,
        *,
        reserved: Collection[str],
        variables: Callable[[], Mapping[str, str]],
    ) -> None:
        monitor = Monitor()
        self.launcher = Launcher(settings, variables)
        self.registry = RuntimeRegistry(
            clock,
            monitor,
            self.launcher.launch,
            definition.read_all(settings.runtimes, reserved),
            store,
            idle_s=settings.runtime_idle_s,
            reserved=reserved,
        )
        self.app = Gateway(self.registry, monitor, clock)
        self._watch = Watch(self.registry, monitor)
        self._monitor = monitor
        self._clock = clock
        self._resources = AsyncExitStack()

    def admin_app(self) -> Router:
        """Return the application of the double's own routes; they raise HostingError."""
        return Router(
            [
                Route("/metrics", self._metrics),
                Route("/runtimes", self._all),
                Route("/runtimes/{name:path}/logs", self._logs),
            ]
        )

    def begin(self) -> None:
        """Answer from now on, and keep the least number of instances even without a request."""
        self._resources.push_async_callback(self.app.close)
        self._resources.push_async_callback(self.launcher.close)
        if self.registry.all():
            self.launcher.prepare()
        self._resources.push_async_callback(self.registry.close)
        for work in (self.registry.reap(), self._watch.run()):
            self._resources.callback(asyncio.ensure_future(work).cancel)
        self.registry.ensure_min_instances()

    async def close(self) -> None:
        """Stop everything; return when nothing is left."""
        await self._resources.aclose()

    async def _metrics(self, request: Request) -> Response:
        """Return the metrics of every runtime in a format of Prometheus."""
        used = await self._watch.measure()
        for runtime in self.registry.runtimes():
            of_runtime = [
                used[instance.name] for instance in runtime.begun if instance.name in used
            ]
            self._monitor.show(
                runtime.name,
                memory=sum(use.memory for use in of_runtime),
                processes=sum(use.processes for use in of_runtime),
                lines=runtime.logs.printed,
                states=Counter(instance.state for instance in runtime.begun),
            )
        content, kind = self._monitor.render(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": kind})

    async def _all(self, _request: Request) -> Response:
        """Return every runtime with its instances."""
        used = await self._watch.measure()
        return JSONResponse({"runtimes": [self._shown(r, used) for r in self.registry.runtimes()]})

    async def _logs(self, request: Request) -> Response:
        """Return the printed lines of instances."""
        return printed(request, self.registry.named(request.path_params["name"]).runtime.logs)

    def _shown(self, runtime: Runtime, used: Mapping[str, Used]) -> dict[str, Any]:
        return {
            "name": runtime.name,
            "id": runtime.id,
            "status": runtime.status.word,
            "status_reason": runtime.status.message,
            "version": runtime.version.number,
            "instances": [
                self._instance(instance, used.get(instance.name, Used()))
                for instance in runtime.begun
            ],
            "logs_of": list(runtime.logs.instances),
        }

    def _instance(self, instance: Instance, used: Used) -> dict[str, Any]:
        return {
            "name": instance.name,
            "state": instance.state,
            "version": instance.version,
            "pid": instance.pid,
            "port": instance.port,
            "in_flight": instance.in_flight,
            "served": instance.served,
            "created_at": instance.created_at.isoformat(),
            "age_s": (self._clock.now() - instance.created_at).total_seconds(),
            "idle_since": None if instance.in_flight else instance.idle_since.isoformat(),
            "memory_bytes": used.memory,
            "cpu_s": used.cpu_s,
            "processes": used.processes,
        }
