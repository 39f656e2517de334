"""``/v1/jupyter/...`` and ``/v1/code/...``: run code in the session's kernels."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentdouble.core import ledger
from agentdouble.openapi import operation as described
from agentdouble.openapi.operation import like
from agentdouble.sandbox import languages, named_kernels
from agentdouble.sandbox.data_plane.session_token import Refused, processes_of
from agentdouble.sandbox.local_processes import LocalProcesses
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.workbench.wire import (
    Envelope,
    Model,
    RequestBody,
    envelope,
    read_body,
    reading,
    run_for_client,
)
from agentdouble.settings import Settings


def _runnable(code: str) -> str:
    if not code.strip():
        raise ValueError("it must not be empty")
    return _without_nul(code)


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it must not contain NUL characters")
    return text


Code = Annotated[str, AfterValidator(_runnable)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Directory = Annotated[str, AfterValidator(_without_nul)]


class JupyterExecute(RequestBody):
    """Code for a session's kernel, or for the kernel of one of its Jupyter sessions."""

    code: Code
    timeout: int | None = Field(None, ge=1)
    kernel_name: str = "python3"
    session_id: Name | None = None
    cwd: Directory | None = None


class JupyterCreate(RequestBody):
    """A request to create a Jupyter session."""

    session_id: Name | None = None
    kernel_name: str = "python3"
    cwd: Directory | None = None


class CodeExecute(RequestBody):
    """Code for a separate kernel; if ``stateful``, the kernel is kept for the next request."""

    language: Literal["python", "javascript"]
    code: Code
    timeout: int | None = Field(None, ge=1)
    cwd: Directory | None = None
    stateful: bool = False
    session_id: Name | None = None


