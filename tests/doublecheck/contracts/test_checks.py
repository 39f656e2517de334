"""The checks pass on the double, and each fails where the double is broken."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

# what pytester imports it forgets, and the validator's parts then do not know each other
import openapi_spec_validator  # noqa: F401
import pytest
from a2a.server.tasks import InMemoryTaskStore
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from agentdouble import run_code as run_code_function
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.events import Event, Message, Part
from agentdouble.api_server import replies
from agentdouble.api_server import routes as api_routes
from agentdouble.api_server import views as api_views
from agentdouble.api_server.artifacts import Artifacts
from agentdouble.api_server.encoding import Fragment
from agentdouble.api_server.memory import MemorySessions
from agentdouble.api_server.records import SessionKey
from agentdouble.api_server.replies import Replies
from agentdouble.api_server.runs import Run, Runs
from agentdouble.api_server.sessions import Sessions
from agentdouble.api_server.turns import Ended
from agentdouble.apps import A2AApp, MCPApp, bodies, mcp_server, simple, tools
from agentdouble.apps.a2a import cards, classes
from agentdouble.apps.a2a.beside import Beside
from agentdouble.apps.a2a.user_store import UserTaskStore
from agentdouble.apps.tool_results import Results
from agentdouble.control_plane import envelope, invoke_tool_action
from agentdouble.control_plane.authentication import Authenticator
from agentdouble.control_plane.routes import ControlPlane
from agentdouble.errors import ActionError
from agentdouble.mcp_hosting import host
from agentdouble.mcp_services import api_backend, handle, passthrough
from agentdouble.sandbox import languages
from agentdouble.sandbox.browser import chromium
from agentdouble.sandbox.data_plane import forwarding, refusing, routes
from agentdouble.sandbox.instances import Instance, Instances
from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import Output
from agentdouble.sandbox.terminal import Terminal
from doublecheck import Credentials, Target, contracts
from doublecheck.collecting import Collector
from doublecheck.connecting import serving_double
from doublecheck.contracts import reference_app, wire
from doublecheck.contracts.clauses import clauses
from doublecheck.runs import Run as CheckRun
from doublecheck.verdicts import Verdict

CHECKED = (
    *(f"INV-{number:02d}" for number in range(1, 10)),
    *(f"PRB-{number:02d}" for number in range(1, 8)),
    *(f"CTL-{number:02d}" for number in range(1, 9)),
    *(f"SBX-{number:02d}" for number in range(1, 13)),
    *(f"RUN-{number:02d}" for number in range(1, 4)),
    *(f"DEC-{number:02d}" for number in range(1, 7)),
    *(f"MCP-{number:02d}" for number in range(1, 7)),
    *(f"SVC-{number:02d}" for number in range(1, 4)),
    *(f"A2A-{number:02d}" for number in range(1, 6)),
    *(f"API-{number:02d}" for number in range(1, 19)),
    "AUT-01",
)

RUNTIMES = (*(f"HST-{number:02d}" for number in range(1, 6)), "AUT-02", "AUT-03")

BROWSER = chromium.find(None) is not None or "CI" in os.environ
HAS_BROWSER = pytest.mark.skipif(not BROWSER, reason=f"needs Chromium: {chromium.INSTALL}")

Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture
def check(pytester: pytest.Pytester) -> Callable[..., CheckRun]:
    """Runs contract checks in a pytest of their own: all, or those of one clause."""

    def run(*arguments: str, clause: str | None = None) -> CheckRun:
        collector = Collector()
        chosen = [] if clause is None else ["-k", clause]
        ended = pytester.inline_run(
            "--pyargs", *_modules(clause), *chosen, *arguments, plugins=[collector]
        )
        return CheckRun(collector.checks(), int(ended.ret))

    return run


def _modules(clause: str | None) -> list[str]:
    """Return where the checks of a clause are: to collect all others takes longer than to run it."""
    if clause is None:
        return [contracts.__name__]
    files = Path(contracts.__file__).parent.glob("test_*.py")
    naming = [file.stem for file in files if f'@clause("{clause}"' in file.read_text("utf-8")]
    return [f"{contracts.__name__}.{name}" for name in naming]


def verdicts(run: CheckRun) -> Mapping[str, Verdict]:
    return {clause.id: verdict for clause, verdict in run.verdicts().items()}


def passed() -> dict[str, Verdict]:
    """Return the verdicts of a run in which all is well; a browser is not on every machine."""
    found = dict.fromkeys(CHECKED, Verdict.PASSED) | dict.fromkeys(RUNTIMES, Verdict.NOT_OFFERED)
    return found if BROWSER else found | {"SBX-11": Verdict.NOT_RUN}


def test_every_check_passes_on_the_double(check: Callable[..., CheckRun]) -> None:
    """Nothing is skipped but runtimes, which it does not offer; every clause has a check."""
    run = check()

    assert passed() == verdicts(run)
    assert set(clauses()) == set(verdicts(run))
    assert set(passed().values()) == {one.verdict for one in run.checks}


@pytest.mark.parametrize(
    "group", ["INV", "PRB", "CTL", "SBX", "RUN", "DEC", "MCP", "SVC", "A2A", "API", "AUT", "HST"]
)
def test_a_groups_name_selects_its_checks(pytester: pytest.Pytester, group: str) -> None:
    """-k INV takes the checks of those clauses, and none whose name happens to match."""
    arguments = ("--pyargs", "doublecheck.contracts", "--collect-only", "-k", group)
    recorded = pytester.inline_run(*arguments)

    items = recorded.getcall("pytest_collection_finish").session.items
    assert {group} == {dict(item.user_properties)["clause"][:3] for item in items}


def test_a_live_target_is_checked_as_far_as_it_shows_itself(
    check: Callable[..., CheckRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is not applicable, the application not observable, 30 minutes not run.

    Where nobody allows it to, nothing is made on it.
    """
    with serving_double() as double:
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        live = ("--platform-target=live", f"--platform-url={double.url}")
        run = check(*live, "--platform-allow-writes")
        reading = check(*live, "-k", "API-01 or API-02 or SBX-01 or CTL-03")

    told = verdicts(run)
    expected = passed()
    expected |= {id_: Verdict.NOT_APPLICABLE for id_ in CHECKED if id_[:3] in ("DEC", "RUN")}
    expected |= {f"INV-{number:02d}": Verdict.NOT_OBSERVABLE for number in range(1, 8)}
    expected |= dict.fromkeys(("INV-09", "PRB-05"), Verdict.NOT_OBSERVABLE)
    expected |= {f"MCP-{number:02d}": Verdict.NOT_OBSERVABLE for number in range(3, 7)}
    expected |= {f"A2A-{number:02d}": Verdict.NOT_OBSERVABLE for number in range(2, 5)}
    expected |= {"A2A-05": Verdict.NOT_APPLICABLE}
    expected |= dict.fromkeys(("API-09", "API-11", "API-17"), Verdict.NOT_OBSERVABLE)
    expected |= {"SBX-03": Verdict.NOT_RUN, "CTL-07": Verdict.NOT_RUN}
    services = ("MCP-01", "MCP-02", "SVC-01", "SVC-02", "SVC-03")
    expected |= dict.fromkeys(services, Verdict.NOT_OFFERED)
    assert expected | {"CTL-08": Verdict.NOT_OBSERVABLE} == told
    assert {
        "API-01": Verdict.PASSED,
        "API-02": Verdict.NOT_RUN,
        "CTL-03": Verdict.PASSED,
        "SBX-01": Verdict.NOT_RUN,
    } == verdicts(reading)


