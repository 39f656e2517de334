"""``/_emulator/runtimes`` and ``/_emulator/metrics``: the runtimes, their logs and metrics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agentdouble.clock import Clock
from agentdouble.errors import LogQueryError, UnknownRuntimeError
from agentdouble.runtimes.instance import Instance
from agentdouble.runtimes.logs import LINES, Line, RuntimeLogs
from agentdouble.runtimes.monitoring import Monitor
from agentdouble.runtimes.runtime import Runtime
from agentdouble.runtimes.runtimes import Runtimes
from agentdouble.runtimes.usage import Used, Watch

_PARAMETERS = ("tail", "instance", "format")
_FORMATS = ("json", "text")
_LONGEST_NUMBER = 15  # digits


class RuntimeRoutes:
    """The routes, below the double's own prefix; they raise HostingError."""

    def __init__(self, runtimes: Runtimes, monitor: Monitor, watch: Watch, clock: Clock) -> None:
        self._runtimes = runtimes
        self._monitor = monitor
        self._watch = watch
        self._clock = clock

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/metrics", self.metrics),
            Route("/runtimes", self.all),
            Route("/runtimes/{name:path}/logs", self.logs),
        ]

    async def metrics(self, request: Request) -> Response:
        """Return the metrics of every runtime in a format of Prometheus."""
        used = await self._watch.look()
        for runtime in self._runtimes.all():
            of_runtime = [used[one.name] for one in runtime.begun if one.name in used]
            self._monitor.show(
                runtime.name,
                memory=sum(one.memory for one in of_runtime),
                processes=sum(one.processes for one in of_runtime),
                lines=runtime.logs.printed,
                states=Counter(instance.state for instance in runtime.begun),
            )
        content, kind = self._monitor.render(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": kind})

    async def all(self, _request: Request) -> Response:
        """Return every runtime with its instances."""
        used = await self._watch.look()
        return JSONResponse({"runtimes": [self._shown(r, used) for r in self._runtimes.all()]})

    async def logs(self, request: Request) -> Response:
        """Return the printed lines of instances."""
        return printed(request, self._find(request).logs)

    def _find(self, request: Request) -> Runtime:
        name = request.path_params["name"]
        runtime = self._runtimes.find(name)
        if runtime is None:
            raise UnknownRuntimeError(name, [one.name for one in self._runtimes.all()])
        return runtime

    def _shown(self, runtime: Runtime, used: Mapping[str, Used]) -> dict[str, Any]:
        return {
            "name": runtime.name,
            "id": runtime.id,
            "status": runtime.status.word,
            "status_reason": runtime.status.message,
            "version": runtime.version.number,
            "instances": [self._instance(one, used.get(one.name, Used())) for one in runtime.begun],
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


def printed(request: Request, logs: RuntimeLogs) -> Response:
    """Return the lines that a request asks for; raise LogQueryError."""
    query = request.query_params
    unknown = [name for name in query if name not in _PARAMETERS]
    if unknown:
        allowed = ", ".join(_PARAMETERS)
        raise LogQueryError(unknown[0], f"is not known; known are {allowed}")
    format_, instance = query.get("format", "json"), query.get("instance")
    if format_ not in _FORMATS:
        raise LogQueryError("format", f"must be one of {', '.join(_FORMATS)}")
    if instance is not None and logs.of(instance) is None:
        known = ", ".join(logs.instances) or "none"
        reason = f"names no instance whose log is kept; there is {known}"
        raise LogQueryError("instance", reason)
    lines = logs.read(instance, _tail(query.get("tail", "1000")))
    if format_ == "text":
        return Response("".join(map(_plain, lines)), media_type="text/plain; charset=utf-8")
    return Response("".join(map(_json, lines)), media_type="application/x-ndjson")


def _tail(text: str) -> int:
    number = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    if not number or int(text) > LINES:
        raise LogQueryError("tail", f"must be a number from 0 to {LINES}, not {text[:40]!r}")
    return int(text)


def _json(line: Line) -> str:
    shown = {
        "number": line.number,
        "at": line.at.isoformat(),
        "instance": line.instance,
        "stream": line.stream,
        "text": line.text,
    }
    return json.dumps(shown) + "\n"


def _plain(line: Line) -> str:
    at = line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{at} {line.instance} {line.stream} {line.text}\n"