class CodeRoutes:
    """The code routes; they use the kernels of the session that the request names."""

    def __init__(self, sessions: SandboxSessions, settings: Settings) -> None:
        self._sessions = sessions
        self._settings = settings

    def routes(self) -> list[Route]:
        """Return the routes below ``/v1/jupyter`` and ``/v1/code``."""
        return [
            _post("/v1/jupyter/execute", JupyterExecute, self.execute),
            _post("/v1/jupyter/sessions/create", JupyterCreate, self.create),
            Route("/v1/jupyter/info", self.info),
            Route("/v1/jupyter/sessions", self.sessions),
            Route("/v1/jupyter/sessions", self.close_all, methods=["DELETE"]),
            Route("/v1/jupyter/sessions/{session_id}", self.close, methods=["DELETE"]),
            _post("/v1/code/execute", CodeExecute, self.run),
            Route("/v1/code/info", self.languages),
        ]

    async def execute(self, processes: LocalProcesses, body: JupyterExecute) -> Response:
        """Run code in the kernel that InvokeTool also uses, or in a Jupyter session's kernel."""
        kind = languages.find(body.kernel_name)
        timeout_s = self._timeout_s(body.code, body.timeout)
        cwd = await processes.directory(body.cwd)
        if body.session_id is None:
            result = await self._sessions.execute(
                processes.session, body.code, body.kernel_name, timeout_s, cwd
            )
            return _answer(result, result.to_data(processes.session.id, body.kernel_name))
        notebook = await processes.named_kernels.open(body.session_id, kind)
        result = await self._in_notebook(processes, notebook, body.code, timeout_s, cwd)
        return _answer(result, result.to_data(notebook.name, body.kernel_name))

    async def create(self, processes: LocalProcesses, body: JupyterCreate) -> Response:
        """Create a Jupyter session; leave an existing one unchanged."""
        kind, cwd = languages.find(body.kernel_name), await processes.directory(body.cwd)
        notebook = await processes.named_kernels.open(body.session_id, kind, cwd)
        message = f"Session {notebook.name} is ready"
        data = {"session_id": notebook.name, "kernel_name": body.kernel_name, "message": message}
        return envelope(data, message)

    async def run(self, processes: LocalProcesses, body: CodeExecute) -> Response:
        """Run code in a kernel that is kept only if the request is ``stateful``."""
        kind = languages.find(body.language)
        timeout_s = self._timeout_s(body.code, body.timeout)
        cwd = await processes.directory(body.cwd)
        name = body.session_id if body.stateful else None
        notebook = await processes.named_kernels.open(name, kind)
        try:
            result = await self._in_notebook(processes, notebook, body.code, timeout_s, cwd)
        finally:
            if not body.stateful:
                await processes.named_kernels.close(notebook.name)
        data = {
            "language": body.language,
            "status": result.status,
            "outputs": [output.to_dict() for output in result.outputs],
            "code": body.code,
            "stdout": _stream(result, "stdout"),
            "stderr": _stream(result, "stderr"),
            "exit_code": 0 if result.status == "ok" else 1,
            "traceback": None if result.error is None else list(result.error.traceback or ()),
            "session_id": notebook.name if body.stateful else None,
        }
        return _answer(result, data)

    @described(Envelope)
    async def info(self, request: Request) -> Response:
        """Return facts about the Jupyter routes."""
        processes = processes_of(request)
        data = {
            "default_kernel": "python3",
            "available_kernels": sorted(languages.names()),
            "active_sessions": len(processes.named_kernels),
            "session_timeout_seconds": int(processes.session.lifetime.ttl.total_seconds()),
            "max_sessions": named_kernels.MOST,
            "description": "Each Jupyter session has its own kernel and ends with its sandbox",
            "kernel_detection": "static",
        }
        return envelope(data, "Operation successful")

    @described(Envelope)
    async def sessions(self, request: Request) -> Response:
        """Return the Jupyter sessions by name."""
        living = processes_of(request).named_kernels.living()
        return envelope({"sessions": {n.name: n.to_dict() for n in living}}, "Operation successful")

    @described(Envelope)
    async def close_all(self, request: Request) -> Response:
        """End every Jupyter session."""
        count = await processes_of(request).named_kernels.close_all()
        return envelope(None, f"{count} sessions were closed")

    @described(Envelope)
    async def close(self, request: Request) -> Response:
        """End a Jupyter session."""
        name = request.path_params["session_id"]
        if not await processes_of(request).named_kernels.close(name):
            raise Refused(404, f"There is no Jupyter session {name!r}.")
        return envelope(None, f"Session {name} was closed")

    @described(Envelope)
    async def languages(self, _request: Request) -> Response:
        """Return the languages and the time limits of their code."""
        supported = (("python", "Python"), ("javascript", "JavaScript"))
        limits = {
            "default_timeout": self._settings.exec_timeout_s,
            "max_timeout": self._settings.exec_timeout_max_s,
        }
        listed = [
            {"language": name, "description": description, "runtime_version": None, **limits}
            for name, description in supported
        ]
        return envelope({"languages": listed}, "Operation successful")

    async def _in_notebook(
        self,
        processes: LocalProcesses,
        notebook: named_kernels.NamedKernel,
        code: str,
        timeout_s: int,
        cwd: str | None,
    ) -> ExecutionResult:
        result = await processes.named_kernels.execute(notebook, code, timeout_s, cwd)
        processes.session.check_usable()
        return result

    def _timeout_s(self, code: str, timeout_s: int | None) -> int:
        ledger.choose("U-EXEC-LIMITS")
        limit, largest = self._settings.code_limit, self._settings.exec_timeout_max_s
        if len(code.encode()) > limit:
            raise Refused(413, f"The code is larger than {limit} bytes.")
        if timeout_s is not None and timeout_s > largest:
            raise Refused(400, f"The timeout is larger than {largest} seconds.")
        return min(self._settings.exec_timeout_s, largest) if timeout_s is None else timeout_s


def _post(
    path: str,
    model: type[Model],
    operation: Callable[[LocalProcesses, Model], Coroutine[Any, Any, Response]],
) -> Route:
    @like(operation, reading(model))
    async def endpoint(request: Request) -> Response:
        body = await read_body(request, model)
        return await run_for_client(request, operation(processes_of(request), body))

    return Route(path, endpoint, methods=["POST"])


def _answer(result: ExecutionResult, data: Mapping[str, Any]) -> Response:
    return envelope(data, result.message, success=result.succeeded)


def _stream(result: ExecutionResult, name: str) -> str:
    return "".join(output.text or "" for output in result.outputs if output.name == name)