def test_missing_credentials_are_an_error_and_never_a_skip(check: Callable[..., CheckRun]) -> None:
    """What could not be checked is not passed over, and not blamed on the platform."""
    with serving_double() as double:
        run = check(f"--platform-url={double.url}", "-k", "CTL-04 or SBX-01")

    assert {"CTL-04": Verdict.ERROR, "SBX-01": Verdict.ERROR} == verdicts(run)


def test_a_failure_begins_with_its_clause(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Id, level and text come first, then what pytest shows."""
    monkeypatch.setattr(bodies, "failure", lambda *_: PlainTextResponse("fine"))

    result = pytester.runpytest_inprocess("--pyargs", "doublecheck.contracts", "-k", "INV-08")

    result.stdout.fnmatch_lines(
        [
            "INV-08 (should): A body that is not JSON is refused with a 4xx status and a clear error.",
            "specification, section 4.1",
            "",
            "*test_invocation.py*",
        ]
    )


def drop_fields(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        kept = {name: payload[name] for name in ("prompt",)}
        return await original(self, entrypoint, kept, headers)

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def drop_headers(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._invoke

    async def invoke(self: Any, entrypoint: Any, payload: Any, headers: Any) -> Any:
        kept = {name: value for name, value in headers.items() if not name.startswith("x-")}
        return await original(self, entrypoint, payload, kept)

    patch.setattr(simple.SimpleApp, "_invoke", invoke)


def demand_headers(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-INVOKE-HEADERS": "enforced"}')


def return_plain_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "result", PlainTextResponse)


def hold_the_stream_back(patch: pytest.MonkeyPatch) -> None:
    original = simple.SimpleApp._stream

    async def stream(self: Any, chunks: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        yield b"".join([event async for event in original(self, chunks)])

    patch.setattr(simple.SimpleApp, "_stream", stream)
    patch.setattr(reference_app, "READ_WITHIN_S", 0.1)


def swallow_the_streams_failure(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "stream_failure", lambda _: b"")


def pass_an_exception_off_as_success(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "entrypoint_failure", lambda _: PlainTextResponse("fine"))


def accept_any_body(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "failure", lambda *_: PlainTextResponse("fine"))


def type_nothing(patch: pytest.MonkeyPatch) -> None:
    async def perform(self: Any, hand: Any) -> None:
        pass

    patch.setattr("agentdouble.sandbox.browser.actions.Typing.perform", perform)


def share_one_session(patch: pytest.MonkeyPatch) -> None:
    module = __import__("sys").modules["agentdouble.run_code"]
    patch.setattr(module.Invocation, "user_session_id", "shared")


def answer_another_ping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "ping", lambda _: PlainTextResponse("something else"))


def want_a_ping_function(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-PROBE-ERROR": "absent-404"}')


def run_entrypoints_on_the_servers_loop(patch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def lifespan(_self: Any) -> AsyncIterator[None]:
        yield

    patch.setattr(simple.SimpleApp, "lifespan", lifespan)
    patch.setattr(reference_app, "BLOCKED_AT_MOST_S", 0.6)
    patch.setattr(wire, "PING_WITHIN_S", 0.2)


def forget_the_region(patch: pytest.MonkeyPatch) -> None:
    original = envelope.Metadata.to_dict

    def to_dict(self: envelope.Metadata) -> dict[str, Any]:
        return {name: value for name, value in original(self).items() if name != "Region"}

    patch.setattr(envelope.Metadata, "to_dict", to_dict)


def forget_the_traceback_key(patch: pytest.MonkeyPatch) -> None:
    original = Output.to_dict

    def to_dict(self: Output) -> dict[str, Any]:
        return {name: value for name, value in original(self).items() if name != "traceback"}

    patch.setattr(Output, "to_dict", to_dict)


def verify_no_signature(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Authenticator, "check", lambda *_: None)


def run_any_tool(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action.InvokeTool.__call__

    async def call(self: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        return await original(self, {**body, "ToolId": self._settings.tool_id})

    patch.setattr(invoke_tool_action.InvokeTool, "__call__", call)


def misname_instances(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Instance, "__setattr__", _with_bare_id)


def _with_bare_id(self: Any, name: str, value: Any) -> None:
    object.__setattr__(self, name, value.removeprefix("s-") if name == "id" else value)


def name_no_action(patch: pytest.MonkeyPatch) -> None:
    def find(_self: Any, *_: Any) -> None:
        raise ActionError("InvalidActionOrVersion", "No.", status=404)

    patch.setattr(ControlPlane, "_find", find)


def permit_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Authenticator, "_permit", lambda *_: None)


def demand_a_ttl(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action.InvokeTool.__call__

    async def call(self: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        if "Ttl" not in body:
            raise ActionError("MissingParameter", "The request is missing Ttl parameter.")
        return await original(self, body)

    patch.setattr(invoke_tool_action.InvokeTool, "__call__", call)


def refuse_new_sessions(patch: pytest.MonkeyPatch) -> None:
    def create(*_: Any) -> None:
        raise ActionError("InvalidResource.NotFound", "No such session.", status=404)

    patch.setattr(Instances, "_create", create)


def make_an_instance_each_time(patch: pytest.MonkeyPatch) -> None:
    original = Instances.get_or_create

    async def get(self: Instances, *wanted: Any) -> Instance:
        await self.reset("broken on purpose")
        return await original(self, *wanted)

    patch.setattr(Instances, "get_or_create", get)


def destroy_early(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_SESSION_TTL_S", "1799")


def destroy_late(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AGENTDOUBLE_SESSION_TTL_S", "1860")


def share_one_instance(patch: pytest.MonkeyPatch) -> None:
    original = Instances.get_or_create

    async def get(self: Instances, tool_id: str, _: str, *rest: Any) -> Instance:
        return await original(self, tool_id, "shared", *rest)

    patch.setattr(Instances, "get_or_create", get)


def misname_the_stream(patch: pytest.MonkeyPatch) -> None:
    original = OutputCollector._stream
    patch.setattr(
        OutputCollector, "_stream", lambda self, _name, text: original(self, "stderr", text)
    )


def drop_errors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OutputCollector, "_error", lambda *_: None)


def count_nothing(patch: pytest.MonkeyPatch) -> None:
    original = invoke_tool_action._inner

    def inner(result: Any, *rest: Any) -> str:
        return original(dataclasses.replace(result, execution_count=1), *rest)

    patch.setattr(invoke_tool_action, "_inner", inner)


def speak_python_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(languages, "find", lambda _: languages.PYTHON)


def lose_the_exit_code(patch: pytest.MonkeyPatch) -> None:
    original = Terminal.run

    async def run(self: Terminal, *arguments: Any) -> dict[str, Any]:
        answer = await original(self, *arguments)
        return {**answer, "data": {**answer["data"], "exit_code": 0}}

    patch.setattr(Terminal, "run", run)


def run_terminals_elsewhere(patch: pytest.MonkeyPatch) -> None:
    original = Terminal.run

    async def run(self: Terminal, workbench: Any, command: Mapping[str, Any]) -> dict[str, Any]:
        return await original(self, workbench, {**command, "exec_dir": "/"})

    patch.setattr(Terminal, "run", run)


def keep_no_upload(patch: pytest.MonkeyPatch) -> None:
    original = forwarding.forward

    async def forward(request: Request) -> Response:
        if request.url.path != "/v1/file/upload":
            return await original(request)
        data = {"file_path": "/home/gem/doublecheck/in.bin", "file_size": 1024, "success": True}
        return refusing.envelope(data, "File uploaded successfully")

    _answer_files(patch, forward)


def spoil_downloads(patch: pytest.MonkeyPatch) -> None:
    original = forwarding.forward

    async def forward(request: Request) -> Response:
        if request.url.path != "/v1/file/download":
            return await original(request)
        return PlainTextResponse("something else")

    _answer_files(patch, forward)


def _answer_files(patch: pytest.MonkeyPatch, forward: Any) -> None:
    patch.setattr(routes, "forward", forward)


def forget_the_result(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(invoke_tool_action, "_inner", lambda *_: '{"success": false, "data": {}}')


def take_any_tool_id(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(run_code_function.__globals__, "_tool_id", lambda _: "t-sandbox")


def prefer_the_environments_keys(patch: pytest.MonkeyPatch) -> None:
    import os

    def credentials(_state: Any) -> Credentials:
        return Credentials(os.environ["PLATFORM_ACCESS_KEY"], os.environ["PLATFORM_SECRET_KEY"])

    patch.setitem(run_code_function.__globals__, "_credentials", credentials)


def accept_any_entrypoint(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "check_entrypoint", lambda _: None)


def accept_any_ping(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple, "check_ping", lambda _: None)


def accept_async_task(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simple.SimpleApp, "async_task", lambda _self, function: function)


def accept_any_tool(patch: pytest.MonkeyPatch) -> None:
    original = tools.signature_of

    def signature_of(*decorated: Any) -> inspect.Signature:
        found = original(*decorated)
        kept = [
            one.replace(annotation=Any) if one.annotation is one.empty else one
            for one in found.parameters.values()
        ]
        return found.replace(parameters=kept)

    patch.setattr(tools, "signature_of", signature_of)


def list_no_async_tool(patch: pytest.MonkeyPatch) -> None:
    original = mcp_server._Tools.list

    async def list_(self: Any, *asked: Any) -> Any:
        found = await original(self, *asked)
        found.tools = [one for one in found.tools if not self._tools[one.name].is_async]
        return found

    patch.setattr(mcp_server._Tools, "list", list_)


def forget_the_schema(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mcp_server, "_on_wire", _without(input_schema={"type": "object"}))


def forget_the_description(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mcp_server, "_on_wire", _without(description=""))


def _without(**replaced: Any) -> Callable[[Any], Any]:
    original = mcp_server._on_wire
    return lambda tool: original(tool).model_copy(update=replaced)


def return_text_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Results, "_structured", lambda *_: None)


def wrap_no_agent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MCPApp, "agent_as_a_tool", lambda _self, function: function)


def accept_any_executor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classes, "executor_of", lambda cls, arguments: cls)


def need_no_runner(patch: pytest.MonkeyPatch) -> None:
    original = A2AApp.agent_executor

    def agent_executor(self: Any, *given: Any, runner: Any = "echo", **arguments: Any) -> Any:
        return original(self, *given, runner=runner, **arguments)

    patch.setattr(A2AApp, "agent_executor", agent_executor)


def accept_any_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classes, "store_of", lambda cls, arguments: cls)


def keep_no_task(patch: pytest.MonkeyPatch) -> None:
    async def get(self: Any, *asked: Any) -> None:
        return None

    patch.setattr(InMemoryTaskStore, "get", get)


def leave_addresses_out_of_cards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cards, "_interfaces", lambda *_: [])


def run_no_executor(patch: pytest.MonkeyPatch) -> None:
    async def run(self: Any, *work: Any) -> None:
        return None

    patch.setattr(Beside, "run", run)


def hold_results_back(patch: pytest.MonkeyPatch) -> None:
    original = Beside.run

    async def run(self: Any, work: Any, hear: Any, limit_s: float) -> None:
        held: list[Any] = []

        async def hold(event: Any) -> None:
            held.append(event)

        try:
            await original(self, work, hold, limit_s)
        finally:
            for event in held:
                await hear(event)

    patch.setattr(Beside, "run", run)


def ask_no_task_store(patch: pytest.MonkeyPatch) -> None:
    async def get(self: Any, task_id: str, context: Any) -> Any:
        return await self._seen.get(task_id, context)

    patch.setattr(UserTaskStore, "get", get)


def run_without_the_card(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PYTHONPATH", str(Path(__file__).parent / "broken_run"))


def list_no_application(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AgentsDirectory, "names", lambda _: [])


def forget_the_id(patch: pytest.MonkeyPatch) -> None:
    original = api_views._session

    def session(stored: Any, shown: Any) -> Any:
        return {**original(stored, shown), "id": "the same"}

    patch.setattr(api_views, "_session", session)


def take_no_id_from_the_path(patch: pytest.MonkeyPatch) -> None:
    original = Sessions.create_with_id

    async def create(self: Sessions, key: SessionKey, state: Any) -> Any:
        return await original(self, key._replace(id="another"), state)

    patch.setattr(Sessions, "create_with_id", create)


def list_everybody_s_sessions(patch: pytest.MonkeyPatch) -> None:
    async def of_user(self: MemorySessions, app: str, _user: str) -> Any:
        owners = [(owner, ids) for owner, ids in self._sessions.items() if owner[0] == app]
        keys = [SessionKey(*owner, id_) for owner, ids in owners for id_ in ids]
        return [await self.head(key) for key in keys]

    patch.setattr(MemorySessions, "of_user", of_user)


def forget_histories(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemorySessions, "read", MemorySessions.head)


def delete_nothing(patch: pytest.MonkeyPatch) -> None:
    async def delete(*_: Any) -> bool:
        return True

    patch.setattr(MemorySessions, "delete", delete)


def return_the_last_event_alone(patch: pytest.MonkeyPatch) -> None:
    original = Replies.to_end

    def to_end(self: Replies, ended: Any) -> Any:
        return [*original(self, ended), *original(self, Ended(None, {"more": 1}))]

    patch.setattr(Replies, "to_end", to_end)
    patch.setattr(api_views, "events", lambda kept: [Fragment(event) for event in kept[:1]])


def send_bare_lines(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(api_views, "event", lambda json: b"event: " + json)


def hold_increments_back(patch: pytest.MonkeyPatch) -> None:
    original = Run._publish

    async def publish(self: Run, ready: Any, show: Any) -> None:
        whole = [event for event in ready if not event.get("partial")]
        await original(self, whole, show)

    patch.setattr(Run, "_publish", publish)
    patch.setattr(wire, "READ_WITHIN_S", 0.1)


def say_it_as_the_user(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replies, "Event", functools.partial(Event, role="user"))


def drop_tool_calls(patch: pytest.MonkeyPatch) -> None:
    original = Replies.to_said

    def to_said(self: Replies, said: Any) -> Any:
        return [] if isinstance(said.what, Part) else original(self, said)

    patch.setattr(Replies, "to_said", to_said)


def run_without_a_message(patch: pytest.MonkeyPatch) -> None:
    original = Run._message

    def message(self: Run) -> Message:
        nothing = self._body.new_message is None
        return Message((Part.of_text("nothing"),)) if nothing else original(self)

    patch.setattr(Run, "_message", message)


def list_artifacts_as_an_object(patch: pytest.MonkeyPatch) -> None:
    async def names(*_: Any) -> Any:
        return {"names": []}

    patch.setattr(Artifacts, "names", names)


def answer_health_with_an_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bodies, "state", lambda *_: PlainTextResponse("ill", 503))


def say_no_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(api_routes, "dumps", lambda _: b"{}")


def run_any_application(patch: pytest.MonkeyPatch) -> None:
    original = Runs.agent

    async def agent(self: Runs, _app: str) -> Any:
        return await original(self, "doublecheck_reference")

    patch.setattr(Runs, "agent", agent)
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-RUN-UNKNOWN-SESSION": "create"}')


def share_sessions_between_users(patch: pytest.MonkeyPatch) -> None:
    def key(request: Any) -> SessionKey:
        return SessionKey(request.path_params["app"], "shared", request.path_params["session"])

    patch.setattr(api_routes, "key", key)
    original = Sessions._create

    async def create(self: Sessions, key: SessionKey, *rest: Any) -> Any:
        return await original(self, key._replace(user="shared"), *rest)

    patch.setattr(Sessions, "_create", create)
    patch.setenv("AGENTDOUBLE_UNKNOWNS", '{"U-SESSION-DUPLICATE": "existing"}')


def ask_for_a_key(patch: pytest.MonkeyPatch) -> None:
    async def list_apps(_self: Any, _request: Any) -> Any:
        return api_routes.refused(401, "Who are you?")

    patch.setattr(api_routes.RunRoutes, "list_apps", list_apps)


def answer_services_with_a_page(patch: pytest.MonkeyPatch) -> None:
    async def answer(_self: Any, scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("Welcome to the service")(scope, receive, send)

    patch.setattr(passthrough.PassThrough, "__call__", answer)


def ask_services_for_no_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(host, "find", lambda _presented, keys: keys[0])


def pass_calls_on_without_arguments(patch: pytest.MonkeyPatch) -> None:
    original = passthrough.PassThrough._exchange

    async def exchange(self: Any, request: Any, body: bytes, send: Any) -> None:
        await original(self, request, body.replace(b'"a"', b'"c"'), send)

    patch.setattr(passthrough.PassThrough, "_exchange", exchange)


def leave_out_an_operation(patch: pytest.MonkeyPatch) -> None:
    original = api_backend.openapi.server

    def server(definition: Any, **options: Any) -> Any:
        fewer = dataclasses.replace(definition, operations=definition.operations[:1])
        return original(fewer, **options)

    patch.setattr(api_backend.openapi, "server", server)


def name_the_address_url(patch: pytest.MonkeyPatch) -> None:
    original = handle.access_record

    def record(service: Any, url: str) -> dict[str, Any]:
        access = original(service, url)["mcpServers"][service.name]
        named = {"url": access["httpUrl"], "headers": access["headers"]}
        return {"mcpServers": {service.name: named}}

    patch.setattr(handle, "access_record", record)


@pytest.mark.parametrize(
    ("clause", "break_it"),
    [
        ("API-01", list_no_application),
        ("API-02", forget_the_id),
        ("API-03", take_no_id_from_the_path),
        ("API-04", list_everybody_s_sessions),
        ("API-05", forget_histories),
        ("API-06", delete_nothing),
        ("API-07", return_the_last_event_alone),
        ("API-08", send_bare_lines),
        ("API-09", hold_increments_back),
        ("API-10", say_it_as_the_user),
        ("API-11", drop_tool_calls),
        ("API-12", run_without_a_message),
        ("API-13", list_artifacts_as_an_object),
        ("API-14", answer_health_with_an_error),
        ("API-15", say_no_version),
        ("API-16", run_any_application),
        ("API-17", forget_histories),
        ("API-18", share_sessions_between_users),
        ("AUT-01", ask_for_a_key),
        ("INV-01", drop_fields),
        ("INV-02", drop_headers),
        ("INV-03", demand_headers),
        ("INV-04", return_plain_text),
        ("INV-05", hold_the_stream_back),
        ("INV-06", swallow_the_streams_failure),
        ("INV-07", pass_an_exception_off_as_success),
        ("INV-08", accept_any_body),
        ("INV-09", share_one_session),
        ("PRB-01", answer_another_ping),
        ("PRB-05", want_a_ping_function),
        ("PRB-06", run_entrypoints_on_the_servers_loop),
        ("CTL-01", forget_the_region),
        ("CTL-02", forget_the_traceback_key),
        ("CTL-03", verify_no_signature),
        ("CTL-04", run_any_tool),
        ("CTL-05", misname_instances),
        ("CTL-06", name_no_action),
        ("CTL-07", permit_everybody),
        ("CTL-08", demand_a_ttl),
        ("SBX-01", refuse_new_sessions),
        ("SBX-02", make_an_instance_each_time),
        ("SBX-03", destroy_early),
        ("SBX-03", destroy_late),
        ("SBX-04", share_one_instance),
        ("SBX-05", misname_the_stream),
        ("SBX-06", drop_errors),
        ("SBX-07", count_nothing),
        ("SBX-08", speak_python_alone),
        ("SBX-09", lose_the_exit_code),
        ("SBX-09", run_terminals_elsewhere),
        ("SBX-10", keep_no_upload),
        ("SBX-10", spoil_downloads),
        pytest.param("SBX-11", type_nothing, marks=HAS_BROWSER),
        ("SBX-12", share_one_session),
        ("RUN-01", forget_the_result),
        ("RUN-02", take_any_tool_id),
        ("RUN-03", prefer_the_environments_keys),
        ("DEC-01", accept_any_entrypoint),
        ("DEC-02", accept_any_ping),
        ("DEC-03", accept_async_task),
        ("DEC-04", accept_any_tool),
        ("DEC-05", accept_any_executor),
        ("DEC-05", need_no_runner),
        ("DEC-06", accept_any_store),
        ("DEC-06", keep_no_task),
        ("A2A-01", leave_addresses_out_of_cards),
        ("A2A-02", run_no_executor),
        ("A2A-03", hold_results_back),
        ("A2A-04", ask_no_task_store),
        ("A2A-05", run_without_the_card),
        ("MCP-01", answer_services_with_a_page),
        ("MCP-02", ask_services_for_no_key),
        ("MCP-03", list_no_async_tool),
        ("MCP-04", forget_the_schema),
        ("MCP-04", forget_the_description),
        ("MCP-05", return_text_alone),
        ("MCP-06", wrap_no_agent),
        ("SVC-01", pass_calls_on_without_arguments),
        ("SVC-02", leave_out_an_operation),
        ("SVC-03", name_the_address_url),
    ],
)
def test_a_check_fails_where_the_double_is_broken(
    check: Callable[..., CheckRun], monkeypatch: pytest.MonkeyPatch, clause: str, break_it: Break
) -> None:
    """A check that cannot fail would say nothing by passing."""
    break_it(monkeypatch)

    assert {clause: Verdict.FAILED} == verdicts(check(clause=clause))


@pytest.mark.parametrize(
    ("clause", "path"),
    [
        ("PRB-02", "/health"),
        ("PRB-03", "/readiness"),
        ("PRB-04", "/liveness"),
        ("PRB-07", "/liveness"),
    ],
)
def test_a_missing_probe_fails_its_check(
    check: Callable[..., CheckRun], monkeypatch: pytest.MonkeyPatch, clause: str, path: str
) -> None:
    """A deployment that lacks one of the four is told which clause that breaks."""
    original = simple.SimpleApp.__call__

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == path:
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
            return
        await original(self, scope, receive, send)

    monkeypatch.setattr(simple.SimpleApp, "__call__", call)

    assert {clause: Verdict.FAILED} == verdicts(check(clause=clause))


def test_a_check_must_name_exactly_one_clause(pytester: pytest.Pytester) -> None:
    """One that names two is refused when it is collected."""
    folder = pytester.mkpydir("more")
    (folder / "conftest.py").write_text("from doublecheck.contracts.conftest import *\n")
    (folder / "test_two.py").write_text(
        "from doublecheck.contracts.clauses import clause\n\n"
        "@clause('INV-01')\n@clause('INV-02')\ndef test_two(): pass\n"
    )

    result = pytester.runpytest_inprocess(str(folder))

    result.stderr.fnmatch_lines(["*test_two must name exactly one clause, not 2.*"])


def test_the_reference_apps_are_declared(platform_server: Target) -> None:
    """A double that serves something else does not claim to serve them."""
    assert not platform_server.reference_app
