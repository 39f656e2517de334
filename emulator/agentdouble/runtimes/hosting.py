"""The runtimes of one double and everything that serves them, started and stopped together.

Their own routes are ``/_emulator/runtimes``, ``/_emulator/metrics`` and ``/_emulator/identity``: the
runtimes, their logs and metrics, and the public keys of the tokens for applications.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from agentdouble.core import environment
from agentdouble.core.clock import Clock
from agentdouble.core.threads import pause, run_in_thread
from agentdouble.errors import LogQueryError
from agentdouble.processes.watch import Used, Watch, Watched
from agentdouble.runtimes import definition
from agentdouble.runtimes.authentication.gatekeeper import GatewayAuthenticator
from agentdouble.runtimes.gateway import RuntimeGateway
from agentdouble.runtimes.instance import RuntimeInstance
from agentdouble.runtimes.launching import InstanceLauncher
from agentdouble.runtimes.logs import LINES, Line, RuntimeLogs, shown_time
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.registry import RuntimeRegistry
from agentdouble.runtimes.runtime import Runtime
from agentdouble.server import guard
from agentdouble.settings import MIB, Settings
from agentdouble.state import Store

_LONG_INTERVAL_S = 2.0  # if no instance has a memory limit

_log = logging.getLogger(__name__)


class InstanceWatch:
    """Measures what instances use, and ends those over their memory limit."""

    def __init__(self, registry: RuntimeRegistry, monitor: Monitor) -> None:
        self._registry = registry
        self._monitor = monitor
        self._watch = Watch()
        self._cpu_s: dict[str, float] = {}  # at the last measurement
        self._measuring = asyncio.Lock()

    async def run(self) -> None:
        """Measure the instances that may have grown until it is cancelled."""
        while True:
            limited = any(instance.definition.memory_limit for _, instance in self._begun())
            await pause(self._watch.pause_s if limited else _LONG_INTERVAL_S)
            try:
                await self._measure(only_active=True)
            except Exception:  # the next measurement may succeed
                _log.exception("What the runtimes use could not be measured.")

    async def measure(self) -> Mapping[str, Used]:
        """Return what each instance uses, by name."""
        return await self._measure(only_active=False)

    async def _measure(self, *, only_active: bool) -> Mapping[str, Used]:
        """Measure instances; add up their time, and end those above their limit."""
        async with self._measuring:
            begun = {i.name: (r, i) for r, i in self._begun() if i.pid is not None}
            for ended in self._cpu_s.keys() - begun.keys():
                del self._cpu_s[ended]
                self._watch.forget(ended)
            names = set(begun)
            if only_active:  # or new
                names &= await run_in_thread(self._watch.active) | begun.keys() - self._cpu_s.keys()
            groups = [
                Watched(name, (begun[name][1].pid or 0,), begun[name][1].definition.memory_limit)
                for name in names
            ]
            over = await run_in_thread(lambda: self._watch.check(groups)) if groups else {}
            used = {name: self._watch.used_by(name) or Used() for name in names}
            for name, use in used.items():
                spent_s = use.cpu_s - self._cpu_s.get(name, 0.0)
                self._monitor.spent(begun[name][0].name, max(0.0, spent_s))
                self._cpu_s[name] = use.cpu_s
        for name in over:  # without the lock, because an end may take long
            await self._end(*begun[name], used[name].memory)
        return used

    async def _end(self, runtime: Runtime, instance: RuntimeInstance, memory: int) -> None:
        limit = instance.definition.memory_limit or 0
        mib = f"{memory // MIB} MiB, and its limit is {limit // MIB} MiB"
        instance.log.note(f"killed: its processes had {mib}")
        runtime.end(instance, "memory")
        await instance.kill()

    def _begun(self) -> list[tuple[Runtime, RuntimeInstance]]:
        runtimes = self._registry.runtimes()
        return [(runtime, instance) for runtime in runtimes for instance in runtime.begun]


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

    ``reserved`` are the names that are already used below ``PREFIX``. Hosted code finds its double
    by the ``variables``. Raises DeclarationError for wrong tables in the settings, and
    MissingExtraError.
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
        self.launcher = InstanceLauncher(settings, variables)
        self.registry = RuntimeRegistry(
            clock,
            monitor,
            self.launcher.launch,
            definition.read_all(settings.runtimes, reserved),
            store,
            idle_s=settings.runtime_idle_s,
            reserved=reserved,
        )
        self._authenticator = GatewayAuthenticator(clock, lambda: environment.url(variables()))
        self.app = RuntimeGateway(self.registry, monitor, clock, self._authenticator)
        self._watch = InstanceWatch(self.registry, monitor)
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
                Route(guard.IDENTITY_DISCOVERY.removeprefix(guard.OWN), self._discovery),
                Route(guard.IDENTITY_KEYS.removeprefix(guard.OWN), self._keys),
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

    async def _discovery(self, _request: Request) -> Response:
        return JSONResponse((await self._authenticator.tip_issuer()).configuration())

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse((await self._authenticator.tip_issuer()).keys())

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

    def _instance(self, instance: RuntimeInstance, used: Used) -> dict[str, Any]:
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
